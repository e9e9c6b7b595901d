/* The index ranges of a plan's shards. */
#include "exec/cuts.h"

#include <stdlib.h>
#include <string.h>

static bool divides_experts(const Strategy *s)
{
    return s->etp == 1 && s->ep == s->tp * s->cp;
}

uint32_t exec_even(const Strategy *s)
{
    return s->tp > 1 && s->cp > 1 && (divides_experts(s) || s->cp_comm == CP_COMM_A2A)
               ? s->tp * s->cp
               : 0;
}

/* Whether attention by parts of the heads of a part of them has equal ones. */
static bool heads_agree(const Plan *plan, const Graph *graph, GError **error)
{
    items_each (const Instr, instr, plan->program->instr, plan->program->n) {
        const Op *op =
            instr->kind == INSTR_COMPUTE ? graph_get_op(graph, instr->op) : NULL;
        if (!op || !op_kind_is_attention(op->kind) || plan->program->n_groups == 0)
            continue;
        const Form inside = form_inside(instr->form[0]);
        if (!form_is_gather(inside) || form_shards(instr->form[0]) != inside)
            continue;
        const DeviceGroup *group = &plan->program->group[instr->group];
        const uint32_t n = group->n_devices * group_shards(group),
                       units = graph_tensor(graph, op->in[0])->units[form_dim(inside)];
        if (units % n != 0)
            return refuse(
                error, "%s by heads on %u devices: expected a multiple of them, got %u",
                op->name, n, units);
    }
    return true;
}

static bool cuts_agree(const ExecCuts *cuts, const Plan *plan, GError **error)
{
    const Strategy *s = &plan->strategy;
    const uint32_t even = divides_experts(s) ? exec_even(s) : 0;
    for (uint32_t i = 0; even && i < cuts->splits->len; i++) {
        const Split *split = &g_array_index(cuts->splits, Split, i);
        if (split->kind == SPLIT_NESTED && split->units % even != 0)
            return refuse(
                error,
                "etp=1 with ep=%u on all devices of a sequence: expected experts "
                "in multiples of them, got %u",
                even, split->units);
    }
    return true;
}

ExecCuts *exec_cuts_new(const Plan *plan, const Graph *graph, GError **error)
{
    g_autoptr(ExecCuts) cuts = g_new0(ExecCuts, 1);
    if (!plan_check_groups(plan, error) ||
        !plan_layout_init(&cuts->layout, plan, graph, error))
        return NULL;
    cuts->splits = plan_rounded_splits(plan, graph, cuts->layout.batch);
    if (!cuts_agree(cuts, plan, error) || !heads_agree(plan, graph, error))
        return NULL;
    return g_steal_pointer(&cuts);
}

void exec_cuts_free(ExecCuts *cuts)
{
    if (!cuts)
        return;
    for (uint32_t i = 0; cuts->splits && i < cuts->splits->len; i++)
        g_free(g_array_index(cuts->splits, Split, i).count);
    g_clear_pointer(&cuts->splits, g_array_unref);
    plan_layout_clear(&cuts->layout);
    g_free(cuts);
}

static const uint32_t *counts(const ExecCuts *cuts, const Split *key)
{
    const Split *split = bsearch(key, cuts->splits->data, cuts->splits->len, sizeof *key,
                                 plan_compare_splits);
    g_assert(split);
    return split->count;
}

static uint32_t sum(const uint32_t *count, uint32_t n)
{
    return sum_over(uint32_t, i, n, count[i]);
}

/* Cuts dim d: the shard keeps `n` pieces of `piece` elements from piece `first` on. */
static void cut_dim(ExecShard *shard, uint32_t d, uint32_t piece, uint32_t first,
                    uint32_t n)
{
    KILTER_ASSERT(d < shard->rank && first + n >= first);
    shard->offset[d] = first * piece;
    shard->dim[d] = n * piece;
}

/* The position in a group of a device, of the first device of its set of shards, and of the first
 * of its replica. */
typedef struct {
    uint32_t set, replica, place, n_set, n;
} Standing;

static void cut_batch(const PlanCut *cut, const uint32_t *batch, uint32_t b,
                      uint32_t piece, uint32_t part, const Standing *at, ExecShard *own)
{
    const uint32_t first = cut->to_device  ? at->place
                           : cut->to_shard ? at->replica
                                           : at->set;
    const uint32_t n = cut->to_device ? 1 : cut->to_shard ? at->n : at->n_set;
    cut_dim(own, b, piece, part + sum(batch, first), sum(&batch[first], n));
}

/* The number of pieces before a device's own, where the pieces of each position of a set lie
 * together. */
static uint32_t before_nested(const uint32_t *set, const Standing *at)
{
    const uint32_t p = at->place - at->replica;
    uint32_t before = 0;
    for (uint32_t s = 0; s < at->n_set; s += at->n) {
        before += sum(&set[s], p);
        before += s < at->replica - at->set ? set[s + p] : 0;
    }
    return before;
}

static void cut_states(const ExecCuts *cuts, const PlanCut *cut, const Tensor *tensor,
                       Form form, const Standing *at, ExecShard *own)
{
    if (cut->is_sharded) {
        const uint32_t *shards = counts(cuts, &cut->shards);
        const uint32_t d = form_dim(form_shards(form));
        const uint32_t first = cut->nested ? at->place : at->replica;
        const uint32_t before = cut->shards.kind == SPLIT_NESTED
                                    ? before_nested(&shards[at->set], at)
                                    : sum(&shards[at->set], first - at->set);
        cut_dim(own, d, tensor->dim[d] / tensor->units[d], before,
                sum(&shards[first], cut->nested ? 1 : at->n));
    }
    if (cut->over_replicas) {
        const uint32_t *replicas = counts(cuts, &cut->replicas);
        const uint32_t d = form_dim(form_replicas(form));
        uint32_t first = 0;
        for (uint32_t i = 0; i < at->set; i += at->n_set)
            first += replicas[i];
        cut_dim(own, d, tensor->dim[d] / tensor->units[d], first, replicas[at->place]);
    }
}

void exec_cut(const ExecCuts *cuts, uint32_t group, uint32_t microbatch, TensorId id,
              Form form, uint32_t segment, ExecShard *shard)
{
    const PlanLayout *layout = &cuts->layout;
    const Tensor *tensor = graph_tensor(layout->graph, id);
    const DeviceGroup *of = &layout->group[group];
    const PlanCut cut = plan_cut(layout->plan->program, layout->graph, layout->batch,
                                 group, segment, id, form);
    const uint32_t *batch = cut.has_parts ? counts(cuts, &cut.batch) : NULL;
    const uint32_t *inner = cut.is_cut && !cut.nested ? counts(cuts, &cut.inner) : NULL;
    const uint32_t n = of->n_devices, d = inner ? form_dim(form) : 0;
    const uint32_t b = batch ? form_dim(layout->batch->form[id]) : 0;
    const uint32_t part = layout->plan->program->n_microbatches > 1 && batch
                              ? microbatch * cut.batch.units
                              : 0;
    for (uint32_t j = 0; j < layout->plan->n_devices; j++)
        shard[j] = (ExecShard){.rank = tensor->rank};
    for (uint32_t i = 0; i < of->n_replicas * n; i++) {
        ExecShard *own = &shard[of->device[i]];
        const uint32_t n_set = group_shards(of) * n;
        const Standing at = {i - i % n_set, i - i % n, i, n_set, n};
        memcpy(own->dim, tensor->dim, sizeof own->dim);
        if (batch)
            cut_batch(&cut, batch, b, tensor->dim[b] / tensor->units[b], part, &at, own);
        cut_states(cuts, &cut, tensor, form, &at, own);
        if (inner)
            cut_dim(own, d, tensor->dim[d] / tensor->units[d],
                    sum(&inner[at.replica], i - at.replica), inner[i]);
    }
}
