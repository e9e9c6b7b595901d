/* The index ranges of a plan's shards. */
#include "exec/cuts.h"

#include <stdlib.h>
#include <string.h>

ExecCuts *exec_cuts_new(const Plan *plan, const Graph *graph, GError **error)
{
    g_autoptr(ExecCuts) cuts = g_new0(ExecCuts, 1);
    if (!plan_check_groups(plan, error) ||
        !plan_layout_init(&cuts->layout, plan, graph, error))
        return NULL;
    cuts->splits = plan_rounded_splits(plan, graph, cuts->layout.batch);
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
    uint32_t total = 0;
    for (uint32_t i = 0; i < n; i++)
        total += count[i];
    return total;
}

/* Cuts dim d: `n` of its pieces from `first` on. */
static void cut_dim(ExecShard *shard, uint32_t d, uint32_t piece, uint32_t first,
                    uint32_t n)
{
    KILTER_ASSERT(d < shard->rank && first + n >= first);
    shard->offset[d] = first * piece;
    shard->dim[d] = n * piece;
}

void exec_cut(const ExecCuts *cuts, uint32_t group, uint32_t microbatch, TensorId id,
              Form form, uint32_t segment, ExecShard *shard)
{
    KILTER_ASSERT(form < FORM_MAX);
    const PlanLayout *layout = &cuts->layout;
    const Tensor *tensor = graph_tensor(layout->graph, id);
    const DeviceGroup *of = &layout->group[group];
    const PlanCut cut = plan_cut(layout->plan->program, layout->graph, layout->batch,
                                 group, segment, id, form);
    const uint32_t *batch = cut.has_parts ? counts(cuts, &cut.batch) : NULL;
    const uint32_t *inner = cut.is_cut ? counts(cuts, &cut.inner) : NULL;
    const uint32_t n = of->n_devices, d = inner ? form_dim(form) : 0;
    const uint32_t b = batch ? form_dim(layout->batch->form[id]) : 0;
    const uint32_t part = layout->plan->program->n_microbatches > 1 && batch
                              ? microbatch * cut.batch.units
                              : 0;
    for (uint32_t j = 0; j < layout->plan->n_devices; j++)
        shard[j] = (ExecShard){.rank = tensor->rank};
    for (uint32_t i = 0; i < of->n_replicas * n; i++) {
        ExecShard *own = &shard[of->device[i]];
        const uint32_t replica = i - i % n; /* its first device */
        memcpy(own->dim, tensor->dim, sizeof own->dim);
        if (batch)
            cut_dim(own, b, tensor->dim[b] / tensor->units[b],
                    part + sum(batch, cut.to_device ? i : replica),
                    cut.to_device ? batch[i] : sum(&batch[replica], n));
        if (inner)
            cut_dim(own, d, tensor->dim[d] / tensor->units[d],
                    sum(&inner[replica], i - replica), inner[i]);
    }
}
