/* A graph as a file: the nodes of a model in the order in which it was built, from which backward
 * and updates follow. One JSON object:
 *
 *     {"format": {"name": "kilter-graph", "version": 1},
 *      "name": "two layers", "precision": "single", "optimizer": "adam",
 *      "nodes": [
 *        {"layer": "first"},
 *        {"input": "x", "dtype": "f32", "shape": [8, 4]},
 *        {"parameter": "w", "shape": [5, 4], "whole": [1]},
 *        {"op": "y", "kind": "linear", "in": ["x", "w"]},
 *        ...
 *        {"op": "loss", "kind": "nll_sum", "in": ["logp", "labels"]}]}
 *
 * Ops are rows of the op table (data/graph/op.h), with the constants of their kind as further keys
 * and `extents` for letters that no input fixes. An op's outputs are NAME, NAME.1, ... The last op
 * makes the loss. `whole` lists dims that are never sharded. With `seconds`, {"op": time, ...}, the
 * graph is a timed one; it may name backward and update ops, too, and ops that it leaves out take
 * no time. Opaque ops and those of their backward, NAME.d0, ..., NAME.dw, must have `times`, {"op":
 * {"device type": [[samples, seconds], ...]}} (data/graph/times.h).
 * graph_from_json(graph_to_json(g)) is g. */
#pragma once

#include "data/graph/graph.h"

#include <jansson.h>

/* The graph's JSON, a new reference. */
json_t *graph_to_json(const Graph *graph);

/* The graph, differentiated and sealed. NULL with KILTER_ERROR_INPUT, "FILE: nodes[12].in[1]: ...":
 * a key that is unknown or missing, an op that does not fit its inputs, more elements than 2^53, a
 * parameter that the loss does not depend on, ... */
Graph *graph_from_json(const char *file, const json_t *root, GError **error);
