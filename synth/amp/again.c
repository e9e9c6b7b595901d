/* The steps that the backward runs again by a mode of recomputation, and the bytes that
 * are not kept in the meantime. */
#include <math.h>

#include "synth/amp/steps.h"
#include "synth/pipeline/pipeline.h"

static void free_again(void *data)
{
    AmpAgain *again = data;
    g_free(again->when);
    g_free(again->like);
    g_free(again->less);
    g_free(again);
}

GHashTable *amp_agains_new(void)
{
    return g_hash_table_new_full(NULL, NULL, NULL, free_again);
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

/* Marks the ops that run again for an op, and those that run again for these. */
static void mark(const AmpModel *model, const SynthAgain *ops, OpId id, bool *early)
{
    const Op *op = graph_get_op(model->graph, id);
    TensorId beside;
    if (op->pass == PASS_BACKWARD && op->of != GRAPH_NONE && ops->op[op->of] &&
        !early[op->of] && graph_op_kept_bytes(model->graph, op->of, &beside) > 0) {
        early[op->of] = true;
        mark(model, ops, op->of, early);
    }
    for (uint32_t k = 0; k < op->n_in; k++) {
        const OpId by = graph_tensor(model->graph, op->in[k])->producer;
        if (!ops->drop[op->in[k]] || early[by] ||
            graph_get_op(model->graph, by)->layer != op->layer)
            continue;
        early[by] = true;
        mark(model, ops, by, early);
    }
}

/* The ops [op] that run again before their layer's backward waits: those for its ops up to the
 * first one that reads a gradient of the next layer. Caller frees. */
static bool *find_early(const AmpModel *model, const SynthAgain *ops)
{
    const AmpSteps *steps = model->steps;
    bool *early = g_new0(bool, graph_n_ops(model->graph) + 1);
    for (uint32_t l = 0; l < model->n_layers; l++) {
        const uint32_t *first = &steps->first[AMP_BACKWARD * model->n_layers + l];
        bool waits = false;
        for (uint32_t i = first[0]; i < first[1] && !waits; i++) {
            const OpId op = g_array_index(steps->step, AmpStep, i).op;
            if (op == GRAPH_NONE)
                continue;
            waits = waits_for_layer(model->graph, graph_get_op(model->graph, op));
            mark(model, ops, op, early);
        }
    }
    return early;
}

/* A whole layer, or a module, runs again as soon as one of its ops is needed: [layer], whether that
 * is early. Caller frees. */
static bool *join_modules(const AmpModel *model, const SynthAgain *ops, bool *early)
{
    const uint32_t n = graph_n_ops(model->graph);
    bool *whole = g_new0(bool, model->n_layers + 1);
    for (OpId id = 0; id < n; id++)
        whole[graph_get_op(model->graph, id)->layer] |= early[id] && ops->module[id];
    for (OpId id = 0; id < n; id++)
        early[id] |= ops->module[id] && whole[graph_get_op(model->graph, id)->layer];
    return whole;
}

static void find_steps(const AmpModel *model, const SynthAgain *ops, AmpAgain *again)
{
    const AmpSteps *steps = model->steps;
    const bool full = again->mode == RECOMPUTE_FULL;
    g_autofree bool *early = find_early(model, ops),
                    *whole = join_modules(model, ops, early);
    again->when = g_new(AmpWhen, steps->step->len + 1);
    for (uint32_t i = 0; i < steps->first[model->n_layers]; i++) {
        const AmpStep *step = &g_array_index(steps->step, AmpStep, i);
        const bool is_op = step->op != GRAPH_NONE;
        const bool soon = full ? whole[step->layer] : is_op && early[step->op];
        again->when[i] = !full && !(is_op && ops->op[step->op]) ? AMP_NEVER
                         : soon                                 ? AMP_EARLY
                                                                : AMP_LATE;
    }
    again->like = g_new(uint32_t, model->n_layers);
    for (uint32_t l = 0; l < model->n_layers; l++) {
        const uint32_t p = steps->like[l];
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
