/* The search of the planner joint: pipelines for every number of microbatches and every schedule
 * (private to synth). */
#pragma once

#include <math.h>

#include "synth/joint/hap_inside.h"

enum { JOINT_LABELS = 3000000 }; /* most labels of a search */

/* A pipeline and its problem. */
typedef struct {
    JointPipeline pipeline;
    uint32_t problem;
    bool is_gpipe; /* its schedule keeps most: of equal ones it comes last */
    double walk_s;
} JointFound;

typedef struct {
    const Question *question;
    Answer *answer;
    Plan *plan;
    JointHap *hap;
    JointMenu *menu, *coarse; /* coarse: NULL where a search is quick */
    GPtrArray *problems;      /* JointProblem */
    GPtrArray *menus;         /* [problem]: its menu, borrowed */
    GArray *found;            /* JointFound, cheapest first */
    double upper_s;           /* the cheapest so far */
    double off; /* the least time of a program over that of its walk; at most 1 */
    /* places in `found` of programs that were evaluated and do not fit */
    uint32_t misfits, misfit[16];
    /* stages that may still be prepended in all searches together; UINT64_MAX: any number */
    uint64_t left;
    bool is_pair;       /* the plan has two pipelines with unlike stages */
    const char *target; /* the framework that is to run the plan; NULL: any */
    GArray *keeps;      /* JointKeep: the stages that it runs; NULL: any */
} JointSearch;

/* Fills `found` with pipelines whose stages need at most this part of the memory. */
void joint_search(JointSearch *j, double headroom);

/* Whether there is a plan: one that was found, or, on many GPUs, one that is known elsewhere. */
static inline bool joint_has_plan(const JointSearch *j)
{
    return j->found->len > 0 || (j->coarse && j->answer->upper_s < INFINITY);
}

/* The work that searches may still do; NULL: any, as long as there is no plan. */
static inline uint64_t *joint_left(JointSearch *j)
{
    return j->left < UINT64_MAX && joint_has_plan(j) ? &j->left : NULL;
}

static inline bool joint_is_spent(const JointSearch *j)
{
    return j->left == 0 && joint_has_plan(j);
}

/* Whether a stage runs an SPMD program. */
bool joint_is_inside(const JointProblem *problem, const JointPipeline *pipeline);
bool joint_has_inside(const JointSearch *j, const JointFound *found);

/* A pipeline with stages of its own. */
JointPipeline joint_copy(const JointPipeline *pipeline);

/* Adds, for the best pipelines with SPMD programs, those with programs for the pieces of their
 * microbatches; the pipelines found are in order. */
void joint_polish(JointSearch *j);

/* Searches for pairs of pipelines that are replicas of each other, for the numbers of
 * microbatches of the best pipelines found, and leaves the best one in the plan if it is faster
 * than what is there. */
bool joint_try_pairs(JointSearch *j, GError **error);

/* Makes a problem for every number of microbatches, in the place of those that were there. */
void joint_all_problems(JointSearch *j, double headroom);

/* Whether one search of the menu takes so long that a coarse one should come first. batch: samples,
 * the most microbatches. */
bool joint_is_large(JointMenu *menu, uint32_t batch);
