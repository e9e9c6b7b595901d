/* Weights that can be cut by columns, and the tensors that then stay cut (private to synth).
 *
 * A weight is a parameter with a loop that no other factor of its op has; such a loop makes columns
 * (features, heads, channels, vocabulary). A loop of the weight that all operands have counts
 * experts. */
#pragma once

#include "synth/spmd/forms.h"
#include "synth/spmd/spmd.h"

static inline bool is_activation(const Graph *graph, TensorId tensor)
{
    return graph_tensor(graph, tensor)->role == ROLE_ACTIVATION;
}

/* The rule over a dim of a weight: with `experts` the first dim that counts experts, else the first
 * that makes columns. If there are several, the first with a unit for each of `ways` devices. */
bool columns_rule(const Graph *graph, OpId id, bool experts, uint32_t ways, Rule *rule);

/* [tensor]: for each activation before the loss's op `loss`, the forms that all its readers absorb:
 * they read it cut, and so do the readers of their outputs, until the cut ends in partial sums (by
 * rows). Tensors that an op reads together (the queries and keys of attention) are cut together.
 * The caller frees the result. */
FormSet *columns_absorbed(const Graph *graph, OpId loss, uint32_t ways);
