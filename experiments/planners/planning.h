/* The inputs of a planner (private to experiments). */
#ifndef KILTER_EXPERIMENTS_PLANNERS_PLANNING_H
#define KILTER_EXPERIMENTS_PLANNERS_PLANNING_H

#include "experiments/planners/planner.h"
#include "synth/synth.h"

/* The last plan that was completed, on which view, and what came out. */
typedef struct {
    const Plan *plan;
    const ClusterView *view;
    SimReport *report;
    /* least time before rounding of a plan that fits, of all that were met; 0: none was */
    double seen_s;
    ClusterView *chosen; /* of the plan, where the planner chose it; NULL */
    /* [SYNTH_POINTS * n_devices] multipliers of memory where the best plan so far was found; NULL: it took none */
    double *memory_s;
    /* the fastest program's time before rounding where it does not fit, so that plans were searched for that take less
     * memory; 0: it fits */
    double misfit_s;
} PlanningDone;

struct Planning {
    const Planner *planner;
    char *model;                /* canonical */
    Graph *graph;               /* planners do not change it */
    const ClusterView *cluster; /* as it is: the caller's, or */
    ClusterView *measured;      /* where ops have measured times; NULL */
    ClusterView
        narrowed; /* where collectives that the options forbid cost more than any plan */
    const ClusterView *view; /* what planners see: one of the two */
    PlannerOptions own;
    const PlannerOptions *options; /* `own` */
    SynthPins *pins;               /* NULL: none */
    uint16_t *segment;  /* [op] as the options say; NULL: all ops have the same ratios */
    SynthSpace *space;  /* the programs that keep the pins */
    gint64 deadline_us; /* when the budget ends (g_get_monotonic_time); 0: never */
    double upper_s;     /* plans that take as long are of no use; INFINITY */
    /* room will be made for the plan: neither memory nor rounding is searched for */
    bool roomy;
    PlanningDone *done;
};

/* Whether the budget is spent. */
static inline bool planning_is_late(const Planning *planning)
{
    return planning->deadline_us > 0 && g_get_monotonic_time() >= planning->deadline_us;
}

/* Whether a plan that takes so long with all memory that it wants is of no use. */
static inline bool planning_is_lost(const Planning *planning, double seconds)
{
    return seconds >= planning->upper_s;
}

/* Whether a program's ratios are to be the best ones for it. */
static inline bool planning_wants_best_ratios(const Planning *planning)
{
    const uint32_t ratios = planning->options->ratios;
    return ratios == RATIOS_BEST ||
           (ratios == RATIOS_OWN && planner_can(planning->planner, PLANNER_BALANCES));
}

#endif
