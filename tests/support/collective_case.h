/* One collective on a cluster from nothing, for tests. */
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
    return c;
}

static inline void network_case_clear(NetworkCase *c)
{
    sim_network_free(c->network);
    sim_engine_free(c->engine);
    topology_free(c->topology);
    cluster_view_free(c->view);
    cluster_free(c->cluster);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NetworkCase, network_case_clear)

static inline void note_time(SimEngine *engine, void *context, uint64_t argument)
{
    ((double *)context)[argument] = sim_engine_now(engine);
}

/* Runs it over all devices (where `collective` names none) from now to its end; returns
 * the seconds. rank_s: when each rank was done, may be NULL. */
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
    assert_int_equal(sim_network_active(c->network), 0);
    return end_s - start_s;
}

#endif
