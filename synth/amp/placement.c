/* Placements of a strategy's ranks on devices. */
#include "synth/amp/search.h"

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
