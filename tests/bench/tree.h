/* Messages on a tree network, for benchmarks. */
#ifndef KILTER_TESTS_BENCH_TREE_H
#define KILTER_TESTS_BENCH_TREE_H

#include "data/data.h"
#include "sim/network/network.h"

/* A 4:1 tree of 10 Gb/s. */
static inline Topology *bench_tree(uint32_t hosts, uint32_t leaf)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *name = g_strdup_printf(
        "tree:hosts=%u,leaf=%u,oversubscription=4,bandwidth=10Gb/s,latency=0s", hosts,
        leaf);
    g_autoptr(Cluster) cluster = cluster_load(name, &error);
    g_autoptr(ClusterView) view = cluster ? cluster_view(cluster, GRANULARITY_GPU) : NULL;
    Topology *topology = view ? topology_of_view(view, &error) : NULL;
    if (!topology)
        g_error("%s", error->message);
    return topology;
}

enum { TREE_LINKS = 4 }; /* up and down through two levels */

/* Starts `bytes` from host to host; `use` [TREE_LINKS] and `context` live until `done`. */
static inline void bench_send(SimNetwork *network, uint32_t from, uint32_t to,
                              double bytes, SimUse *use, const SimFlow *rest)
{
    uint32_t link[ROUTE_MAX_LINKS];
    SimFlow flow = *rest;
    flow.use = use;
    flow.n_uses = sim_network_route(network, from, to, link);
    flow.bytes = bytes;
    flow.payload = flow.efficiency = 1;
    g_assert(flow.n_uses <= TREE_LINKS);
    for (uint32_t i = 0; i < flow.n_uses; i++)
        use[i] = (SimUse){link[i], 1};
    sim_network_start(network, &flow);
}

#endif
