/* A program's time as a function of the shares: equations (1) and (2) of sim/sim.h with
 * their coefficients collected by stage and split (HAP Eq. 3). */
#include <math.h>

#include "data/base/free.h"
#include "data/base/order.h"
#include "sim/cost/split.h"
#include "sim/cost/step.h"
#include "sim/cost/turns.h"
#include "sim/evaluate.h"

/* The state while one SimLinear is built. */
typedef struct {
    SimLinear *linear;
    const Graph *graph;
    const ClusterView *view;
    const uint16_t *segment, *instance_segment;
    const BatchForms *batch;
    uint32_t n_microbatches;
    uint32_t *runs; /* [op]: the number of microbatches that have run it */
    GArray *terms;
    SimMemo *memo; /* NULL: no device has kernels */
} Build;

static void linear_add_work(Build *build, uint32_t stage, const SimWork *work,
                            uint32_t split)
{
    SimLinear *linear = build->linear;
    SimWork *fixed = &linear->stage[stage].fixed;
    fixed->seconds += work->seconds;
    fixed->flops += work->flops;
    for (uint32_t f = 0; f < build->view->n_fitted; f++) {
        fixed->fitted[f].overhead_s += work->fitted[f].overhead_s;
        fixed->fitted[f].flops += work->fitted[f].flops;
    }
    fixed->inner_bytes += work->inner_bytes;
    fixed->inner_messages += work->inner_messages;
    if (split == SPLIT_NONE)
        return;
    const size_t at = (size_t)stage * linear->n_splits + split;
    linear->flops[at] += work->flops_sharded;
    for (uint32_t f = 0; f < build->view->n_fitted; f++)
        linear->fitted[f][at] += work->fitted[f].flops_sharded;
    linear->inner_bytes[at] += work->inner_bytes_sharded;
}

/* Counts sharded work as whole work. */
static void gather_work(SimWork *work)
{
    work->flops += work->flops_sharded;
    for (uint32_t f = 0; f < CLUSTER_MAX_FITTED; f++)
        work->fitted[f].flops += work->fitted[f].flops_sharded;
    work->inner_bytes += work->inner_bytes_sharded;
}

/* Work of an op on one microbatch. Where devices divide the batch, work that grows with their part
 * of it is sharded. */
static void work_of_part(Build *build, OpId op, const Rule *rule, SimWork *work)
{
    const BatchForms *batch = build->batch;
    const double part = 1.0 / build->n_microbatches;
    SimWork none;
    sim_work_part(build->memo, build->graph, build->view, op, rule,
                  (SimOpShare){batch->form, part, 1}, work);
    work->seconds *= part;
    if (rule->loop == batch->loop[op]) {
        sim_work_part(build->memo, build->graph, build->view, op, rule,
                      (SimOpShare){batch->form, 0, 1}, &none);
        gather_work(&none);
        gather_work(work);
        work->flops_sharded = work->flops - none.flops;
        work->flops = none.flops;
        for (uint32_t f = 0; f < CLUSTER_MAX_FITTED; f++) {
            work->fitted[f].flops_sharded = work->fitted[f].flops - none.fitted[f].flops;
            work->fitted[f].flops = none.fitted[f].flops;
        }
        work->inner_bytes_sharded = 0;
    }
    /* other microbatches still add to its sums */
    if (++build->runs[op] % build->n_microbatches) {
        work->inner_messages = 0;
        work->inner_bytes = work->inner_bytes_sharded = 0;
    }
}

static void linear_add_compute(Build *build, uint32_t stage, const Instr *instr)
{
    const SimLinear *linear = build->linear;
    const BatchForms *batch = build->batch;
    const Rule rule = sim_split_rule(build->graph, instr);
    SimWork work;
    if (batch && batch->loop[instr->op] >= 0)
        work_of_part(build, instr->op, &rule, &work);
    else
        sim_work_op(build->memo, build->graph, build->view, instr->op, &rule, &work);
    linear_add_work(build, stage, &work,
                    sim_split_of_rule(linear->split, linear->n_splits, build->segment,
                                      instr->op, &rule));
}

/* The price of a collective is linear in the largest share: its cost at share 0 goes to the stage,
 * the additional cost at share 1 to a term. `inner`: the stage that gets the communication inside
 * machines. */
static void linear_add_collective(Build *build, uint32_t stage, uint32_t inner,
                                  const Instr *instr, bool pays_latency)
{
    KILTER_ASSERT(inner <= stage || instr->kind == INSTR_COLLECTIVE);
    SimLinear *linear = build->linear;
    const double part = build->batch && form_is_gather(build->batch->form[instr->tensor])
                            ? 1.0 / build->n_microbatches
                            : 1;
    const double bytes =
        part * (double)tensor_bytes(graph_tensor(build->graph, instr->tensor));
    const uint32_t from =
        sim_split_of_form(linear->split, linear->n_splits, build->graph,
                          build->instance_segment, instr->tensor, instr->from);
    const uint32_t to =
        sim_split_of_form(linear->split, linear->n_splits, build->graph,
                          build->instance_segment, instr->tensor, instr->to);
    SimWork work;
    sim_work_collective(build->graph, instr->collective, instr->tensor, instr->from,
                        instr->to, &work);
    work.inner_bytes *= part;
    work.inner_bytes_sharded *= part;
    linear_add_work(build, inner, &work, to != SPLIT_NONE ? to : from);
    if (build->view->n_devices == 1)
        return;
    const double fixed_s = sim_collective_s(build->view, instr->collective, bytes, 0, 0);
    const double whole_s = sim_collective_s(build->view, instr->collective, bytes, 1, 1);
    linear->stage[stage].comm_s += fixed_s;
    if (!pays_latency)
        linear->stage[stage].comm_s -=
            cluster_view_line(build->view, instr->collective, bytes).latency_s;
    if (whole_s == fixed_s)
        return;
    SimTerm term = {stage, from != SPLIT_NONE ? from : to, to != SPLIT_NONE ? to : from,
                    whole_s - fixed_s};
    g_array_append_val(build->terms, term);
}

/* Finds the ranges of the stages. Returns the stage of each instruction: [instr], the caller frees
 * it. */
static uint32_t *find_stages(SimLinear *linear, const Program *program,
                             const Graph *graph)
{
    GArray *stages = g_array_new(false, true, sizeof(SimStage));
    uint32_t *of = g_new(uint32_t, program->n);
    SimStep step = {0};
    for (uint32_t i = 0; i < program->n; i++) {
        sim_step_next(&step, graph, &program->instr[i]);
        of[i] = step.stage;
        if (step.stage == stages->len) {
            SimStage stage = {.first = i};
            g_array_append_val(stages, stage);
        }
        g_array_index(stages, SimStage, step.stage).n++;
    }
    linear->n_stages = stages->len;
    linear->stage = (SimStage *)(void *)g_array_free(stages, false);
    return of;
}

/* stage, inner: [instr]. */
static void add_instrs(Build *build, const Program *program, const uint32_t *stage,
                       const uint32_t *inner, uint64_t bucket_bytes)
{
    SimStep step = {.bucket_bytes = bucket_bytes};
    items_at (const Instr, instr, i, program->instr, program->n) {
        const bool pays_latency = sim_step_next(&step, build->graph, instr);
        if (instr->kind == INSTR_COMPUTE)
            linear_add_compute(build, stage[i], instr);
        else if (sim_is_priced_collective(instr))
            linear_add_collective(build, stage[i], inner[i], instr, pays_latency);
    }
}

static ORDER_DEFINE(compare_terms, SimTerm, ASCENDING(stage));

static void new_cells(SimLinear *linear, const ClusterView *view)
{
    const size_t cells = (size_t)linear->n_stages * linear->n_splits;
    linear->flops = g_new0(double, cells);
    linear->inner_bytes = g_new0(double, cells);
    for (uint32_t f = 0; f < view->n_fitted; f++)
        linear->fitted[f] = g_new0(double, cells);
}

SimLinear *sim_linear(const Program *program, const Graph *graph, const ClusterView *view,
                      const uint16_t *segment, uint64_t bucket_bytes)
{
    SimLinear *linear = g_new0(SimLinear, 1);
    const bool turns = program->n_microbatches > 1;
    g_autoptr(BatchForms) batch = turns ? batch_forms_new(graph, NULL) : NULL;
    g_autofree uint16_t *instance_segment = plan_segments(program, graph, segment);
    g_autofree uint32_t *runs = g_new0(uint32_t, graph_n_ops(graph));
    g_autoptr(SimMemo) memo = cluster_view_has_kernels(view) ? sim_memo_new() : NULL;
    Build build = {linear,
                   graph,
                   view,
                   segment,
                   instance_segment,
                   batch,
                   program->n_microbatches,
                   runs,
                   g_array_new(false, false, sizeof(SimTerm)),
                   memo};
    linear->split =
        sim_split_collect(program, graph, segment, instance_segment, &linear->n_splits);
    if (turns) {
        g_autoptr(Instances) instances = instances_new(program, graph, batch);
        SimTurnStages of = sim_turn_stages(program, graph, view, instances);
        linear->n_stages = of.stages->len;
        linear->stage = (SimStage *)(void *)g_array_free(of.stages, false);
        new_cells(linear, view);
        add_instrs(&build, program, of.stage, of.inner, bucket_bytes);
        sim_turn_stages_clear(&of);
        g_array_sort(build.terms, compare_terms);
    } else {
        g_autofree uint32_t *stage = find_stages(linear, program, graph);
        new_cells(linear, view);
        add_instrs(&build, program, stage, stage, bucket_bytes);
    }
    linear->n_terms = build.terms->len;
    linear->term = (SimTerm *)(void *)g_array_free(build.terms, false);
    return linear;
}

FREE_DEFINE(sim_linear_free, SimLinear, linear,
            free_each(linear->stage, linear->split, linear->flops),
            free_items(linear->fitted, CLUSTER_MAX_FITTED),
            free_each(linear->inner_bytes, linear->term));

double sim_linear_comm_s(const SimLinear *linear, const ClusterView *view,
                         const SimKinds *kinds, const double *share, uint32_t stage,
                         uint32_t *term)
{
    KILTER_ASSERT(stage < linear->n_stages && *term <= linear->n_terms);
    double seconds = linear->stage[stage].comm_s;
    for (; *term < linear->n_terms && linear->term[*term].stage == stage; ++*term) {
        const SimTerm *t = &linear->term[*term];
        double largest = 0;
        values_at (const uint32_t, j, k, kinds->first, kinds->n) {
            largest = MAX(largest, share[t->from * view->n_devices + j]);
            largest = MAX(largest, share[t->to * view->n_devices + j]);
        }
        seconds += t->seconds * largest;
    }
    return seconds;
}

double sim_linear_comp_s(const SimLinear *linear, const ClusterView *view,
                         const double *share, uint32_t stage, uint32_t device)
{
    KILTER_ASSERT(stage < linear->n_stages && device < view->n_devices);
    const Device *d = &view->device[device];
    SimWork work = linear->stage[stage].fixed;
    double *flops = sim_work_flops(&work, d);
    for (uint32_t k = 0; k < linear->n_splits; k++) {
        const double part = share[k * view->n_devices + device];
        const size_t at = (size_t)stage * linear->n_splits + k;
        *flops += sim_linear_flops(linear, at, d) * part;
        work.inner_bytes += linear->inner_bytes[at] * part;
    }
    return sim_work_s(&work, d, 0);
}

/* The largest time that a device computes in a stage. */
static double slowest_s(const SimLinear *linear, const ClusterView *view,
                        const SimKinds *kinds, const double *share, uint32_t stage)
{
    KILTER_ASSERT(stage < linear->n_stages);
    double slowest = 0;
    for (uint32_t k = 0; k < kinds->n; k++) {
        const double s = sim_linear_comp_s(linear, view, share, stage, kinds->first[k]);
        slowest = MAX(slowest, s);
    }
    return slowest;
}

/* Equation (4). *comp_s gets the largest sum of computations over the devices. */
static double turn_s(const SimLinear *linear, const ClusterView *view,
                     const SimKinds *kinds, const double *share, uint32_t first,
                     uint32_t end, uint32_t *term, double *comp_s)
{
    KILTER_ASSERT(first < end && end <= linear->n_stages);
    /* [stage of the turn]: sum over the stages up to it */
    g_autofree double *comm_s = g_new(double, end - first);
    double largest = 0;
    for (uint32_t i = first; i < end; i++)
        comm_s[i - first] = sim_linear_comm_s(linear, view, kinds, share, i, term) +
                            (i > first ? comm_s[i - first - 1] : 0);
    *comp_s = 0;
    for (uint32_t k = 0; k < kinds->n; k++) {
        /* sum of computations after the stage; of all of them */
        double after = 0, sum = 0;
        for (uint32_t i = end; i-- > first;) {
            const double s = sim_linear_comp_s(linear, view, share, i, kinds->first[k]);
            largest = fmax(largest, comm_s[i - first] + s + after);
            after += linear->stage[i].beside ? 0 : s;
            sum += s;
        }
        *comp_s = fmax(*comp_s, sum);
    }
    *comp_s = fmin(*comp_s, largest);
    return largest;
}

double sim_linear_time(const SimLinear *linear, const ClusterView *view,
                       const double *share, double *comm_s, double *comp_s)
{
    g_auto(SimKinds) kinds = sim_kinds(view, linear->n_splits, share);
    double comm = 0, comp = 0;
    uint32_t term = 0;
    for (uint32_t i = 0, end; i < linear->n_stages; i = end) {
        end = sim_turn_end(linear, i);
        if (end == i + 1) {
            comp += slowest_s(linear, view, &kinds, share, i);
            comm += sim_linear_comm_s(linear, view, &kinds, share, i, &term);
        } else {
            double own;
            const double turn = turn_s(linear, view, &kinds, share, i, end, &term, &own);
            comp += own;
            comm += turn - own;
        }
    }
    if (comm_s)
        *comm_s = comm;
    if (comp_s)
        *comp_s = comp;
    return comm + comp;
}

/* Marks the splits whose shares of a device take part in its time in a stage. */
static void mark_splits(const SimLinear *linear, const ClusterView *view, uint32_t stage,
                        uint32_t device, bool *matters)
{
    for (uint32_t k = 0; k < linear->n_splits; k++) {
        const size_t at = (size_t)stage * linear->n_splits + k;
        matters[k * view->n_devices + device] |=
            sim_linear_flops(linear, at, &view->device[device]) > 0 ||
            linear->inner_bytes[at] > 0;
    }
}

/* Marks the devices with the largest share of a split. */
static void mark_largest(const ClusterView *view, const double *share, uint32_t split,
                         bool *matters)
{
    const double *own = &share[split * view->n_devices];
    double largest = 0;
    for (uint32_t j = 0; j < view->n_devices; j++)
        largest = MAX(largest, own[j]);
    for (uint32_t j = 0; j < view->n_devices; j++)
        matters[split * view->n_devices + j] |= own[j] == largest;
}

void sim_linear_matters(const SimLinear *linear, const ClusterView *view,
                        const double *share, bool *matters)
{
    static const double rounding = 1 - 1e-12;
    const uint32_t n = view->n_devices;
    g_auto(SimKinds) kinds = sim_kinds(view, linear->n_splits, share);
    g_autofree double *s = g_new(double, kinds.n);
    bool turns = false;
    for (uint32_t i = 0; i < linear->n_stages; i++) {
        double slowest = 0;
        turns |= linear->stage[i].joins;
        for (uint32_t k = 0; k < kinds.n; k++) {
            s[k] = sim_linear_comp_s(linear, view, share, i, kinds.first[k]);
            slowest = MAX(slowest, s[k]);
        }
        for (uint32_t j = 0; j < n; j++)
            if (s[kinds.of[j]] >= slowest * rounding)
                mark_splits(linear, view, i, j, matters);
    }
    for (uint32_t t = 0; t < linear->n_terms; t++) {
        mark_largest(view, share, linear->term[t].from, matters);
        mark_largest(view, share, linear->term[t].to, matters);
    }
    for (size_t i = 0; turns && i < (size_t)linear->n_splits * n; i++)
        matters[i] = true;
}

double *sim_shares(const SimLinear *linear, const ClusterView *view, const double *ratio)
{
    const uint32_t n = view->n_devices;
    double *share = g_new(double, (size_t)linear->n_splits *n);
    for (uint32_t k = 0; k < linear->n_splits; k++)
        for (uint32_t j = 0; j < n; j++)
            share[k * n + j] = ratio[linear->split[k].segment * n + j];
    return share;
}
