/* Lowers a plan to tasks, instruction by instruction. */
#include "sim/tasks/task.h"

#include <string.h>

#include "data/base/free.h"
#include "sim/tasks/task_lower.h"

static bool is_backward(const SimCase *sim, const Instr *instr)
{
    return instr->kind == INSTR_COMPUTE &&
           graph_get_op(sim->graph, instr->op)->pass == PASS_BACKWARD;
}

static void lower_instr(Lower *lower, const Instr *instr, const SimTask *task,
                        bool pays_latency)
{
    if (lower->sim->alone && instr->across &&
        instr->collective == COLLECTIVE_ALL_REDUCE &&
        task_reduces_gradient(lower->sim->graph, instr))
        return;
    if (task_uses_held(lower, instr))
        task_flush(lower);
    if (lower->ahead && lower->sim->plan->strategy.zero > 1 &&
        instr->kind == INSTR_COMPUTE &&
        graph_is_parameter_gradient(lower->sim->graph,
                                    graph_get_op(lower->sim->graph, instr->op)->out[0]))
        task_close_full(lower);
    if (is_backward(lower->sim, instr))
        lower->overlap = lower->how->overlap == SIM_OVERLAP_ON;
    if (instr->kind == INSTR_COMPUTE)
        task_lower_compute(lower, instr, *task);
    else if (instr->kind == INSTR_TRANSFER)
        task_lower_transfer(lower, instr, *task);
    else if (instr->kind == INSTR_COLLECTIVE && !sim_is_priced(instr->collective))
        task_lower_local(lower, instr, task);
    else if (instr->kind == INSTR_COLLECTIVE && !task_hold(lower, instr, task))
        task_lower_collective(lower, instr, *task, lower->overlap || pays_latency);
}

static void lower_program(Lower *lower)
{
    const SimCase *sim = lower->sim;
    const Program *program = sim->plan->program;
    const bool spmd = program_is_spmd(program);
    items_at (const Instr, instr, i, program->instr, program->n) {
        SimStep *step = &lower->step[instr->group];
        const bool pays_latency = sim_step_next(step, sim->graph, instr);
        const SimTask task = {.microbatch = instr->microbatch,
                              .instr = i,
                              .stage = spmd ? step->stage : instr->group};
        lower_instr(lower, instr, &task, pays_latency);
    }
    task_flush(lower);
    for (uint32_t g = 0; g < sim->parts->layout.n_groups; g++)
        task_lower_inner(lower, g);
}

static SimTasks *new_tasks(const SimCase *sim, const SimLowering *how)
{
    SimTasks *tasks = g_new0(SimTasks, 1);
    tasks->teams = sim_teams_new(sim, how->separate);
    tasks->transfers = g_ptr_array_new_with_free_func((GDestroyNotify)sim_transfer_free);
    tasks->share = g_array_new(false, false, sizeof(double));
    tasks->bucket = g_new(uint32_t, sim->plan->program->n);
    for (uint32_t i = 0; i < sim->plan->program->n; i++)
        tasks->bucket[i] = SIM_NO_TASK;
    return tasks;
}

/* As many tasks as computations will have, so that their array seldom grows. */
static uint32_t likely_tasks(const Lower *lower)
{
    const Program *program = lower->sim->plan->program;
    uint64_t n = 1;
    for (uint32_t i = 0; i < program->n; i++)
        n += program->instr[i].kind == INSTR_COMPUTE
                 ? task_group_lanes(lower, &program->instr[i])->n_lanes
                 : program->instr[i].kind != INSTR_LOAD;
    return (uint32_t)MIN(n, UINT32_MAX / sizeof(SimTask));
}

/* Finds the last instruction of each group that computes each op. */
static void find_last(Lower *lower)
{
    const Program *program = lower->sim->plan->program;
    const uint32_t n_ops = graph_n_ops(lower->sim->graph);
    g_autofree bool *later =
        g_new0(bool, (size_t)lower->sim->parts->layout.n_groups *n_ops);
    lower->last = g_new0(bool, program->n + 1);
    for (uint32_t i = program->n; i-- > 0;) {
        const Instr *instr = &program->instr[i];
        if (instr->kind != INSTR_COMPUTE)
            continue;
        lower->last[i] = !later[(size_t)instr->group * n_ops + instr->op];
        later[(size_t)instr->group * n_ops + instr->op] = true;
    }
}

static void init_lower(Lower *lower)
{
    const SimCase *sim = lower->sim;
    const uint32_t n_groups = sim->parts->layout.n_groups;
    const size_t n_instances = (size_t)sim->parts->layout.instances->n_places * FORM_MAX;
    lower->task = g_array_sized_new(false, false, sizeof(SimTask), likely_tasks(lower));
    lower->dep = g_array_new(false, false, sizeof(uint32_t));
    lower->maker = g_new(Made, n_instances);
    for (size_t i = 0; i < n_instances; i++)
        lower->maker[i] = (Made){SIM_NO_TASK, SIM_NO_TASK, 0, AXIS_POSITIONS, false};
    task_bucket_init(lower);
    task_ahead_init(lower);
    lower->inner = g_new(GArray *, n_groups);
    lower->joined = g_array_new(false, false, sizeof(uint32_t));
    find_last(lower);
    lower->alike = g_new(uint32_t, graph_n_ops(sim->graph) + 1);
    memset(lower->alike, 0xff, (graph_n_ops(sim->graph) + 1) * sizeof *lower->alike);
    lower->sent = g_new(uint32_t, (size_t)n_groups * n_groups);
    for (size_t i = 0; i < (size_t)n_groups * n_groups; i++)
        lower->sent[i] = SIM_NO_TASK;
    lower->step = g_new0(SimStep, n_groups);
    if (sim->plan->strategy.pieces <= 1) /* others hide exchanges themselves */
        lower->beside = task_overlap_new(sim->view, n_groups);
    lower->ring = task_ring_new(sim, n_groups);
    lower->experts = task_experts_new(lower);
    for (uint32_t g = 0; g < n_groups; g++) {
        lower->step[g].bucket_bytes = sim->plan->bucket_bytes;
        lower->inner[g] = g_array_new(false, false, sizeof(Inner));
    }
}

static uint32_t first_backward(const SimCase *sim, const SimTasks *tasks)
{
    items_at (const SimTask, task, i, tasks->task, tasks->n_tasks) {
        if (task->kind == TASK_COMPUTE &&
            is_backward(sim, &sim->plan->program->instr[task->instr]))
            return i;
    }
    return tasks->n_tasks;
}

SimTasks *sim_tasks_lower(const SimCase *sim, const SimLowering *how)
{
    SimTasks *tasks = new_tasks(sim, how);
    Lower lower = {.sim = sim,
                   .how = how,
                   .overlap = how->overlap,
                   .tasks = tasks,
                   .shares = g_hash_table_new(NULL, NULL)};
    init_lower(&lower);
    lower_program(&lower);
    tasks->n_tasks = lower.task->len;
    tasks->n_deps = lower.dep->len;
    tasks->task = (SimTask *)(void *)g_array_free(lower.task, false);
    tasks->dep = (uint32_t *)(void *)g_array_free(lower.dep, false);
    sim_tasks_launch(tasks, sim);
    tasks->backward = first_backward(sim, tasks);
    task_ahead_clear(&lower);
    g_free(lower.maker);
    g_array_unref(lower.held);
    g_free(lower.is_held);
    release_items(lower.inner, sim->parts->layout.n_groups, g_array_unref);
    g_free(lower.inner);
    g_array_unref(lower.joined);
    g_hash_table_destroy(lower.shares);
    free_each(lower.last, lower.alike, lower.sent, lower.step, lower.beside);
    task_ring_free(lower.ring);
    task_experts_free(lower.experts);
    return tasks;
}

FREE_DEFINE(sim_tasks_free, SimTasks, tasks, free_each(tasks->task, tasks->dep),
            sim_teams_free(tasks->teams), g_ptr_array_unref(tasks->transfers),
            g_array_unref(tasks->share), g_free(tasks->bucket));
