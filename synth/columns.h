/* Which weights can be cut by columns, and what then stays cut (private to synth).
 *
 * A weight is a parameter with a loop that no other factor of its op has; such a loop makes columns
 * (features, heads, channels, vocabulary). A loop of the weight that all operands have counts experts. */
#ifndef KILTER_SYNTH_COLUMNS_H
#define KILTER_SYNTH_COLUMNS_H

#include "synth/forms.h"
#include "synth/synth.h"

static inline bool is_activation(const Graph *graph, TensorId tensor)
{
    return graph_tensor(graph, tensor)->role == ROLE_ACTIVATION;
}

/* The rule over the first dim of a weight that `experts` counts experts, else makes columns; where
 * there are several, over the first one that has a unit for each of `ways` devices. */
bool columns_rule(const Graph *graph, OpId id, bool experts, uint32_t ways, Rule *rule);

/* Of each activation before the loss's op `loss`, the forms in which all that read it absorb it: they
 * take it cut, and their own outputs, until the cut ends in partial sums (by rows). What an op reads
 * together (the queries and keys of attention) is cut together. Caller frees. */
FormSet *columns_absorbed(const Graph *graph, OpId loss, uint32_t ways);

#endif
