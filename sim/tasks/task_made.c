/* The tasks that make instances. */
#include "sim/tasks/task_lower.h"

uint32_t task_instance(const Lower *lower, uint32_t group, uint32_t microbatch,
                       TensorId tensor, Form form)
{
    return instances_place(lower->sim->parts->layout.instances, group, microbatch, tensor,
                           form) *
               FORM_MAX +
           form_inside(form);
}

Made *task_maker(const Lower *lower, const Instr *instr, TensorId tensor, Form form)
{
    return &lower->maker[task_instance(lower, instr->group, instr->microbatch, tensor,
                                       form)];
}

const Instr *task_instr(const Lower *lower, uint32_t i)
{
    KILTER_ASSERT(i < lower->sim->plan->program->n);
    return &lower->sim->plan->program->instr[i];
}

const SimGroupTeams *task_group_lanes(const Lower *lower, const Instr *instr)
{
    return &lower->tasks->teams->group[instr->group];
}

void task_add_dep(Lower *lower, uint32_t dep)
{
    KILTER_ASSERT(dep == SIM_NO_TASK || dep < lower->task->len);
    if (dep != SIM_NO_TASK)
        g_array_append_val(lower->dep, dep);
}

uint32_t task_add(Lower *lower, SimTask task, uint32_t first_dep)
{
    KILTER_ASSERT(first_dep <= lower->dep->len && task.duration_s >= 0);
    task.first_dep = first_dep;
    task.n_deps = lower->dep->len - first_dep;
    g_array_append_val(lower->task, task);
    return lower->task->len - 1;
}

uint32_t task_communicated(const Lower *lower, const Made *made, uint32_t index)
{
    return made->communicate +
           lower->tasks->teams->group[made->group].of[made->axis][index];
}

/* The task that makes a joined instance for a lane (by index in the group), or SIM_NO_TASK. */
static uint32_t joined_task(const Lower *lower, const Made *made, uint32_t index)
{
    const uint32_t lane = lower->tasks->teams->group[made->group].lane[index];
    return g_array_index(lower->joined, uint32_t, made->compute + lane);
}

uint32_t task_made_for(const Lower *lower, const Made *made, uint32_t index,
                       bool collective)
{
    const bool computed = made->compute != SIM_NO_TASK,
               sent = made->communicate != SIM_NO_TASK;
    return made->joined                        ? joined_task(lower, made, index)
           : sent && (collective || !computed) ? task_communicated(lower, made, index)
           : computed                          ? made->compute + index
                                               : SIM_NO_TASK;
}

bool task_reduces_gradient(const Graph *graph, const Instr *instr)
{
    return (form_on(instr_axis(instr), instr->from) == FORM_REDUCE || instr->across) &&
           graph_is_parameter_gradient(graph, instr->tensor);
}
