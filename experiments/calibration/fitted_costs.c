/* The list of costs that are fitted to trials. */
#include "experiments/calibration/fitted_costs.h"

#include <math.h>
#include <string.h>

const FittedCost *fitted_costs_find(const FittedCosts *costs, Cost cost, const char *key)
{
    for (uint32_t p = 0; p < costs->n; p++)
        if (costs->cost[p].cost == cost && strcmp(costs->cost[p].key, key) == 0)
            return &costs->cost[p];
    return NULL;
}

double *fitted_costs_at(const FittedCosts *costs, const Trial *trial)
{
    double *log = g_new(double, trial_slots(trial));
    for (uint32_t s = 0; s < trial_slots(trial); s++) {
        const Cost cost = (Cost)(s % COSTS);
        const FittedCost *common = fitted_costs_find(costs, cost, ""),
                         *own = fitted_costs_find(costs, cost, trial_slot_key(trial, s));
        const bool is_absent = cost_info(cost)->absent && !common && !own;
        log[s] =
            is_absent ? -INFINITY : (common ? common->log : 0) + (own ? own->log : 0);
    }
    return log;
}

static void add_cost(GArray *list, Cost cost, const char *key)
{
    array_each (FittedCost, known, list) {
        if (known->cost == cost && strcmp(known->key, key) == 0) {
            known->n_trials++;
            return;
        }
    }
    const FittedCost new = {.cost = cost, .key = g_intern_string(key), .n_trials = 1};
    g_array_append_val(list, new);
}

/* Adds a cost of the trials' types and networks, and what these have in common. */
static void add_everywhere(GArray *list, Cost cost, const TrialPlan *plan, uint32_t n)
{
    const uint32_t before = list->len;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t s = cost; s < trial_slots(plan[i].trial); s += COSTS)
            if (fitted_costs_slot_counts(s))
                add_cost(list, cost, trial_slot_key(plan[i].trial, s));
    if (list->len > before + 1)
        add_cost(list, cost, "");
}

FittedCosts fitted_costs_with(const FittedCosts *costs, Cost cost, const TrialPlan *plan,
                              uint32_t n)
{
    GArray *list = g_array_new(false, false, sizeof(FittedCost));
    if (costs)
        g_array_append_vals(list, costs->cost, costs->n);
    for (Cost more = 0; more < COSTS; more++)
        if (costs ? more == cost : !cost_info(more)->absent)
            add_everywhere(list, more, plan, n);
    FittedCosts all = {.n = list->len};
    all.cost = (FittedCost *)(void *)g_array_free(list, FALSE);
    return all;
}
