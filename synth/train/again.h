/* Which layers are recomputed (private to synth). */
#pragma once

#include "data/graph/graph.h"

/* All layers but the first and the last one (all layers if there are at most two), ordered by the
 * time of recomputation per byte saved, the least first; equal ones in the model's order. *n: their
 * number. Caller frees. */
uint32_t *again_order(const Graph *graph, uint32_t *n);

/* The option `recompute` for full recomputation of the first n_full of n layers in that order, and
 * `mode` ("none", "selective") for the rest; NULL for no recomputation at all. Interned. */
const char *again_text(const uint32_t *order, uint32_t n, uint32_t n_full,
                       const char *mode);
