/* Streams: the order in which a lane's tasks run. */
#include "sim/tasks/streams.h"
#include "data/base/free.h"
#include "data/base/order.h"

#include <stdlib.h>

/* The place of a task in its stream: lower places run first. */
typedef struct {
    uint32_t place, task;
} Place;

static ORDER_DEFINE(compare, Place, ASCENDING(place), ASCENDING(task));

static Place streams_place_of(const SimStreams *s, uint32_t id)
{
    KILTER_ASSERT(id < s->tasks->n_tasks);
    const SimTask *task = &s->tasks->task[id];
    Place place = {.place = id, .task = id};
    for (; task->kind == TASK_LAUNCH; task++)
        place.place++;
    if (s->overlap == SIM_OVERLAP_ON && task->kind == TASK_COLLECTIVE && task->gradient) {
        place.place = 0;
        for (uint32_t i = 0; i < task->n_deps; i++) {
            const uint32_t dep = s->tasks->dep[task->first_dep + i];
            if (s->tasks->task[dep].kind != TASK_LAUNCH)
                place.place = MAX(place.place, dep);
        }
    }
    return place;
}

/* The tasks in the order of their streams. Caller frees. */
static Place *place_all(const SimStreams *s)
{
    Place *place = g_new(Place, s->tasks->n_tasks);
    for (uint32_t i = 0; i < s->tasks->n_tasks; i++)
        place[i] = streams_place_of(s, i);
    qsort(place, s->tasks->n_tasks, sizeof *place, compare);
    return place;
}

/* The number of streams of a device: one for computation, the communication streams that the
 * options ask for, and if anything is copied one to the host and one from it. */
static uint32_t count_streams(const SimTasks *tasks, const SimOptions *options)
{
    enum { COPIES = 2 };
    for (uint32_t i = 0; i < tasks->n_tasks; i++)
        if (tasks->task[i].copies)
            return 1 + options->streams + COPIES;
    return 1 + options->streams;
}

/* Deals all-reduces of gradients out to their streams in rotation, in the order of the places. */
static void assign_streams(SimStreams *s, const SimOptions *options, const Place *place)
{
    const uint32_t first = 2, n_streams = 1 + options->streams;
    uint32_t turn = 0;
    for (uint32_t i = 0; i < s->tasks->n_tasks; i++) {
        const uint32_t id = place[i].task;
        const SimTask *task = &s->tasks->task[id];
        if (task->kind == TASK_LAUNCH)
            s->stream[id] = (uint8_t)s->n_streams;
        else if (task->copies)
            s->stream[id] = (uint8_t)(n_streams + (task->copies == SIM_TO_HOST));
        else if (task->kind == TASK_COMPUTE)
            s->stream[id] = 0;
        else if (!task->gradient || n_streams == first)
            s->stream[id] = 1;
        else
            s->stream[id] = (uint8_t)(first + turn++ % (n_streams - first));
    }
}

/* --- what waits for what --- */

typedef struct {
    uint32_t from, to;
} Edge;

static void add_edge(GArray *edges, uint32_t from, uint32_t to)
{
    KILTER_ASSERT(from != to);
    const Edge edge = {from, to};
    if (from != SIM_NO_TASK)
        g_array_append_val(edges, edge);
}

/* Whether a task is in one stream with all that its devices do. */
static bool is_alone(const SimStreams *s, uint32_t task)
{
    return s->tasks->task[task].kind != TASK_LAUNCH &&
           (s->overlap == SIM_OVERLAP_OFF ||
            (s->overlap == SIM_OVERLAP_FORWARD && task >= s->tasks->backward));
}

/* The first task alone on a lane after a time of overlap waits for what its streams did last. */
static void add_joins(const SimStreams *s, uint32_t task, uint32_t lane, uint32_t *last,
                      GArray *edges)
{
    const uint32_t n_lanes = s->tasks->teams->n_lanes;
    for (uint32_t stream = 1; stream < s->n_streams; stream++) {
        uint32_t *before = &last[stream * n_lanes + lane];
        if (*before != SIM_NO_TASK)
            add_edge(edges, *before, task);
        *before = SIM_NO_TASK;
    }
}

/* Every task waits for the task before it in its stream, a collective in the stream of every lane
 * of its team; a transfer is in no stream. Launches have a stream of their own, after the others.
 * last: [stream * n_lanes + lane]. */
static void add_stream_edges(const SimStreams *s, const Place *place, GArray *edges)
{
    const SimTasks *tasks = s->tasks;
    const uint32_t n_lanes = tasks->teams->n_lanes, n = (s->n_streams + 1) * n_lanes;
    g_autofree uint32_t *last = g_new(uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        last[i] = SIM_NO_TASK;
    for (uint32_t i = 0; i < tasks->n_tasks; i++) {
        const uint32_t id = place[i].task;
        const SimTask *task = &tasks->task[id];
        const bool one = is_alone(s, id);
        uint32_t *of_lane = &last[(one ? 0 : s->stream[id]) * n_lanes];
        uint32_t n_own, before = SIM_NO_TASK;
        const uint32_t *lane = sim_task_lanes(tasks, task, &n_own);
        if (task->kind == TASK_TRANSFER || (s->by_readiness && task->kind != TASK_LAUNCH))
            continue;
        for (uint32_t k = 0; k < n_own; k++) {
            if (of_lane[lane[k]] != before)
                add_edge(edges, of_lane[lane[k]], id);
            before = of_lane[lane[k]];
            of_lane[lane[k]] = id;
            if (one && s->overlap == SIM_OVERLAP_FORWARD)
                add_joins(s, id, lane[k], last, edges);
        }
    }
}

static void add_dep_edges(const SimStreams *s, GArray *edges)
{
    items_at (const SimTask, task, i, s->tasks->task, s->tasks->n_tasks) {
        for (uint32_t k = 0; k < task->n_deps; k++)
            add_edge(edges, s->tasks->dep[task->first_dep + k], i);
    }
}

static void connect_tasks(SimStreams *s, const Place *place)
{
    const uint32_t n = s->tasks->n_tasks;
    g_autoptr(GArray) edges = g_array_new(false, false, sizeof(Edge));
    add_stream_edges(s, place, edges);
    add_dep_edges(s, edges);
    s->first_next = g_new0(uint32_t, n + 1);
    s->next = g_new(uint32_t, edges->len);
    s->waiting = g_new0(uint32_t, n);
    for (uint32_t i = 0; i < edges->len; i++)
        s->first_next[g_array_index(edges, Edge, i).from + 1]++;
    for (uint32_t i = 0; i < n; i++)
        s->first_next[i + 1] += s->first_next[i];
    g_autofree uint32_t *fill = g_memdup2(s->first_next, n * sizeof *fill);
    array_each (const Edge, edge, edges) {
        s->next[fill[edge->from]++] = edge->to;
        s->waiting[edge->to]++;
    }
}

SimStreams *sim_streams_new(const SimTasks *tasks, const SimOptions *options)
{
    SimStreams *s = g_new0(SimStreams, 1);
    s->tasks = tasks;
    s->overlap = options->overlap;
    s->by_readiness = options->order == SIM_ORDER_READY;
    s->n_streams = count_streams(tasks, options);
    s->stream = g_new(uint8_t, tasks->n_tasks);
    g_autofree Place *place = place_all(s);
    assign_streams(s, options, place);
    connect_tasks(s, place);
    return s;
}

FREE_DEFINE(sim_streams_free, SimStreams, s,
            free_each(s->first_next, s->next, s->waiting, s->stream));
