/* The inputs of a planner (private to synth). */
#ifndef KILTER_SYNTH_QUESTION_PLANNING_H
#define KILTER_SYNTH_QUESTION_PLANNING_H

#include "synth/planners/planner.h"
#include "synth/hap/search.h"

/* The plan completed last, its view, and its results. */
typedef struct {
    const Plan *plan;
    const ClusterView *view;
    SimReport *report;
    /* least time before rounding of all plans that fit; 0: none does */
    double seen_s;
    ClusterView *chosen; /* the plan's view if the planner chose it, or NULL */
    /* [SYNTH_POINTS * n_devices] multipliers of memory with which the best plan so far was found;
     * NULL: without any */
    double *memory_s;
    /* the fastest program's time before rounding if it does not fit, so that plans with less memory
     * were searched for; 0: it fits */
    double misfit_s;
    bool disproved; /* a proof that nothing fits was tried; */
    char *misfit;   /* the proof, or NULL */
} PlanningDone;

struct Planning {
    const Planner *planner;
    char *model;  /* canonical */
    Graph *graph; /* planners do not change it */
    /* the cluster as it is: the caller's view, `priced`, `measured` or `held` */
    const ClusterView *cluster;
    ClusterView *priced;   /* the view with the prices that options ask for; NULL: it has them */
    ClusterView *measured; /* the view with measured times of ops; NULL: there are none */
    /* the view with what the runtime leaves of the memory; NULL: there is no runtime */
    ClusterView *held;
    Runtime *runtime;
    ClusterView
        narrowed; /* the view in which forbidden collectives cost more than any plan */
    const ClusterView *view; /* the view that planners see: `cluster` or `narrowed` */
    PlannerOptions own;
    const PlannerOptions *options; /* `own` */
    SynthPins *pins;               /* NULL: none */
    uint16_t *segment;  /* [op] by the options; NULL: all ops have the same ratios */
    SynthSpace *space;  /* the programs that keep the pins */
    gint64 deadline_us; /* when the budget ends (g_get_monotonic_time); 0: never */
    double upper_s;     /* plans that take this long are of no use; default INFINITY */
    /* the caller will make room for the plan: neither memory nor rounding is searched for */
    bool roomy;
    bool unbounded; /* the plan needs no bound */
    PlanningDone *done;
};

/* Whether the budget is spent. */
static inline bool planning_is_late(const Planning *planning)
{
    return planning->deadline_us > 0 && g_get_monotonic_time() >= planning->deadline_us;
}

/* Whether a plan that takes so long, without a limit of memory, is of no use. */
static inline bool planning_is_lost(const Planning *planning, double seconds)
{
    return seconds >= planning->upper_s;
}

/* Whether a program gets its best ratios. */
static inline bool planning_wants_best_ratios(const Planning *planning)
{
    const uint32_t ratios = planning->options->ratios;
    return ratios == RATIOS_BEST ||
           (ratios == RATIOS_OWN && planner_can(planning->planner, PLANNER_BALANCES));
}

#endif
