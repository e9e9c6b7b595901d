/* The `flow` fidelity: the task graph on the event engine, with streams.
 *
 * A task starts when all that it depends on has ended and its stream is free; a
 * collective when that holds on every device of its group. Streams run their tasks in a
 * fixed order, so that every device calls its collectives in the same one:
 *
 *     overlap on     computations in program order on stream 0, collectives on stream 1.
 *                    A collective stands where the program has it, one that reduces a
 *                    parameter's gradient right after what makes its operand. With more
 *                    streams the latter have stream 2 for themselves.
 *     overlap off    one stream for both; in a stage the collectives come first. With the
 *                    cost model's times that is equation (1) of sim/sim.h: a collective
 *                    is a barrier, and between two of them the slowest device decides. */
#include <stdlib.h>

#include "sim/engine.h"
#include "sim/task.h"

typedef struct {
    const SimTasks *tasks;
    const SimOptions *options;
    SimTimeline *timeline;
    SimEngine *engine;
    uint32_t *first_next; /* [task]: in `next`; n_tasks + 1 of them */
    uint32_t *next;       /* tasks that wait for it */
    uint32_t *waiting;    /* [task]: for how many tasks it still waits */
    uint32_t n_done;
} Flow;

/* --- streams --- */

/* Where a task stands in its stream: lower first. */
typedef struct {
    uint32_t stage, phase, place, task;
} Place;

static int compare(const void *a, const void *b)
{
    const Place *x = a, *y = b;

    if (x->stage != y->stage)
        return x->stage < y->stage ? -1 : 1;
    if (x->phase != y->phase)
        return x->phase < y->phase ? -1 : 1;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return (x->task > y->task) - (x->task < y->task);
}

static Place place_of(const Flow *flow, uint32_t id)
{
    const SimTask *task = &flow->tasks->task[id];
    Place place = {.place = id, .task = id};

    if (!flow->options->overlap) {
        place.stage = task->stage;
        place.phase = task->kind == TASK_COMPUTE;
    } else if (task->kind == TASK_COLLECTIVE && task->gradient) {
        place.place = 0;
        for (uint32_t i = 0; i < task->n_deps; i++)
            place.place = MAX(place.place, flow->tasks->dep[task->first_dep + i]);
    }
    return place;
}

/* The tasks in the order of their streams. Caller frees. */
static Place *place_all(const Flow *flow)
{
    Place *place = g_new(Place, flow->tasks->n_tasks);

    for (uint32_t i = 0; i < flow->tasks->n_tasks; i++)
        place[i] = place_of(flow, i);
    qsort(place, flow->tasks->n_tasks, sizeof *place, compare);
    return place;
}

static uint32_t stream_of(const Flow *flow, const SimTask *task)
{
    if (task->kind == TASK_COMPUTE)
        return 0;
    return task->gradient && flow->options->streams > 1 ? 2 : 1;
}

/* --- what waits for what --- */

typedef struct {
    uint32_t from, to;
} Edge;

static void add_edge(GArray *edges, uint32_t from, uint32_t to)
{
    const Edge edge = {from, to};

    if (from != SIM_NO_TASK)
        g_array_append_val(edges, edge);
}

/* Every task waits for the one before it in its stream, a collective in that of every
 * lane. last: [stream * n_lanes + lane]. */
static void add_stream_edges(const Flow *flow, const Place *place, GArray *edges)
{
    const SimTasks *tasks = flow->tasks;
    const uint32_t n_lanes = tasks->n_lanes, n = 3 * n_lanes;
    g_autofree uint32_t *last = g_new(uint32_t, n);

    for (uint32_t i = 0; i < n; i++)
        last[i] = SIM_NO_TASK;
    for (uint32_t i = 0; i < tasks->n_tasks; i++) {
        const uint32_t id = place[i].task;
        const SimTask *task = &tasks->task[id];
        const uint32_t stream = flow->options->overlap ? stream_of(flow, task) : 0;
        uint32_t *of_lane = &last[stream * n_lanes];
        if (task->kind == TASK_COMPUTE) {
            add_edge(edges, of_lane[task->lane], id);
            of_lane[task->lane] = id;
            continue;
        }
        for (uint32_t l = 0; l < n_lanes; l++) {
            if (l == 0 || of_lane[l] != of_lane[l - 1])
                add_edge(edges, of_lane[l], id);
        }
        for (uint32_t l = 0; l < n_lanes; l++)
            of_lane[l] = id;
    }
}

static void add_dep_edges(const Flow *flow, GArray *edges)
{
    for (uint32_t i = 0; i < flow->tasks->n_tasks; i++) {
        const SimTask *task = &flow->tasks->task[i];
        for (uint32_t k = 0; k < task->n_deps; k++)
            add_edge(edges, flow->tasks->dep[task->first_dep + k], i);
    }
}

static void connect(Flow *flow)
{
    const uint32_t n = flow->tasks->n_tasks;
    g_autoptr(GArray) edges = g_array_new(false, false, sizeof(Edge));
    g_autofree Place *place = place_all(flow);

    add_stream_edges(flow, place, edges);
    add_dep_edges(flow, edges);
    flow->first_next = g_new0(uint32_t, n + 1);
    flow->next = g_new(uint32_t, edges->len);
    flow->waiting = g_new0(uint32_t, n);
    for (uint32_t i = 0; i < edges->len; i++)
        flow->first_next[g_array_index(edges, Edge, i).from + 1]++;
    for (uint32_t i = 0; i < n; i++)
        flow->first_next[i + 1] += flow->first_next[i];
    g_autofree uint32_t *fill = g_memdup2(flow->first_next, n * sizeof *fill);
    for (uint32_t i = 0; i < edges->len; i++) {
        const Edge *edge = &g_array_index(edges, Edge, i);
        flow->next[fill[edge->from]++] = edge->to;
        flow->waiting[edge->to]++;
    }
}

/* --- the run --- */

static void finish(SimEngine *engine, void *context, uint64_t argument);

static void start(Flow *flow, uint32_t id, uint32_t cause)
{
    const SimTask *task = &flow->tasks->task[id];
    SimSpan *span = &flow->timeline->span[id];

    span->start_s = sim_engine_now(flow->engine);
    span->cause = cause;
    span->stream = (uint8_t)stream_of(flow, task);
    sim_engine_schedule(flow->engine, span->start_s + task->duration_s, 0, finish, flow,
                        id);
}

static void finish(SimEngine *engine, void *context, uint64_t argument)
{
    Flow *flow = context;
    const uint32_t id = (uint32_t)argument;

    flow->timeline->span[id].end_s = sim_engine_now(engine);
    flow->n_done++;
    for (uint32_t i = flow->first_next[id]; i < flow->first_next[id + 1]; i++)
        if (--flow->waiting[flow->next[i]] == 0)
            start(flow, flow->next[i], id);
}

static void run_all(Flow *flow)
{
    const uint32_t n = flow->tasks->n_tasks;

    for (uint32_t i = 0; i < n; i++)
        if (flow->waiting[i] == 0)
            start(flow, i, SIM_NO_SPAN);
    sim_engine_run(flow->engine);
    g_assert(flow->n_done == n);
}

/* A stage's part of the timeline: when its first task starts, what its collectives take
 * together, and its computations on the lane where they take longest. */
static void report_stages(const Flow *flow, SimReport *report)
{
    const SimTasks *tasks = flow->tasks;
    const double end_s = sim_timeline_end_s(flow->timeline);
    g_autofree double *lane_s = g_new0(double, (size_t)report->n_stages * tasks->n_lanes);

    for (uint32_t i = 0; i < report->n_stages; i++)
        report->stage[i].start_s = end_s;
    for (uint32_t i = 0; i < tasks->n_tasks; i++) {
        const SimTask *task = &tasks->task[i];
        const SimSpan *span = &flow->timeline->span[i];
        const double span_s = span->end_s - span->start_s;
        SimStageReport *stage = &report->stage[task->stage];
        stage->start_s = MIN(stage->start_s, span->start_s);
        if (task->kind == TASK_COLLECTIVE) {
            stage->comm_s += span_s;
            continue;
        }
        double *sum_s = &lane_s[(size_t)task->stage * tasks->n_lanes + task->lane];
        *sum_s += span_s;
        stage->comp_s = MAX(stage->comp_s, *sum_s);
    }
}

static bool run_flow(const SimCase *sim, SimReport *report, GError **error)
{
    const SimLowering how = {.overlap = sim->options->overlap,
                             .first_bucket_bytes = sim->options->first_bucket};
    g_autoptr(SimTasks) tasks = sim_tasks_lower(sim, &how);
    g_autoptr(SimEngine) engine = sim_engine_new();
    Flow flow = {.tasks = tasks,
                 .options = sim->options,
                 .engine = engine,
                 .timeline = sim_tasks_timeline(tasks, sim->plan->program->n)};

    (void)error;
    flow.timeline->n_streams = sim->options->streams > 1 ? 3 : 2;
    connect(&flow);
    run_all(&flow);
    report_stages(&flow, report);
    g_free(flow.first_next);
    g_free(flow.next);
    g_free(flow.waiting);
    report->timeline = flow.timeline;
    return true;
}

const SimEvaluator sim_flow = {
    {"flow", "discrete events; streams, overlap, and collectives that share links"},
    run_flow,
};
