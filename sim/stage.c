/* The `stage` fidelity: the task graph on the event engine, with a global barrier at each
 * collective step.
 *
 * A stage is two phases: its collectives, one after another; then its computations, each
 * device in program order. A phase begins when every stream of the phase before has
 * ended. */
#include "sim/engine.h"
#include "sim/task.h"

typedef struct {
    const SimTasks *tasks;
    SimReport *report;
    SimEngine *engine;
    SimTimeline *timeline;
    uint32_t n_streams; /* one a lane, and the last one for collectives */
    uint32_t *head;     /* [stage * n_streams + stream]: its first task there */
    uint32_t *next;     /* [task]: the one after it in its stream and stage */
    bool *done;         /* [task] */
    uint32_t phase;     /* 2 stage: collectives, 2 stage + 1: computations */
    uint32_t running;   /* streams that have not ended this phase */
    double phase_start_s;
} Run;

static uint32_t stream_of(const Run *run, const SimTask *task)
{
    return task->kind == TASK_COLLECTIVE ? run->n_streams - 1 : task->lane;
}

/* Chains the tasks of each (stage, stream); walking backwards keeps program order. */
static void build_streams(Run *run)
{
    const SimTasks *tasks = run->tasks;
    const size_t heads = (size_t)run->report->n_stages * run->n_streams;

    run->head = g_new(uint32_t, heads);
    run->next = g_new(uint32_t, tasks->n_tasks);
    run->done = g_new0(bool, tasks->n_tasks);
    for (size_t i = 0; i < heads; i++)
        run->head[i] = SIM_NO_TASK;
    for (uint32_t i = tasks->n_tasks; i-- > 0;) {
        const SimTask *task = &tasks->task[i];
        uint32_t *head =
            &run->head[(size_t)task->stage * run->n_streams + stream_of(run, task)];
        run->next[i] = *head;
        *head = i;
    }
}

static void finish(SimEngine *engine, void *context, uint64_t argument);

static void start(Run *run, uint32_t id, uint32_t cause)
{
    const SimTask *task = &run->tasks->task[id];
    SimSpan *span = &run->timeline->span[id];

    for (uint32_t i = 0; i < task->n_deps; i++)
        g_assert(run->done[run->tasks->dep[task->first_dep + i]]);
    span->start_s = sim_engine_now(run->engine);
    span->cause = cause;
    sim_engine_schedule(run->engine, span->start_s + task->duration_s, 0, finish, run,
                        id);
}

static void end_phase(Run *run)
{
    const double now_s = sim_engine_now(run->engine);
    SimStageReport *stage = &run->report->stage[run->phase / 2];

    if (run->phase % 2 == 0) {
        stage->start_s = run->phase_start_s;
        stage->comm_s = now_s - run->phase_start_s;
        run->report->comm_s += stage->comm_s;
    } else {
        stage->comp_s = now_s - run->phase_start_s;
        run->report->comp_s += stage->comp_s;
    }
    run->phase_start_s = now_s;
    run->phase++;
}

/* Opens the next phase that has tasks, after task `cause`; phases without any end at
 * once. */
static void open_phase(Run *run, uint32_t cause)
{
    for (; run->phase < 2 * run->report->n_stages; end_phase(run)) {
        const uint32_t *head = &run->head[(size_t)(run->phase / 2) * run->n_streams];
        const bool collectives = run->phase % 2 == 0;
        const uint32_t first = collectives ? run->n_streams - 1 : 0;
        const uint32_t end = collectives ? run->n_streams : run->n_streams - 1;
        for (uint32_t s = first; s < end; s++) {
            if (head[s] == SIM_NO_TASK)
                continue;
            run->running++;
            start(run, head[s], cause);
        }
        if (run->running > 0)
            return;
    }
}

static void finish(SimEngine *engine, void *context, uint64_t argument)
{
    Run *run = context;
    const uint32_t id = (uint32_t)argument;

    run->timeline->span[id].end_s = sim_engine_now(engine);
    run->done[id] = true;
    if (run->next[id] != SIM_NO_TASK) {
        start(run, run->next[id], id);
    } else if (--run->running == 0) {
        end_phase(run);
        open_phase(run, id);
    }
}

static bool run_stage(const SimCase *sim, SimReport *report, GError **error)
{
    const SimLowering how = {.overlap = false};
    g_autoptr(SimTasks) tasks = sim_tasks_lower(sim, &how);
    g_autoptr(SimEngine) engine = sim_engine_new();
    Run run = {.tasks = tasks,
               .report = report,
               .engine = engine,
               .timeline = sim_tasks_timeline(tasks, sim->plan->program->n),
               .n_streams = tasks->n_lanes + 1};

    (void)error;
    build_streams(&run);
    open_phase(&run, SIM_NO_SPAN);
    sim_engine_run(engine);
    g_free(run.head);
    g_free(run.next);
    g_free(run.done);
    report->timeline = run.timeline;
    return true;
}

const SimEvaluator sim_stage = {
    {"stage",
     "discrete events with a global barrier at each collective; equals analytic"},
    run_stage,
};
