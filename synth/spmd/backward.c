/* The backward ops of a forward op. */
#include "synth/spmd/backward.h"

static bool is_accumulation(const Graph *graph, OpId op, OpId candidate)
{
    return any_of(i, graph_get_op(graph, op)->n_in,
                  graph_accumulation(graph, op, i) == candidate);
}

uint32_t backward_ops(const Graph *graph, OpId op, OpId backward[MAX_BACKWARD])
{
    uint32_t n = 0;
    const Op *forward = graph_get_op(graph, op);
    for (uint32_t i = 0; i < forward->n_in; i++) {
        TensorId contribution = graph_contribution(graph, op, i);
        if (contribution == GRAPH_NONE)
            continue;
        OpId producer = graph_tensor(graph, contribution)->producer;
        bool ours = producer != GRAPH_NONE && graph_get_op(graph, producer)->of == op &&
                    !is_accumulation(graph, op, producer);
        for (uint32_t k = 0; k < n; k++)
            ours &= backward[k] != producer;
        if (ours) {
            g_assert(n < MAX_BACKWARD);
            backward[n++] = producer;
        }
    }
    return n;
}

bool backward_makes_beside(const Graph *graph, OpId backward)
{
    KILTER_ASSERT(graph_get_op(graph, backward)->pass == PASS_BACKWARD);
    const Op *op = graph_get_op(graph, backward);
    return !op_kind_is_view(op->kind) &&
           !(op_kind_is_elementwise(op->kind) && op->n_out == 1);
}
