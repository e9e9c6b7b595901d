/* The backward ops of a forward op (private to synth). */
#pragma once

#include "data/graph/graph.h"

/* The backward ops of forward op `op` in execution order, without accumulations; returns their
 * number. */
enum { MAX_BACKWARD = OP_MAX_IN };
uint32_t backward_ops(const Graph *graph, OpId op, OpId backward[MAX_BACKWARD]);

/* Whether a backward op's result takes memory beside the gradient that the op reads, because it may
 * not overwrite it. */
bool backward_makes_beside(const Graph *graph, OpId backward);
