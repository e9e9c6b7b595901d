/* The `stage` fidelity: each device has a clock, and so has its host. A launch advances the host's
 * clock. A computation waits for its launch and advances its device's clock; a collective waits for
 * the clocks of all its devices and advances them. A transfer starts when its sender has the data,
 * one after the other between two groups of a pipeline, and only users of the data wait for it. In
 * an SPMD program a collective is a barrier of all devices, and the time equals that of `analytic`.
 *
 * In a duplex program (no groups, microbatches that take turns) communication overlaps the other
 * microbatch's computation. Turns replace the clocks: a turn is a step of collectives and the
 * computations after it of one microbatch, which overlap unless one depends on the other
 * (sim/cost/turns.h). A turn begins when the turn before has ended on all devices, so that the time
 * equals that of the formula (HiDup Eq. 4, 5) and of sim_linear_time. */
#include <math.h>

#include "sim/cost/turns.h"
#include "sim/tasks/task.h"

typedef struct {
    const SimTasks *tasks;
    SimTimeline *timeline;
    /* [lane]: the last task that advanced its clock, or SIM_NO_TASK. In turns then: the last
     * collective; [lane]: the last inner communication */
    uint32_t *last;
    uint32_t *launched; /* [lane]: the last launch */
    /* exchanges of microbatches, which take turns in a pipeline, have clocks of their own: the
     * second n_lanes of `last` */
    bool pieces;
} Clocks;

/* Lets a span wait for task `id`, if that ends later than its present cause. */
static void wait_for(const Clocks *c, uint32_t id, SimSpan *span)
{
    KILTER_ASSERT(id == SIM_NO_TASK || id < c->tasks->n_tasks);
    if (id == SIM_NO_TASK)
        return;
    const SimSpan *other = &c->timeline->span[id];
    if (span->cause != SIM_NO_SPAN && other->end_s <= span->start_s)
        return;
    span->start_s = other->end_s;
    span->cause = id;
}

static void run_launch(Clocks *c, uint32_t id)
{
    const SimTask *task = &c->tasks->task[id];
    SimSpan *span = &c->timeline->span[id];
    span->start_s = 0;
    wait_for(c, c->launched[task->lane], span);
    for (uint32_t k = 0; k < task->n_deps; k++)
        wait_for(c, c->tasks->dep[task->first_dep + k], span);
    span->end_s = span->start_s + task->duration_s;
    c->launched[task->lane] = id;
}

static void run_task(Clocks *c, const Program *program, uint32_t id)
{
    KILTER_ASSERT(id < c->tasks->n_tasks);
    const SimTask *task = &c->tasks->task[id];
    SimSpan *span = &c->timeline->span[id];
    const bool advances = task->kind != TASK_TRANSFER;
    const uint32_t n_lanes = c->tasks->teams->n_lanes;
    uint32_t n;
    const uint32_t *lane = sim_task_lanes(c->tasks, task, &n);
    if (task->kind == TASK_LAUNCH) {
        run_launch(c, id);
        return;
    }
    const Instr *instr = &program->instr[task->instr];
    const bool exchange = c->pieces && instr->kind == INSTR_COLLECTIVE,
               whole = c->pieces && instr->microbatch == PROGRAM_WHOLE;
    /* the clocks that it waits for and advances, 0: computations, 1: exchanges */
    const uint32_t first = exchange && !whole, end = 1 + (exchange || whole);
    span->start_s = 0;
    for (uint32_t at = advances ? first : end; at < end; at++)
        for (uint32_t k = 0; k < n; k++)
            wait_for(c, c->last[at * n_lanes + lane[k]], span);
    for (uint32_t k = 0; k < task->n_deps; k++)
        wait_for(c, c->tasks->dep[task->first_dep + k], span);
    span->end_s = span->start_s + task->duration_s;
    for (uint32_t at = advances ? first : end; at < end; at++)
        for (uint32_t k = 0; k < n; k++)
            c->last[at * n_lanes + lane[k]] = id;
}

/* Whether a task is communication inside machines for a collective. */
static bool is_inner(const Program *program, const SimTask *task)
{
    return task->kind == TASK_COMPUTE &&
           program->instr[task->instr].kind == INSTR_COLLECTIVE;
}

/* A turn: its first task, and the task that ends the turns before. */
typedef struct {
    uint32_t first, before;
} Turn;

/* Collectives run one after another, and so do a lane's computations, and the communication inside
 * its machine. The latter comes after all collectives; computations of the turn that depend on it
 * wait for all of it. */
static void run_in_turn(Clocks *c, const Program *program, uint32_t id, Turn turn)
{
    const SimTask *task = &c->tasks->task[id];
    const uint32_t n_lanes = c->tasks->teams->n_lanes;
    const bool inner = is_inner(program, task);
    SimSpan *span = &c->timeline->span[id];
    uint32_t *collective = &c->last[n_lanes];
    uint32_t *inside = &c->last[n_lanes + 1 + task->lane];
    uint32_t *last = inner                        ? inside
                     : task->kind == TASK_COMPUTE ? &c->last[task->lane]
                                                  : collective;
    span->start_s = 0;
    wait_for(c, turn.before, span);
    wait_for(c, *last, span);
    if (inner) {
        wait_for(c, *collective, span);
        span->stream = 1;
    }
    for (uint32_t k = 0; k < task->n_deps; k++) {
        const uint32_t dep = c->tasks->dep[task->first_dep + k];
        const bool inside_first =
            !inner && dep >= turn.first && is_inner(program, &c->tasks->task[dep]);
        wait_for(c, inside_first ? *inside : dep, span);
    }
    span->end_s = span->start_s + task->duration_s;
    *last = id;
}

static void run_turns(Clocks *c, const Program *program)
{
    const SimTasks *tasks = c->tasks;
    g_autofree uint32_t *turn = sim_turns(program);
    Turn at = {0, SIM_NO_TASK};
    uint32_t latest = SIM_NO_TASK, now = 0;
    for (uint32_t i = 0; i < tasks->n_tasks; i++) {
        if (turn[tasks->task[i].instr] != now) {
            now = turn[tasks->task[i].instr];
            at = (Turn){i, latest};
        }
        if (tasks->task[i].kind == TASK_LAUNCH) {
            run_launch(c, i);
            continue;
        }
        run_in_turn(c, program, i, at);
        if (latest == SIM_NO_TASK ||
            c->timeline->span[i].end_s > c->timeline->span[latest].end_s)
            latest = i;
    }
}

/* The collectives of a stage end when its computations begin. */
static void report_stages(const SimTasks *tasks, const SimTimeline *timeline,
                          SimReport *report)
{
    g_autofree double *comm_end_s = g_new0(double, report->n_stages);
    g_autofree double *end_s = g_new0(double, report->n_stages);
    for (uint32_t i = 0; i < report->n_stages; i++)
        report->stage[i].start_s = INFINITY;
    items_at (const SimSpan, span, i, timeline->span, tasks->n_tasks) {
        const uint32_t k = tasks->task[i].stage;
        if (span->launch)
            continue;
        report->stage[k].start_s = fmin(report->stage[k].start_s, span->start_s);
        end_s[k] = fmax(end_s[k], span->end_s);
        if (tasks->task[i].kind == TASK_COLLECTIVE)
            comm_end_s[k] = fmax(comm_end_s[k], span->end_s);
    }
    items_at (SimStageReport, stage, i, report->stage, report->n_stages) {
        stage->start_s = isfinite(stage->start_s) ? stage->start_s : 0;
        stage->comm_s = fmax(comm_end_s[i] - stage->start_s, 0);
        stage->comp_s = fmax(end_s[i] - stage->start_s - stage->comm_s, 0);
    }
}

bool sim_stage(const SimCase *sim, SimReport *report, GError **error)
{
    const SimLowering how = {.overlap = SIM_OVERLAP_OFF};
    g_autoptr(SimTasks) tasks = sim_tasks_lower(sim, &how);
    const Program *program = sim->plan->program;
    const uint32_t n_last = 2 * tasks->teams->n_lanes + 1,
                   n = n_last + tasks->teams->n_lanes;
    g_autofree uint32_t *last = g_new(uint32_t, n);
    (void)error;
    if (sim->options->blocks)
        return sim_blocks_run(sim, tasks, report);
    Clocks clocks = {tasks, sim_tasks_timeline(tasks, program->n), last, last + n_last,
                     sim->plan->strategy.pieces > 1};
    for (uint32_t l = 0; l < n; l++)
        last[l] = SIM_NO_TASK;
    if (program->n_microbatches > 1 && program->n_groups == 0)
        run_turns(&clocks, program);
    else
        for (uint32_t i = 0; i < tasks->n_tasks; i++)
            run_task(&clocks, program, i);
    report->timeline = clocks.timeline;
    if (program_is_spmd(program))
        report_stages(tasks, report->timeline, report);
    return true;
}
