/* Execution traces on a cluster: nodes start when what they wait for has ended; ranks compute one node at a time,
 * communication shares links. */
#include <math.h>
#include <string.h>

#include "sim/flow/execution.h"
#include "sim/network/lower/lowering.h"

/* A collective, or a message, of some ranks. */
typedef struct {
    const char *group;
    uint64_t bytes;
    TraceCollective kind;
    uint32_t n_there;
    uint32_t *node; /* [place in the group] */
} Meeting;

typedef struct {
    uint32_t n, *rank;
    uint32_t *place;    /* [rank]: in `rank`, or UINT32_MAX */
    uint32_t *n_met;    /* [place]: collectives so far */
    GPtrArray *meeting; /* Meeting, in their order */
} Group;

/* Messages from one rank to another with one tag. */
typedef struct {
    uint32_t n_arrived; /* that nobody has received, */
    GQueue receive;     /* or nodes that wait for one */
} Mailbox;

typedef struct {
    uint32_t *waiting, *first_next,
        *next;    /* of each node; in `next`, those that wait for it */
    GQueue ready; /* computations */
    bool busy;
    double *start_s; /* [node]; NAN when it has ended */
} Rank;

typedef struct {
    const GPtrArray *traces;
    SimEngine *engine;
    SimNetwork *network;
    Rank *rank;
    Algorithm algorithm[TRAFFICS];
    GHashTable *group, *mailbox; /* name -> Group; "from to tag" -> Mailbox */
    GPtrArray *lowered, *runs;   /* kept until the end */
    uint64_t n_done;
    SimExecutionReport *report;
    GError *error;
} Run;

typedef struct {
    Run *run;
    Group *group;
    Meeting *meeting;
} Held;

static void start(Run *run, uint32_t rank, uint32_t node);

static const TraceNode *node_of(const Run *run, uint32_t rank, uint32_t node)
{
    return trace_node(run->traces->pdata[rank], node);
}

static uint64_t packed(uint32_t rank, uint32_t node)
{
    return (uint64_t)rank << 32 | node;
}

static void end(Run *run, uint32_t rank, uint32_t node)
{
    Rank *own = &run->rank[rank];
    run->n_done++;
    own->start_s[node] = NAN;
    for (uint32_t k = own->first_next[node]; k < own->first_next[node + 1]; k++)
        if (--own->waiting[own->next[k]] == 0)
            start(run, rank, own->next[k]);
}

static void ended(SimEngine *engine, void *context, uint64_t argument)
{
    (void)engine;
    end(context, (uint32_t)(argument >> 32), (uint32_t)argument);
}

/* --- computations --- */

static void compute_ended(SimEngine *engine, void *context, uint64_t argument);

static void compute_next(Run *run, uint32_t rank)
{
    Rank *own = &run->rank[rank];
    if (own->busy || g_queue_is_empty(&own->ready))
        return;
    const uint32_t node = GPOINTER_TO_UINT(g_queue_pop_head(&own->ready));
    own->busy = true;
    sim_engine_schedule(
        run->engine, sim_engine_now(run->engine) + node_of(run, rank, node)->duration_s,
        0, compute_ended, run, packed(rank, node));
}

static void compute_ended(SimEngine *engine, void *context, uint64_t argument)
{
    Run *run = context;
    const uint32_t rank = (uint32_t)(argument >> 32), node = (uint32_t)argument;
    (void)engine;
    run->rank[rank].busy = false;
    run->report->compute_s[rank] += node_of(run, rank, node)->duration_s;
    end(run, rank, node);
    compute_next(run, rank);
}

/* --- messages --- */

static void communicated(Run *run, uint32_t rank, uint32_t node)
{
    run->report->comm_s[rank] +=
        sim_engine_now(run->engine) - run->rank[rank].start_s[node];
    end(run, rank, node);
}

/* A message on its way. */
typedef struct {
    Run *run;
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

/* Sends the bytes as flow does: with the part of the bandwidth that the cluster's messages get. */
static void send(Run *run, const Letter *what, double bytes)
{
    const uint32_t device[] = {what->from, what->to};
    const SimCollective message = {.traffic = TRAFFIC_SEND,
                                   .algorithm = run->algorithm[TRAFFIC_SEND],
                                   .bytes = bytes,
                                   .n = G_N_ELEMENTS(device),
                                   .device = device};
    SimLowered *lowered = sim_lower(run->network, &message, &run->error);
    if (!lowered)
        return;
    Letter *letter = g_memdup2(what, sizeof *letter);
    letter->lowered = lowered;
    letter->way = sim_run_new(run->network, lowered, NULL, delivered, letter, 0);
    sim_run_arrive_all(letter->way);
}

static void mailbox_free(void *mailbox)
{
    g_queue_clear(&((Mailbox *)mailbox)->receive);
    g_free(mailbox);
}

static Mailbox *mailbox_of(Run *run, uint32_t from, uint32_t to, uint32_t tag)
{
    g_autofree char *key = g_strdup_printf("%u %u %u", from, to, tag);
    Mailbox *mailbox = g_hash_table_lookup(run->mailbox, key);
    if (!mailbox) {
        mailbox = g_new0(Mailbox, 1);
        g_hash_table_insert(run->mailbox, g_steal_pointer(&key), mailbox);
    }
    return mailbox;
}

static void start_message(Run *run, uint32_t rank, uint32_t node)
{
    const TraceNode *of = node_of(run, rank, node);
    const bool sends = of->kind == TRACE_SEND;
    const uint32_t other = sends ? of->to : of->from;
    if (other >= run->traces->len || other == rank) {
        kilter_fail(&run->error, KILTER_ERROR_INPUT,
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
        sim_engine_schedule(run->engine, sim_engine_now(run->engine), 0, ended, run,
                            packed(rank, node));
    } else {
        g_queue_push_tail(&mailbox->receive, GUINT_TO_POINTER(node));
    }
}

/* --- collectives --- */

static void meeting_free(void *meeting)
{
    g_free(((Meeting *)meeting)->node);
    g_free(meeting);
}

static void group_free(void *group)
{
    Group *own = group;
    g_free(own->rank);
    g_free(own->place);
    g_free(own->n_met);
    g_ptr_array_unref(own->meeting);
    g_free(own);
}

static const char *group_key(const TraceNode *node)
{
    return *node->group ? node->group : "0";
}

static Group *group_new(uint32_t n_ranks)
{
    Group *group = g_new0(Group, 1);
    group->rank = g_new(uint32_t, n_ranks);
    group->place = g_new(uint32_t, n_ranks);
    memset(group->place, 0xff, n_ranks * sizeof *group->place);
    group->n_met = g_new0(uint32_t, n_ranks);
    group->meeting = g_ptr_array_new_with_free_func(meeting_free);
    return group;
}

static void find_groups(Run *run)
{
    const uint32_t n_ranks = run->traces->len;
    for (uint32_t r = 0; r < n_ranks; r++) {
        const Trace *trace = run->traces->pdata[r];
        for (uint32_t i = 0; i < trace->node->len; i++) {
            const TraceNode *node = trace_node(trace, i);
            if (node->kind != TRACE_COLLECTIVE || node->collective == TRACE_COMM_NONE)
                continue;
            const char *key = group_key(node);
            Group *group = g_hash_table_lookup(run->group, key);
            if (!group) {
                group = group_new(n_ranks);
                g_hash_table_insert(run->group, g_strdup(key), group);
                for (uint32_t k = 0; strcmp(key, "0") == 0 && k < n_ranks; k++)
                    group->rank[group->place[k] = group->n++] = k;
            }
            if (group->place[r] == UINT32_MAX)
                group->rank[group->place[r] = group->n++] = r;
        }
    }
}

static const Traffic TRAFFIC[TRACE_COMM_TYPES] = {
    [TRACE_COMM_ALL_REDUCE] = TRAFFIC_ALL_REDUCE,
    [TRACE_COMM_REDUCE] = TRAFFIC_REDUCE,
    [TRACE_COMM_ALL_GATHER] = TRAFFIC_ALL_GATHER,
    [TRACE_COMM_GATHER] = TRAFFIC_PUSH,
    [TRACE_COMM_SCATTER] = TRAFFIC_PULL,
    [TRACE_COMM_BROADCAST] = TRAFFIC_BROADCAST,
    [TRACE_COMM_ALL_TO_ALL] = TRAFFIC_ALL_TO_ALL,
    [TRACE_COMM_REDUCE_SCATTER] = TRAFFIC_REDUCE_SCATTER,
    [TRACE_COMM_REDUCE_SCATTER_BLOCK] = TRAFFIC_REDUCE_SCATTER,
    [TRACE_COMM_BARRIER] = TRAFFIC_ALL_REDUCE,
};

static void met(SimEngine *engine, void *context, uint64_t argument)
{
    Held *held = context;
    (void)engine, (void)argument;
    for (uint32_t k = 0; k < held->group->n; k++)
        communicated(held->run, held->group->rank[k], held->meeting->node[k]);
    g_free(held);
}

/* All ranks of the group are there. Of an all-gather the bytes are a rank's part, of an all-to-all what a rank has. */
static void begin_collective(Run *run, Group *group, Meeting *meeting)
{
    const Traffic traffic = TRAFFIC[meeting->kind];
    const bool parts =
        meeting->kind == TRACE_COMM_ALL_GATHER || meeting->kind == TRACE_COMM_ALL_TO_ALL;
    const SimCollective collective = {
        .traffic = traffic,
        .algorithm = run->algorithm[traffic],
        .bytes = (double)meeting->bytes * (parts ? group->n : 1),
        .n = group->n,
        .device = group->rank,
    };
    SimLowered *lowered = sim_lower(run->network, &collective, &run->error);
    if (!lowered)
        return;
    Held *held = g_new(Held, 1);
    *held = (Held){run, group, meeting};
    SimRun *of = sim_run_new(run->network, lowered, NULL, met, held, 0);
    g_ptr_array_add(run->lowered, lowered);
    g_ptr_array_add(run->runs, of);
    sim_run_arrive_all(of);
}

static void start_collective(Run *run, uint32_t rank, uint32_t node)
{
    const TraceNode *of = node_of(run, rank, node);
    Group *group = g_hash_table_lookup(run->group, group_key(of));
    const uint32_t place = group->place[rank], number = group->n_met[place]++;
    if (group->n == 1) {
        sim_engine_schedule(run->engine, sim_engine_now(run->engine), 0, ended, run,
                            packed(rank, node));
        return;
    }
    if (number == group->meeting->len) {
        Meeting *meeting = g_new0(Meeting, 1);
        *meeting = (Meeting){.bytes = of->bytes,
                             .kind = of->collective,
                             .node = g_new(uint32_t, group->n)};
        g_ptr_array_add(group->meeting, meeting);
    }
    Meeting *meeting = group->meeting->pdata[number];
    if (meeting->kind != of->collective || meeting->bytes != of->bytes) {
        kilter_fail(&run->error, KILTER_ERROR_INPUT,
                    "rank %u: node %" G_GUINT64_FORMAT " is %s of %" G_GUINT64_FORMAT
                    " bytes, where other ranks of its group have %s of "
                    "%" G_GUINT64_FORMAT,
                    rank, of->id, trace_collective_name(of->collective), of->bytes,
                    trace_collective_name(meeting->kind), meeting->bytes);
        return;
    }
    meeting->node[place] = node;
    if (++meeting->n_there == group->n)
        begin_collective(run, group, meeting);
}

/* --- nodes --- */

static void start(Run *run, uint32_t rank, uint32_t node)
{
    const TraceNode *of = node_of(run, rank, node);
    Rank *own = &run->rank[rank];
    if (run->error)
        return;
    own->start_s[node] = sim_engine_now(run->engine);
    if (of->kind == TRACE_COMPUTE && !of->host) {
        g_queue_push_tail(&own->ready, GUINT_TO_POINTER(node));
        compute_next(run, rank);
    } else if (of->kind == TRACE_SEND || of->kind == TRACE_RECEIVE) {
        start_message(run, rank, node);
    } else if (of->kind == TRACE_COLLECTIVE && of->collective != TRACE_COMM_NONE) {
        start_collective(run, rank, node);
    } else {
        sim_engine_schedule(run->engine, own->start_s[node] + of->duration_s, 0, ended,
                            run, packed(rank, node));
    }
}

static void init_rank(Rank *rank, const Trace *trace)
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

static void free_rank(Rank *rank)
{
    g_free(rank->waiting);
    g_free(rank->first_next);
    g_free(rank->next);
    g_free(rank->start_s);
    g_queue_clear(&rank->ready);
}

static void run_init(Run *run, const GPtrArray *traces, const Topology *topology)
{
    run->traces = traces;
    run->engine = sim_engine_new();
    run->network = topology ? sim_network_new(run->engine, topology) : NULL;
    run->rank = g_new0(Rank, traces->len);
    run->group = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, group_free);
    run->mailbox = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, mailbox_free);
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
    find_groups(run);
}

static void run_clear(Run *run)
{
    for (uint32_t r = 0; r < run->traces->len; r++)
        free_rank(&run->rank[r]);
    g_free(run->rank);
    g_ptr_array_unref(run->runs);
    g_ptr_array_unref(run->lowered);
    g_hash_table_unref(run->group);
    g_hash_table_unref(run->mailbox);
    sim_network_free(run->network);
    sim_engine_free(run->engine);
}

/* Which node does not end, if any. */
static bool check_end(const Run *run, GError **error)
{
    if (run->n_done == run->report->n_nodes)
        return true;
    for (uint32_t r = 0; r < run->traces->len; r++)
        for (uint32_t i = 0; i < ((Trace *)run->traces->pdata[r])->node->len; i++) {
            const TraceNode *node = node_of(run, r, i);
            const bool meets = node->kind == TRACE_SEND || node->kind == TRACE_RECEIVE ||
                               node->kind == TRACE_COLLECTIVE;
            if (meets && run->rank[r].waiting[i] == 0 && !isnan(run->rank[r].start_s[i]))
                return kilter_fail(error, KILTER_ERROR_INPUT,
                                   "the traces do not end: rank %u waits in node "
                                   "%" G_GUINT64_FORMAT " (%s)",
                                   r, node->id, node->name);
        }
    return kilter_fail(error, KILTER_ERROR_INPUT, "the traces do not end");
}

SimExecutionReport *sim_execution_run(const GPtrArray *traces, const ClusterView *view,
                                      const SimOptions *options, GError **error)
{
    if (traces->len == 0 || traces->len > view->n_devices) {
        kilter_fail(error, KILTER_ERROR_INPUT,
                    "traces of %u ranks, expected one to %u: what the cluster has",
                    traces->len, view->n_devices);
        return NULL;
    }
    g_autoptr(Topology) topology =
        view->n_devices > 1 ? topology_of_view(view, error) : NULL;
    if (view->n_devices > 1 && !topology)
        return NULL;
    Run run = {0};
    run_init(&run, traces, topology);
    const bool parsed = sim_algorithms_parse(options->algorithm, run.algorithm, NULL);
    g_assert(parsed); /* sim_options_set has checked it */
    for (uint32_t r = 0; r < traces->len; r++)
        for (uint32_t i = 0; i < ((Trace *)traces->pdata[r])->node->len; i++)
            if (node_of(&run, r, i)->n_deps == 0)
                start(&run, r, i);
    sim_engine_run(run.engine);
    g_autoptr(SimExecutionReport) report = run.report;
    report->time_s = sim_engine_now(run.engine);
    if (run.error)
        g_propagate_error(error, run.error);
    const bool good = !run.error && check_end(&run, error);
    run_clear(&run);
    return good ? g_steal_pointer(&report) : NULL;
}

void sim_execution_report_free(SimExecutionReport *report)
{
    if (!report)
        return;
    g_free(report->compute_s);
    g_free(report->comm_s);
    g_free(report);
}
