/* Placements: a strategy's ranks on devices, and its layers on stages. */
#include "synth/amp/search.h"

uint32_t *amp_machine_order(const AmpCluster *cluster, bool backwards)
{
    uint32_t *order = g_new(uint32_t, cluster->n_devices);
    uint32_t at = 0;
    for (uint32_t i = 0; i < cluster->n_machines; i++) {
        const uint32_t machine = backwards ? cluster->n_machines - 1 - i : i;
        for (uint32_t d = 0; d < cluster->n_devices; d++)
            if (cluster->machine[d] == machine)
                order[at++] = d;
    }
    return order;
}

uint32_t amp_smallest_machine(const AmpCluster *cluster)
{
    g_autofree uint32_t *count = g_new0(uint32_t, cluster->n_machines);
    for (uint32_t d = 0; d < cluster->n_devices; d++)
        count[cluster->machine[d]]++;
    return least_over(uint32_t, m, cluster->n_machines, UINT32_MAX, count[m]);
}

void amp_place_stages(AmpStrategy *strategy, const uint32_t *order)
{
    g_assert(strategy->pp > 0 && strategy->dp > 0 && strategy->tmp > 0);
    const uint32_t n = strategy->pp * strategy->dp * strategy->tmp;
    for (uint32_t i = 0; i < n; i++)
        strategy->device[i] = order[i];
}

void amp_place_replicas(AmpStrategy *strategy, const uint32_t *order)
{
    const uint32_t pp = strategy->pp, dp = strategy->dp, tmp = strategy->tmp;
    for (uint32_t stage = 0; stage < pp; stage++)
        for (uint32_t r = 0; r < dp; r++)
            for (uint32_t t = 0; t < tmp; t++)
                strategy->device[(stage * dp + r) * tmp + t] =
                    order[(r * pp + stage) * tmp + t];
}

bool amp_assign_layers(const AmpSearch *search, AmpStrategy *strategy, AmpCost *cost)
{
    g_autoptr(AmpRows) rows = amp_rows_new(
        search->model, search->cluster, search->options, search->layers, strategy, true);
    double total;
    if (!rows)
        return false;
    rows->problem.work = search->options->work;
    if (!synth_amp_assign(&rows->problem, strategy->first, &total))
        return false;
    *cost = amp_rows_cost(rows, strategy->first);
    return cost->fits || !rows->host;
}

AmpStrategy amp_strategy_of(const AmpSearch *search, const AmpDegrees *c)
{
    return amp_strategy_new(c, amp_chunks(search->options));
}
