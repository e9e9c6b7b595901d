#include "exec/cuts.h"

#include <stdlib.h>
#include <string.h>

ExecCuts *exec_cuts_new(const Plan *plan, const Graph *graph, GError **error)
{
    const Program *program = plan->program;
    g_autoptr(ExecCuts) cuts = g_new0(ExecCuts, 1);
    cuts->plan = plan;
    cuts->graph = graph;
    cuts->group = program_groups(program, plan->n_devices, &cuts->n_groups);
    if (!plan_check_groups(plan, error) ||
        (program_cuts_batch(program) && !(cuts->batch = batch_forms_new(graph, error))))
        return NULL;
    cuts->instances = instances_new(program, graph, cuts->batch);
    cuts->instance_segment = plan_segments(plan->program, graph, plan->segment);
    cuts->splits = plan_rounded_splits(plan, graph, cuts->batch);
    return g_steal_pointer(&cuts);
}

void exec_cuts_free(ExecCuts *cuts)
{
    if (!cuts)
        return;
    for (uint32_t i = 0; cuts->splits && i < cuts->splits->len; i++)
        g_free(g_array_index(cuts->splits, Split, i).count);
    g_clear_pointer(&cuts->splits, g_array_unref);
    g_free(cuts->instance_segment);
    instances_free(cuts->instances);
    batch_forms_free(cuts->batch);
    program_groups_free(cuts->group, cuts->n_groups);
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
    shard->offset[d] = first * piece;
    shard->dim[d] = n * piece;
}

void exec_cut(const ExecCuts *cuts, uint32_t group, uint32_t microbatch, TensorId id,
              Form form, uint32_t segment, ExecShard *shard)
{
    const Tensor *tensor = graph_tensor(cuts->graph, id);
    const DeviceGroup *of = &cuts->group[group];
    const PlanCut cut =
        plan_cut(cuts->plan->program, cuts->graph, cuts->batch, group, segment, id, form);
    const uint32_t *batch = cut.has_parts ? counts(cuts, &cut.batch) : NULL;
    const uint32_t *inner = cut.is_cut ? counts(cuts, &cut.inner) : NULL;
    const uint32_t n = of->n_devices, d = inner ? form_dim(form) : 0;
    const uint32_t b = batch ? form_dim(cuts->batch->form[id]) : 0;
    const uint32_t part = cuts->plan->program->n_microbatches > 1 && batch
                              ? microbatch * cut.batch.units
                              : 0;
    for (uint32_t j = 0; j < cuts->plan->n_devices; j++)
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
