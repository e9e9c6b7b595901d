/* Collectives and transfers of tasks as flows. */
#include "sim/network/transport.h"

#include <string.h>

#include "data/base/free.h"
#include "sim/event/random.h"
#include "sim/network/measured.h"
#include "sim/tasks/piece.h"

/* The key of a task's flows: tasks with equal keys have the same flows. */
typedef struct {
    double bytes;
    const SimTransfer *transfer;
    uint32_t traffic, from, to, team, root;
} Key;

struct SimTransport {
    const SimFlowCase *flow;
    /* [device of the case]: SimFabric.device; NULL: on a network of its own */
    const uint32_t *place;
    const Topology *topology;
    SimNetwork *network; /* owned without places */
    SimMeasured *measured;
    GHashTable *lowered; /* Key -> SimLowered */
    GHashTable *like;    /* Key without bytes -> SimLowered, in `lowered` */
    uint32_t *stands;    /* sim_lowered_fold; NULL: not prepared */
    GPtrArray *runs;
    Algorithm algorithm[TRAFFICS]; /* [traffic]: the algorithm that the options name */
};

static guint key_hash(gconstpointer key)
{
    const Key *k = key;
    uint64_t hash = sim_random_mix(g_double_hash(&k->bytes), (uintptr_t)k->transfer);
    hash = sim_random_mix(hash, (uint64_t)k->traffic << 32 | k->team);
    hash = sim_random_mix(hash, (uint64_t)k->from << 32 | k->to);
    return (guint)(hash + k->root);
}

static gboolean key_equal(gconstpointer a, gconstpointer b)
{
    const Key *x = a, *y = b;
    return x->bytes == y->bytes && x->traffic == y->traffic && x->root == y->root &&
           x->from == y->from && x->to == y->to && x->team == y->team &&
           x->transfer == y->transfer;
}

SimTransport *sim_transport_new(const SimFlowCase *flow, SimEngine *engine,
                                const SimFabric *fabric)
{
    SimTransport *transport = g_new0(SimTransport, 1);
    transport->flow = flow;
    transport->place = fabric ? fabric->device : NULL;
    transport->network =
        fabric ? fabric->network : sim_network_new(engine, flow->topology);
    transport->topology = sim_network_topology(transport->network);
    transport->measured =
        sim_measured_new(fabric ? fabric->view : flow->sim->view, transport->topology);
    transport->lowered = g_hash_table_new_full(key_hash, key_equal, g_free,
                                               (GDestroyNotify)sim_lowered_free);
    transport->like = g_hash_table_new_full(key_hash, key_equal, g_free, NULL);
    const bool good =
        sim_algorithms_parse(flow->sim->options->algorithm, transport->algorithm, NULL);
    g_assert(good); /* sim_options_set has checked it */
    transport->runs = g_ptr_array_new_with_free_func((GDestroyNotify)sim_run_free);
    return transport;
}

FREE_DEFINE(sim_transport_free, SimTransport, transport,
            g_ptr_array_unref(transport->runs), g_hash_table_unref(transport->like),
            g_hash_table_unref(transport->lowered), g_free(transport->stands),
            sim_network_free(transport->place ? NULL : transport->network),
            sim_measured_free(transport->measured));

SimNetwork *sim_transport_network(SimTransport *transport)
{
    return transport->network;
}

static const double *shares(const SimTasks *tasks, uint32_t first)
{
    return first == SIM_NO_SHARE ? NULL : &g_array_index(tasks->share, double, first);
}

static Traffic traffic_of(const SimTask *task)
{
    if (task->kind == TASK_TRANSFER)
        return TRAFFIC_SEND;
    if (task->server)
        return task->back ? TRAFFIC_PULL : TRAFFIC_PUSH;
    return (Traffic)task->collective; /* data/cluster/tuning.h: the same order */
}

/* The places of n devices of the case. Caller frees. */
static uint32_t *places(const SimTransport *transport, const uint32_t *device, uint32_t n)
{
    uint32_t *place = g_memdup2(device, n * sizeof *place);
    for (uint32_t i = 0; transport->place && i < n; i++)
        place[i] = transport->place[device[i]];
    return place;
}

static SimLowered *lower_collective(SimTransport *transport, const SimTask *task,
                                    const SimLowered *like, GArray *messages,
                                    GError **error)
{
    const SimTasks *tasks = transport->flow->tasks;
    const SimTeam *team = &tasks->teams->team[task->team];
    const Traffic traffic = traffic_of(task);
    g_autofree uint32_t *device =
        places(transport, team->device, team->n * MAX(team->n_sets, 1));
    const SimCollective collective = {
        .traffic = traffic,
        .algorithm = transport->algorithm[traffic],
        .bytes = task->bytes,
        .n = team->n,
        .n_groups = team->n_sets,
        .device = device,
        .share_from = shares(tasks, task->from),
        .share_to = shares(tasks, task->to),
        .root = task->server ? task->server - 1 : 0,
    };
    return sim_measured_lower(transport->measured, transport->network, &collective, like,
                              messages, error);
}

/* Lowers all messages to a team at once, each as large as its piece. */
static SimLowered *transport_lower_transfer(SimTransport *transport, const SimTask *task,
                                            const SimLowered *like, GArray *messages,
                                            GError **error)
{
    const SimTasks *tasks = transport->flow->tasks;
    const SimTeam *team = &tasks->teams->team[task->team];
    const uint32_t *team_of = tasks->teams->group[team->group].team_of;
    const GArray *pieces = task->transfer->pieces;
    g_autofree uint32_t *ends = g_new(uint32_t, 2 * (size_t)pieces->len);
    g_autofree double *weight = g_new(double, pieces->len);
    uint32_t n = 0;
    array_each (const SimPiece, piece, pieces) {
        if (&tasks->teams->team[tasks->teams->group[team->group].first[AXIS_POSITIONS] +
                                team_of[piece->replica]] != team)
            continue;
        ends[2 * n] = piece->from;
        ends[2 * n + 1] = piece->to;
        weight[n++] = piece->part;
    }
    g_autofree uint32_t *device =
        places(transport, n > 0 ? ends : team->device, n > 0 ? 2 * n : 1);
    /* If the receivers have all parts already, no message is sent: the collective has one rank. */
    const SimCollective collective = {.traffic =
                                          n > 0 ? TRAFFIC_SEND : TRAFFIC_ALL_REDUCE,
                                      .bytes = n > 0 ? task->bytes : 0,
                                      .n = n > 0 ? 2 : 1,
                                      .n_groups = n,
                                      .device = device,
                                      .weight = weight};
    return sim_measured_lower(transport->measured, transport->network, &collective, like,
                              messages, error);
}

static SimLowered *lower_new(SimTransport *transport, const SimTask *task,
                             const SimLowered *like, GArray *messages, GError **error)
{
    return task->kind == TASK_TRANSFER
               ? transport_lower_transfer(transport, task, like, messages, error)
               : lower_collective(transport, task, like, messages, error);
}

bool sim_transport_messages(SimTransport *transport, uint32_t task, GArray *messages,
                            GError **error)
{
    g_autoptr(SimLowered) lowered =
        lower_new(transport, &transport->flow->tasks->task[task], NULL, messages, error);
    return lowered != NULL;
}

static Key transport_key_of(const SimTask *task)
{
    return (Key){task->bytes, task->transfer, traffic_of(task), task->from,
                 task->to,    task->team,     task->server};
}

/* Lowers a task that has flows of its own. */
static SimLowered *transport_lower(SimTransport *transport, const SimTask *task,
                                   const Key *key, GError **error)
{
    Key shape = *key;
    shape.bytes = 0;
    SimLowered *lowered = lower_new(
        transport, task, g_hash_table_lookup(transport->like, &shape), NULL, error);
    if (!lowered)
        return NULL;
    g_hash_table_insert(transport->lowered, g_memdup2(key, sizeof *key), lowered);
    g_hash_table_insert(transport->like, g_memdup2(&shape, sizeof shape), lowered);
    return lowered;
}

static double toll_of(const ClusterView *view, const GArray *messages)
{
    double sum = 0;
    array_each (const SimMessage, message, messages) {
        const uint32_t from = view->site[view->device[message->from].machine],
                       to = view->site[view->device[message->to].machine];
        sum += message->bytes * view->toll[from * view->n_sites + to];
    }
    return sum;
}

bool sim_transport_toll(SimTransport *transport, double *dollars, GError **error)
{
    const SimTasks *tasks = transport->flow->tasks;
    const ClusterView *view = transport->flow->sim->view;
    g_assert(view->toll && !transport->place);
    g_autoptr(GHashTable) known =
        g_hash_table_new_full(key_hash, key_equal, g_free, g_free);
    g_autoptr(GArray) messages = g_array_new(false, false, sizeof(SimMessage));
    *dollars = 0;
    for (uint32_t i = 0; i < tasks->n_tasks; i++) {
        if (!sim_task_communicates(&tasks->task[i]))
            continue;
        const Key key = transport_key_of(&tasks->task[i]);
        double *toll = g_hash_table_lookup(known, &key);
        if (!toll) {
            g_array_set_size(messages, 0);
            if (!sim_transport_messages(transport, i, messages, error))
                return false;
            toll = g_new(double, 1);
            *toll = toll_of(view, messages);
            g_hash_table_insert(known, g_memdup2(&key, sizeof key), toll);
        }
        *dollars += *toll;
    }
    return true;
}

bool sim_transport_prepare(SimTransport *transport, GError **error)
{
    g_assert(!transport->stands);
    const SimTasks *tasks = transport->flow->tasks;
    const Topology *topology = transport->topology;
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    for (uint32_t i = 0; i < tasks->n_tasks; i++) {
        const Key key = transport_key_of(&tasks->task[i]);
        if (!sim_task_communicates(&tasks->task[i]) ||
            g_hash_table_contains(transport->lowered, &key))
            continue;
        SimLowered *lowered = transport_lower(transport, &tasks->task[i], &key, error);
        if (!lowered)
            return false;
        g_ptr_array_add(all, lowered);
    }
    g_autofree bool *apart = g_new0(bool, topology->n_links);
    if (transport->place) /* links that are alike for one case may differ for another */
        memset(apart, true, topology->n_links * sizeof *apart);
    array_each (const SimFault, fault, transport->flow->faults)
        if (!fault->device)
            apart[fault->index] = true;
    transport->stands =
        sim_lowered_fold((SimLowered *const *)all->pdata, all->len, topology, apart);
    return true;
}

uint32_t sim_transport_stands(const SimTransport *transport, uint32_t link)
{
    g_assert(transport->stands && link < transport->topology->n_links);
    return transport->stands[link];
}

void sim_transport_start(SimTransport *transport, uint32_t task, SimHandler done,
                         void *context, uint64_t argument)
{
    KILTER_ASSERT(task < transport->flow->tasks->n_tasks && transport->stands);
    const Key key = transport_key_of(&transport->flow->tasks->task[task]);
    const SimLowered *lowered = g_hash_table_lookup(transport->lowered, &key);
    g_assert(lowered);
    SimRun *run = sim_run_new(transport->network, lowered, NULL, done, context, argument);
    g_ptr_array_add(transport->runs, run);
    sim_run_arrive_all(run);
}

void sim_transport_forget(SimTransport *transport)
{
    g_ptr_array_set_size(transport->runs, 0);
}
