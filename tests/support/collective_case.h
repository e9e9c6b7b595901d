/* One collective alone on a cluster, for tests. */
#ifndef KILTER_TESTS_COLLECTIVE_CASE_H
#define KILTER_TESTS_COLLECTIVE_CASE_H

#include "sim/network/lower/lowering.h"
#include "tests/test.h"

typedef struct {
    Cluster *cluster;
    ClusterView *view;
    Topology *topology;
    SimEngine *engine;
    SimNetwork *network;
    GPtrArray *uses; /* of the messages sent */
} NetworkCase;

static inline NetworkCase network_case(const char *cluster, Granularity granularity)
{
    NetworkCase c = {0};
    g_autoptr(GError) error = NULL;
    c.cluster = cluster_load(cluster, &error);
    assert_no_error(error);
    c.view = cluster_view(c.cluster, granularity);
    c.topology = topology_of_view(c.view, &error);
    assert_no_error(error);
    c.engine = sim_engine_new();
    c.network = sim_network_new(c.engine, c.topology);
    c.uses = g_ptr_array_new_with_free_func(g_free);
    return c;
}

static inline void network_case_clear(NetworkCase *c)
{
    sim_network_free(c->network);
    g_ptr_array_unref(c->uses);
    sim_engine_free(c->engine);
    topology_free(c->topology);
    cluster_view_free(c->view);
    cluster_free(c->cluster);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NetworkCase, network_case_clear)

/* Starts a message between two devices, over their route, at efficiency 1. */
static inline void network_send(NetworkCase *c, uint32_t from, uint32_t to, double bytes,
                                SimHandler done, void *context, uint64_t argument)
{
    uint32_t link[ROUTE_MAX_LINKS];
    const uint32_t n = sim_network_route(c->network, from, to, link);
    SimUse *use = g_new(SimUse, n + 1);
    SimFlow flow = {.use = use,
                    .n_uses = n,
                    .bytes = bytes,
                    .payload = 1,
                    .efficiency = 1,
                    .done = done,
                    .context = context,
                    .argument = argument};

    g_ptr_array_add(c->uses, use);
    for (uint32_t i = 0; i < n; i++) {
        use[i] = (SimUse){link[i], 1};
        flow.latency_s += c->topology->link[link[i]].latency_s;
    }
    sim_network_start(c->network, &flow);
}

static inline void note_time(SimEngine *engine, void *context, uint64_t argument)
{
    ((double *)context)[argument] = sim_engine_now(engine);
}

/* Runs the collective over all devices (if it names none) from now to its end; returns the seconds.
 * rank_s: the time at which each rank was done; may be NULL. */
static inline double collective_s(NetworkCase *c, SimCollective collective,
                                  double *rank_s)
{
    g_autoptr(GError) error = NULL;
    g_autofree uint32_t *device = g_new(uint32_t, c->topology->n_devices);
    const double start_s = sim_engine_now(c->engine);
    double end_s = -1;

    for (uint32_t j = 0; j < c->topology->n_devices; j++)
        device[j] = j;
    if (!collective.device) {
        collective.device = device;
        collective.n = c->topology->n_devices;
    }
    g_autoptr(SimLowered) lowered = sim_lower(c->network, &collective, &error);
    assert_no_error(error);
    g_autofree double *own_s = g_new0(double, collective.n *MAX(1, collective.n_groups));
    g_autoptr(SimRun) run =
        sim_run_new(c->network, lowered, note_time, NULL, rank_s ? rank_s : own_s, 0);
    sim_run_arrive_all(run);
    sim_engine_run(c->engine);
    const double *times = rank_s ? rank_s : own_s;
    for (uint32_t r = 0; r < collective.n * MAX(1, collective.n_groups); r++)
        end_s = fmax(end_s, times[r]);
    assert_true(sim_network_is_idle(c->network));
    return end_s - start_s;
}

#endif
