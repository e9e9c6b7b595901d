/* A cluster as AMP's cost model sees it. */
#include "data/base/free.h"
#include "data/cluster/price.h"
#include "data/cluster/topology.h"
#include "synth/amp/cost.h"

#include <math.h>

/* The bandwidth of the narrowest link on the route between the first devices of two machines. */
static double route_bandwidth(Routes *routes, const Topology *topology, uint32_t from,
                              uint32_t to)
{
    g_assert(from < topology->n_devices && to < topology->n_devices);
    uint32_t link[ROUTE_MAX_LINKS];
    double bandwidth = INFINITY;
    for (uint32_t i = routes_find(routes, from, to, link); i-- > 0;)
        bandwidth = fmin(bandwidth, topology->link[link[i]].bandwidth);
    return bandwidth;
}

bool synth_amp_connect(AmpCluster *amp, const ClusterView *view, GError **error)
{
    const size_t n = amp->n_machines;
    g_autoptr(Topology) topology = NULL;
    g_autoptr(Routes) routes = NULL;
    if (view->cluster->network) {
        topology = topology_of_view(view, error);
        if (!topology)
            return false;
        routes = routes_new(topology);
    }
    g_autofree uint32_t *first = g_new0(uint32_t, n);
    for (uint32_t d = amp->n_devices; d-- > 0;)
        first[amp->machine[d]] = d;
    amp->bandwidth = g_new(double, n *n);
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++)
            amp->bandwidth[a * n + b] =
                a == b                 ? amp->inner[first[a]]
                : view->cluster->wired ? price_between(view, a, b).bandwidth
                : routes ? route_bandwidth(routes, topology, first[a], first[b])
                         : view->cluster->collective[COLLECTIVE_ALL_REDUCE].bandwidth;
    return true;
}

static void make_faster(LinkCost *line, const LinkCost *other)
{
    line->latency_s = fmin(line->latency_s, other->latency_s);
    line->bandwidth = fmax(line->bandwidth, other->bandwidth);
}

/* The fastest of the lines by which the fidelity `stage` prices all-reduces of some of the devices,
 * and transfers. Curves and rings may be faster. */
static void find_fastest(AmpCluster *amp, const ClusterView *view)
{
    const Cluster *cluster = view->cluster;
    const CollectivePieces *pieces = &view->pieces[COLLECTIVE_ALL_REDUCE];
    LinkCost *between = &amp->fastest_between, *any = &amp->fastest;
    *between = view->collective[COLLECTIVE_ALL_REDUCE];
    make_faster(between, &cluster->collective[COLLECTIVE_GROUPED_ALL_GATHER]);
    if (cluster->transfer.bandwidth > 0)
        make_faster(between, &cluster->transfer);
    for (uint32_t i = 0; i < pieces->n; i++)
        make_faster(between, &pieces->piece[i].line);
    if (cluster->curves.n > 0 || cluster->wired)
        *between = (LinkCost){0, INFINITY};
    *any = *between;
    items_each (const Machine, machine, cluster->machine, cluster->n_machines) {
        amp->most_gpus = MAX(amp->most_gpus, machine->gpus);
        if (machine->gpus > 1)
            make_faster(any, &machine->inner);
    }
    if (view->priced)
        *any = (LinkCost){0, INFINITY};
}

DeviceKinds amp_kinds(const ClusterView *view)
{
    DeviceKinds found, kinds;
    device_kinds(view, view->n_devices, &found);
    kinds = (DeviceKinds){0, g_new(uint32_t, view->n_devices), g_new(uint32_t, found.n),
                          g_new(uint32_t, found.n)};
    for (uint32_t type = 0; type < view->cluster->n_types; type++)
        for (uint32_t k = 0; k < found.n; k++) {
            if (view->device[found.first[k]].type != type)
                continue;
            for (uint32_t d = 0; d < view->n_devices; d++)
                if (found.of[d] == k)
                    kinds.of[d] = kinds.n;
            kinds.first[kinds.n] = found.first[k];
            kinds.count[kinds.n++] = found.count[k];
        }
    device_kinds_clear(&found);
    return kinds;
}

AmpCluster *synth_amp_cluster(const ClusterView *view, GError **error)
{
    if (view->granularity != GRANULARITY_GPU)
        return refused(error,
                       "pipelines are made of single GPUs: expected --granularity gpu");
    g_auto(DeviceKinds) kinds = amp_kinds(view);
    g_autoptr(AmpCluster) amp = g_new0(AmpCluster, 1);
    amp->n_devices = view->n_devices;
    amp->n_machines = view->cluster->n_machines;
    amp->type = g_new(uint32_t, view->n_devices);
    amp->machine = g_new(uint32_t, view->n_devices);
    amp->memory = g_new(double, view->n_devices);
    amp->host_link = g_new(double, view->n_devices);
    amp->host_memory = g_new(double, view->n_devices);
    amp->inner = g_new(double, view->n_devices);
    for (uint32_t m = 0, d = 0; m < amp->n_machines; m++)
        for (uint32_t g = 0; g < view->cluster->machine[m].gpus; g++, d++) {
            const Machine *machine = &view->cluster->machine[m];
            amp->machine[d] = m;
            amp->type[d] = kinds.of[d];
            amp->inner[d] = machine->inner.bandwidth;
            amp->memory[d] = (double)view->device[d].memory_bytes;
            amp->host_link[d] = machine->host_link;
            amp->host_memory[d] = machine->host_bandwidth / machine->gpus;
            amp->host_bytes += (double)machine->host_memory_bytes / machine->gpus;
        }
    find_fastest(amp, view);
    amp->alone = sim_alone_new(view, error);
    return amp->alone ? g_steal_pointer(&amp) : NULL;
}

bool amp_is_same(const AmpCluster *cluster, uint32_t n, const uint32_t *device,
                 const uint32_t *other)
{
    bool same = true;
    for (uint32_t i = 0; same && i < n; i++)
        same = cluster->type[device[i]] == cluster->type[other[i]] &&
               cluster->host_link[device[i]] == cluster->host_link[other[i]] &&
               cluster->host_memory[device[i]] == cluster->host_memory[other[i]];
    return same && sim_alone_same(cluster->alone, n, device, other);
}

FREE_DEFINE(synth_amp_cluster_free, AmpCluster, cluster,
            free_each(cluster->type, cluster->machine, cluster->memory,
                      cluster->host_link, cluster->host_memory, cluster->inner,
                      cluster->bandwidth),
            sim_alone_free(cluster->alone));
