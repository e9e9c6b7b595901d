/* What a planner plans with (private to experiments). */
#ifndef KILTER_EXPERIMENTS_PLANNERS_PLANNING_H
#define KILTER_EXPERIMENTS_PLANNERS_PLANNING_H

#include "experiments/planners/planner_options.h"
#include "synth/synth.h"

struct Planning {
    const Graph *graph;
    const ClusterView
        *view; /* where collectives that the options forbid cost more than any plan */
    const PlannerOptions *options;
    const SynthPins *pins; /* NULL: none */
    SynthSpace *space;     /* the programs that keep them */
    gint64 deadline_us;    /* when the budget ends (g_get_monotonic_time); 0: never */
};
typedef struct Planning Planning;

/* Whether the budget is spent. */
static inline bool planning_is_late(const Planning *planning)
{
    return planning->deadline_us > 0 && g_get_monotonic_time() >= planning->deadline_us;
}

#endif
