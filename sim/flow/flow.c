/* The flow fidelity: tasks on lanes, communication as flows. */
#include "sim/flow/flow.h"

#include <string.h>

#include "data/base/free.h"
#include "data/base/units.h"
#include "sim/flow/memory_timeline.h"
#include "sim/flow/ready.h"
#include "sim/network/transport.h"

/* The computation that a lane is running. */
typedef struct {
    uint32_t task;    /* SIM_NO_TASK: the lane is idle */
    uint32_t version; /* version of its end event: others are out of date */
    double left_s;    /* nominal time left at `since_s` */
    double since_s;
    double slowdown;          /* factor while the lane communicates */
    uint32_t n_communicating; /* collectives and transfers in progress */
    double lost;    /* part of a communication's progress, lost while the lane computes */
    double began_s; /* when its computation began */
    double computed_s; /* the time of computations that have ended */
} Lane;

struct SimFlowRun {
    const SimFlowCase *flow;
    SimTimeline *timeline;
    SimEngine *engine;       /* borrowed */
    SimTransport *transport; /* NULL: an ideal crossbar */
    double *duration_s;
    uint32_t *waiting;
    uint32_t n_done;
    bool any_slowdown;
    /* [task] what its lanes had lost when its progress was last counted; NULL: communication is
     * not slowed */
    double *lost_s;
    Lane *lane;
    SimReady *ready;  /* NULL: streams have a fixed order */
    SimHandler ended; /* may be NULL */
    void *context;
};
typedef struct SimFlowRun Run;

static void end_compute(SimEngine *engine, void *context, uint64_t argument);
static void end_collective(SimEngine *engine, void *context, uint64_t argument);
static void end_launch(SimEngine *engine, void *context, uint64_t argument);

/* --- computations --- */

static double pace(const Lane *lane)
{
    return lane->n_communicating > 0 && lane->slowdown > 1 ? lane->slowdown : 1;
}

static void schedule_end(Run *run, Lane *lane)
{
    KILTER_ASSERT(lane->left_s >= 0);
    lane->since_s = sim_engine_now(run->engine);
    sim_engine_schedule(run->engine, lane->since_s + lane->left_s * pace(lane), 0,
                        end_compute, run, (uint64_t)++lane->version << 32 | lane->task);
}

/* Counts one collective or transfer more (or less) in progress on the lanes of a task. */
static void communicate(Run *run, uint32_t id, int more)
{
    KILTER_ASSERT(id < run->flow->tasks->n_tasks && (more == 1 || more == -1));
    const SimTasks *tasks = run->flow->tasks;
    const double now_s = sim_engine_now(run->engine);
    uint32_t n;
    const uint32_t *lanes = sim_task_lanes(tasks, &tasks->task[id], &n);
    for (uint32_t k = 0; run->any_slowdown && k < n; k++) {
        Lane *lane = &run->lane[lanes[k]];
        const double before = pace(lane);
        lane->n_communicating = (uint32_t)((int64_t)lane->n_communicating + more);
        if (pace(lane) == before)
            continue;
        lane->left_s -= (now_s - lane->since_s) / before;
        lane->left_s = MAX(lane->left_s, 0);
        lane->since_s = now_s;
        if (lane->task != SIM_NO_TASK)
            schedule_end(run, lane);
    }
}

/* The progress that a communication of these lanes would have lost since the iteration began, on
 * average over them. */
static double lost_so_far(const Run *run, uint32_t id)
{
    const SimTasks *tasks = run->flow->tasks;
    const double now_s = sim_engine_now(run->engine);
    uint32_t n;
    const uint32_t *lanes = sim_task_lanes(tasks, &tasks->task[id], &n);
    double sum = 0;
    for (uint32_t k = 0; k < n; k++) {
        const Lane *lane = &run->lane[lanes[k]];
        const double running_s = lane->task == SIM_NO_TASK ? 0 : now_s - lane->began_s;
        sum += lane->lost * (lane->computed_s + running_s);
    }
    return sum / MAX(n, 1);
}

/* Whether a communication has progress to make up, as its lanes computed meanwhile; then it ends
 * later. */
static bool is_behind(Run *run, uint32_t id)
{
    static const double NOTHING_S = 1e-9;
    if (!run->lost_s)
        return false;
    const double lost_s = lost_so_far(run, id), left_s = lost_s - run->lost_s[id];
    run->lost_s[id] = lost_s;
    if (!(left_s > NOTHING_S))
        return false;
    sim_engine_schedule(run->engine, sim_engine_now(run->engine) + left_s, 0,
                        end_collective, run, id);
    return true;
}

/* --- tasks --- */

static void flow_start(Run *run, uint32_t id, uint32_t cause)
{
    KILTER_ASSERT(id < run->flow->tasks->n_tasks && run->waiting[id] == 0);
    const SimTask *task = &run->flow->tasks->task[id];
    SimSpan *span = &run->timeline->span[id];
    span->start_s = sim_engine_now(run->engine);
    span->cause = cause;
    span->stream = run->flow->streams->stream[id];
    if (task->kind == TASK_LAUNCH || task->copies) {
        sim_engine_schedule(run->engine, span->start_s + run->duration_s[id], 0,
                            end_launch, run, id);
        return;
    }
    if (task->kind == TASK_COMPUTE) {
        Lane *lane = &run->lane[task->lane];
        lane->task = id;
        lane->left_s = run->duration_s[id];
        lane->began_s = span->start_s;
        schedule_end(run, lane);
        return;
    }
    if (run->lost_s)
        run->lost_s[id] = lost_so_far(run, id);
    communicate(run, id, 1);
    if (run->transport)
        sim_transport_start(run->transport, id, end_collective, run, id);
    else
        sim_engine_schedule(run->engine, span->start_s + run->duration_s[id], 0,
                            end_collective, run, id);
}

/* All that the task waits for has ended, the last of it was `cause`. */
static void arrive(Run *run, uint32_t id, uint32_t cause)
{
    if (!run->ready || !sim_ready_queues(&run->flow->tasks->task[id]) ||
        sim_ready_join(run->ready, id))
        flow_start(run, id, cause);
}

static void end_task(Run *run, uint32_t id)
{
    KILTER_ASSERT(run->n_done < run->flow->tasks->n_tasks);
    const SimStreams *streams = run->flow->streams;
    run->timeline->span[id].end_s = sim_engine_now(run->engine);
    run->n_done++;
    if (run->ready && sim_ready_queues(&run->flow->tasks->task[id])) {
        const GArray *started = sim_ready_leave(run->ready, id);
        for (uint32_t i = 0; i < started->len; i++)
            flow_start(run, g_array_index(started, uint32_t, i), id);
    }
    for (uint32_t i = streams->first_next[id]; i < streams->first_next[id + 1]; i++)
        if (--run->waiting[streams->next[i]] == 0)
            arrive(run, streams->next[i], id);
    if (run->n_done == run->flow->tasks->n_tasks && run->ended)
        sim_engine_schedule(run->engine, sim_engine_now(run->engine), 0, run->ended,
                            run->context, 0);
}

static void end_compute(SimEngine *engine, void *context, uint64_t argument)
{
    Run *run = context;
    const uint32_t id = (uint32_t)argument;
    Lane *lane = &run->lane[run->flow->tasks->task[id].lane];
    if (lane->version != argument >> 32)
        return;
    lane->task = SIM_NO_TASK;
    lane->computed_s += sim_engine_now(engine) - lane->began_s;
    end_task(run, id);
}

static void end_collective(SimEngine *engine, void *context, uint64_t argument)
{
    Run *run = context;
    (void)engine;
    if (is_behind(run, (uint32_t)argument))
        return;
    communicate(run, (uint32_t)argument, -1);
    end_task(run, (uint32_t)argument);
}

static void end_launch(SimEngine *engine, void *context, uint64_t argument)
{
    (void)engine;
    end_task(context, (uint32_t)argument);
}

/* --- runs --- */

static void init_lanes(Run *run)
{
    const SimFlowCase *flow = run->flow;
    const SimTeams *teams = flow->tasks->teams;
    bool any_lost = false;
    run->lane = g_new0(Lane, teams->n_lanes);
    items_at (Lane, lane, l, run->lane, teams->n_lanes) {
        lane->task = SIM_NO_TASK;
        lane->slowdown = flow->sim->view->device[teams->device[l]].slowdown;
        run->any_slowdown = run->any_slowdown || lane->slowdown > 1;
        const double interference =
            flow->sim->view->device[teams->device[l]].interference;
        lane->lost = interference > 1 ? 1 - 1 / interference : 0;
        any_lost = any_lost || lane->lost > 0;
    }
    if (any_lost)
        run->lost_s = g_new0(double, flow->tasks->n_tasks);
}

static void init_durations(Run *run, uint64_t sample)
{
    const SimTasks *tasks = run->flow->tasks;
    for (uint32_t i = 0; i < tasks->n_tasks; i++)
        run->duration_s[i] = tasks->task[i].duration_s;
    if (run->flow->noise)
        sim_noise_durations(run->flow->noise, sample, run->duration_s);
}

FREE_DEFINE(sim_flow_close, SimFlowRun, run, sim_transport_free(run->transport),
            free_each(run->duration_s, run->waiting, run->lane, run->lost_s),
            sim_ready_free(run->ready));

SimFlowRun *sim_flow_open(const SimFlowCase *flow, SimTimeline *timeline,
                          SimEngine *engine, const SimFabric *fabric, GError **error)
{
    g_autoptr(SimFlowRun) run = g_new0(SimFlowRun, 1);
    run->flow = flow;
    run->timeline = timeline;
    run->engine = engine;
    if (fabric || flow->topology)
        run->transport = sim_transport_new(flow, engine, fabric);
    if (run->transport && !sim_transport_prepare(run->transport, error))
        return NULL;
    run->waiting = g_new(uint32_t, flow->tasks->n_tasks);
    run->duration_s = g_new(double, flow->tasks->n_tasks);
    init_lanes(run);
    return g_steal_pointer(&run);
}

void sim_flow_begin(SimFlowRun *run, uint64_t sample, SimHandler ended, void *context)
{
    const SimFlowCase *flow = run->flow;
    const uint32_t n = flow->tasks->n_tasks;
    run->n_done = 0;
    if (run->transport)
        sim_transport_forget(run->transport);
    run->ended = ended;
    run->context = context;
    memcpy(run->waiting, flow->streams->waiting, n * sizeof *run->waiting);
    if (flow->streams->by_readiness) {
        sim_ready_free(run->ready);
        run->ready = sim_ready_new(flow->streams);
    }
    init_durations(run, sample);
    for (uint32_t i = 0; i < n; i++)
        if (flow->streams->waiting[i] == 0)
            arrive(run, i, SIM_NO_SPAN);
}

/* Records the bytes that each link has carried. */
static void record_links(const Run *run)
{
    const Topology *topology = run->flow->topology;
    const SimNetwork *network = sim_transport_network(run->transport);
    SimTimeline *timeline = run->timeline;
    timeline->n_links = topology->n_links;
    timeline->link = g_new(SimLinkUse, topology->n_links);
    items_at (const TopologyLink, link, i, topology->link, topology->n_links) {
        const uint32_t stands = sim_transport_stands(run->transport, i);
        timeline->link[i] = (SimLinkUse){
            .name = g_strdup_printf("%s>%s", topology->node[link->from].name,
                                    topology->node[link->to].name),
            .bandwidth = link->bandwidth,
            .bytes = sim_network_link_bytes(network, stands),
            .busy_s = sim_network_link_busy_s(network, stands),
        };
    }
}

/* Runs the tasks once; *left gets the number of tasks that did not end. False with an error if a
 * collective cannot be lowered. */
static bool attempt(const SimFlowCase *flow, uint64_t sample, bool faults, bool links,
                    SimTimeline *timeline, uint32_t *left, GError **error)
{
    g_autoptr(SimEngine) engine = sim_engine_new();
    g_autoptr(SimFlowRun) run = sim_flow_open(flow, timeline, engine, NULL, error);
    if (!run)
        return false;
    if (faults && run->transport)
        sim_faults_schedule(flow->faults, sim_transport_network(run->transport));
    sim_flow_begin(run, sample, NULL, NULL);
    sim_engine_run(engine);
    g_assert(run->n_done <= flow->tasks->n_tasks);
    *left = flow->tasks->n_tasks - run->n_done;
    if (links && run->transport && *left == 0)
        record_links(run);
    return true;
}

/* Handles a failure of the iteration: it ends there, or another attempt without faults follows. */
static bool fail(const SimFlowCase *flow, uint64_t sample, bool links,
                 const SimFault *fault, SimTimeline *timeline, uint32_t *left,
                 GError **error)
{
    const double restart_s = flow->sim->options->restart;
    g_autofree char *time = units_format(fault->time_s, QUANTITY_TIME);
    if (restart_s == 0)
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "the iteration fails: %s %s fails at %s; option 'restart' "
                           "starts it again",
                           fault->device ? "device" : "link", fault->name, time);
    timeline->lost_s = fault->time_s + restart_s;
    return attempt(flow, sample, false, links, timeline, left, error);
}

bool sim_flow_run(const SimFlowCase *flow, uint64_t sample, bool links,
                  SimTimeline *timeline, GError **error)
{
    uint32_t left;
    timeline->lost_s = 0;
    if (!attempt(flow, sample, true, links && flow->faults->len == 0, timeline, &left,
                 error))
        return false;
    const SimFault *fault =
        sim_faults_first(flow->faults, sim_timeline_end_s(timeline), left > 0);
    if (fault && !fail(flow, sample, links, fault, timeline, &left, error))
        return false;
    return left == 0 ||
           kilter_fail(error, KILTER_ERROR_FAILED,
                       "the iteration does not end: %u of its %u tasks wait for flows "
                       "that stand still",
                       left, flow->tasks->n_tasks);
}

bool sim_flow_prepare(const SimCase *sim, SimFlowCase *flow, GError **error)
{
    const bool noisy = sim_noise_separates(sim->options);
    const bool by_readiness = sim->options->order == SIM_ORDER_READY;
    const SimLowering how = {
        .overlap = sim->options->overlap && by_readiness ? SIM_OVERLAP_ON
                                                         : sim->options->overlap,
        .first_bucket_bytes = sim->options->first_bucket,
        .separate = noisy || sim->options->separate,
        .free_transfers = sim->options->transfers == SIM_TRANSFERS_FREE,
        .ahead = sim->options->prefetch + 1};
    *flow = (SimFlowCase){.sim = sim, .tasks = sim_tasks_lower(sim, &how)};
    flow->streams = sim_streams_new(flow->tasks, sim->options);
    const bool shares = sim->options->network == SIM_TOPOLOGY && sim->view->n_devices > 1;
    if ((!noisy || (flow->noise = sim_noise_new(sim, flow->tasks, error))) &&
        (!shares || (flow->topology = topology_of_view(sim->view, error))) &&
        (flow->faults = sim_faults_new(sim, flow->topology, error)))
        return true;
    sim_flow_clear(flow);
    return false;
}

CLEAR_DEFINE(sim_flow_clear, SimFlowCase, flow, let_go(flow->tasks, sim_tasks_free),
             let_go(flow->streams, sim_streams_free), let_go(flow->noise, sim_noise_free),
             let_go(flow->topology, topology_free), let_go(flow->faults, g_array_unref));

bool sim_flow_toll(const SimCase *sim, double *dollars, GError **error)
{
    SimOptions options = *sim->options;
    SimCase wired = *sim;
    g_auto(SimFlowCase) flow = {0};
    options.network = SIM_TOPOLOGY;
    options.fail = options.slow_link = "";
    wired.options = &options;
    *dollars = 0;
    if (!sim->view->toll)
        return true;
    if (!sim_flow_prepare(&wired, &flow, error))
        return false;
    g_autoptr(SimEngine) engine = sim_engine_new();
    g_autoptr(SimTransport) transport = sim_transport_new(&flow, engine, NULL);
    return sim_transport_toll(transport, dollars, error);
}

/* --- the fidelity --- */

bool sim_flow(const SimCase *sim, SimReport *report, GError **error)
{
    g_auto(SimFlowCase) flow = {0};
    if (!sim_flow_prepare(sim, &flow, error))
        return false;
    report->timeline = sim_tasks_timeline(flow.tasks, sim->plan->program->n);
    report->timeline->n_streams = flow.streams->n_streams;
    if (!sim_flow_run(&flow, 0, true, report->timeline, error))
        return false;
    if (!sim->options->time_only)
        sim_memory_record(sim, report->timeline);
    return true;
}
