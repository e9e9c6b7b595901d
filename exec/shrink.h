/* Shrunk models: the structure of a model (layers, ops, names) with dims small enough to run in
 * plain C. */
#ifndef KILTER_EXEC_SHRINK_H
#define KILTER_EXEC_SHRINK_H

#include "data/data.h"

/* The spec of `canonical` (a model with every parameter) with small sizes, large enough, where that
 * is affordable, that uneven ratios over `n_devices` cut them unevenly. `random`, if not NULL,
 * varies the sizes. Sizes that are already small stay. The batch stays a multiple of
 * `n_microbatches`. The caller frees the spec. */
char *exec_shrink(const char *canonical, uint32_t n_devices, uint32_t n_microbatches,
                  GRand *random);

/* Whether two graphs differ in the extents of their tensors only, so that a program of one is a
 * program of the other. KILTER_ERROR_INPUT names the first difference. */
bool exec_same_structure(const Graph *a, const Graph *b, GError **error);

/* Whether a graph can be run in float64. Models shrink by their parameters; a graph read from a
 * file has none and must be small itself, else KILTER_ERROR_INPUT. */
bool exec_is_small(const Graph *graph, GError **error);

#endif
