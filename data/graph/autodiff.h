/* Differentiation of one op (private to data). */
#pragma once

#include "data/graph/build.h"

typedef struct {
    Graph *graph;
    bool *needed; /* [tensor]: it depends on a parameter */
    OpId op;      /* forward op being differentiated */
} Backward;

/* Appends the backward ops of `b->op`, whose outputs' gradients are complete. */
void differentiate_op(Backward *b);
