/* Programs as longest chains. Lowering is that of sim/tasks/task.h, with all times looked up. */
#include "sim/tasks/quick_parts.h"

#include <math.h>
#include <string.h>

#include "sim/cost/split.h"
#include "sim/tasks/buffers.h"
#include "sim/tasks/task_lower.h"

/* --- lowering --- */

static Result *result_of(SimQuick *q, uint32_t group, TensorId tensor)
{
    return &q->result[(size_t)group * q->n_tensors + tensor];
}

static void made(SimQuick *q, uint32_t group, TensorId tensor, ResultKind kind,
                 uint32_t first)
{
    *result_of(q, group, tensor) = (Result){q->epoch, first, kind};
}

static void add_dep(SimQuick *q, uint32_t dep, uint32_t first_dep)
{
    const uint32_t n = q->dep->len;
    if (dep != SIM_NO_TASK &&
        (n == first_dep || g_array_index(q->dep, uint32_t, n - 1) != dep))
        g_array_append_val(q->dep, dep);
}

/* The task that made a tensor on a lane of the group, by index. */
static uint32_t maker(SimQuick *q, uint32_t group, TensorId tensor, uint32_t k)
{
    KILTER_ASSERT(group < q->n_groups && tensor < q->n_tensors);
    const Result *result = result_of(q, group, tensor);
    if (result->epoch != q->epoch || result->kind == RESULT_NONE)
        return SIM_NO_TASK;
    if (result->kind == RESULT_COMPUTED)
        return result->first + k;
    return result->first + (result->kind == RESULT_SENT
                                ? q->teams->group[group].of[AXIS_POSITIONS][k]
                                : 0);
}

static uint32_t add_task(SimQuick *q, Task task, uint32_t first_dep)
{
    task.first_dep = first_dep;
    task.n_deps = q->dep->len - first_dep;
    task.place = q->task->len;
    g_array_append_val(q->task, task);
    return q->task->len - 1;
}

static void lower_compute(SimQuick *q, const Instr *instr)
{
    const SimGroupTeams *lanes = &q->teams->group[instr->group];
    const Op *op = graph_get_op(q->graph, instr->op);
    const uint32_t first = q->task->len;
    for (uint32_t k = 0; k < lanes->n_lanes; k++) {
        const uint32_t first_dep = q->dep->len;
        for (uint32_t i = 0; i < op->n_in; i++)
            add_dep(q, maker(q, instr->group, op->in[i], k), first_dep);
        add_task(q,
                 (Task){.s = quick_op_s(q, instr, lanes, k),
                        .lane = lanes->lane[k],
                        .group = instr->group},
                 first_dep);
    }
    for (uint32_t o = 0; o < op->n_out; o++)
        made(q, instr->group, op->out[o], RESULT_COMPUTED, first);
}

static void lower_transfer(SimQuick *q, const Instr *instr)
{
    const Route *route = quick_route(q, instr);
    const uint32_t first = q->task->len;
    const double s = route->latency_s + route->byte_s * quick_bytes(q, instr->tensor);
    for (uint32_t t = 0; t < q->teams->group[instr->to_group].n[AXIS_POSITIONS]; t++) {
        const uint32_t first_dep = q->dep->len;
        for (uint32_t i = route->first_sender[t]; i < route->first_sender[t + 1]; i++)
            add_dep(q, maker(q, instr->group, instr->tensor, route->sender[i]),
                    first_dep);
        add_task(q, (Task){.s = s, .group = instr->to_group, .transfer = true},
                 first_dep);
    }
    made(q, instr->to_group, instr->tensor, RESULT_SENT, first);
}

/* One that reduces a parameter's gradient stands right after what makes it. */
static void lower_sum(SimQuick *q, const Instr *instr)
{
    const SimGroupTeams *lanes = &q->teams->group[instr->group];
    const bool gradient = task_reduces_gradient(q->graph, instr);
    uint32_t last = SIM_NO_TASK;
    for (uint32_t pass = 0; pass < (instr->server ? 2 : 1); pass++) {
        const uint32_t first_dep = q->dep->len;
        for (uint32_t k = 0; pass == 0 && k < lanes->n_lanes; k++)
            add_dep(q, maker(q, instr->group, instr->tensor, k), first_dep);
        if (pass > 0)
            add_dep(q, last, first_dep);
        last = add_task(q,
                        (Task){.s = instr->server ? quick_server_s(q, instr, pass > 0)
                                                  : quick_sum_s(q, instr),
                               .group = instr->group,
                               .collective = true},
                        first_dep);
        Task *task = &g_array_index(q->task, Task, last);
        if (gradient)
            task->place = 0;
        for (uint32_t d = first_dep; gradient && d < q->dep->len; d++)
            task->place = MAX(task->place, g_array_index(q->dep, uint32_t, d));
    }
    made(q, instr->group, instr->tensor, RESULT_SUMMED, last);
}

/* Loads and local conversions take nothing. */
static void lower(SimQuick *q, const Program *program)
{
    g_array_set_size(q->task, 0);
    g_array_set_size(q->dep, 0);
    q->epoch++;
    for (uint32_t i = 0; i < program->n; i++) {
        const Instr *instr = &program->instr[i];
        if (instr->kind == INSTR_COMPUTE)
            lower_compute(q, instr);
        else if (instr->kind == INSTR_TRANSFER)
            lower_transfer(q, instr);
        else if (instr->kind == INSTR_COLLECTIVE && sim_is_priced(instr->collective))
            lower_sum(q, instr);
    }
}

/* --- the longest chain --- */

/* The tasks by place, and by number where that is the same; most are in order already. */
static void sort_tasks(SimQuick *q)
{
    const uint32_t n = q->task->len;
    const Task *task = &g_array_index(q->task, Task, 0);
    if (q->n_order < n) {
        q->n_order = 2 * n;
        q->order = g_renew(uint32_t, q->order, q->n_order);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        for (; at > 0 && task[q->order[at - 1]].place > task[i].place; at--)
            q->order[at] = q->order[at - 1];
        q->order[at] = i;
    }
}

static void run_task(SimQuick *q, Task *task)
{
    const Task *all = &g_array_index(q->task, Task, 0);
    const SimGroupTeams *lanes = &q->teams->group[task->group];
    double flow = 0, stage = 0;
    for (uint32_t d = 0; d < task->n_deps; d++) {
        const Task *dep = &all[g_array_index(q->dep, uint32_t, task->first_dep + d)];
        flow = MAX(flow, dep->flow_s);
        stage = MAX(stage, dep->stage_s);
    }
    if (!task->collective && !task->transfer) {
        flow = MAX(flow, q->flow_last[task->lane]);
        stage = MAX(stage, q->stage_last[task->lane]);
        q->flow_last[task->lane] = flow + task->s;
        q->stage_last[task->lane] = stage + task->s;
        q->busy[task->lane] += task->s;
    }
    for (uint32_t k = 0; task->collective && k < lanes->n_lanes; k++) {
        flow = MAX(flow, q->comm_last[lanes->lane[k]]);
        stage = MAX(stage, q->stage_last[lanes->lane[k]]);
    }
    for (uint32_t k = 0; task->collective && k < lanes->n_lanes; k++) {
        q->comm_last[lanes->lane[k]] = flow + task->s;
        q->stage_last[lanes->lane[k]] = stage + task->s;
    }
    task->flow_s = flow + task->s;
    task->stage_s = stage + task->s;
}

SimQuickTimes sim_quick_times(SimQuick *q, const Program *program)
{
    SimQuickTimes times = {0};
    lower(q, program);
    sort_tasks(q);
    for (uint32_t l = 0; l < q->teams->n_lanes; l++)
        q->flow_last[l] = q->comm_last[l] = q->stage_last[l] = q->busy[l] = 0;
    for (uint32_t i = 0; i < q->task->len; i++) {
        Task *task = &g_array_index(q->task, Task, q->order[i]);
        run_task(q, task);
        times.flow_s = MAX(times.flow_s, task->flow_s);
        times.stage_s = MAX(times.stage_s, task->stage_s);
    }
    for (uint32_t l = 0; l < q->teams->n_lanes; l++)
        times.busy_s = MAX(times.busy_s, q->busy[l]);
    times.n_tasks = q->task->len;
    return times;
}

double sim_quick_busy_s(const SimQuick *q, uint32_t device)
{
    return q->busy[q->teams->lane[device]];
}

/* --- memory --- */

bool sim_quick_memory(SimQuick *q, const Program *program, uint64_t *peak)
{
    const BatchForms *batch = q->parts->layout.batch;
    g_autoptr(Instances) instances = instances_new(program, q->graph, batch);
    g_autoptr(SimBuffers) buffers = sim_buffers(program, q->graph, instances, NULL);
    Plan plan = *q->plan;
    SimCase sim = q->sim;
    g_autofree bool *known = g_new0(bool, q->teams->n_lanes);
    g_autofree uint64_t *of_lane = g_new0(uint64_t, q->teams->n_lanes);
    bool fits = true;
    plan.program = (Program *)program; /* it is not changed */
    sim.plan = &plan;
    for (uint32_t j = 0; j < q->view->n_devices; j++) {
        const uint32_t lane = q->teams->lane[j];
        uint32_t instr;
        if (!known[lane])
            of_lane[lane] = (uint64_t)ceil(sim_buffers_peak(&sim, buffers, j, &instr));
        known[lane] = true;
        peak[j] = of_lane[lane];
        fits = fits && peak[j] <= q->view->device[j].memory_bytes;
    }
    return fits;
}

/* --- making one --- */

/* A program of all groups in which each of them runs an op on the batch, so that it has a share. */
static Program *catalogue(const Graph *graph, const BatchForms *batch, uint32_t n_groups,
                          const DeviceGroup *group)
{
    Program *program = program_new();
    OpId cut = 0;
    while (cut < graph_n_ops(graph) && batch->loop[cut] < 0)
        cut++;
    for (uint32_t g = 0; g < n_groups; g++) {
        program_add_group(program, group[g].n_replicas, group[g].n_devices,
                          group[g].device);
        Instr instr = {.kind = INSTR_COMPUTE, .group = (uint16_t)g, .op = cut};
        memset(instr.form, FORM_IDENTITY, sizeof instr.form);
        if (cut < graph_n_ops(graph))
            program_append(program, instr);
    }
    return program;
}

static Rule *whole_rules(const Graph *graph)
{
    Rule *rule = g_new(Rule, graph_n_ops(graph) + 1);
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        Rule all[OP_MAX_RULES];
        op_rules(graph, id, all);
        rule[id] = all[0]; /* replicated: the first one */
        g_assert(rule[id].loop < 0);
    }
    return rule;
}

static bool leaves_nothing_out(const ClusterView *view)
{
    for (uint32_t j = 0; j < view->n_devices; j++) {
        const Device *device = &view->device[j];
        if (device->launch_s > 0 || device->slowdown > 1)
            return false;
        for (uint32_t kind = 0; kind < OP_KINDS; kind++)
            if (cluster_view_launch_s(view, device, (OpKind)kind) > 0)
                return false;
    }
    return true;
}

static void make_room(SimQuick *q)
{
    const size_t n_groups = q->n_groups;
    q->rule = whole_rules(q->graph);
    q->op_s = g_new0(double *, n_groups);
    q->sum_s = g_new0(double *, n_groups);
    q->server_s = g_new0(double *, n_groups);
    q->route = g_new0(Route *, 2 * n_groups * n_groups);
    q->result = g_new0(Result, n_groups * q->n_tensors + 1);
    q->task = g_array_new(FALSE, FALSE, sizeof(Task));
    q->dep = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    q->flow_last = g_new0(double, q->teams->n_lanes);
    q->comm_last = g_new0(double, q->teams->n_lanes);
    q->stage_last = g_new0(double, q->teams->n_lanes);
    q->busy = g_new0(double, q->teams->n_lanes);
}

SimQuick *sim_quick_new(const Graph *graph, const ClusterView *view, const double *ratio,
                        uint32_t n_groups, const DeviceGroup *group, GError **error)
{
    g_autoptr(BatchForms) batch = batch_forms_new(graph, error);
    if (!batch)
        return NULL;
    g_autoptr(SimQuick) q = g_new0(SimQuick, 1);
    q->graph = graph;
    q->view = view;
    q->n_groups = n_groups;
    q->n_tensors = graph_n_tensors(graph);
    q->plan = plan_new();
    q->plan->program = catalogue(graph, batch, n_groups, group);
    q->plan->n_devices = view->n_devices;
    q->plan->n_segments = 1;
    q->plan->ratio = g_memdup2(ratio, view->n_devices * sizeof *ratio);
    q->plan->n_ops = graph_n_ops(graph);
    q->plan->segment = g_new0(uint16_t, q->plan->n_ops);
    if (!(q->parts = sim_parts_new(q->plan, graph, error)))
        return NULL;
    q->sim = (SimCase){.plan = q->plan, .graph = graph, .view = view, .parts = q->parts};
    q->teams = sim_teams_new(&q->sim, false);
    q->exact = leaves_nothing_out(view);
    make_room(q);
    return g_steal_pointer(&q);
}

static void free_all(double **of, uint32_t n)
{
    for (uint32_t i = 0; of && i < n; i++)
        g_free(of[i]);
    g_free(of);
}

void sim_quick_free(SimQuick *q)
{
    if (!q)
        return;
    free_all(q->op_s, q->n_groups);
    free_all(q->sum_s, q->n_groups);
    free_all(q->server_s, q->n_groups);
    for (size_t i = 0; q->route && i < 2 * (size_t)q->n_groups * q->n_groups; i++)
        if (q->route[i]) {
            g_free(q->route[i]->first_sender);
            g_free(q->route[i]->sender);
            g_free(q->route[i]);
        }
    g_free(q->route);
    g_free(q->rule);
    g_free(q->result);
    g_clear_pointer(&q->task, g_array_unref);
    g_clear_pointer(&q->dep, g_array_unref);
    g_free(q->flow_last);
    g_free(q->comm_last);
    g_free(q->stage_last);
    g_free(q->busy);
    g_free(q->order);
    sim_teams_free(q->teams);
    sim_parts_free(q->parts);
    plan_free(q->plan);
    g_free(q);
}

bool sim_quick_is_exact(const SimQuick *q)
{
    return q->exact;
}
