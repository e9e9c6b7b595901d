#include "sim/task.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/split.h"
#include "sim/step.h"

/* Tasks of one instruction. */
typedef struct {
    uint32_t collective; /* SIM_NO_TASK if it is none */
    uint32_t compute;    /* of lane 0, the others follow; SIM_NO_TASK if it is none */
} Made;

/* A gradient's all-reduce that waits for its bucket. */
typedef struct {
    uint32_t instr, stage;
    uint32_t ready; /* last task that it waits for + 1; 0: none */
} Held;

typedef struct {
    const SimCase *sim;
    const SimLowering *how;
    uint16_t *tensor_segment;
    SimTasks *tasks;
    GArray *task, *dep;
    Made *maker; /* [tensor * FORM_MAX + form]: tasks that make the instance */
    GArray *held;
    bool *is_held; /* [tensor]: its all-reduce is in `held` */
    bool any_bucket;
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

static double work_s(const Lower *lower, const SimWork *work, uint32_t split,
                     uint32_t lane)
{
    const uint32_t device = lower->tasks->device[lane];

    return sim_work_s(work, &lower->sim->view->device[device],
                      share_of(lower->sim, split, device));
}

static void lower_compute(Lower *lower, const Instr *instr, SimTask task)
{
    const SimCase *sim = lower->sim;
    const SimLinear *linear = sim->linear;
    const Op *op = graph_get_op(sim->graph, instr->op);
    const Rule rule = sim_split_rule(sim->graph, instr);
    const uint32_t split = sim_split_of_rule(linear->split, linear->n_splits,
                                             sim->plan->segment, instr->op, &rule);
    const Made made = {SIM_NO_TASK, lower->task->len};
    SimWork work;

    sim_work_op(sim->graph, sim->view, instr->op, &rule, &work);
    task.kind = TASK_COMPUTE;
    for (uint32_t l = 0; l < lower->tasks->n_lanes; l++) {
        const uint32_t first_dep = lower->dep->len;
        for (uint32_t i = 0; i < op->n_in; i++) {
            const Made *m = maker_of(lower, op->in[i], instr->form[i]);
            if (m->compute != SIM_NO_TASK)
                add_dep(lower, m->compute + l);
            else if (m->collective != SIM_NO_TASK)
                add_dep(lower, m->collective);
        }
        task.lane = l;
        task.duration_s = work_s(lower, &work, split, l);
        add_task(lower, task, first_dep);
    }
    for (uint32_t i = 0; i < op->n_out; i++)
        *maker_of(lower, op->out[i], instr->form[op->n_in + i]) = made;
}

/* Inner communication of a collective, a task a lane after it. Returns the first one, or
 * SIM_NO_TASK. */
static uint32_t lower_inner(Lower *lower, const Instr *instr, SimTask task,
                            uint32_t split, uint32_t collective)
{
    const SimCase *sim = lower->sim;
    const uint32_t n_lanes = lower->tasks->n_lanes;
    SimWork work;
    bool any = false;

    sim_work_collective(sim->graph, instr->collective, instr->tensor, instr->from,
                        instr->to, &work);
    for (uint32_t l = 0; l < n_lanes; l++)
        any = any || work_s(lower, &work, split, l) > 0;
    if (!any)
        return SIM_NO_TASK;

    const uint32_t first = lower->task->len;
    task.kind = TASK_COMPUTE;
    for (uint32_t l = 0; l < n_lanes; l++) {
        const uint32_t first_dep = lower->dep->len;
        add_dep(lower, collective);
        task.lane = l;
        task.duration_s = work_s(lower, &work, split, l);
        add_task(lower, task, first_dep);
    }
    return first;
}

/* Adds the tasks that make a collective's operand; returns the last one + 1, or 0. */
static uint32_t add_sources(Lower *lower, const Instr *instr)
{
    const Made *source = maker_of(lower, instr->tensor, instr->from);

    if (source->collective != SIM_NO_TASK) {
        add_dep(lower, source->collective);
        return source->collective + 1;
    }
    if (source->compute == SIM_NO_TASK)
        return 0;
    for (uint32_t l = 0; l < lower->tasks->n_lanes; l++)
        add_dep(lower, source->compute + l);
    return source->compute + lower->tasks->n_lanes;
}

static bool reduces_gradient(const Graph *graph, const Instr *instr)
{
    const Tensor *tensor = graph_tensor(graph, instr->tensor);

    return instr->from == FORM_REDUCE && tensor->role == ROLE_GRADIENT &&
           tensor->of != GRAPH_NONE &&
           graph_tensor(graph, tensor->of)->role == ROLE_PARAMETER;
}

static void lower_collective(Lower *lower, const Instr *instr, SimTask task,
                             bool pays_latency)
{
    const SimCase *sim = lower->sim;
    const SimLinear *linear = sim->linear;
    const ClusterView *view = sim->view;
    const uint32_t first_dep = lower->dep->len;
    SimTask collective = task;
    Made made;

    add_sources(lower, instr);
    collective.kind = TASK_COLLECTIVE;
    collective.collective = instr->collective;
    collective.bytes = (double)tensor_bytes(graph_tensor(sim->graph, instr->tensor));
    collective.n_fused = 1;
    collective.gradient = reduces_gradient(sim->graph, instr);
    collective.from =
        sim_split_of_form(linear->split, linear->n_splits, sim->graph,
                          lower->tensor_segment, instr->tensor, instr->from);
    collective.to = sim_split_of_form(linear->split, linear->n_splits, sim->graph,
                                      lower->tensor_segment, instr->tensor, instr->to);
    collective.duration_s =
        sim_collective_s(view, instr->collective, collective.bytes,
                         max_share(sim, collective.from), max_share(sim, collective.to));
    if (!pays_latency && view->n_devices > 1)
        collective.duration_s -=
            cluster_view_line(view, instr->collective, collective.bytes).latency_s;
    made.collective = add_task(lower, collective, first_dep);
    made.compute = lower_inner(
        lower, instr, task, collective.to != SPLIT_NONE ? collective.to : collective.from,
        made.collective);
    *maker_of(lower, instr->tensor, instr->to) = made;
}

/* --- buckets --- */

static int compare_held(const void *a, const void *b)
{
    const Held *x = a, *y = b;

    if (x->ready != y->ready)
        return x->ready < y->ready ? -1 : 1;
    return (x->instr > y->instr) - (x->instr < y->instr);
}

/* One task for held[first] to held[end - 1]. */
static void lower_bucket(Lower *lower, uint32_t first, uint32_t end, double bytes)
{
    const SimCase *sim = lower->sim;
    const Held *held = &g_array_index(lower->held, Held, first);
    const uint32_t first_dep = lower->dep->len;
    SimTask task = {.kind = TASK_COLLECTIVE,
                    .collective = COLLECTIVE_ALL_REDUCE,
                    .bytes = bytes,
                    .from = SPLIT_NONE,
                    .to = SPLIT_NONE,
                    .n_fused = end - first,
                    .gradient = true,
                    .instr = held->instr,
                    .stage = held->stage};

    task.duration_s = sim_collective_s(sim->view, task.collective, bytes, 0, 0);
    for (uint32_t i = 0; i < end - first; i++)
        add_sources(lower, &sim->plan->program->instr[held[i].instr]);
    const Made made = {add_task(lower, task, first_dep), SIM_NO_TASK};
    for (uint32_t i = 0; i < end - first; i++) {
        const Instr *instr = &sim->plan->program->instr[held[i].instr];
        *maker_of(lower, instr->tensor, instr->to) = made;
        lower->is_held[instr->tensor] = false;
        lower->tasks->bucket[held[i].instr] = made.collective;
    }
}

static void flush(Lower *lower)
{
    const uint64_t limit = lower->sim->plan->bucket_bytes;
    uint32_t first = 0;
    double bytes = 0;

    if (lower->held->len == 0)
        return;
    qsort(lower->held->data, lower->held->len, sizeof(Held), compare_held);
    for (uint32_t i = 0; i < lower->held->len; i++) {
        const Held *held = &g_array_index(lower->held, Held, i);
        const Instr *instr = &lower->sim->plan->program->instr[held->instr];
        const uint64_t full =
            lower->any_bucket ? limit : MIN(limit, lower->how->first_bucket_bytes);
        bytes += (double)tensor_bytes(graph_tensor(lower->sim->graph, instr->tensor));
        if (bytes < (double)full && i + 1 < lower->held->len)
            continue;
        lower_bucket(lower, first, i + 1, bytes);
        lower->any_bucket = true;
        first = i + 1;
        bytes = 0;
    }
    g_array_set_size(lower->held, 0);
}

/* Whether the instruction is held back for a bucket. */
static bool hold(Lower *lower, const Instr *instr, const SimTask *task)
{
    if (!lower->how->overlap || lower->sim->plan->bucket_bytes == 0 ||
        instr->collective != COLLECTIVE_ALL_REDUCE ||
        !reduces_gradient(lower->sim->graph, instr))
        return false;
    const uint32_t n_deps = lower->dep->len;
    const Held held = {task->instr, task->stage, add_sources(lower, instr)};
    g_array_set_size(lower->dep, n_deps); /* they are added again with the bucket */
    g_array_append_val(lower->held, held);
    lower->is_held[instr->tensor] = true;
    return true;
}

static bool uses_held(const Lower *lower, const Instr *instr)
{
    if (instr->kind == INSTR_LOAD)
        return false;
    if (instr->kind != INSTR_COMPUTE)
        return lower->is_held[instr->tensor];
    const Op *op = graph_get_op(lower->sim->graph, instr->op);
    for (uint32_t i = 0; i < op->n_in; i++)
        if (lower->is_held[op->in[i]])
            return true;
    return false;
}

/* --- the program --- */

static void lower_instr(Lower *lower, const Instr *instr, const SimTask *task,
                        bool pays_latency)
{
    if (uses_held(lower, instr))
        flush(lower);
    if (instr->kind == INSTR_COMPUTE)
        lower_compute(lower, instr, *task);
    else if (instr->kind == INSTR_COLLECTIVE && !sim_is_priced(instr->collective))
        *maker_of(lower, instr->tensor, instr->to) =
            *maker_of(lower, instr->tensor, instr->from);
    else if (instr->kind == INSTR_COLLECTIVE && !hold(lower, instr, task))
        lower_collective(lower, instr, *task, lower->how->overlap || pays_latency);
}

static void lower_program(Lower *lower)
{
    const SimCase *sim = lower->sim;
    const Program *program = sim->plan->program;
    SimStep step = {.bucket_bytes = sim->plan->bucket_bytes};

    for (uint32_t i = 0; i < program->n; i++) {
        const Instr *instr = &program->instr[i];
        const bool pays_latency = sim_step_next(&step, sim->graph, instr);
        const SimTask task = {.group = instr->group,
                              .microbatch = instr->microbatch,
                              .instr = i,
                              .stage = step.stage};
        lower_instr(lower, instr, &task, pays_latency);
    }
    flush(lower);
}

static SimTasks *new_tasks(const SimCase *sim, const SimLowering *how)
{
    const uint32_t n = sim->view->n_devices;
    SimTasks *tasks = g_new0(SimTasks, 1);

    tasks->n_devices = n;
    tasks->lane = sim_lanes(sim, how->separate, &tasks->n_lanes);
    tasks->device = g_new(uint32_t, tasks->n_lanes);
    for (uint32_t j = n; j-- > 0;)
        tasks->device[tasks->lane[j]] = j;
    tasks->n_groups = 1;
    tasks->group = g_new(SimGroup, 1);
    tasks->group[0] = (SimGroup){0, n};
    tasks->member = g_new(uint32_t, n);
    for (uint32_t j = 0; j < n; j++)
        tasks->member[j] = j;
    tasks->bucket = g_new(uint32_t, sim->plan->program->n);
    for (uint32_t i = 0; i < sim->plan->program->n; i++)
        tasks->bucket[i] = SIM_NO_TASK;
    return tasks;
}

SimTasks *sim_tasks_lower(const SimCase *sim, const SimLowering *how)
{
    const size_t n_instances = (size_t)graph_n_tensors(sim->graph) * FORM_MAX;
    g_autofree Made *maker = g_new(Made, n_instances);
    g_autofree bool *is_held = g_new0(bool, graph_n_tensors(sim->graph));
    g_autofree uint16_t *tensor_segment =
        sim_split_tensor_segments(sim->graph, sim->plan->segment);
    g_autoptr(GArray) held = g_array_new(false, false, sizeof(Held));
    SimTasks *tasks = new_tasks(sim, how);
    Lower lower = {.sim = sim,
                   .how = how,
                   .tensor_segment = tensor_segment,
                   .tasks = tasks,
                   .task = g_array_new(false, false, sizeof(SimTask)),
                   .dep = g_array_new(false, false, sizeof(uint32_t)),
                   .maker = maker,
                   .held = held,
                   .is_held = is_held};

    for (size_t i = 0; i < n_instances; i++)
        maker[i] = (Made){SIM_NO_TASK, SIM_NO_TASK};
    lower_program(&lower);
    tasks->n_tasks = lower.task->len;
    tasks->n_deps = lower.dep->len;
    tasks->task = (SimTask *)(void *)g_array_free(lower.task, false);
    tasks->dep = (uint32_t *)(void *)g_array_free(lower.dep, false);
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
    g_free(tasks->lane);
    g_free(tasks->device);
    g_free(tasks->bucket);
    g_free(tasks);
}

SimTimeline *sim_tasks_timeline(const SimTasks *tasks, uint32_t n_instrs)
{
    SimTimeline *timeline =
        sim_timeline_new(tasks->n_devices, tasks->n_lanes, tasks->n_tasks, n_instrs);

    memcpy(timeline->lane, tasks->lane, tasks->n_devices * sizeof *tasks->lane);
    memcpy(timeline->bucket, tasks->bucket, n_instrs * sizeof *tasks->bucket);
    for (uint32_t i = 0; i < tasks->n_tasks; i++) {
        const SimTask *task = &tasks->task[i];
        const bool collective = task->kind == TASK_COLLECTIVE;
        timeline->span[i] = (SimSpan){.instr = task->instr,
                                      .stage = task->stage,
                                      .n_fused = collective ? task->n_fused : 1,
                                      .lane = collective ? SIM_ALL_LANES : task->lane,
                                      .stream = collective,
                                      .cause = SIM_NO_SPAN};
    }
    return timeline;
}
