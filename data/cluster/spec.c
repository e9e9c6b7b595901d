/* Clusters written as one text: equal hosts on a built network, for experiments with
 * networks rather than with models. */
#include <math.h>

#include "data/base/error.h"
#include "data/cluster/members.h"
#include "data/cluster/network_spec.h"

/* Sets the lines by which the stage model prices collectives. Latencies are those of the rings of
 * sim/network/lower/lowering.h over the routes of largest latency; bandwidths are the host's. Only
 * the simulation of flows shows the effect of the network's inner links. */
static void price(Cluster *cluster, const HostSpec *spec)
{
    static const uint32_t HOPS[] = {[NETWORK_STAR] = 2,
                                    [NETWORK_TREE] = 4,
                                    [NETWORK_RAIL] = 2,
                                    [NETWORK_DRAGONFLY] = 5};
    const NetworkSpec *network = &spec->network;
    const uint32_t hops = network->pod ? 6 : HOPS[network->kind];
    const double route_s = hops * network->link.latency_s;
    const double rounds = spec->hosts - 1;
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        cluster->collective[kind] =
            (LinkCost){rounds * route_s, network->kind == NETWORK_RAIL
                                             ? network->rails * network->link.bandwidth
                                             : network->link.bandwidth};
    cluster->collective[COLLECTIVE_ALL_REDUCE].latency_s = 2 * rounds * route_s;
    cluster->collective[COLLECTIVE_ALL_TO_ALL].latency_s = route_s;
}

static Cluster *make(const char *text, const HostSpec *spec)
{
    Cluster *cluster = g_new0(Cluster, 1);
    cluster->name = g_strdup(text);
    cluster->description = g_strdup("equal hosts on a built network");
    cluster->n_types = 1;
    cluster->type = g_new0(DeviceType, 1);
    cluster->type[0] = (DeviceType){.name = g_strdup("gpu"),
                                    .rate = spec->rate,
                                    .memory_bytes = (uint64_t)spec->memory,
                                    .source = g_strdup("the cluster's text")};
    cluster->n_machines = spec->hosts;
    cluster->machine = g_new0(Machine, spec->hosts);
    for (uint32_t i = 0; i < spec->hosts; i++)
        cluster->machine[i] = (Machine){.name = g_strdup_printf("host-%u", i),
                                        .gpus = spec->gpus,
                                        .inner = spec->inner,
                                        .source = g_strdup("the cluster's text")};
    cluster->network = g_memdup2(&spec->network, sizeof spec->network);
    cluster->network->source = g_strdup("the cluster's text");
    cluster->collective_source = g_strdup("the cluster's text, see data/cluster/spec.c");
    price(cluster, spec);
    return cluster;
}

Cluster *cluster_from_spec(const char *text, GError **error)
{
    HostSpec spec;
    if (!host_spec_parse(text, &spec, error))
        return NULL;
    const char *missing = !spec.hosts ? "hosts"
                          : spec.gpus > 1 && !(spec.inner.bandwidth > 0)
                              ? "inner_bandwidth"
                              : NULL;
    if (missing) {
        kilter_fail(error, KILTER_ERROR_INPUT, "'%.200s': %s: missing", text, missing);
        return NULL;
    }
    if (spec.gpus == 1)
        spec.inner = (LinkCost){0, INFINITY};
    if ((uint64_t)spec.hosts * spec.gpus > GPUS_MAX) {
        kilter_fail(error, KILTER_ERROR_INPUT,
                    "'%.200s': expected at most %d GPUs in the cluster", text, GPUS_MAX);
        return NULL;
    }
    if (!network_spec_check(&spec.network, spec.hosts, error)) {
        kilter_prefix(error, "'%.200s': ", text);
        return NULL;
    }
    return make(text, &spec);
}
