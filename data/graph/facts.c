/* Computes the facts of a graph from its ops and tensors. */
#include "data/graph/facts.h"
#include "data/base/assert.h"

/* The number of parameters of experts that a token, which goes to `top` experts, does not use. */
static uint64_t idle_parameters(const Graph *graph, const Op *op, uint32_t top)
{
    KILTER_ASSERT(top > 0);
    uint64_t idle = 0;
    for (uint32_t i = 0; i < op->n_in; i++) {
        const Tensor *tensor = graph_tensor(graph, op->in[i]);
        if (tensor->role == ROLE_PARAMETER && tensor->dim[0] > top)
            idle += tensor_elements(tensor) / tensor->dim[0] * (tensor->dim[0] - top);
    }
    return idle;
}

/* Labels of the loss, or its vectors; where these are not indices, samples. */
static uint64_t tokens_of_loss(const Graph *graph, const Op *op)
{
    if (op->kind == OP_OPAQUE_LOSS)
        return graph_tensor(graph, op->in[0])->dim[0];
    const Tensor *labels = graph_tensor(graph, op->in[1]);
    return op->kind == OP_SIGMOID_LOSS ? labels->dim[0]
           : op->kind == OP_SQUARE_LOSS
               ? tensor_elements(labels) / labels->dim[labels->rank - 1]
               : tensor_elements(labels);
}

GraphFacts graph_facts(const Graph *graph)
{
    GraphFacts facts = {.parameters = graph_parameter_count(graph)};
    uint32_t top = 0;
    uint64_t idle = 0, looked_up = 0;
    ops_each (op, id, graph) {
        if (op->pass != PASS_FORWARD)
            continue;
        const uint32_t experts = op_experts_of_token(op->kind, &op->attr);
        top = experts ? experts : top;
        if (op->kind == OP_EXPERT || op->kind == OP_EXPERT_PAIR ||
            op->kind == OP_EXPERT_BIAS)
            idle += idle_parameters(graph, op, top);
        if (op->kind == OP_APPEND_TOKEN)
            looked_up = (uint64_t)graph_tensor(graph, op->out[0])->dim[0] *
                        graph_tensor(graph, op->out[0])->dim[1];
        if (op->kind == OP_EMBEDDING && looked_up == 0)
            looked_up = tensor_elements(graph_tensor(graph, op->in[0]));
        if (graph_tensor(graph, op->out[0])->role == ROLE_LOSS)
            facts.tokens = tokens_of_loss(graph, op);
        /* labels of noise say what a sample is, not its tokens */
        if (op->kind == OP_SQUARE_LOSS)
            looked_up = 0;
        facts.forward_flops += graph_op_flops(graph, id);
    }
    for (uint32_t i = 0; i < graph_n_layers(graph); i++)
        facts.layers += g_str_has_prefix(graph_layer_name(graph, i), "layers.");
    facts.layers = facts.layers ? facts.layers : graph_n_layers(graph);
    facts.tokens = looked_up ? looked_up : facts.tokens;
    facts.active_parameters = facts.parameters - idle;
    return facts;
}
