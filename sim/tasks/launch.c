/* Launches: tasks of the hosts, each put before the task that it launches. */
#include "data/base/free.h"
#include "sim/tasks/task.h"

typedef struct {
    const SimCase *sim;
    const SimTasks *tasks; /* the tasks before launches are added */
    GArray *task, *dep;    /* the same with launches */
    uint32_t *now;         /* [task]: its new id */
    uint32_t *seen;        /* [lane]: the last task that its host launched */
} Launching;

static double launch_s(const Launching *l, const SimTask *task, uint32_t lane)
{
    const SimCase *sim = l->sim;
    const Instr *instr = &sim->plan->program->instr[task->instr];
    const Device *device = &sim->view->device[l->tasks->teams->device[lane]];
    if (instr->kind == INSTR_COMPUTE)
        return cluster_view_launch_s(sim->view, device,
                                     graph_get_op(sim->graph, instr->op)->kind);
    const bool alone =
        task->kind == TASK_COLLECTIVE && l->tasks->teams->team[task->team].n == 1;
    if (alone || task->joins)
        return 0;
    return device->launch_s + (task->kind == TASK_TRANSFER ? device->handover_s : 0);
}

/* Adds the transfers that a host waits for before it launches a computation that uses the data
 * sent. Returns their number. */
static uint32_t add_received(Launching *l, const SimTask *task)
{
    const uint32_t first_dep = l->dep->len;
    if (l->sim->options->host != SIM_HOST_WAITS || task->kind != TASK_COMPUTE)
        return 0;
    for (uint32_t k = 0; k < task->n_deps; k++) {
        const uint32_t dep = l->tasks->dep[task->first_dep + k];
        if (l->tasks->task[dep].kind == TASK_TRANSFER)
            g_array_append_val(l->dep, l->now[dep]);
    }
    return l->dep->len - first_dep;
}

/* Adds launches of task `id` on the given lanes. */
static void launch_on(Launching *l, uint32_t id, const uint32_t *lane, uint32_t n)
{
    g_assert(id < l->tasks->n_tasks);
    const SimTask *launched = &l->tasks->task[id];
    SimTask task = {.kind = TASK_LAUNCH,
                    .instr = launched->instr,
                    .stage = launched->stage,
                    .microbatch = launched->microbatch};
    for (uint32_t k = 0; k < n; k++) {
        task.duration_s = launch_s(l, launched, lane[k]);
        if (l->seen[lane[k]] == id || task.duration_s == 0)
            continue;
        l->seen[lane[k]] = id;
        task.lane = lane[k];
        task.first_dep = l->dep->len;
        task.n_deps = add_received(l, launched);
        g_array_append_val(l->task, task);
    }
}

/* The hosts of the senders launch a transfer as well. */
static void launch_senders(Launching *l, uint32_t id)
{
    const SimTasks *tasks = l->tasks;
    const SimTask *task = &tasks->task[id];
    const SimTransfer *t = task->transfer;
    const SimGroupTeams *lanes = &tasks->teams->group[t->group];
    uint32_t first, end;
    sim_transfer_sources(l->sim->parts, t->group, t->to_group, t->cut.has_parts,
                         tasks->teams->team[task->team].first, &first, &end);
    for (; first < end; first++) {
        const SimTeam *senders =
            &tasks->teams->team[lanes->first[AXIS_POSITIONS] + lanes->team_of[first]];
        launch_on(l, id, senders->lane, senders->n_lanes);
    }
}

static void add_launched(Launching *l, uint32_t id)
{
    SimTask task = l->tasks->task[id];
    const uint32_t first_launch = l->task->len;
    uint32_t n;
    const uint32_t *lane = sim_task_lanes(l->tasks, &task, &n);
    if (task.kind == TASK_TRANSFER)
        launch_senders(l, id);
    launch_on(l, id, lane, n);
    l->now[id] = l->task->len;
    const uint32_t first_dep = l->dep->len;
    for (uint32_t k = 0; k < task.n_deps; k++)
        g_array_append_val(l->dep, l->now[l->tasks->dep[task.first_dep + k]]);
    for (uint32_t i = first_launch; i < l->now[id]; i++)
        g_array_append_val(l->dep, i);
    task.first_dep = first_dep;
    task.n_deps = l->dep->len - first_dep;
    g_array_append_val(l->task, task);
}

void sim_tasks_launch(SimTasks *tasks, const SimCase *sim)
{
    if (!cluster_view_launches(sim->view))
        return;
    const uint32_t n_lanes = tasks->teams->n_lanes;
    Launching l = {sim,
                   tasks,
                   g_array_new(false, false, sizeof(SimTask)),
                   g_array_new(false, false, sizeof(uint32_t)),
                   g_new(uint32_t, tasks->n_tasks),
                   g_new(uint32_t, n_lanes)};
    for (uint32_t k = 0; k < n_lanes; k++)
        l.seen[k] = SIM_NO_TASK;
    for (uint32_t i = 0; i < tasks->n_tasks; i++)
        add_launched(&l, i);
    for (uint32_t i = 0; i < sim->plan->program->n; i++)
        if (tasks->bucket[i] != SIM_NO_TASK)
            tasks->bucket[i] = l.now[tasks->bucket[i]];
    free_each(tasks->task, tasks->dep);
    tasks->n_tasks = l.task->len;
    tasks->n_deps = l.dep->len;
    tasks->task = (SimTask *)(void *)g_array_free(l.task, false);
    tasks->dep = (uint32_t *)(void *)g_array_free(l.dep, false);
    free_each(l.now, l.seen);
}
