/* Whether an op fits its inputs: what builders assert and readers have to ask (private to data). */
#ifndef KILTER_DATA_GRAPH_CHECK_H
#define KILTER_DATA_GRAPH_CHECK_H

#include "data/graph/space.h"

/* NULL, or what is wrong with an op of that kind, constants, inputs and extents, by its signature and by
 * what ties its extents together. Caller frees. */
char *op_check(OpKind kind, const OpAttr *attr, uint32_t n_in, const Shape *in,
               const char *extents);

/* Whether graphs are made of the kind: not of the backward's and updates'. */
bool op_kind_is_forward(OpKind kind);

#endif
