/* Which layers are computed again (private to experiments). */
#ifndef KILTER_EXPERIMENTS_PLANNERS_AGAIN_H
#define KILTER_EXPERIMENTS_PLANNERS_AGAIN_H

#include "data/data.h"

/* The layers but for the first and the last one (all of up to two), those first whose recomputation
 * takes least time for each byte that it saves; equal ones as they come. *n of them; caller frees. */
uint32_t *again_order(const Graph *graph, uint32_t *n);

/* The option `recompute` for full recomputation of the first n_full of n layers in that order, and
 * `mode` ("none", "selective") for the rest; NULL for no recomputation at all. Interned. */
const char *again_text(const uint32_t *order, uint32_t n, uint32_t n_full,
                       const char *mode);

#endif
