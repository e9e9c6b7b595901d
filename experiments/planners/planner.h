/* Planners: methods that make a plan, behind one interface.
 *
 *     model, cluster, options  --planner_plan-->  Plan   program and ratios, rounded, evaluated, checked, bounded
 *
 * A planner is a row of the table in experiments/planners/planner.c: name, description, paper, and a function
 * make() that gets what it plans with (experiments/planners/planning.h) and fills the plan's program
 * and ratios (experiments/planners/complete.h has the tools). Options are rows of tables as well
 * (experiments/planners/planner_options.h). */
#ifndef KILTER_EXPERIMENTS_PLANNERS_PLANNER_H
#define KILTER_EXPERIMENTS_PLANNERS_PLANNER_H

#include "data/data.h"
#include "experiments/planners/planner_options.h"

typedef struct Planning Planning; /* experiments/planners/planning.h */

typedef struct Planner Planner;
struct Planner {
    const char *name;
    const char *description;
    const char *source; /* paper and section */
    bool single;        /* plans single GPUs: granularity gpu only */
    /* Fills program, ratios, search/balance times, bound; planner_plan() rounds, evaluates and
     * completes the plan. */
    bool (*make)(const Planning *planning, Plan *plan, GError **error);
};

uint32_t planner_count(void);
const Planner *planner_at(uint32_t index);
/* Whether it takes the best of many programs: if its plan does not fit, another one may. */
bool planner_searches(const Planner *planner);
const Planner *planner_find(const char *name,
                            GError **error); /* KILTER_ERROR_INPUT lists the known ones */

/* Whether the planner can do what the options ask for, for this graph; KILTER_ERROR_INPUT names the
 * option, or the pin. */
bool planner_check(const Planner *planner, const PlannerOptions *options,
                   const Graph *graph, GError **error);

/* Builds the graph, runs the planner, rounds, evaluates (analytic) and checks memory. A plan that
 * does not fit has feasible == false; it is not an error here. *graph, if not NULL, gets the graph. */
Plan *planner_plan(const Planner *planner, const char *model, const char *cluster_name,
                   const ClusterView *view, const PlannerOptions *options, Graph **graph,
                   GError **error);

#endif
