/* The steps that the backward runs again by a mode of recomputation, and the bytes that
 * are not kept in the meantime. */
#include <math.h>

#include "data/base/free.h"
#include "synth/amp/steps.h"
#include "synth/pipeline/pipeline.h"

static FREE_DEFINE(free_again, AmpAgain, again,
                   free_each(again->when, again->like, again->less));

GHashTable *amp_agains_new(void)
{
    return g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)free_again);
}

/* Whether an op reads a gradient that the next layer's backward makes. */
static bool waits_for_layer(const Graph *graph, const Op *op)
{
    bool waits = false;
    for (uint32_t k = 0; k < op->n_in; k++) {
        const OpId by = graph_tensor(graph, op->in[k])->producer;
        waits |= by != GRAPH_NONE && graph_get_op(graph, by)->pass == PASS_BACKWARD &&
                 graph_get_op(graph, by)->layer != op->layer;
    }
    return waits;
}

/* Whether something runs again for an op of the backward. */
static bool needs_again(const AmpModel *model, const SynthAgain *ops, const Op *op)
{
    TensorId beside;
    bool needs = op->of != GRAPH_NONE && ops->op[op->of] &&
                 graph_op_kept_bytes(model->graph, op->of, &beside) > 0;
    for (uint32_t k = 0; k < op->n_in; k++)
        needs |= ops->drop[op->in[k]];
    return needs;
}

/* Whether a layer runs ops again before its backward waits: one is needed by the first op that
 * reads a gradient of the next layer, or before. */
static bool is_early(const AmpModel *model, const SynthAgain *ops, uint32_t layer)
{
    const uint32_t *first = &model->steps->first[AMP_BACKWARD * model->n_layers + layer];
    bool waits = false, early = false;
    for (uint32_t i = first[0]; i < first[1] && !waits; i++) {
        const OpId id = g_array_index(model->steps->step, AmpStep, i).op;
        if (id == GRAPH_NONE)
            continue;
        const Op *op = graph_get_op(model->graph, id);
        waits = waits_for_layer(model->graph, op);
        early |= needs_again(model, ops, op);
    }
    return early;
}

static void find_steps(const AmpModel *model, const SynthAgain *ops, AmpAgain *again)
{
    const AmpSteps *steps = model->steps;
    const bool full = again->mode == RECOMPUTE_FULL;
    again->when = g_new(AmpWhen, steps->step->len + 1);
    for (uint32_t l = 0; l < model->n_layers; l++) {
        const AmpWhen when = is_early(model, ops, l) ? AMP_EARLY : AMP_LATE;
        for (uint32_t i = steps->first[l]; i < steps->first[l + 1]; i++) {
            const OpId op = g_array_index(steps->step, AmpStep, i).op;
            again->when[i] = full || (op != GRAPH_NONE && ops->op[op]) ? when : AMP_NEVER;
        }
    }
    again->like = g_new(uint32_t, model->n_layers);
    values_at (const uint32_t, p, l, steps->like, model->n_layers) {
        again->like[l] = p;
        for (uint32_t i = 0; i < steps->first[l + 1] - steps->first[l]; i++)
            if (again->when[steps->first[l] + i] != again->when[steps->first[p] + i])
                again->like[l] = l;
    }
}

/* Of a layer that runs again whole its input stays. */
static void find_less(const AmpModel *model, const SynthAgain *ops, AmpAgain *again)
{
    const uint32_t n = model->n_layers;
    again->less = g_new0(double, (size_t)model->n_degrees *n);
    for (uint32_t g = 0; g < model->n_degrees; g++) {
        double *less = &again->less[(size_t)g * n];
        for (uint32_t l = 0; again->mode == RECOMPUTE_FULL && l < n; l++)
            less[l] = fmax(0, model->activation[(size_t)g * n + l] -
                                  (l > 0 ? model->steps->sent[l - 1] : 0));
        for (uint32_t i = 0; again->mode != RECOMPUTE_FULL && i < model->kept->len; i++) {
            const AmpKept *kept = &g_array_index(model->kept, AmpKept, i);
            if (ops->op[kept->by] && (kept->beside || ops->drop[kept->tensor]))
                less[kept->layer] += kept->whole + kept->cut / model->degree[g];
        }
    }
}

const AmpAgain *amp_again(const AmpModel *model, Recompute mode)
{
    AmpAgain *again = g_hash_table_lookup(model->again, GUINT_TO_POINTER(mode));
    if (again)
        return again;
    g_auto(SynthAgain) ops = synth_again(model->graph, mode);
    again = g_new0(AmpAgain, 1);
    again->mode = mode;
    find_steps(model, &ops, again);
    find_less(model, &ops, again);
    g_hash_table_insert(model->again, GUINT_TO_POINTER(mode), again);
    return again;
}
