#include "sim/task.h"

#include <math.h>

#include "sim/split.h"
#include "sim/step.h"

#define NO_TASK UINT32_MAX

/* Tasks of one instruction. */
typedef struct {
    uint32_t collective; /* NO_TASK if it is none */
    uint32_t compute;    /* of device 0, the others follow; NO_TASK if it is none */
} Made;

typedef struct {
    const SimCase *sim;
    uint16_t *tensor_segment;
    GArray *task, *dep;
    Made *maker; /* [tensor * FORM_MAX + form]: tasks that make the instance */
} Lower;

static Made *maker_of(const Lower *lower, TensorId tensor, Form form)
{
    return &lower->maker[(size_t)tensor * FORM_MAX + form];
}

static void add_dep(Lower *lower, uint32_t dep)
{
    g_array_append_val(lower->dep, dep);
}

/* Appends a task whose dependencies were added since `first_dep`. */
static uint32_t add_task(Lower *lower, SimTask task, uint32_t first_dep)
{
    task.first_dep = first_dep;
    task.n_deps = lower->dep->len - first_dep;
    g_array_append_val(lower->task, task);
    return lower->task->len - 1;
}

static double share_of(const SimCase *sim, uint32_t split, uint32_t device)
{
    return split == SPLIT_NONE ? 0 : sim->share[split * sim->view->n_devices + device];
}

static double max_share(const SimCase *sim, uint32_t split)
{
    double largest = 0;

    for (uint32_t j = 0; j < sim->view->n_devices; j++)
        largest = fmax(largest, share_of(sim, split, j));
    return largest;
}

static void lower_compute(Lower *lower, const Instr *instr, SimTask task)
{
    const SimCase *sim = lower->sim;
    const SimLinear *linear = sim->linear;
    const Op *op = graph_get_op(sim->graph, instr->op);
    const Rule rule = sim_split_rule(sim->graph, instr);
    const uint32_t split = sim_split_of_rule(linear->split, linear->n_splits,
                                             sim->plan->segment, instr->op, &rule);
    const Made made = {NO_TASK, lower->task->len};
    SimWork work;

    sim_work_op(sim->graph, instr->op, &rule, &work);
    task.kind = TASK_COMPUTE;
    for (uint32_t j = 0; j < sim->view->n_devices; j++) {
        const uint32_t first_dep = lower->dep->len;
        for (uint32_t i = 0; i < op->n_in; i++) {
            const Made *m = maker_of(lower, op->in[i], instr->form[i]);
            if (m->compute != NO_TASK)
                add_dep(lower, m->compute + j);
            else if (m->collective != NO_TASK)
                add_dep(lower, m->collective);
        }
        task.device = j;
        task.duration_s =
            sim_work_s(&work, &sim->view->device[j], share_of(sim, split, j));
        add_task(lower, task, first_dep);
    }
    for (uint32_t i = 0; i < op->n_out; i++)
        *maker_of(lower, op->out[i], instr->form[op->n_in + i]) = made;
}

/* Inner communication of a collective, a task a device after it. Returns the first one,
 * or NO_TASK. */
static uint32_t lower_inner(Lower *lower, const Instr *instr, SimTask task,
                            uint32_t split, uint32_t collective)
{
    const SimCase *sim = lower->sim;
    SimWork work;

    sim_work_collective(sim->graph, instr->collective, instr->tensor, instr->from,
                        instr->to, &work);
    bool any = false;
    for (uint32_t j = 0; j < sim->view->n_devices; j++)
        any =
            any || sim_work_s(&work, &sim->view->device[j], share_of(sim, split, j)) > 0;
    if (!any)
        return NO_TASK;

    const uint32_t first = lower->task->len;
    task.kind = TASK_COMPUTE;
    for (uint32_t j = 0; j < sim->view->n_devices; j++) {
        const uint32_t first_dep = lower->dep->len;
        add_dep(lower, collective);
        task.device = j;
        task.duration_s =
            sim_work_s(&work, &sim->view->device[j], share_of(sim, split, j));
        add_task(lower, task, first_dep);
    }
    return first;
}

static void lower_collective(Lower *lower, const Instr *instr, SimTask task,
                             bool pays_latency)
{
    const SimCase *sim = lower->sim;
    const SimLinear *linear = sim->linear;
    const ClusterView *view = sim->view;
    const Made *source = maker_of(lower, instr->tensor, instr->from);
    const double bytes = (double)tensor_bytes(graph_tensor(sim->graph, instr->tensor));
    const uint32_t from =
        sim_split_of_form(linear->split, linear->n_splits, sim->graph,
                          lower->tensor_segment, instr->tensor, instr->from);
    const uint32_t to =
        sim_split_of_form(linear->split, linear->n_splits, sim->graph,
                          lower->tensor_segment, instr->tensor, instr->to);
    const uint32_t first_dep = lower->dep->len;
    Made made;

    if (source->collective != NO_TASK)
        add_dep(lower, source->collective);
    else if (source->compute != NO_TASK)
        for (uint32_t j = 0; j < view->n_devices; j++)
            add_dep(lower, source->compute + j);
    SimTask collective = task;
    collective.kind = TASK_COLLECTIVE;
    collective.stream = 1;
    collective.duration_s = sim_collective_s(view, instr->collective, bytes,
                                             max_share(sim, from), max_share(sim, to));
    if (!pays_latency && view->n_devices > 1)
        collective.duration_s -= view->collective[instr->collective].latency_s;
    made.collective = add_task(lower, collective, first_dep);
    made.compute =
        lower_inner(lower, instr, task, to != SPLIT_NONE ? to : from, made.collective);
    *maker_of(lower, instr->tensor, instr->to) = made;
}

SimTasks *sim_tasks_lower(const SimCase *sim)
{
    const Program *program = sim->plan->program;
    const size_t n_instances = (size_t)graph_n_tensors(sim->graph) * FORM_MAX;
    g_autofree Made *maker = g_new(Made, n_instances);
    g_autofree uint16_t *tensor_segment =
        sim_split_tensor_segments(sim->graph, sim->plan->segment);
    Lower lower = {sim, tensor_segment, g_array_new(false, false, sizeof(SimTask)),
                   g_array_new(false, false, sizeof(uint32_t)), maker};
    SimStep step = {.bucket_bytes = sim->plan->bucket_bytes};

    for (size_t i = 0; i < n_instances; i++)
        maker[i] = (Made){NO_TASK, NO_TASK};
    for (uint32_t i = 0; i < program->n; i++) {
        const Instr *instr = &program->instr[i];
        const bool pays_latency = sim_step_next(&step, sim->graph, instr);
        const SimTask task = {.group = instr->group,
                              .microbatch = instr->microbatch,
                              .stream = instr->stream,
                              .instr = i,
                              .stage = step.stage};
        if (instr->kind == INSTR_COMPUTE)
            lower_compute(&lower, instr, task);
        else if (instr->kind == INSTR_COLLECTIVE && sim_is_priced(instr->collective))
            lower_collective(&lower, instr, task, pays_latency);
        else if (instr->kind == INSTR_COLLECTIVE)
            *maker_of(&lower, instr->tensor, instr->to) =
                *maker_of(&lower, instr->tensor, instr->from);
    }

    SimTasks *tasks = g_new0(SimTasks, 1);
    tasks->n_tasks = lower.task->len;
    tasks->n_deps = lower.dep->len;
    tasks->n_groups = 1;
    tasks->task = (SimTask *)(void *)g_array_free(lower.task, false);
    tasks->dep = (uint32_t *)(void *)g_array_free(lower.dep, false);
    tasks->group = g_new(SimGroup, 1);
    tasks->group[0] = (SimGroup){0, sim->view->n_devices};
    tasks->member = g_new(uint32_t, sim->view->n_devices);
    for (uint32_t j = 0; j < sim->view->n_devices; j++)
        tasks->member[j] = j;
    return tasks;
}

void sim_tasks_free(SimTasks *tasks)
{
    if (!tasks)
        return;
    g_free(tasks->task);
    g_free(tasks->dep);
    g_free(tasks->group);
    g_free(tasks->member);
    g_free(tasks);
}
