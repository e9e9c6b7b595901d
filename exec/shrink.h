/* Shrunk models (model_shrink): whether one has kept its structure, and is small enough to run in
 * plain C. */
#pragma once

#include "data/graph/graph.h"

/* Whether two graphs differ in the extents of their tensors only, so that a program of one is a
 * program of the other. KILTER_ERROR_INPUT names the first difference. */
bool exec_same_structure(const Graph *a, const Graph *b, GError **error);

/* Elements of all tensors of a graph: of one that runs in seconds, and in a minute. */
#define EXEC_SECONDS 0x1p27
#define EXEC_MINUTE  0x1p30
/* Whether a graph has at most so many. Models shrink by their parameters; a graph read from a file
 * has none and must be small itself, else KILTER_ERROR_INPUT. */
bool exec_is_small(const Graph *graph, double most, GError **error);
