/* The question that a planner gets (private to synth): opened and checked once, then only read. */
#pragma once

#include "synth/planners/planner.h"
#include "synth/spmd/pins.h"

struct Question {
    const Planner *planner;
    char *model;  /* canonical */
    Graph *graph; /* planners do not change it */
    /* the cluster as it is: the caller's view, `priced`, `measured` or `held` */
    const ClusterView *cluster;
    /* the view with the prices that options ask for; NULL: it has them */
    ClusterView *priced;
    ClusterView *measured; /* the view with measured times of ops; NULL: there are none */
    /* the view with what the runtime leaves of the memory; NULL: there is no runtime */
    ClusterView *held;
    Runtime *runtime;
    /* the view in which forbidden collectives cost more than any plan */
    ClusterView narrowed;
    const ClusterView *view; /* the view that planners see: `cluster` or `narrowed` */
    PlannerOptions own;
    const PlannerOptions *options; /* `own` */
    SynthPins *pins;               /* NULL: none */
    uint16_t *segment; /* [op] by the options; NULL: all ops have the same ratios */
};

/* Whether two microbatches take turns in the planner's plans. */
bool question_takes_turns(const Planner *planner, const PlannerOptions *options);

/* Whether a program gets its best ratios. */
static inline bool question_wants_best_ratios(const Question *question)
{
    const RatiosChoice ratios = planner_ratios(question->options);
    return ratios == RATIOS_BEST ||
           (ratios == RATIOS_OWN && planner_can(question->planner, PLANNER_BALANCES));
}

/* Whether the options ask for microbatches or recomputation of a planner that has neither. */
static inline bool question_is_trained(const Question *question)
{
    const Strategy *strategy = &question->options->strategy;
    return !planner_can(question->planner, PLANNER_GROUPS) && strategy->zero == 0 &&
           (strategy->microbatches > 1 || strategy->recompute);
}
