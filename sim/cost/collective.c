/* Time of one collective: the table of sim/sim.h (HAP Sec. 3.2). */
#include <math.h>

#include "sim/cost/step.h"

double sim_collective_over(LinkCost line, uint32_t n_devices, Collective kind,
                           double bytes, double max_share_from, double max_share_to)
{
    if (n_devices == 1 || !sim_is_priced(kind))
        return 0;
    const double n = n_devices;
    const double latency_s = line.latency_s, whole_s = bytes / line.bandwidth;
    switch (kind) {
    case COLLECTIVE_ALL_REDUCE:
        return latency_s + 2 * (n - 1) / n * whole_s;
    case COLLECTIVE_ALL_GATHER:
        return latency_s + (n - 1) * max_share_from * whole_s;
    case COLLECTIVE_REDUCE_SCATTER:
        return latency_s + (n - 1) * max_share_to * whole_s;
    case COLLECTIVE_GROUPED_ALL_GATHER:
    case COLLECTIVE_GROUPED_REDUCE_SCATTER:
        return n * latency_s + whole_s;
    case COLLECTIVE_ALL_TO_ALL:
        return latency_s + fmax(max_share_from, max_share_to) * (n - 1) / n * whole_s;
    default:
        g_assert_not_reached();
    }
}

double sim_collective_s(const ClusterView *view, Collective kind, double bytes,
                        double max_share_from, double max_share_to)
{
    KILTER_ASSERT(bytes >= 0 && max_share_from >= 0 && max_share_to >= 0);
    if (!sim_is_priced(kind))
        return 0;
    return sim_collective_over(cluster_view_line(view, kind, bytes), view->n_devices,
                               kind, bytes, max_share_from, max_share_to);
}
