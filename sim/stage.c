/* The `stage` fidelity: each device has a clock. A computation advances its device's, a collective waits for those of all
 * its devices and advances them; what is transferred starts when its sender has it, one after the other between two
 * groups, and only who uses it waits for it. In an SPMD program a collective is a barrier of all devices, and the time
 * that of `analytic`. */
#include <math.h>

#include "sim/task.h"

typedef struct {
    const SimTasks *tasks;
    SimTimeline *timeline;
    uint32_t *last; /* [lane]: the last task that advanced its clock, or SIM_NO_TASK */
} Clocks;

/* The later one of two spans to wait for. */
static void wait_for(const Clocks *c, uint32_t id, SimSpan *span)
{
    if (id == SIM_NO_TASK)
        return;
    const SimSpan *other = &c->timeline->span[id];
    if (span->cause != SIM_NO_SPAN && other->end_s <= span->start_s)
        return;
    span->start_s = other->end_s;
    span->cause = id;
}

static void run_task(Clocks *c, uint32_t id)
{
    const SimTask *task = &c->tasks->task[id];
    SimSpan *span = &c->timeline->span[id];
    const bool advances = task->kind != TASK_TRANSFER;
    uint32_t n;
    const uint32_t *lane = sim_task_lanes(c->tasks, task, &n);

    span->start_s = 0;
    for (uint32_t k = 0; advances && k < n; k++)
        wait_for(c, c->last[lane[k]], span);
    for (uint32_t k = 0; k < task->n_deps; k++)
        wait_for(c, c->tasks->dep[task->first_dep + k], span);
    span->end_s = span->start_s + task->duration_s;
    for (uint32_t k = 0; advances && k < n; k++)
        c->last[lane[k]] = id;
}

/* The collectives of a stage end when its computations begin. */
static void report_stages(const SimTasks *tasks, const SimTimeline *timeline,
                          SimReport *report)
{
    g_autofree double *comm_end_s = g_new0(double, report->n_stages);
    g_autofree double *end_s = g_new0(double, report->n_stages);

    for (uint32_t i = 0; i < report->n_stages; i++)
        report->stage[i].start_s = INFINITY;
    for (uint32_t i = 0; i < tasks->n_tasks; i++) {
        const SimSpan *span = &timeline->span[i];
        const uint32_t k = tasks->task[i].stage;
        report->stage[k].start_s = fmin(report->stage[k].start_s, span->start_s);
        end_s[k] = fmax(end_s[k], span->end_s);
        if (tasks->task[i].kind == TASK_COLLECTIVE)
            comm_end_s[k] = fmax(comm_end_s[k], span->end_s);
    }
    for (uint32_t i = 0; i < report->n_stages; i++) {
        SimStageReport *stage = &report->stage[i];
        stage->start_s = isfinite(stage->start_s) ? stage->start_s : 0;
        stage->comm_s = fmax(comm_end_s[i] - stage->start_s, 0);
        stage->comp_s = fmax(end_s[i] - stage->start_s - stage->comm_s, 0);
    }
}

static bool run_stage(const SimCase *sim, SimReport *report, GError **error)
{
    const SimLowering how = {.overlap = false};
    g_autoptr(SimTasks) tasks = sim_tasks_lower(sim, &how);
    g_autofree uint32_t *last = g_new(uint32_t, tasks->teams->n_lanes);
    Clocks clocks = {tasks, sim_tasks_timeline(tasks, sim->plan->program->n), last};

    (void)error;
    for (uint32_t l = 0; l < tasks->teams->n_lanes; l++)
        last[l] = SIM_NO_TASK;
    for (uint32_t i = 0; i < tasks->n_tasks; i++)
        run_task(&clocks, i);
    report->timeline = clocks.timeline;
    if (program_is_spmd(sim->plan->program))
        report_stages(tasks, report->timeline, report);
    else
        sim_tasks_report(tasks, report->timeline, report);
    return true;
}

const SimEvaluator sim_stage = {
    {"stage",
     "each device has a clock that collectives advance together; equals analytic"},
    false,
    run_stage,
};
