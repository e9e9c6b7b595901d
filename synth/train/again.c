/* Which layers are recomputed: the memory that each saves, and the time that it takes.
 *
 * Full recomputation of a layer keeps the layer's inputs and repeats its forward pass. Equal layers
 * save the same memory and take the same time, so the fewest layers that make a plan fit are the
 * best choice. Among different layers those with the least time per byte come first, as in the
 * greedy solution of a knapsack, which is at most one layer worse than the best. Times are
 * estimated from FLOPs, regardless of the sharding. */
#include "synth/train/again.h"
#include "data/base/order.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    uint32_t layer;
    double flops, bytes;
} Layer;

enum { READ_BACKWARD = 1, READ_BEYOND = 2 };

/* For each tensor: whether a backward op reads it, and whether a forward op of another layer does.
 * Caller frees. */
static uint8_t *readers(const Graph *graph)
{
    uint8_t *read = g_new0(uint8_t, graph_n_tensors(graph));
    ops_each (op, id, graph) {
        for (uint32_t i = 0; i < op->n_in; i++) {
            const OpId by = graph_tensor(graph, op->in[i])->producer;
            if (op->pass == PASS_BACKWARD)
                read[op->in[i]] |= READ_BACKWARD;
            else if (op->pass == PASS_FORWARD && by != GRAPH_NONE &&
                     graph_get_op(graph, by)->layer != op->layer)
                read[op->in[i]] |= READ_BEYOND;
        }
    }
    return read;
}

static double again_bytes_of(const Graph *graph, TensorId tensor)
{
    const Tensor *t = graph_tensor(graph, tensor);
    return (double)tensor_elements(t) * dtype_bytes(t->dtype);
}

/* The bytes of the op's outputs that the backward pass reads and no other layer does. */
static double saved_by(const Graph *graph, const uint8_t *read, OpId id)
{
    const Op *op = graph_get_op(graph, id);
    TensorId beside;
    const uint32_t kept = graph_op_kept_bytes(graph, id, &beside);
    double bytes = kept ? (double)tensor_elements(graph_tensor(graph, beside)) * kept : 0;
    for (uint32_t o = 0; o < op->n_out; o++)
        if (read[op->out[o]] == READ_BACKWARD)
            bytes += again_bytes_of(graph, op->out[o]);
    return bytes;
}

static ORDER_DEFINE(compare_layers, Layer,
                    (x->flops * y->bytes > y->flops * x->bytes) -
                        (x->flops * y->bytes < y->flops * x->bytes),
                    ASCENDING(layer));

uint32_t *again_order(const Graph *graph, uint32_t *n)
{
    const uint32_t n_layers = graph_n_layers(graph), ends = n_layers > 2;
    g_autofree Layer *layer = g_new0(Layer, n_layers);
    g_autofree uint8_t *read = readers(graph);
    for (uint32_t l = 0; l < n_layers; l++)
        layer[l].layer = l;
    ops_each (op, id, graph) {
        if (op->pass != PASS_FORWARD)
            continue;
        layer[op->layer].flops += graph_op_flops(graph, id);
        layer[op->layer].bytes += saved_by(graph, read, id);
    }
    *n = n_layers - 2 * ends;
    qsort(layer + ends, *n, sizeof *layer, compare_layers);
    uint32_t *order = g_new(uint32_t, *n + 1);
    for (uint32_t k = 0; k < *n; k++)
        order[k] = layer[ends + k].layer;
    return order;
}

const char *again_text(const uint32_t *order, uint32_t n, uint32_t n_full,
                       const char *mode)
{
    g_assert(n_full <= n);
    const bool is_none = strcmp(mode, "none") == 0;
    const uint32_t most = most_over(uint32_t, k, n, 0, order[k]);
    g_autofree bool *full = g_new0(bool, most + 2), *in = g_new0(bool, most + 2);
    for (uint32_t k = 0; k < n; k++) {
        in[order[k]] = true;
        full[order[k]] = k < n_full;
    }
    g_autoptr(GString) text = g_string_new("");
    for (uint32_t l = 0, end; l <= most; l = end) {
        for (end = l + 1; end <= most && in[end] == in[l] && full[end] == full[l];)
            end++;
        if (in[l] && (full[l] || !is_none))
            g_string_append_printf(text, "%s%s@%u-%u", text->len ? " " : "",
                                   full[l] ? "full" : mode, l, end - 1);
    }
    return text->len ? g_intern_string(text->str) : NULL;
}
