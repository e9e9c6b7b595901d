/* Search and linear program in turn, and the best plan that they meet: the core of the planner hap
 * (private to synth). */
#pragma once

#include "synth/answer/answer.h"
#include "synth/answer/rounding.h"

/* A program that was met, with its models for common ratios. */
typedef struct {
    Program *program;
    SimLinear *linear;
    SimMemory *memory;  /* NULL until needed */
    double *balanced;   /* its best ratios; NULL until computed */
    bool roomy;         /* rounding makes it miss the memory even with room left */
    GArray *considered; /* ratios with which it was considered */
} Known;

typedef struct {
    const Question *question;
    Answer *answer;
    const Graph *graph; /* the question's, like view and options */
    const ClusterView *view;
    const PlannerOptions *options;
    GPtrArray *known; /* Known; rounds and baselines meet the same programs again */
    Plan *best;       /* NULL until there is a candidate */
    bool pinned;      /* the ratios are not changed */
    bool rough;       /* plans are not rounded by time, since better ones will come */
    double rival_s;   /* nor are those that cannot be faster than this; 0: no limit */
    uint64_t effort;  /* about how many labels a search may make; 0: no limit */
    const uint16_t *segment; /* [op] the segments asked for; NULL: one segment */
    GPtrArray *apart; /* Apart: the best ratios by segment of programs that were met */
    /* how often no such ratios were found, although there are some */
    uint32_t apart_failed;
    Plan *best_apart; /* the best plan with ratios by segment, NULL until there is one */
    double search_s, balance_s;
    uint64_t search_labels;
    /* ratios for which the current program is proved best, or NULL */
    const double *proved;
} Alternation;

Alternation alternation_new(const Question *question, Answer *answer);
/* Records the times spent in the plan. */
void alternation_end(Alternation *a, Plan *plan);

/* Whether the best plan so far fits the memory. */
static inline bool alternation_fits(const Alternation *a)
{
    return a->best && a->best->feasible;
}

/* Whether some cut has so few units that other whole ones may be faster than the ratios, which
 * all cuts share. */
static inline bool alternation_has_few_units(const Plan *plan)
{
    enum { FEW = 16 };
    const bool few = any_of(k, plan->n_splits, plan->split[k].units <= FEW);
    return few;
}

/* Whether a plan could become the best with a better rounding. */
static inline bool alternation_wants_climb(const Alternation *a, const Plan *plan)
{
    static const double visible = 1e-3; /* of the time before rounding */
    const double least_s = plan->fractional_time_s;
    return a->options->search != SEARCH_REFERENCE && !a->rough && plan->feasible &&
           (plan->iteration_time_s > least_s * (1 + visible) ||
            alternation_has_few_units(plan)) &&
           (a->rival_s == 0 || least_s < a->rival_s) &&
           (!alternation_fits(a) || least_s < a->best->iteration_time_s);
}

/* Rounds a plan, whose shares are `share`, by time where that can make it the best. */
static inline void alternation_climb(const Alternation *a, const SimLinear *linear,
                                     const SimMemory *memory, double *share, Plan *plan)
{
    if (!alternation_wants_climb(a, plan))
        return;
    plan->iteration_time_s =
        rounding_climb(plan, linear, memory, a->view, share, a->options->moves);
    plan->feasible = sim_memory_fits(memory, a->view, share);
}

/* Facts about a program, which is copied if it is new. */
Known *alternation_know(Alternation *a, const Program *program);

/* Considers a plan of a known program. *feasible is set if the plan fits the memory, and left alone
 * otherwise. */
bool alternation_consider(Alternation *a, Known *known, const double *ratio,
                          bool *feasible, GError **error);

/* Solves the linear program with a part of every GPU's memory. */
bool alternation_solve(Alternation *a, const SimLinear *linear, const SimMemory *memory,
                       double part, double *ratio, GError **error);

/* Considers a program with its best ratios among those that fit the memory, if any do. Rounding can
 * need more memory than the ratios do, so a plan that does not fit is tried again within less
 * memory. */
bool alternation_balance(Alternation *a, Known *known, double *ratio, bool *feasible,
                         GError **error);

/* Rounds the best plan by time, unless that was done before. */
bool alternation_round_best(Alternation *a, GError **error);

/* Where rounding costs time, searches again at the rounded shares of the best plan: programs that
 * were a little slower before rounding may be faster after it. */
bool alternation_settle(Alternation *a, GError **error);

/* Considers programs with their best ratios, and takes the better plans. */
bool alternation_consider_all(Alternation *a, const GPtrArray *programs,
                              const double *start, GError **error);

/* One round: the best program for the ratios, then the best ratios for it, in place. memory_s: as
 * in SynthOptions. *feasible: a plan of this round fits the memory. */
bool alternation_round(Alternation *a, double *ratio, const double *memory_s,
                       bool *feasible, GError **error);

/* Runs rounds until ratios repeat. history: ratios that were already searched with memory_s; rounds
 * from these would only repeat. */
bool alternation_run(Alternation *a, const double *start, const double *memory_s,
                     GPtrArray *history, GError **error);
