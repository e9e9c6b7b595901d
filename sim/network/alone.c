/* Times of messages alone on the network, each simulated once and kept. */
#include "data/base/free.h"
#include "sim/network/measured.h"
#include "sim/sim.h"

#include <string.h>

struct SimAlone {
    const ClusterView *view;
    Topology *topology;
    SimEngine *engine;
    SimNetwork *network;
    GHashTable *known; /* GBytes with the messages -> double: seconds */
    /* Where any machine of a run of equal ones can take another's place, and so can GPUs of a
     * machine: [machine] the first one of its run, [machine] its first device; NULL: on other
     * networks places matter */
    uint32_t *run, *first;
    /* scratch, by device, by machine and by run: who stands for it, NOBODY for none yet; and how
     * many do */
    uint32_t *device_as, *machine_as, *n_devices, *n_machines;
};

enum { NOBODY = UINT32_MAX };

/* On a star, and on the ideal switch of fitted collectives, machines have equal ports. With direct
 * links the GPUs of a machine differ, and with domains and regions the machines. */
static bool is_star(const Cluster *cluster)
{
    return !any_of(i, cluster->n_machines,
                   cluster->machine[i].peers || cluster->machine[i].domain ||
                       cluster->machine[i].region) &&
           (!cluster->network || cluster->network->kind == NETWORK_STAR);
}

static bool is_alike(const ClusterView *view, uint32_t a, uint32_t b)
{
    const Machine *x = &view->cluster->machine[a], *y = &view->cluster->machine[b];
    return x->gpus == y->gpus && x->inner.bandwidth == y->inner.bandwidth &&
           x->inner.latency_s == y->inner.latency_s && x->sums == y->sums &&
           x->tree_sums == y->tree_sums && x->port.bandwidth == y->port.bandwidth &&
           x->port.gpu == y->port.gpu && x->port.hop_s == y->port.hop_s &&
           x->port.base_s == y->port.base_s;
}

/* Runs of equal machines: neighbours, so that what stands for them keeps the order of rings and
 * trees. */
static void find_runs(SimAlone *alone, const ClusterView *view)
{
    const uint32_t n = view->cluster->n_machines;
    if (!is_star(view->cluster))
        return;
    alone->run = g_new0(uint32_t, n);
    alone->first = g_new0(uint32_t, n);
    alone->device_as = g_new(uint32_t, view->n_devices);
    alone->machine_as = g_new(uint32_t, n);
    alone->n_devices = g_new(uint32_t, n);
    alone->n_machines = g_new(uint32_t, n);
    for (uint32_t d = view->n_devices; d-- > 0;)
        alone->first[alone->topology->machine[d]] = d;
    for (uint32_t m = 1; m < n; m++)
        alone->run[m] = is_alike(view, m, m - 1) ? alone->run[m - 1] : m;
}

/* By whole numbers of 32 bits, of which keys consist. */
static guint alone_key_hash(const void *key)
{
    gsize n;
    const uint32_t *word = g_bytes_get_data((GBytes *)key, &n);
    guint hash = 0;
    for (gsize i = 0; i < n / sizeof *word; i++)
        hash = hash * 31 + word[i];
    return hash;
}

SimAlone *sim_alone_new(const ClusterView *view, GError **error)
{
    Topology *topology = topology_of_view(view, error);
    if (!topology)
        return NULL;
    SimAlone *alone = g_new0(SimAlone, 1);
    alone->view = view;
    alone->topology = topology;
    alone->engine = sim_engine_new();
    alone->network = sim_network_new(alone->engine, topology);
    alone->known = g_hash_table_new_full(alone_key_hash, g_bytes_equal,
                                         (GDestroyNotify)g_bytes_unref, g_free);
    find_runs(alone, view);
    return alone;
}

FREE_DEFINE(sim_alone_free, SimAlone, alone,
            free_each(alone->run, alone->first, alone->device_as, alone->machine_as,
                      alone->n_devices, alone->n_machines),
            g_hash_table_unref(alone->known), sim_network_free(alone->network),
            sim_engine_free(alone->engine), topology_free(alone->topology));

static double run_s(SimAlone *alone, const SimCollective *collective)
{
    const double measured_s = sim_measured_s(alone->view, collective);
    if (measured_s > 0)
        return measured_s;
    g_autoptr(SimLowered) lowered = sim_lower(alone->network, collective, NULL);
    return lowered ? sim_run_alone_s(alone->network, lowered) : 0;
}

/* The device of an equal place that stands for this one: places are handed out in the order in
 * which they are asked for. */
static uint32_t stand_in(SimAlone *alone, uint32_t device)
{
    uint32_t *as = &alone->device_as[device];
    if (*as != NOBODY)
        return *as;
    const uint32_t m = alone->topology->machine[device];
    uint32_t *machine = &alone->machine_as[m];
    if (*machine == NOBODY)
        *machine = alone->run[m] + alone->n_machines[alone->run[m]]++;
    return *as = alone->first[*machine] + alone->n_devices[m]++;
}

/* Devices [n] with stand-ins in the place of each. Caller frees; NULL: none stands for another. */
static uint32_t *stand_ins(SimAlone *alone, uint32_t n, const uint32_t *device)
{
    if (!alone->run)
        return NULL;
    const uint32_t n_machines =
        alone->topology->machine[alone->topology->n_devices - 1] + 1;
    memset(alone->device_as, 0xff, alone->topology->n_devices * sizeof *alone->device_as);
    memset(alone->machine_as, 0xff, n_machines * sizeof *alone->machine_as);
    memset(alone->n_devices, 0, n_machines * sizeof *alone->n_devices);
    memset(alone->n_machines, 0, n_machines * sizeof *alone->n_machines);
    uint32_t *as = g_new(uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        as[i] = stand_in(alone, device[i]);
    return as;
}

bool sim_alone_same(SimAlone *alone, uint32_t n, const uint32_t *device,
                    const uint32_t *other)
{
    g_autofree uint32_t *as = stand_ins(alone, n, device),
                        *other_as = stand_ins(alone, n, other);
    return memcmp(as ? as : device, other_as ? other_as : other, n * sizeof *device) == 0;
}

static GBytes *key_of(const SimCollective *c)
{
    GByteArray *key =
        g_byte_array_sized_new((guint)(c->n * c->n_groups * sizeof *c->device + 32));
    const uint32_t head[] = {(uint32_t)c->traffic, c->n, c->n_groups};
    g_byte_array_append(key, (const guint8 *)head, sizeof head);
    g_byte_array_append(key, (const guint8 *)&c->bytes, sizeof c->bytes);
    g_byte_array_append(key, (const guint8 *)c->device,
                        (guint)(c->n * c->n_groups * sizeof *c->device));
    return g_byte_array_free_to_bytes(key);
}

static double find_s(SimAlone *alone, const SimCollective *asked)
{
    g_autofree uint32_t *as = stand_ins(alone, asked->n * asked->n_groups, asked->device);
    SimCollective equal = *asked;
    const SimCollective *collective = &equal;
    if (as)
        equal.device = as;
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
