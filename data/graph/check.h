/* Whether an op fits its inputs: builders assert it, readers have to check it (private to data). */
#pragma once

#include "data/graph/space.h"

/* NULL, or a text saying what is wrong with an op of that kind, constants, inputs and extents, by
 * its signature and the relations between its extents. The caller frees it. */
char *op_check(OpKind kind, const OpAttr *attr, uint32_t n_in, const Shape *in,
               const char *extents);

/* Whether builders may use the kind: it is not a kind of the backward or of updates. */
bool op_kind_is_forward(OpKind kind);

/* Whether the backward and the updates may give a tensor or an op such a name. */
bool graph_name_is_reserved(const char *name);
