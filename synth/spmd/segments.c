/* Prices at ratios that differ by segment (HAP Sec. 5.2): the shares of every class in every
 * segment, and the segments between which a tensor crosses. */
#include "synth/spmd/price_parts.h"

/* Whether a class with its shares is never faster than another. */
static bool covers(uint32_t n, const Coefficients *a, const double *a_share,
                   const Coefficients *b, const double *b_share)
{
    if (!coefficients_cover(a, b))
        return false;
    return !any_of(k, n, a_share[k * PRICE_MAX_CLASSES] < b_share[k]);
}

/* Adds the class of a device at its shares [n], unless a kept one is never faster or there are as
 * many as can be kept. */
static void add_class(Pricer *pricer, const Device *device, const double *share)
{
    const Coefficients class = coefficients_of(device, 1);
    PriceSegments *s = &pricer->segments;
    for (uint32_t h = 0; h < pricer->n_classes; h++)
        if (covers(s->n, &pricer->class[h], s -> share + h, &class, share))
            return;
    if (pricer->n_classes == PRICE_MAX_CLASSES) {
        pricer->exact = false;
        return;
    }
    for (uint32_t k = 0; k < s->n; k++)
        s->share[k * PRICE_MAX_CLASSES + pricer->n_classes] = share[k];
    pricer->class[pricer->n_classes++] = class;
}

/* The segment that cuts a tensor as it is first there: that of the op that makes it or, for
 * parameters, of the op that updates it. UINT32_MAX: neither. */
static uint32_t maker_of(const Pricer *pricer, TensorId tensor)
{
    const Tensor *t = graph_tensor(pricer->graph, tensor);
    const TensorId made =
        t->role == ROLE_PARAMETER ? graph_updated(pricer->graph, tensor) : tensor;
    const OpId producer =
        made == GRAPH_NONE ? GRAPH_NONE : graph_tensor(pricer->graph, made)->producer;
    return producer == GRAPH_NONE ? UINT32_MAX : pricer->segments.of[producer];
}

/* Finds where each tensor is made, and which other segment reads it first. */
static void find_crossings(Pricer *pricer)
{
    const Graph *graph = pricer->graph;
    PriceSegments *s = &pricer->segments;
    s->made = g_new(uint16_t, graph_n_tensors(graph));
    s->read = g_new(uint16_t, graph_n_tensors(graph));
    g_autofree bool *known = g_new0(bool, graph_n_tensors(graph));
    for (TensorId t = 0; t < graph_n_tensors(graph); t++) {
        const uint32_t maker = maker_of(pricer, t);
        known[t] = maker != UINT32_MAX;
        s->made[t] = s->read[t] = (uint16_t)(known[t] ? maker : 0);
    }
    ops_each (op, id, graph) {
        values_at (const TensorId, t, i, op->in, op->n_in) {
            if (!known[t])
                s->made[t] = s->read[t] = s->of[id];
            else if (s->made[t] == s->read[t])
                s->read[t] = s->of[id];
            known[t] = true;
        }
    }
}

void pricer_set_segments(Pricer *pricer, const uint16_t *segment, uint32_t n,
                         const double *ratio)
{
    g_assert(n > 0 && pricer->n_units == 0 && g_hash_table_size(pricer->alike) == 0);
    const ClusterView *view = pricer->view;
    PriceSegments *s = &pricer->segments;
    *s = (PriceSegments){.n = n, .of = segment};
    s->share = g_new0(double, (gsize)n *PRICE_MAX_CLASSES);
    s->largest = g_new0(double, n);
    g_autofree double *share = g_new(double, n);
    pricer->n_classes = 0;
    for (uint32_t j = 0; j < view->n_devices; j++) {
        for (uint32_t k = 0; k < n; k++) {
            share[k] = ratio[(gsize)k * view->n_devices + j];
            if (share[k] > s->largest[k])
                s->largest[k] = share[k];
        }
        add_class(pricer, &view->device[j], share);
    }
    find_crossings(pricer);
}

bool price_is_foreign(const Pricer *pricer, TensorId tensor, OpId reader)
{
    const OpId producer = graph_tensor(pricer->graph, tensor)->producer;
    return pricer->segments.n > 0 && producer != GRAPH_NONE &&
           pricer->segments.of[producer] != pricer->segments.of[reader];
}

void price_describe_segments(const Pricer *pricer, TensorId tensor, GString *key)
{
    if (tensor == GRAPH_NONE)
        return;
    KILTER_ASSERT(pricer->segments.n > 0 && tensor < graph_n_tensors(pricer->graph));
    const uint16_t seen[] = {pricer->segments.made[tensor],
                             pricer->segments.read[tensor]};
    g_string_append_len(key, (const char *)seen, sizeof seen);
}
