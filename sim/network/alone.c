/* Messages alone on the network, each kind found once. */
#include "sim/network/lower/lowering.h"
#include "sim/sim.h"

struct SimAlone {
    Topology *topology;
    SimEngine *engine;
    SimNetwork *network;
    GHashTable *known; /* GBytes: what is sent -> double: seconds */
};

SimAlone *sim_alone_new(const ClusterView *view, GError **error)
{
    Topology *topology = topology_of_view(view, error);
    if (!topology)
        return NULL;
    SimAlone *alone = g_new0(SimAlone, 1);
    alone->topology = topology;
    alone->engine = sim_engine_new();
    alone->network = sim_network_new(alone->engine, topology);
    alone->known = g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
                                         (GDestroyNotify)g_bytes_unref, g_free);
    return alone;
}

void sim_alone_free(SimAlone *alone)
{
    if (!alone)
        return;
    g_hash_table_unref(alone->known);
    sim_network_free(alone->network);
    sim_engine_free(alone->engine);
    topology_free(alone->topology);
    g_free(alone);
}

static void end_at(SimEngine *engine, void *context, uint64_t argument)
{
    (void)argument;
    *(double *)context = sim_engine_now(engine);
}

static double run_s(SimAlone *alone, const SimCollective *collective)
{
    g_autoptr(SimLowered) lowered = sim_lower(alone->network, collective, NULL);
    const double start_s = sim_engine_now(alone->engine);
    double end_s = start_s;
    if (!lowered)
        return 0;
    g_autoptr(SimRun) run = sim_run_new(alone->network, lowered, NULL, end_at, &end_s, 0);
    sim_run_arrive_all(run);
    sim_engine_run(alone->engine);
    return end_s - start_s;
}

static GBytes *key_of(const SimCollective *c)
{
    GByteArray *key = g_byte_array_new();
    const uint32_t head[] = {(uint32_t)c->traffic, c->n, c->n_groups};
    g_byte_array_append(key, (const guint8 *)head, sizeof head);
    g_byte_array_append(key, (const guint8 *)&c->bytes, sizeof c->bytes);
    g_byte_array_append(key, (const guint8 *)c->device,
                        (guint)(c->n * c->n_groups * sizeof *c->device));
    return g_byte_array_free_to_bytes(key);
}

static double find_s(SimAlone *alone, const SimCollective *collective)
{
    GBytes *key = key_of(collective);
    double *known = g_hash_table_lookup(alone->known, key);
    if (known) {
        g_bytes_unref(key);
        return *known;
    }
    known = g_new(double, 1);
    *known = run_s(alone, collective);
    g_hash_table_insert(alone->known, key, known);
    return *known;
}

double sim_alone_collective_s(SimAlone *alone, Collective kind, double bytes, uint32_t n,
                              uint32_t n_groups, const uint32_t *device)
{
    g_assert((int)kind < COLLECTIVES_PRICED && n > 0);
    const SimCollective collective = {.traffic = (Traffic)kind, /* the same order */
                                      .bytes = bytes,
                                      .n = n,
                                      .n_groups = n_groups,
                                      .device = device};
    return n > 1 ? find_s(alone, &collective) : 0;
}

double sim_alone_send_s(SimAlone *alone, double bytes, uint32_t n_pairs,
                        const uint32_t *device)
{
    g_assert(bytes >= 0 && n_pairs > 0);
    g_autofree double *weight = g_new(double, n_pairs);
    for (uint32_t i = 0; i < n_pairs; i++)
        weight[i] = 1;
    const SimCollective collective = {.traffic = TRAFFIC_SEND,
                                      .bytes = bytes,
                                      .n = 2,
                                      .n_groups = n_pairs,
                                      .device = device,
                                      .weight = weight};
    return find_s(alone, &collective);
}
