/* Collectives of execution traces: the k-th nodes of a group on each of its ranks are one
 * collective. */
#include <string.h>

#include "sim/flow/execution_state.h"

/* A collective, or a message, between some ranks. */
typedef struct {
    const char *group;
    uint64_t bytes;
    TraceCollective kind;
    uint32_t n_there;
    uint32_t *node; /* [place in the group] */
} ExecutionMeeting;

typedef struct {
    uint32_t n, *rank;
    uint32_t *place;    /* [rank]: in `rank`, or UINT32_MAX */
    uint32_t *n_met;    /* [place]: collectives that the rank has met so far */
    GPtrArray *meeting; /* ExecutionMeeting, in their order */
} ExecutionGroup;

typedef struct {
    ExecutionRun *run;
    ExecutionGroup *group;
    ExecutionMeeting *meeting;
} Held;

static void meeting_free(void *meeting)
{
    g_free(((ExecutionMeeting *)meeting)->node);
    g_free(meeting);
}

static void group_free(void *group)
{
    ExecutionGroup *own = group;
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

static ExecutionGroup *group_new(uint32_t n_ranks)
{
    ExecutionGroup *group = g_new0(ExecutionGroup, 1);
    group->rank = g_new(uint32_t, n_ranks);
    group->place = g_new(uint32_t, n_ranks);
    memset(group->place, 0xff, n_ranks * sizeof *group->place);
    group->n_met = g_new0(uint32_t, n_ranks);
    group->meeting = g_ptr_array_new_with_free_func(meeting_free);
    return group;
}

void execution_find_groups(ExecutionRun *run)
{
    const uint32_t n_ranks = run->traces->len;
    run->group = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, group_free);
    for (uint32_t r = 0; r < n_ranks; r++) {
        const Trace *trace = run->traces->pdata[r];
        for (uint32_t i = 0; i < trace->node->len; i++) {
            const TraceNode *node = trace_node(trace, i);
            if (node->kind != TRACE_COLLECTIVE || node->collective == TRACE_COMM_NONE)
                continue;
            const char *key = group_key(node);
            ExecutionGroup *group = g_hash_table_lookup(run->group, key);
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
        held->run->communicated(held->run, held->group->rank[k], held->meeting->node[k]);
    g_free(held);
}

/* Of a group of one rank. */
static void met_alone(SimEngine *engine, void *context, uint64_t argument)
{
    ExecutionRun *run = context;
    (void)engine;
    run->communicated(run, (uint32_t)(argument >> 32), (uint32_t)argument);
}

/* Begins a collective whose ranks are all ready. The bytes are a rank's part for an all-gather, and
 * all bytes of a rank for an all-to-all. */
static void begin_collective(ExecutionRun *run, ExecutionGroup *group,
                             ExecutionMeeting *meeting)
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
    sim_measured_apply(run->measured, &collective, lowered);
    Held *held = g_new(Held, 1);
    *held = (Held){run, group, meeting};
    SimRun *of = sim_run_new(run->network, lowered, NULL, met, held, 0);
    g_ptr_array_add(run->lowered, lowered);
    g_ptr_array_add(run->runs, of);
    sim_run_arrive_all(of);
}

void execution_start_collective(ExecutionRun *run, uint32_t rank, uint32_t node)
{
    const TraceNode *of = execution_node(run, rank, node);
    ExecutionGroup *group = g_hash_table_lookup(run->group, group_key(of));
    const uint32_t place = group->place[rank], number = group->n_met[place]++;
    if (group->n == 1) {
        sim_engine_schedule(run->engine, sim_engine_now(run->engine), 0, met_alone, run,
                            execution_packed(rank, node));
        return;
    }
    if (number == group->meeting->len) {
        ExecutionMeeting *meeting = g_new0(ExecutionMeeting, 1);
        *meeting = (ExecutionMeeting){.bytes = of->bytes,
                                      .kind = of->collective,
                                      .node = g_new(uint32_t, group->n)};
        g_ptr_array_add(group->meeting, meeting);
    }
    ExecutionMeeting *meeting = group->meeting->pdata[number];
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
