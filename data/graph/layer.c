/* The layer of the model to which each tensor belongs. */
#include "data/base/assert.h"
#include "data/graph/graph.h"

/* Outputs of an op belong to its layer. */
static void note_made(const Op *op, uint32_t *layer)
{
    KILTER_ASSERT(op->n_out <= OP_MAX_OUT);
    for (uint32_t i = 0; i < op->n_out; i++)
        layer[op->out[i]] = op->layer;
}

/* A tensor that no op makes belongs to the first layer that reads it. */
static void note_read(const Graph *graph, const Op *op, uint32_t *layer)
{
    KILTER_ASSERT(op->n_in <= OP_MAX_IN);
    for (uint32_t i = 0; i < op->n_in; i++)
        if (graph_tensor(graph, op->in[i])->producer == GRAPH_NONE &&
            layer[op->in[i]] == GRAPH_NONE)
            layer[op->in[i]] = op->layer;
}

uint32_t *graph_tensor_layers(const Graph *graph)
{
    const uint32_t n = graph_n_tensors(graph);
    uint32_t *layer = g_new(uint32_t, n);
    for (TensorId t = 0; t < n; t++)
        layer[t] = GRAPH_NONE;
    ops_each (op, id, graph) {
        if (op->pass == PASS_UPDATE)
            continue;
        note_read(graph, op, layer);
        note_made(op, layer);
    }
    for (TensorId t = 0; t < n; t++) {
        TensorId of = t;
        while (layer[of] == GRAPH_NONE && graph_tensor(graph, of)->of != GRAPH_NONE)
            of = graph_tensor(graph, of)->of;
        layer[t] = layer[of] == GRAPH_NONE ? 0 : layer[of];
    }
    return layer;
}
