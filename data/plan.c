#include "data/plan.h"

#include <math.h>

Plan *plan_new(void)
{
    return g_new0(Plan, 1);
}

void plan_free(Plan *plan)
{
    if (!plan)
        return;
    g_free(plan->model);
    g_free(plan->cluster);
    g_free(plan->planner);
    g_free(plan->version);
    program_free(plan->program);
    g_free(plan->ratio);
    g_free(plan->segment);
    for (uint32_t i = 0; i < plan->n_splits; i++)
        g_free(plan->split[i].count);
    g_free(plan->split);
    g_free(plan->memory_bytes);
    g_free(plan);
}

double plan_gap(const Plan *plan)
{
    if (!(plan->lower_bound_s > 0))
        return INFINITY;
    return (plan->iteration_time_s - plan->lower_bound_s) / plan->lower_bound_s;
}

const Split *plan_find_split(const Plan *plan, uint32_t segment, uint32_t units)
{
    uint32_t low = 0, high = plan->n_splits;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const Split *split = &plan->split[middle];
        if (split->segment == segment && split->units == units)
            return split;
        if (split->segment < segment ||
            (split->segment == segment && split->units < units))
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
