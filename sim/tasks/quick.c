/* Programs as longest chains. A program becomes tasks as in sim/tasks/task.h, with all times looked
 * up.
 *
 * What the program before began with is not lowered again: what its other instructions made is
 * taken back, and the chains go on from the last checkpoint (quick_run.c). */
#include "sim/tasks/quick_parts.h"

#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "sim/tasks/task_lower.h"

/* --- lowering --- */

static Result *result_of(SimQuick *q, uint32_t group, TensorId tensor)
{
    return &q->result[(size_t)group * q->n_tensors + tensor];
}

/* Notes a result; the former one is kept, to be put back. */
static void made(SimQuick *q, uint32_t group, TensorId tensor, ResultKind kind,
                 uint32_t first)
{
    Result *result = result_of(q, group, tensor);
    q->replaced[q->n_replaced++] = (Replaced){result, *result};
    *result = (Result){first, kind};
}

static void add_dep(SimQuick *q, uint32_t dep, uint32_t first_dep)
{
    const uint32_t n = q->n_deps;
    if (dep != SIM_NO_TASK && (n == first_dep || q->dep[n - 1] != dep))
        q->dep[q->n_deps++] = dep;
}

/* For what one instruction adds, at most. */
static void make_room_for_one(SimQuick *q)
{
    const uint32_t n_lanes = q->teams->n_lanes, tasks = n_lanes + 2,
                   deps = n_lanes * (n_lanes + OP_MAX_IN) + 2;
    if (q->n_tasks + tasks > q->task_room) {
        q->task_room = 2 * (q->n_tasks + tasks);
        q->task = g_renew(Task, q->task, q->task_room);
    }
    if (q->n_deps + deps > q->dep_room) {
        q->dep_room = 2 * (q->n_deps + deps);
        q->dep = g_renew(uint32_t, q->dep, q->dep_room);
    }
    if (q->n_replaced + OP_MAX_OUT > q->replaced_room) {
        q->replaced_room = 2 * (q->n_replaced + OP_MAX_OUT);
        q->replaced = g_renew(Replaced, q->replaced, q->replaced_room);
    }
}

/* The task that made a tensor on lane k of the group. */
static uint32_t maker(SimQuick *q, uint32_t group, TensorId tensor, uint32_t k)
{
    KILTER_ASSERT(group < q->n_groups && tensor < q->n_tensors);
    const Result *result = result_of(q, group, tensor);
    if (result->kind == RESULT_NONE)
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
    task.n_deps = q->n_deps - first_dep;
    task.place = q->n_tasks;
    q->task[q->n_tasks++] = task;
    return q->n_tasks - 1;
}

static void lower_compute(SimQuick *q, const Instr *instr)
{
    const SimGroupTeams *lanes = &q->teams->group[instr->group];
    const Op *op = graph_get_op(q->graph, instr->op);
    const uint32_t first = q->n_tasks;
    for (uint32_t k = 0; k < lanes->n_lanes; k++) {
        const uint32_t first_dep = q->n_deps;
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
    const uint32_t first = q->n_tasks;
    const double s = route->latency_s + route->byte_s * quick_bytes(q, instr->tensor);
    for (uint32_t t = 0; t < q->teams->group[instr->to_group].n[AXIS_POSITIONS]; t++) {
        const uint32_t first_dep = q->n_deps;
        for (uint32_t i = route->first_sender[t]; i < route->first_sender[t + 1]; i++)
            add_dep(q, maker(q, instr->group, instr->tensor, route->sender[i]),
                    first_dep);
        add_task(q, (Task){.s = s, .group = instr->to_group, .transfer = true},
                 first_dep);
    }
    made(q, instr->to_group, instr->tensor, RESULT_SENT, first);
}

/* Adds an all-reduce. If it reduces a parameter's gradient, it stands right after the task that
 * makes the gradient. */
static void lower_sum(SimQuick *q, const Instr *instr)
{
    const SimGroupTeams *lanes = &q->teams->group[instr->group];
    const bool gradient = task_reduces_gradient(q->graph, instr);
    uint32_t last = SIM_NO_TASK;
    for (uint32_t pass = 0; pass < (instr->server ? 2 : 1); pass++) {
        const uint32_t first_dep = q->n_deps;
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
        Task *task = &q->task[last];
        if (gradient)
            task->place = 0;
        for (uint32_t d = first_dep; gradient && d < q->n_deps; d++)
            task->place = MAX(task->place, q->dep[d]);
    }
    made(q, instr->group, instr->tensor, RESULT_SUMMED, last);
}

/* How many instructions the program begins with that the one before began with. */
static uint32_t begins_alike(const SimQuick *q, const Program *program)
{
    const Instr *before = (const Instr *)q->instr->data;
    const uint32_t n = MIN(program->n, q->instr->len);
    uint32_t i = 0;
    while (i < n && memcmp(&before[i], &program->instr[i], sizeof *before) == 0)
        i++;
    return i;
}

/* Forgets all instructions but the first n. */
static void take_back(SimQuick *q, uint32_t n)
{
    if (n == q->instr->len)
        return;
    const Mark mark = q->mark[n];
    while (q->n_replaced > mark.n_replaced) {
        const Replaced *replaced = &q->replaced[--q->n_replaced];
        *replaced->result = replaced->old;
    }
    q->n_tasks = mark.n_tasks;
    q->n_deps = mark.n_deps;
    g_array_set_size(q->instr, n);
}

/* Turns the program into tasks; loads and local conversions take no time. Returns how many tasks
 * are as they were. */
static uint32_t lower(SimQuick *q, const Program *program)
{
    const uint32_t alike = begins_alike(q, program);
    take_back(q, alike);
    const uint32_t n_tasks = q->n_tasks;
    if (q->mark_room < program->n) {
        q->mark_room = 2 * program->n;
        q->mark = g_renew(Mark, q->mark, q->mark_room);
    }
    for (uint32_t i = alike; i < program->n; i++) {
        const Instr *instr = &program->instr[i];
        make_room_for_one(q);
        const Mark mark = {q->n_tasks, q->n_deps, q->n_replaced};
        q->mark[i] = mark;
        if (instr->kind == INSTR_COMPUTE)
            lower_compute(q, instr);
        else if (instr->kind == INSTR_TRANSFER)
            lower_transfer(q, instr);
        else if (instr->kind == INSTR_COLLECTIVE && sim_is_priced(instr->collective))
            lower_sum(q, instr);
    }
    g_array_append_vals(q->instr, &program->instr[alike], program->n - alike);
    return n_tasks;
}

void sim_quick_forget(SimQuick *q)
{
    take_back(q, 0);
}

void sim_quick_price_sums(SimQuick *q, SimQuickSums sums)
{
    q->sums = sums;
    sim_quick_forget(q);
    for (uint32_t g = 0; g < q->n_groups; g++)
        g_clear_pointer(&q->sum_s[g], g_free);
}

SimQuickSums sim_quick_sums(const SimQuick *q)
{
    return q->sums;
}

SimQuickTimes sim_quick_times(SimQuick *q, const Program *program)
{
    return quick_run(q, lower(q, program));
}

bool sim_quick_span(const SimQuick *q, uint32_t instr, double *start_s, double *end_s)
{
    KILTER_ASSERT(instr < q->instr->len);
    const uint32_t first = q->mark[instr].n_tasks, end = instr + 1 < q->instr->len
                                                             ? q->mark[instr + 1].n_tasks
                                                             : q->n_tasks;
    *start_s = INFINITY;
    *end_s = 0;
    for (uint32_t i = first; i < end; i++) {
        *start_s = MIN(*start_s, q->task[i].flow_s - q->task[i].s);
        *end_s = MAX(*end_s, q->task[i].flow_s);
    }
    return first < end;
}

double sim_quick_busy_s(const SimQuick *q, uint32_t device)
{
    return q->now.busy[q->teams->lane[device]];
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
        rule[id] = all[0]; /* the first rule: replicated */
        g_assert(rule[id].loop < 0);
    }
    return rule;
}

static void quick_make_room(SimQuick *q)
{
    const size_t n_groups = q->n_groups;
    q->rule = whole_rules(q->graph);
    q->op_s = g_new0(double *, n_groups);
    q->sum_s = g_new0(double *, n_groups);
    q->server_s = g_new0(double *, n_groups);
    q->route = g_new0(Route *, 2 * n_groups * n_groups);
    q->result = g_new0(Result, n_groups * q->n_tensors + 1);
    q->instr = g_array_new(FALSE, FALSE, sizeof(Instr));
    q->check = g_array_new(FALSE, FALSE, sizeof(Checkpoint));
    q->checked = g_array_new(FALSE, FALSE, sizeof(double));
    quick_streams_init(q);
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
    quick_make_room(q);
    return g_steal_pointer(&q);
}

SimQuick *sim_quick_another(const SimQuick *q)
{
    SimQuick *other = sim_quick_new(q->graph, q->view, q->plan->ratio, q->n_groups,
                                    q->plan->program->group, NULL);
    g_assert(other); /* its batch could be cut once */
    sim_quick_price_sums(other, q->sums);
    return other;
}

static void free_all(double **of, uint32_t n)
{
    for (uint32_t i = 0; of && i < n; i++)
        g_free(of[i]);
    g_free(of);
}

static void free_routes(SimQuick *q)
{
    for (size_t i = 0; q->route && i < 2 * (size_t)q->n_groups * q->n_groups; i++)
        if (q->route[i]) {
            free_each(q->route[i]->first_sender, q->route[i]->sender, q->route[i]);
        }
    g_free(q->route);
}

FREE_DEFINE(sim_quick_free, SimQuick, q, free_all(q->op_s, q->n_groups),
            free_all(q->sum_s, q->n_groups), free_all(q->server_s, q->n_groups),
            free_routes(q),
            free_each(q->rule, q->result, q->task, q->dep, q->mark, q->replaced,
                      q->now.flow, q->order, q->low),
            unref_arrays(q->instr, q->check, q->checked), sim_teams_free(q->teams),
            sim_parts_free(q->parts), plan_free(q->plan));
