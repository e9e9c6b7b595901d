/* The steps that the backward runs again by a mode of recomputation, and the bytes that
 * are not kept in the meantime. */
#include <math.h>

#include "synth/amp/steps.h"
#include "synth/pipeline/pipeline.h"

static void free_again(void *data)
{
    AmpAgain *again = data;
    g_free(again->step);
    g_free(again->like);
    g_free(again->less);
    g_free(again);
}

GHashTable *amp_agains_new(void)
{
    return g_hash_table_new_full(NULL, NULL, NULL, free_again);
}

static void find_steps(const AmpModel *model, const SynthAgain *ops, AmpAgain *again)
{
    const AmpSteps *steps = model->steps;
    const bool full = again->mode == RECOMPUTE_FULL;
    again->step = g_new0(bool, steps->step->len + 1);
    for (uint32_t i = 0; i < steps->first[model->n_layers]; i++) {
        const OpId op = g_array_index(steps->step, AmpStep, i).op;
        again->step[i] = full || (op != GRAPH_NONE && ops->op[op]);
    }
    again->like = g_new(uint32_t, model->n_layers);
    for (uint32_t l = 0; l < model->n_layers; l++) {
        const uint32_t p = steps->like[l];
        again->like[l] = p;
        for (uint32_t i = 0; i < steps->first[l + 1] - steps->first[l]; i++)
            if (again->step[steps->first[l] + i] != again->step[steps->first[p] + i])
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
