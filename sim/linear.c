/* A program's time as a function of the shares: equations (1) and (2) of sim/sim.h with
 * their coefficients collected by stage and split (HAP Eq. 3). */
#include <math.h>

#include "sim/evaluate.h"
#include "sim/split.h"
#include "sim/step.h"

/* What building one SimLinear needs. */
typedef struct {
    SimLinear *linear;
    const Graph *graph;
    const ClusterView *view;
    const uint16_t *segment, *instance_segment;
    GArray *terms;
} Build;

static void add_work(Build *build, uint32_t stage, const SimWork *work, uint32_t split)
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

static void add_compute(Build *build, uint32_t stage, const Instr *instr)
{
    const SimLinear *linear = build->linear;
    const Rule rule = sim_split_rule(build->graph, instr);
    SimWork work;

    sim_work_op(build->graph, build->view, instr->op, &rule, &work);
    add_work(build, stage, &work,
             sim_split_of_rule(linear->split, linear->n_splits, build->segment, instr->op,
                               &rule));
}

/* The price of a collective is linear in the largest share: what it costs at share 0 is
 * the stage's, what it costs more at share 1 is the term's. */
static void add_collective(Build *build, uint32_t stage, const Instr *instr,
                           bool pays_latency)
{
    SimLinear *linear = build->linear;
    const double bytes = (double)tensor_bytes(graph_tensor(build->graph, instr->tensor));
    const uint32_t from =
        sim_split_of_form(linear->split, linear->n_splits, build->graph,
                          build->instance_segment, instr->tensor, instr->from);
    const uint32_t to =
        sim_split_of_form(linear->split, linear->n_splits, build->graph,
                          build->instance_segment, instr->tensor, instr->to);
    SimWork work;

    sim_work_collective(build->graph, instr->collective, instr->tensor, instr->from,
                        instr->to, &work);
    add_work(build, stage, &work, to != SPLIT_NONE ? to : from);
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

/* Ranges of the stages; all instructions belong to one. */
static void find_stages(SimLinear *linear, const Program *program, const Graph *graph)
{
    GArray *stages = g_array_new(false, true, sizeof(SimStage));
    SimStep step = {0};

    for (uint32_t i = 0; i < program->n; i++) {
        sim_step_next(&step, graph, &program->instr[i]);
        if (step.stage == stages->len) {
            SimStage stage = {.first = i};
            g_array_append_val(stages, stage);
        }
        g_array_index(stages, SimStage, step.stage).n++;
    }
    linear->n_stages = stages->len;
    linear->stage = (SimStage *)(void *)g_array_free(stages, false);
}

SimLinear *sim_linear(const Program *program, const Graph *graph, const ClusterView *view,
                      const uint16_t *segment, uint64_t bucket_bytes)
{
    SimLinear *linear = g_new0(SimLinear, 1);
    g_autofree uint16_t *instance_segment = plan_segments(program, graph, segment);
    Build build = {linear,
                   graph,
                   view,
                   segment,
                   instance_segment,
                   g_array_new(false, false, sizeof(SimTerm))};

    linear->split =
        sim_split_collect(program, graph, segment, instance_segment, &linear->n_splits);
    find_stages(linear, program, graph);
    const size_t cells = (size_t)linear->n_stages * linear->n_splits;
    linear->flops = g_new0(double, cells);
    linear->inner_bytes = g_new0(double, cells);
    for (uint32_t f = 0; f < view->n_fitted; f++)
        linear->fitted[f] = g_new0(double, cells);

    SimStep step = {.bucket_bytes = bucket_bytes};
    for (uint32_t i = 0; i < program->n; i++) {
        const Instr *instr = &program->instr[i];
        const bool pays_latency = sim_step_next(&step, graph, instr);
        if (instr->kind == INSTR_COMPUTE)
            add_compute(&build, step.stage, instr);
        else if (instr->kind == INSTR_COLLECTIVE && sim_is_priced(instr->collective))
            add_collective(&build, step.stage, instr, pays_latency);
    }
    linear->n_terms = build.terms->len;
    linear->term = (SimTerm *)(void *)g_array_free(build.terms, false);
    return linear;
}

void sim_linear_free(SimLinear *linear)
{
    if (!linear)
        return;
    g_free(linear->stage);
    g_free(linear->split);
    g_free(linear->flops);
    for (uint32_t f = 0; f < CLUSTER_MAX_FITTED; f++)
        g_free(linear->fitted[f]);
    g_free(linear->inner_bytes);
    g_free(linear->term);
    g_free(linear);
}

static bool alike(const ClusterView *view, uint32_t n_splits, const double *share,
                  uint32_t a, uint32_t b)
{
    for (uint32_t k = 0; k < n_splits; k++)
        if (share[(size_t)k * view->n_devices + a] !=
            share[(size_t)k * view->n_devices + b])
            return false;
    return device_compare(&view->device[a], &view->device[b]) == 0;
}

SimKinds sim_kinds(const ClusterView *view, uint32_t n_splits, const double *share)
{
    enum { LATEST = 4 }; /* equal devices are mostly neighbours */
    SimKinds kinds = {0, g_new(uint32_t, view->n_devices),
                      g_new(uint32_t, view->n_devices)};

    for (uint32_t j = 0; j < view->n_devices; j++) {
        const uint32_t oldest = kinds.n > LATEST ? kinds.n - LATEST : 0;
        uint32_t k = kinds.n;
        while (k > oldest && !alike(view, n_splits, share, kinds.first[k - 1], j))
            k--;
        if (k == oldest) {
            kinds.first[kinds.n++] = j;
            k = kinds.n;
        }
        kinds.of[j] = k - 1;
    }
    return kinds;
}

void sim_kinds_clear(SimKinds *kinds)
{
    g_free(kinds->first);
    g_free(kinds->of);
}

double sim_linear_comm_s(const SimLinear *linear, const ClusterView *view,
                         const SimKinds *kinds, const double *share, uint32_t stage,
                         uint32_t *term)
{
    double seconds = linear->stage[stage].comm_s;

    for (; *term < linear->n_terms && linear->term[*term].stage == stage; ++*term) {
        const SimTerm *t = &linear->term[*term];
        double largest = 0;
        for (uint32_t k = 0; k < kinds->n; k++) {
            const uint32_t j = kinds->first[k];
            largest = fmax(largest, fmax(share[t->from * view->n_devices + j],
                                         share[t->to * view->n_devices + j]));
        }
        seconds += t->seconds * largest;
    }
    return seconds;
}

double sim_linear_comp_s(const SimLinear *linear, const ClusterView *view,
                         const double *share, uint32_t stage, uint32_t device)
{
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

double sim_linear_time(const SimLinear *linear, const ClusterView *view,
                       const double *share, double *comm_s, double *comp_s)
{
    SimKinds kinds = sim_kinds(view, linear->n_splits, share);
    double comm = 0, comp = 0;
    uint32_t term = 0;

    for (uint32_t i = 0; i < linear->n_stages; i++) {
        double slowest = 0;
        for (uint32_t k = 0; k < kinds.n; k++)
            slowest =
                fmax(slowest, sim_linear_comp_s(linear, view, share, i, kinds.first[k]));
        comp += slowest;
        comm += sim_linear_comm_s(linear, view, &kinds, share, i, &term);
    }
    sim_kinds_clear(&kinds);
    if (comm_s)
        *comm_s = comm;
    if (comp_s)
        *comp_s = comp;
    return comm + comp;
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
