/* Sufficient factor broadcasting in a placement: on each subset with replicas the minimum cut says
 * which of its ops to run on the whole batch, at the prices of the evaluator. A change that does
 * not make the strategy faster, or does not fit, is undone. */
#include <math.h>
#include <string.h>

#include "synth/tag/search.h"

/* Costs of duplicating the ops of a device group on all of its devices. */
static SfbCosts *costs_of(const TagSpace *space, const TagWork *work, SimQuick *quick,
                          const TagPlacement *placement, uint16_t replicas,
                          uint16_t whole)
{
    const Graph *graph = work->graph;
    SfbCosts *costs = synth_sfb_costs_new(graph);
    ops_each (op, id, graph) {
        costs->compute_s[id] = INFINITY;
        if (placement->group[id] != replicas || work->batch->loop[id] < 0)
            continue;
        double shared_s = 0, whole_s = 0;
        for (uint32_t r = 0; r < space->group[replicas].n_replicas; r++) {
            shared_s = fmax(shared_s, sim_quick_place_s(quick, replicas, id, r));
            whole_s = fmax(whole_s, sim_quick_place_s(quick, whole, id, r));
        }
        costs->compute_s[id] = fmax(whole_s - shared_s, 0);
        for (uint32_t o = 0; o < op->n_out; o++)
            if (work->batch->form[op->out[o]] == FORM_REDUCE &&
                graph_tensor(graph, op->out[o])->role == ROLE_GRADIENT)
                costs->saved_s[id] += sim_quick_sum_s(quick, replicas, op->out[o]);
    }
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        costs->broadcast_s[t] = sim_quick_transfer_s(quick, replicas, whole, t);
    return costs;
}

/* The same by the paper's formula, gradient by gradient. */
static SfbCosts *costs_of_paper(const TagSpace *space, const TagWork *work,
                                const TagPlacement *placement, uint16_t replicas)
{
    const DeviceGroup *group = &space->group[replicas];
    g_autofree double *share = g_new0(double, space->view->n_devices);
    for (uint32_t r = 0; r < group->n_replicas; r++)
        share[group->device[r]] = 1.0 / group->n_replicas;
    SfbCosts *costs =
        synth_sfb_costs(work->graph, work->batch, space->view, share, SFB_PAPER);
    costs->one_by_one = true;
    for (OpId id = 0; id < graph_n_ops(work->graph); id++)
        if (placement->group[id] != replicas) {
            costs->compute_s[id] = INFINITY;
            costs->saved_s[id] = 0;
        }
    return costs;
}

static TagScore score_of(const TagSpace *space, const TagWork *work, SimQuick *quick,
                         TagObjective objective, const TagPlacement *placement)
{
    g_autoptr(Program) program = synth_tag_program(space, work, placement, true);
    const SimQuickTimes times = sim_quick_times(quick, program);
    g_autofree uint64_t *peak = g_new0(uint64_t, space->view->n_devices);
    return (TagScore){objective == TAG_BY_FLOW ? times.flow_s : times.stage_s,
                      tag_lacking(space->view, quick, program, peak)};
}

/* Tries the cut of one subset; returns the number of ops it duplicates. */
static uint32_t try_subset(const TagSpace *space, const TagWork *work, SimQuick *quick,
                           TagObjective objective, bool by_paper, TagPlacement *placement,
                           uint32_t subset)
{
    const uint32_t n = graph_n_ops(work->graph);
    const uint16_t replicas = space->replicas[subset], whole = space->whole[subset];
    g_autoptr(SfbCosts) costs =
        by_paper ? costs_of_paper(space, work, placement, replicas)
                 : costs_of(space, work, quick, placement, replicas, whole);
    g_autofree bool *duplicated = g_new0(bool, n + 1);
    g_autofree uint16_t *before = g_memdup2(placement->group, n * sizeof *before);
    uint32_t count = 0;
    if (synth_sfb_graph(work->graph, work->batch, costs, duplicated) <= 0)
        return 0;
    const TagScore was = score_of(space, work, quick, objective, placement);
    for (OpId id = 0; id < n; id++)
        if (duplicated[id]) {
            placement->group[id] = whole;
            count++;
        }
    const TagScore is = score_of(space, work, quick, objective, placement);
    if (is.time_s < was.time_s && is.lacks <= was.lacks)
        return count;
    memcpy(placement->group, before, n * sizeof *before);
    return 0;
}

uint32_t synth_tag_factors(const TagSpace *space, const TagWork *work, SimQuick *quick,
                           TagObjective objective, bool by_paper, TagPlacement *placement)
{
    uint32_t count = 0;
    for (uint32_t subset = 1; subset < 1u << space->n_sets; subset++) {
        bool any = space->replicas[subset] == space->whole[subset];
        for (OpId id = 0; !any && id < graph_n_ops(work->graph); id++)
            if (placement->group[id] == space->replicas[subset]) {
                any = true;
                count += try_subset(space, work, quick, objective, by_paper, placement,
                                    subset);
            }
    }
    return count;
}
