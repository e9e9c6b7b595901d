#include "synth/amp/amp.h"

#include <math.h>

/* The narrowest link on the way between the first devices of two machines, and the latencies along
 * it. */
static void read_route(Routes *routes, const Topology *topology, uint32_t from,
                       uint32_t to, double *bandwidth, double *latency_s)
{
    uint32_t link[ROUTE_MAX_LINKS];
    const uint32_t n = routes_find(routes, from, to, link);
    *bandwidth = INFINITY;
    *latency_s = 0;
    for (uint32_t i = 0; i < n; i++) {
        *bandwidth = fmin(*bandwidth, topology->link[link[i]].bandwidth);
        *latency_s += topology->link[link[i]].latency_s;
    }
}

static bool connect_machines(AmpCluster *amp, const ClusterView *view, GError **error)
{
    const uint32_t n = amp->n_machines;
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
    const LinkCost *usual = &view->cluster->collective[COLLECTIVE_ALL_REDUCE];
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++) {
            double *bandwidth = &amp->bandwidth[a * n + b],
                   *latency_s = &amp->latency_s[a * n + b];
            const LinkCost *link = a == b ? &view->cluster->machine[a].inner : usual;
            *bandwidth = link->bandwidth;
            *latency_s = link->latency_s;
            if (a != b && routes)
                read_route(routes, topology, first[a], first[b], bandwidth, latency_s);
        }
    return true;
}

AmpCluster *synth_amp_cluster(const ClusterView *view, GError **error)
{
    if (view->granularity != GRANULARITY_GPU) {
        kilter_fail(error, KILTER_ERROR_INPUT,
                    "pipelines are made of single GPUs: expected --granularity gpu");
        return NULL;
    }
    const uint32_t n = view->cluster->n_machines;
    g_autoptr(AmpCluster) amp = g_new0(AmpCluster, 1);
    amp->n_devices = view->n_devices;
    amp->n_machines = n;
    amp->type = g_new(uint32_t, view->n_devices);
    amp->machine = g_new(uint32_t, view->n_devices);
    amp->memory = g_new(double, view->n_devices);
    amp->bandwidth = g_new(double, (size_t)n *n);
    amp->latency_s = g_new(double, (size_t)n *n);
    for (uint32_t m = 0, d = 0; m < n; m++)
        for (uint32_t g = 0; g < view->cluster->machine[m].gpus; g++, d++) {
            amp->machine[d] = m;
            amp->type[d] = view->device[d].type;
            amp->memory[d] = (double)view->device[d].memory_bytes;
        }
    return connect_machines(amp, view, error) ? g_steal_pointer(&amp) : NULL;
}

void synth_amp_cluster_free(AmpCluster *cluster)
{
    if (!cluster)
        return;
    g_free(cluster->type);
    g_free(cluster->machine);
    g_free(cluster->memory);
    g_free(cluster->bandwidth);
    g_free(cluster->latency_s);
    g_free(cluster);
}
