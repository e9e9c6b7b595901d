/* Fitted costs: one part per device type or network, and one that all of them have in common
 * (experiments/calibration/trial_fit.h). */
#pragma once

#include "experiments/calibration/trial_plan.h"

typedef struct {
    Cost cost;
    const char *key;   /* interned: device type or network; "": what all have in common */
    double log;        /* of the factor on the start */
    double low, high;  /* 95 % interval of it */
    uint32_t n_trials; /* that it has a part in */
} FittedCost;

typedef struct {
    uint32_t n;
    FittedCost *cost; /* [n] */
} FittedCosts;

/* The trial's costs [trial_slots]: common + own of each slot; -INFINITY: absent. Caller
 * frees. */
double *fitted_costs_at(const FittedCosts *costs, const Trial *trial);
/* The entry of this cost and key; NULL if there is none. */
const FittedCost *fitted_costs_find(const FittedCosts *costs, Cost cost, const char *key);

/* A copy of `costs` with one more cost, which was absent; of NULL those of the trials' types and
 * networks, and what these have in common, but for those that are absent at first. The caller
 * frees the result's `cost`. */
FittedCosts fitted_costs_with(const FittedCosts *costs, Cost cost, const TrialPlan *plan,
                              uint32_t n);

/* Whether a slot of a trial has a cost of its own: costs of the network have one slot, that of the
 * first type. */
static inline bool fitted_costs_slot_counts(uint32_t slot)
{
    return slot < COSTS || !cost_is_of_network((Cost)(slot % COSTS));
}
