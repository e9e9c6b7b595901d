/* Collectives of execution traces: the k-th nodes of a group on each of its ranks are one
 * collective. */
#include <stdlib.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/names.h"
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
    bool listed;        /* its ranks are known beforehand */
} ExecutionGroup;

typedef struct {
    ExecutionRun *run;
    ExecutionGroup *group;
    ExecutionMeeting *meeting;
} Held;

static FREE_DEFINE(meeting_free, ExecutionMeeting, meeting, g_free(meeting->node));

static FREE_DEFINE(group_free, ExecutionGroup, own,
                   free_each(own->rank, own->place, own->n_met),
                   g_ptr_array_unref(own->meeting));

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
    group->meeting = g_ptr_array_new_with_free_func((GDestroyNotify)meeting_free);
    return group;
}

/* The ranks of a group as a file lists them. */
static void take_listed(ExecutionRun *run, const char *name, const GArray *ranks,
                        ExecutionGroup *group)
{
    for (guint i = 0; i < ranks->len; i++) {
        const uint32_t rank = g_array_index(ranks, uint32_t, i);
        if (rank >= run->traces->len) {
            if (!run->error)
                refuse(&run->error,
                       "group %s has rank %u, of which there is no trace: there are "
                       "traces of ranks 0 to %u",
                       name, rank, run->traces->len - 1);
            return;
        }
        group->rank[group->place[rank] = group->n++] = rank;
    }
    group->listed = true;
}

static ExecutionGroup *find_group(ExecutionRun *run, GHashTable *listed, const char *key)
{
    ExecutionGroup *group = g_hash_table_lookup(run->group, key);
    const GArray *ranks = listed ? g_hash_table_lookup(listed, key) : NULL;
    if (group)
        return group;
    group = group_new(run->traces->len);
    g_hash_table_insert(run->group, g_strdup(key), group);
    if (strcmp(key, "0") == 0) {
        for (uint32_t k = 0; k < run->traces->len; k++)
            group->rank[group->place[k] = group->n++] = k;
        group->listed = true;
    } else if (ranks) {
        take_listed(run, key, ranks, group);
    }
    return group;
}

void execution_find_groups(ExecutionRun *run, GHashTable *listed)
{
    run->group = text_table((GDestroyNotify)group_free);
    values_at (const Trace *, trace, r, run->traces->pdata, run->traces->len) {
        for (uint32_t i = 0; i < trace->node->len && !run->error; i++) {
            const TraceNode *node = trace_node(trace, i);
            if (node->kind != TRACE_COLLECTIVE || node->collective == TRACE_COMM_NONE)
                continue;
            ExecutionGroup *group = find_group(run, listed, group_key(node));
            if (group->place[r] != UINT32_MAX || run->error)
                continue;
            if (group->listed)
                refuse(&run->error,
                       "rank %u: node %" G_GUINT64_FORMAT
                       " is a collective of group %s, in which this rank is not",
                       r, node->id, group_key(node));
            else
                group->rank[group->place[r] = group->n++] = r;
        }
    }
}

/* The ranks that wait for others in a collective of the group. */
static void mark_waiting(const ExecutionGroup *group, bool *waits)
{
    values_at (const ExecutionMeeting *, meeting, m, group->meeting->pdata,
               group->meeting->len) {
        for (uint32_t k = 0; meeting->n_there < group->n && k < group->n; k++)
            if (group->n_met[k] > m)
                waits[group->rank[k]] = true;
    }
}

/* The first rank of the group that did not come to its first collective with ranks missing; among
 * ranks that wait elsewhere only if `any`. UINT32_MAX: there is none. */
static uint32_t absent_rank(const ExecutionGroup *group, const bool *waits, bool any,
                            uint32_t *meeting)
{
    values_at (const ExecutionMeeting *, of, m, group->meeting->pdata,
               group->meeting->len) {
        *meeting = m;
        for (uint32_t k = 0; of->n_there < group->n && k < group->n; k++)
            if (group->n_met[k] <= m && (any || !waits[group->rank[k]]))
                return group->rank[k];
    }
    return UINT32_MAX;
}

static bool fail_absent(const ExecutionRun *run, const char *name,
                        const ExecutionGroup *group, uint32_t absent, uint32_t m,
                        GError **error)
{
    const ExecutionMeeting *meeting = group->meeting->pdata[m];
    uint32_t k = 0;
    while (group->n_met[k] <= m)
        k++;
    const TraceNode *node = execution_node(run, group->rank[k], meeting->node[k]);
    return refuse(error,
                  "the traces do not end: rank %u of group %s never comes to the %s that "
                  "%u other%s wait%s for (rank %u, node %" G_GUINT64_FORMAT "%s%s%s)",
                  absent, name, trace_collective_name(meeting->kind), meeting->n_there,
                  meeting->n_there == 1 ? "" : "s", meeting->n_there == 1 ? "s" : "",
                  group->rank[k], node->id, *node->name ? " '" : "", node->name,
                  *node->name ? "'" : "");
}

bool execution_check_meetings(const ExecutionRun *run, GError **error)
{
    guint n;
    g_autofree void **names = g_hash_table_get_keys_as_array(run->group, &n);
    g_autofree bool *waits = g_new0(bool, run->traces->len);
    qsort(names, n, sizeof *names, names_compare);
    for (guint i = 0; i < n; i++)
        mark_waiting(g_hash_table_lookup(run->group, names[i]), waits);
    for (uint32_t any = 0; any < 2; any++)
        for (guint i = 0; i < n; i++) {
            const ExecutionGroup *group = g_hash_table_lookup(run->group, names[i]);
            uint32_t m;
            const uint32_t absent = absent_rank(group, waits, any == 1, &m);
            if (absent != UINT32_MAX)
                return fail_absent(run, names[i], group, absent, m, error);
        }
    return true;
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
    SimLowered *lowered = sim_measured_lower(run->measured, run->network, &collective,
                                             NULL, NULL, &run->error);
    if (!lowered)
        return;
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
        refuse(&run->error,
               "rank %u: node %" G_GUINT64_FORMAT " is %s of %" G_GUINT64_FORMAT
               " bytes, where other ranks of its group have %s of %" G_GUINT64_FORMAT,
               rank, of->id, trace_collective_name(of->collective), of->bytes,
               trace_collective_name(meeting->kind), meeting->bytes);
        return;
    }
    meeting->node[place] = node;
    if (++meeting->n_there == group->n)
        begin_collective(run, group, meeting);
}
