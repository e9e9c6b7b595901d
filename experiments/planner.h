/* Planners: methods that make a plan, behind one interface (AMP, HiDup, TAG join as further rows). */
#ifndef KILTER_EXPERIMENTS_PLANNER_H
#define KILTER_EXPERIMENTS_PLANNER_H

#include "data/data.h"
#include "sim/sim.h"

/* What every planner may be told; `--set key=value` and the `set:` of an experiment file fill it. */
typedef struct {
    uint64_t seed;
    uint64_t bucket_bytes; /* fuse gradient all-reduces up to this size; 0: one each */
    uint32_t beam;         /* of the search; 0: exact */
    uint32_t max_rounds;   /* of hap's alternation */
    SimOptions sim;        /* of the simulation of the plan; plans do not depend on it */
} PlannerOptions;

typedef struct Planner Planner;
struct Planner {
    const char *name;
    const char *description;
    const char *source; /* paper and section */
    /* Fills program, ratios, search/balance times, bound; planner_plan() rounds, evaluates and completes the plan. */
    bool (*make)(const Graph *graph, const ClusterView *view,
                 const PlannerOptions *options, Plan *plan, GError **error);
};

uint32_t planner_count(void);
const Planner *planner_at(uint32_t index);
const Planner *planner_find(const char *name,
                            GError **error); /* KILTER_ERROR_INPUT lists the known ones */

void planner_options_init(PlannerOptions *options);
/* One `key=value`; KILTER_ERROR_INPUT names the key and what was expected. */
bool planner_options_set(PlannerOptions *options, const char *key, const char *value,
                         GError **error);
/* The options as `key`, `value` pairs for the effective configuration, those of the simulation where they are not at
 * their defaults. Free with g_strfreev. */
char **planner_options_list(const PlannerOptions *options);

/* Builds the graph, runs the planner, rounds, evaluates (analytic) and checks memory. A plan that does not fit has feasible ==
 * false; it is not an error here. *graph, if not NULL, gets the graph. */
Plan *planner_plan(const Planner *planner, const char *model, const char *cluster_name,
                   const ClusterView *view, const PlannerOptions *options, Graph **graph,
                   GError **error);

#endif
