/* Reading an op's iteration space off its signature (private to data). */
#pragma once

#include "data/graph/graph.h"

typedef struct {
    uint32_t rank;
    uint32_t dim[TENSOR_MAX_RANK];
} Shape;

/* Binds the signature of `kind` to the shapes of its `n_in` inputs. Fills `space` (units 1) and the
 * shapes of the outputs; extents such as "P=7,Q=7" set output letters that no input sets, or that
 * differ from the input's. Returns the number of outputs. Shapes that do not fit the signature are
 * programming errors and abort. */
uint32_t space_bind(OpKind kind, uint32_t n_in, const Shape *in, const char *extents,
                    OpSpace *space, Shape out[OP_MAX_OUT]);

/* The part of the pairs of queries and keys of `space` that attention with these constants
 * computes; 1 for kinds that compute masked scores as well. */
double space_visible(OpKind kind, const OpAttr *attr, const OpSpace *space);

/* The sum of the flops terms of `kind`; with loop >= 0 only of the terms that name that loop. */
double space_flops(OpKind kind, const OpSpace *space, int loop);
