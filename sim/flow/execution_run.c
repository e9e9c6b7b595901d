/* Execution traces on a cluster: nodes start when the nodes that they wait for have ended; ranks
 * compute one node at a time, communication shares links. */
#include <math.h>

#include "data/base/free.h"
#include "sim/flow/execution_state.h"

/* Messages from one rank to another with one tag. */
typedef struct {
    uint32_t n_arrived; /* messages that no node has received, */
    GQueue receive;     /* or nodes that wait for a message */
} Mailbox;

static void start(ExecutionRun *run, uint32_t rank, uint32_t node);

static void end(ExecutionRun *run, uint32_t rank, uint32_t node)
{
    ExecutionRank *own = &run->rank[rank];
    run->n_done++;
    own->start_s[node] = NAN;
    for (uint32_t k = own->first_next[node]; k < own->first_next[node + 1]; k++)
        if (--own->waiting[own->next[k]] == 0)
            start(run, rank, own->next[k]);
}

static void node_ended(SimEngine *engine, void *context, uint64_t argument)
{
    (void)engine;
    end(context, (uint32_t)(argument >> 32), (uint32_t)argument);
}

/* --- computations --- */

static void compute_ended(SimEngine *engine, void *context, uint64_t argument);

static void compute_next(ExecutionRun *run, uint32_t rank)
{
    ExecutionRank *own = &run->rank[rank];
    if (own->busy || g_queue_is_empty(&own->ready))
        return;
    const uint32_t node = GPOINTER_TO_UINT(g_queue_pop_head(&own->ready));
    own->busy = true;
    sim_engine_schedule(run->engine,
                        sim_engine_now(run->engine) +
                            execution_node(run, rank, node)->duration_s,
                        0, compute_ended, run, execution_packed(rank, node));
}

static void compute_ended(SimEngine *engine, void *context, uint64_t argument)
{
    ExecutionRun *run = context;
    const uint32_t rank = (uint32_t)(argument >> 32), node = (uint32_t)argument;
    (void)engine;
    run->rank[rank].busy = false;
    run->report->compute_s[rank] += execution_node(run, rank, node)->duration_s;
    end(run, rank, node);
    compute_next(run, rank);
}

/* --- messages --- */

static void communicated(ExecutionRun *run, uint32_t rank, uint32_t node)
{
    run->report->comm_s[rank] +=
        sim_engine_now(run->engine) - run->rank[rank].start_s[node];
    end(run, rank, node);
}

/* A message on its way. */
typedef struct {
    ExecutionRun *run;
    Mailbox *mailbox;
    uint32_t from, to, send;
    SimLowered *lowered;
    SimRun *way;
} Letter;

static void delivered(SimEngine *engine, void *context, uint64_t argument)
{
    Letter *letter = context;
    (void)engine, (void)argument;
    communicated(letter->run, letter->from, letter->send);
    if (g_queue_is_empty(&letter->mailbox->receive))
        letter->mailbox->n_arrived++;
    else
        communicated(letter->run, letter->to,
                     GPOINTER_TO_UINT(g_queue_pop_head(&letter->mailbox->receive)));
    sim_run_free(letter->way);
    sim_lowered_free(letter->lowered);
    g_free(letter);
}

/* Sends the bytes as the flow fidelity does: with the part of the bandwidth that the cluster's
 * messages get. */
static void send(ExecutionRun *run, const Letter *what, double bytes)
{
    const uint32_t device[] = {what->from, what->to};
    const SimCollective message = {.traffic = TRAFFIC_SEND,
                                   .algorithm = run->algorithm[TRAFFIC_SEND],
                                   .bytes = bytes,
                                   .n = G_N_ELEMENTS(device),
                                   .device = device};
    SimLowered *lowered = sim_measured_lower(run->measured, run->network, &message, NULL,
                                             NULL, &run->error);
    if (!lowered)
        return;
    Letter *letter = g_memdup2(what, sizeof *letter);
    letter->lowered = lowered;
    letter->way = sim_run_new(run->network, lowered, NULL, delivered, letter, 0);
    sim_run_arrive_all(letter->way);
}

static FREE_DEFINE(mailbox_free, Mailbox, mailbox, g_queue_clear(&mailbox->receive));

static Mailbox *mailbox_of(ExecutionRun *run, uint32_t from, uint32_t to, uint32_t tag)
{
    g_autofree char *key = g_strdup_printf("%u %u %u", from, to, tag);
    Mailbox *mailbox = g_hash_table_lookup(run->mailbox, key);
    if (!mailbox) {
        mailbox = g_new0(Mailbox, 1);
        g_hash_table_insert(run->mailbox, g_steal_pointer(&key), mailbox);
    }
    return mailbox;
}

static void execution_start_message(ExecutionRun *run, uint32_t rank, uint32_t node)
{
    const TraceNode *of = execution_node(run, rank, node);
    const bool sends = of->kind == TRACE_SEND;
    const uint32_t other = sends ? of->to : of->from;
    if (other >= run->traces->len || other == rank) {
        refuse(&run->error,
               "rank %u: node %" G_GUINT64_FORMAT
               " communicates with rank %u, expected another one below %u",
               rank, of->id, other, run->traces->len);
        return;
    }
    Mailbox *mailbox =
        mailbox_of(run, sends ? rank : other, sends ? other : rank, of->tag);
    if (sends) {
        const Letter letter = {
            .run = run, .mailbox = mailbox, .from = rank, .to = other, .send = node};
        send(run, &letter, (double)of->bytes);
    } else if (mailbox->n_arrived > 0) {
        mailbox->n_arrived--;
        sim_engine_schedule(run->engine, sim_engine_now(run->engine), 0, node_ended, run,
                            execution_packed(rank, node));
    } else {
        g_queue_push_tail(&mailbox->receive, GUINT_TO_POINTER(node));
    }
}

/* --- nodes --- */

static void start(ExecutionRun *run, uint32_t rank, uint32_t node)
{
    const TraceNode *of = execution_node(run, rank, node);
    ExecutionRank *own = &run->rank[rank];
    if (run->error)
        return;
    own->start_s[node] = sim_engine_now(run->engine);
    if (of->kind == TRACE_COMPUTE && !of->host) {
        g_queue_push_tail(&own->ready, GUINT_TO_POINTER(node));
        compute_next(run, rank);
    } else if (of->kind == TRACE_SEND || of->kind == TRACE_RECEIVE) {
        execution_start_message(run, rank, node);
    } else if (of->kind == TRACE_COLLECTIVE && of->collective != TRACE_COMM_NONE) {
        execution_start_collective(run, rank, node);
    } else {
        sim_engine_schedule(run->engine, own->start_s[node] + of->duration_s, 0,
                            node_ended, run, execution_packed(rank, node));
    }
}

static void init_rank(ExecutionRank *rank, const Trace *trace)
{
    const uint32_t n = trace->node->len;
    rank->waiting = g_new(uint32_t, n + 1);
    rank->first_next = g_new0(uint32_t, n + 2);
    rank->next = g_new(uint32_t, trace->dep->len + 1);
    rank->start_s = g_new0(double, n + 1);
    g_queue_init(&rank->ready);
    for (uint32_t d = 0; d < trace->dep->len; d++)
        rank->first_next[g_array_index(trace->dep, uint32_t, d) + 1]++;
    for (uint32_t i = 0; i < n; i++)
        rank->first_next[i + 1] += rank->first_next[i];
    g_autofree uint32_t *fill = g_memdup2(rank->first_next, (n + 1) * sizeof *fill);
    for (uint32_t i = 0; i < n; i++) {
        const TraceNode *node = trace_node(trace, i);
        rank->waiting[i] = node->n_deps;
        for (uint32_t d = 0; d < node->n_deps; d++)
            rank->next[fill[trace_deps(trace, node)[d]]++] = i;
    }
}

static CLEAR_DEFINE(free_rank, ExecutionRank, rank,
                    free_each(rank->waiting, rank->first_next, rank->next, rank->start_s),
                    g_queue_clear(&rank->ready));

static void run_init(ExecutionRun *run, const GPtrArray *traces, GHashTable *groups,
                     const Topology *topology)
{
    run->traces = traces;
    run->engine = sim_engine_new();
    run->communicated = communicated;
    run->network = topology ? sim_network_new(run->engine, topology) : NULL;
    run->rank = g_new0(ExecutionRank, traces->len);
    run->mailbox = text_table((GDestroyNotify)mailbox_free);
    run->lowered = g_ptr_array_new_with_free_func((GDestroyNotify)sim_lowered_free);
    run->runs = g_ptr_array_new_with_free_func((GDestroyNotify)sim_run_free);
    run->report = g_new0(SimExecutionReport, 1);
    run->report->n_ranks = traces->len;
    run->report->compute_s = g_new0(double, traces->len);
    run->report->comm_s = g_new0(double, traces->len);
    for (uint32_t r = 0; r < traces->len; r++) {
        init_rank(&run->rank[r], traces->pdata[r]);
        run->report->n_nodes += ((Trace *)traces->pdata[r])->node->len;
    }
    execution_find_groups(run, groups);
}

static CLEAR_DEFINE(run_clear, ExecutionRun, run,
                    clear_items(run->rank, run->traces->len, free_rank),
                    g_free(run->rank), g_ptr_array_unref(run->runs),
                    g_ptr_array_unref(run->lowered), g_hash_table_unref(run->group),
                    g_hash_table_unref(run->mailbox), sim_measured_free(run->measured),
                    sim_network_free(run->network), sim_engine_free(run->engine));

/* Fails with the name of a node that did not end, if there is one: of a collective, the rank that
 * never comes to it. */
static bool check_end(const ExecutionRun *run, GError **error)
{
    if (run->n_done == run->report->n_nodes)
        return true;
    if (!execution_check_meetings(run, error))
        return false;
    for (uint32_t r = 0; r < run->traces->len; r++)
        for (uint32_t i = 0; i < ((Trace *)run->traces->pdata[r])->node->len; i++) {
            const TraceNode *node = execution_node(run, r, i);
            if (node->kind == TRACE_RECEIVE && run->rank[r].waiting[i] == 0 &&
                !isnan(run->rank[r].start_s[i]))
                return refuse(
                    error,
                    "the traces do not end: rank %u waits in node %" G_GUINT64_FORMAT
                    " (%s) for a message of rank %u with tag %u, which that rank never "
                    "sends",
                    r, node->id, node->name, node->from, node->tag);
        }
    return refuse(error, "the traces do not end");
}

SimExecutionReport *sim_execution_run(const GPtrArray *traces, GHashTable *groups,
                                      const ClusterView *view, const SimOptions *options,
                                      GError **error)
{
    if (traces->len == 0 || traces->len > view->n_devices)
        return refused(error,
                       "traces of %u ranks, expected 1 to %u, the GPUs of the cluster",
                       traces->len, view->n_devices);
    g_autoptr(Topology) topology =
        view->n_devices > 1 ? topology_of_view(view, error) : NULL;
    if (view->n_devices > 1 && !topology)
        return NULL;
    ExecutionRun run = {0};
    run_init(&run, traces, groups, topology);
    run.measured = topology ? sim_measured_new(view, topology) : NULL;
    const bool parsed = sim_algorithms_parse(options->algorithm, run.algorithm, NULL);
    g_assert(parsed); /* sim_options_set has checked it */
    for (uint32_t r = 0; r < traces->len; r++)
        for (uint32_t i = 0; i < ((Trace *)traces->pdata[r])->node->len; i++)
            if (execution_node(&run, r, i)->n_deps == 0)
                start(&run, r, i);
    if (!run.error)
        sim_engine_run(run.engine);
    g_autoptr(SimExecutionReport) report = run.report;
    report->time_s = sim_engine_now(run.engine);
    if (run.error)
        g_propagate_error(error, run.error);
    const bool good = !run.error && check_end(&run, error);
    run_clear(&run);
    return good ? g_steal_pointer(&report) : NULL;
}

FREE_DEFINE(sim_execution_report_free, SimExecutionReport, report,
            free_each(report->compute_s, report->comm_s));
