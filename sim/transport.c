#include "sim/transport.h"

#include <string.h>

#include "sim/lowering.h"
#include "sim/split.h"

/* What two tasks must have in common to be the same flows. */
typedef struct {
    double bytes;
    uint32_t collective, from, to, group;
} Key;

struct SimTransport {
    const SimFlowCase *flow;
    SimNetwork *network;
    GHashTable *lowered; /* Key -> SimLowered */
    GPtrArray *runs;
    Algorithm algorithm[TRAFFICS]; /* that the options name */
};

static guint key_hash(gconstpointer key)
{
    const Key *k = key;

    return g_double_hash(&k->bytes) ^ (k->collective << 24) ^ (k->from << 12) ^ k->to;
}

static gboolean key_equal(gconstpointer a, gconstpointer b)
{
    const Key *x = a, *y = b;

    return x->bytes == y->bytes && x->collective == y->collective && x->from == y->from &&
           x->to == y->to && x->group == y->group;
}

SimTransport *sim_transport_new(const SimFlowCase *flow, SimEngine *engine)
{
    SimTransport *transport = g_new0(SimTransport, 1);

    transport->flow = flow;
    transport->network = sim_network_new(engine, flow->topology);
    transport->lowered = g_hash_table_new_full(key_hash, key_equal, g_free,
                                               (GDestroyNotify)sim_lowered_free);
    const bool good =
        sim_algorithms_parse(flow->sim->options->algorithm, transport->algorithm, NULL);
    g_assert(good); /* sim_options_set has checked it */
    transport->runs = g_ptr_array_new_with_free_func((GDestroyNotify)sim_run_free);
    return transport;
}

void sim_transport_free(SimTransport *transport)
{
    if (!transport)
        return;
    g_ptr_array_unref(transport->runs);
    g_hash_table_unref(transport->lowered);
    sim_network_free(transport->network);
    g_free(transport);
}

SimNetwork *sim_transport_network(SimTransport *transport)
{
    return transport->network;
}

/* Shares of the ranks, which are the devices; NULL where the tensor is not cut. */
static const double *shares(const SimFlowCase *flow, uint32_t split)
{
    return split == SPLIT_NONE
               ? NULL
               : &flow->sim->share[(size_t)split * flow->tasks->n_devices];
}

static SimLowered *lower(SimTransport *transport, const SimTask *task, GError **error)
{
    const SimFlowCase *flow = transport->flow;
    const Key key = {task->bytes, (uint32_t)task->collective, task->from, task->to,
                     task->group};
    SimLowered *lowered = g_hash_table_lookup(transport->lowered, &key);
    if (lowered)
        return lowered;

    const SimGroup *group = &flow->tasks->group[task->group];
    const Traffic traffic = (Traffic)task->collective; /* data/tuning.h: the same order */
    const SimCollective collective = {
        .traffic = traffic,
        .algorithm = transport->algorithm[traffic],
        .bytes = task->bytes,
        .n = group->n,
        .device = &flow->tasks->member[group->first],
        .share_from = shares(flow, task->from),
        .share_to = shares(flow, task->to),
    };
    lowered = sim_lower(transport->network, &collective, error);
    if (lowered)
        g_hash_table_insert(transport->lowered, g_memdup2(&key, sizeof key), lowered);
    return lowered;
}

bool sim_transport_start(SimTransport *transport, uint32_t task, SimHandler done,
                         void *context, uint64_t argument, GError **error)
{
    SimLowered *lowered = lower(transport, &transport->flow->tasks->task[task], error);
    if (!lowered)
        return false;
    SimRun *run = sim_run_new(transport->network, lowered, NULL, done, context, argument);
    g_ptr_array_add(transport->runs, run);
    sim_run_arrive_all(run);
    return true;
}
