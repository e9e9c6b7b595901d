/* A plan as execution traces: its task graph with a node for every task on every device, in the
 * order in which the streams let them start. Communication between devices is a collective, or a
 * send and a receive. */
#include <math.h>

#include "data/base/free.h"
#include "data/base/order.h"
#include "data/formats/trace/trace.h"
#include "sim/flow/execution.h"
#include "sim/flow/flow.h"
#include "sim/network/lower/lowering.h"
#include "sim/network/transport.h"

/* A node of a task on a rank. */
typedef struct {
    uint32_t rank, node;
} Made;

typedef struct {
    const SimFlowCase *flow;
    bool messages;
    GPtrArray *traces;
    SimEngine *engine;
    SimTransport *transport; /* NULL: there is one device */
    /* [task]: range in `before` of the tasks that it waits for */
    uint32_t *first_before, *before;
    GArray **made; /* [task]: Made, in the order of ranks */
    uint64_t n_nodes;
    GHashTable *group;      /* ranks as "0,1,2" -> number of the group, from 1 */
    GPtrArray *group_ranks; /* the keys in the order of their numbers */
} Maker;

static Trace *trace_of(const Maker *maker, uint32_t rank)
{
    KILTER_ASSERT(rank < maker->traces->len);
    return maker->traces->pdata[rank];
}

/* Makes the last node of the rank's trace wait for the nodes that an earlier task left there. */
static void execution_wait_for(Maker *maker, uint32_t task, uint32_t rank)
{
    const GArray *made = maker->made[task];
    uint32_t low = 0, high = made->len;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (g_array_index(made, Made, middle).rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < made->len && g_array_index(made, Made, low).rank == rank; low++)
        trace_wait(trace_of(maker, rank), g_array_index(made, Made, low).node);
}

/* The first node of a task on a rank, which waits for the tasks before. */
static uint32_t add_first(Maker *maker, uint32_t task, uint32_t rank,
                          const TraceNode *node)
{
    const uint32_t index = trace_add(trace_of(maker, rank), node);
    for (uint32_t i = maker->first_before[task]; i < maker->first_before[task + 1]; i++)
        execution_wait_for(maker, maker->before[i], rank);
    maker->n_nodes++;
    return index;
}

static void leave(Maker *maker, uint32_t task, uint32_t rank, uint32_t node)
{
    const Made made = {rank, node};
    g_array_append_val(maker->made[task], made);
}

static ORDER_DEFINE(by_rank, Made, ASCENDING(rank), ASCENDING(node));

/* --- tasks --- */

static char *text_of(const Maker *maker, uint32_t task)
{
    const SimCase *sim = maker->flow->sim;
    const SimTask *of = &maker->flow->tasks->task[task];
    g_autofree char *text = instr_text(&sim->plan->program->instr[of->instr], sim->graph);
    return of->kind == TASK_LAUNCH ? g_strconcat("launch of ", text, NULL)
                                   : g_steal_pointer(&text);
}

static void add_compute(Maker *maker, uint32_t task, const char *name)
{
    const SimTask *of = &maker->flow->tasks->task[task];
    const SimTeams *teams = maker->flow->tasks->teams;
    const TraceNode node = {.kind = TRACE_COMPUTE,
                            .name = name,
                            .host = of->kind == TASK_LAUNCH,
                            .collective = TRACE_COMM_NONE,
                            .duration_s = of->duration_s};
    const uint32_t rank = teams->device[of->lane];
    leave(maker, task, rank, add_first(maker, task, rank, &node));
}

/* The nodes of a rank in its latest two rounds of a collective. */
typedef struct {
    uint32_t round;       /* its latest, from 1 */
    GArray *now, *before; /* uint32_t: its nodes in that round and in the round before */
} Rounds;

static FREE_DEFINE(rounds_free, Rounds, own, unref_arrays(own->now, own->before));

static Rounds *rounds_of(GHashTable *rounds, uint32_t rank, uint32_t round)
{
    Rounds *own = g_hash_table_lookup(rounds, GUINT_TO_POINTER(rank));
    if (!own) {
        own = g_new0(Rounds, 1);
        own->now = g_array_new(false, false, sizeof(uint32_t));
        own->before = g_array_new(false, false, sizeof(uint32_t));
        g_hash_table_insert(rounds, GUINT_TO_POINTER(rank), own);
    }
    if (own->round != round) {
        GArray *was = own->before;
        own->before = own->now;
        own->now = was;
        g_array_set_size(own->now, 0);
        own->round = round;
    }
    return own;
}

/* Adds both ends of a message in a round. */
static void execution_add_message(Maker *maker, uint32_t task, const char *name,
                                  const SimMessage *message, GHashTable *rounds,
                                  uint32_t round)
{
    const uint32_t end[] = {message->from, message->to};
    TraceNode node = {.name = name,
                      .collective = TRACE_COMM_NONE,
                      .bytes = (uint64_t)llround(message->bytes / message->steps),
                      .from = message->from,
                      .to = message->to,
                      .tag = task};
    for (uint32_t i = 0; i < 2; i++) {
        node.kind = i == 0 ? TRACE_SEND : TRACE_RECEIVE;
        Rounds *own = rounds_of(rounds, end[i], round);
        const uint32_t index = add_first(maker, task, end[i], &node);
        for (uint32_t k = 0; k < own->before->len; k++)
            trace_wait(trace_of(maker, end[i]), g_array_index(own->before, uint32_t, k));
        g_array_append_val(own->now, index);
    }
}

/* Rounds of messages: a rank begins the next round when it has done its part of this one. */
static void execution_add_rounds(Maker *maker, uint32_t task, const char *name,
                                 const GArray *messages)
{
    g_autoptr(GHashTable) rounds =
        g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)rounds_free);
    uint32_t round = 0;
    for (uint32_t first = 0, end; first < messages->len; first = end) {
        const SimMessage *of = &g_array_index(messages, SimMessage, first);
        for (end = first; end < messages->len &&
                          g_array_index(messages, SimMessage, end).phase == of->phase;)
            end++;
        for (uint32_t step = 0; step < of->steps; step++) {
            round++;
            for (uint32_t i = first; i < end && maker->n_nodes <= TRACE_MAX_NODES; i++)
                execution_add_message(maker, task, name,
                                      &g_array_index(messages, SimMessage, i), rounds,
                                      round);
        }
    }
    table_each (rank, own, rounds)
        for (uint32_t k = 0; k < ((Rounds *)own)->now->len; k++)
            leave(maker, task, GPOINTER_TO_UINT(rank),
                  g_array_index(((Rounds *)own)->now, uint32_t, k));
    g_array_sort(maker->made[task], by_rank);
}

static bool add_messages(Maker *maker, uint32_t task, const char *name, GError **error)
{
    g_autoptr(GArray) messages = g_array_new(false, false, sizeof(SimMessage));
    if (!sim_transport_messages(maker->transport, task, messages, error))
        return false;
    execution_add_rounds(maker, task, name, messages);
    return true;
}

/* The number, as text, of a group of ranks. */
static const char *group_name(Maker *maker, const uint32_t *device, uint32_t n)
{
    g_autoptr(GString) ranks = g_string_new(NULL);
    if (n == maker->traces->len)
        return "0";
    for (uint32_t i = 0; i < n; i++)
        g_string_append_printf(ranks, "%s%u", i ? ", " : "", device[i]);
    const char *name = g_hash_table_lookup(maker->group, ranks->str);
    if (name)
        return name;
    char *key = g_string_free(g_steal_pointer(&ranks), false);
    g_ptr_array_add(maker->group_ranks, key);
    char *number = g_strdup_printf("%u", maker->group_ranks->len);
    g_hash_table_insert(maker->group, key, number);
    return number;
}

static const TraceCollective COMM[COLLECTIVES_PRICED] = {
    [COLLECTIVE_ALL_REDUCE] = TRACE_COMM_ALL_REDUCE,
    [COLLECTIVE_ALL_GATHER] = TRACE_COMM_ALL_GATHER,
    [COLLECTIVE_GROUPED_ALL_GATHER] = TRACE_COMM_ALL_GATHER,
    [COLLECTIVE_REDUCE_SCATTER] = TRACE_COMM_REDUCE_SCATTER,
    [COLLECTIVE_GROUPED_REDUCE_SCATTER] = TRACE_COMM_REDUCE_SCATTER,
    [COLLECTIVE_ALL_TO_ALL] = TRACE_COMM_ALL_TO_ALL,
};

/* The share of the tensor that a rank has before or after the collective. */
static double share_of(const Maker *maker, uint32_t first, uint32_t n, uint32_t rank)
{
    return first == SIM_NO_SHARE
               ? 1.0 / n
               : g_array_index(maker->flow->tasks->share, double, first + rank);
}

/* Bytes as simulators of even collectives expect them: the tensor's for an all-reduce, the largest
 * part's for an all-gather, n times the largest part's for a reduce-scatter, and for an all-to-all
 * n times the most that a rank has. *own gets the rank's own bytes. */
static double collective_bytes(const Maker *maker, const SimTask *of, uint32_t n,
                               uint32_t rank, double *own)
{
    const bool gathers = of->collective == COLLECTIVE_ALL_GATHER ||
                         of->collective == COLLECTIVE_GROUPED_ALL_GATHER;
    const uint32_t first =
        gathers || of->collective == COLLECTIVE_ALL_TO_ALL ? of->from : of->to;
    const double largest = most_over(double, i, n, 0, share_of(maker, first, n, i));
    const double share = share_of(maker, first, n, rank);
    if (of->collective == COLLECTIVE_ALL_REDUCE)
        return *own = of->bytes;
    *own = of->bytes * share;
    if (gathers)
        return of->bytes * largest;
    return of->bytes * largest * (of->collective == COLLECTIVE_ALL_TO_ALL ? 1 : n);
}

static void add_collective(Maker *maker, uint32_t task, const char *name)
{
    const SimTask *of = &maker->flow->tasks->task[task];
    const SimTeam *team = &maker->flow->tasks->teams->team[of->team];
    for (uint32_t s = 0; s < team->n_sets; s++) {
        const uint32_t *device = &team->device[(size_t)s * team->n];
        for (uint32_t r = 0; r < team->n; r++) {
            double own;
            /* A collective of one rank does nothing, so its node is metadata. */
            TraceNode node = {.kind = team->n > 1 ? TRACE_COLLECTIVE : TRACE_METADATA,
                              .name = name,
                              .group = group_name(maker, device, team->n),
                              .collective = COMM[of->collective]};
            node.bytes = (uint64_t)llround(collective_bytes(maker, of, team->n, r, &own));
            node.own_bytes = (uint64_t)llround(own);
            leave(maker, task, device[r], add_first(maker, task, device[r], &node));
        }
    }
    g_array_sort(maker->made[task], by_rank);
}

static bool execution_add_task(Maker *maker, uint32_t task, GError **error)
{
    const SimTask *of = &maker->flow->tasks->task[task];
    g_autofree char *name = text_of(maker, task);
    if (!sim_task_communicates(of)) {
        add_compute(maker, task, name);
    } else if (of->kind == TASK_TRANSFER ||
               (maker->flow->tasks->teams->team[of->team].n > 1 &&
                (maker->messages || of->server))) {
        if (!add_messages(maker, task, name, error))
            return false;
    } else {
        add_collective(maker, task, name);
    }
    return maker->n_nodes <= TRACE_MAX_NODES ||
           refuse(error, "execution traces of more than %d nodes in all",
                  TRACE_MAX_NODES);
}

/* --- all tasks, each after those that it waits for --- */

static void invert(Maker *maker)
{
    const SimStreams *streams = maker->flow->streams;
    const uint32_t n = maker->flow->tasks->n_tasks;
    maker->first_before = g_new0(uint32_t, n + 2);
    maker->before = g_new(uint32_t, streams->first_next[n] + 1);
    for (uint32_t i = 0; i < n; i++)
        maker->first_before[i + 1] = maker->first_before[i] + streams->waiting[i];
    g_autofree uint32_t *fill = g_memdup2(maker->first_before, (n + 1) * sizeof *fill);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = streams->first_next[i]; k < streams->first_next[i + 1]; k++)
            maker->before[fill[streams->next[k]]++] = i;
}

static bool add_all(Maker *maker, GError **error)
{
    const SimStreams *streams = maker->flow->streams;
    const uint32_t n = maker->flow->tasks->n_tasks;
    g_autofree uint32_t *waiting = g_memdup2(streams->waiting, n * sizeof *waiting);
    g_autoptr(GQueue) ready = g_queue_new();
    uint32_t n_added = 0;
    for (uint32_t i = 0; i < n; i++)
        if (waiting[i] == 0)
            g_queue_push_tail(ready, GUINT_TO_POINTER(i));
    while (!g_queue_is_empty(ready)) {
        const uint32_t task = GPOINTER_TO_UINT(g_queue_pop_head(ready));
        if (!execution_add_task(maker, task, error))
            return false;
        n_added++;
        for (uint32_t k = streams->first_next[task]; k < streams->first_next[task + 1];
             k++)
            if (--waiting[streams->next[k]] == 0)
                g_queue_push_tail(ready, GUINT_TO_POINTER(streams->next[k]));
    }
    g_assert(n_added == n);
    return true;
}

static char *groups_json(const Maker *maker)
{
    GString *text = g_string_new("{");
    for (uint32_t i = 0; i < maker->group_ranks->len; i++)
        g_string_append_printf(text, "%s\n\"%u\": [%s]", i ? "," : "", i + 1,
                               (const char *)maker->group_ranks->pdata[i]);
    g_string_append(text, "\n}\n");
    return g_string_free(text, false);
}

static void maker_init(Maker *maker, const SimFlowCase *flow, bool messages)
{
    *maker =
        (Maker){.flow = flow,
                .messages = messages,
                .traces = g_ptr_array_new_with_free_func((GDestroyNotify)trace_free),
                .engine = sim_engine_new(),
                .group = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free),
                .group_ranks = g_ptr_array_new_with_free_func(g_free)};
    if (flow->topology)
        maker->transport = sim_transport_new(flow, maker->engine, NULL);
    for (uint32_t r = 0; r < flow->sim->view->n_devices; r++) {
        Trace *trace = trace_new();
        put_block(trace->version, g_strdup("0.0.4"));
        g_ptr_array_add(maker->traces, trace);
    }
    maker->made = g_new(GArray *, flow->tasks->n_tasks);
    for (uint32_t i = 0; i < flow->tasks->n_tasks; i++)
        maker->made[i] = g_array_new(false, false, sizeof(Made));
    invert(maker);
}

static CLEAR_DEFINE(maker_clear, Maker, maker,
                    release_items(maker->made, maker->flow->tasks->n_tasks,
                                  g_array_unref),
                    free_each(maker->made, maker->first_before, maker->before),
                    g_hash_table_unref(maker->group),
                    g_ptr_array_unref(maker->group_ranks),
                    sim_transport_free(maker->transport), sim_engine_free(maker->engine));

struct SimExecution {
    SimOptions options;
    SimPrepared prepared;
    SimFlowCase flow;
};

SimExecution *sim_execution_new(const Plan *plan, const Graph *graph,
                                const ClusterView *view, const SimOptions *options,
                                GError **error)
{
    if (view->n_devices > TRACE_MAX_RANKS)
        return refused(error, "execution traces of %u ranks, expected at most %d",
                       view->n_devices, TRACE_MAX_RANKS);
    g_autoptr(SimExecution) execution = g_new0(SimExecution, 1);
    execution->options = *options;
    execution->options.separate = true;
    execution->options.network = SIM_TOPOLOGY;
    return sim_check_steps(plan, error) &&
                   sim_prepare(&execution->prepared, plan, graph, view,
                               &execution->options, error) &&
                   sim_flow_prepare(&execution->prepared.sim, &execution->flow, error)
               ? g_steal_pointer(&execution)
               : NULL;
}

FREE_DEFINE(sim_execution_free, SimExecution, execution, sim_flow_clear(&execution->flow),
            sim_prepared_clear(&execution->prepared));

GPtrArray *sim_execution_traces(const SimExecution *execution, bool messages,
                                char **groups, GError **error)
{
    Maker maker;
    maker_init(&maker, &execution->flow, messages);
    const bool good = add_all(&maker, error);
    if (good && groups)
        *groups = groups_json(&maker);
    maker_clear(&maker);
    if (!good)
        g_clear_pointer(&maker.traces, g_ptr_array_unref);
    return maker.traces;
}
