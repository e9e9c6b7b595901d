/* A contraction of two tensors as matrix products (private to exec):
 *
 *     out[b, m, n] = sum over k of x[b, m, k] y[b, k, n]
 *
 * where each of b, m, n, k stands for any number of the op's loops:
 *
 *     b   loops of x, y and out       m   of x and out
 *     n   of y and out                k   of x and y, summed over
 *
 * An operand whose dims are in this order, or with its last two groups swapped (a transpose, which
 * a matrix product does), can be used where it lies; others must be permuted into a copy. */
#pragma once

#include "exec/backend.h"

typedef struct {
    uint32_t n;
    uint8_t loop[OP_MAX_LOOPS];
    uint64_t size; /* product of extents */
} LoopGroup;

enum { GROUP_B, GROUP_M, GROUP_N, GROUP_K, GROUPS };

typedef struct {
    OpSpace space;
    uint64_t extent[OP_MAX_LOOPS];
    LoopGroup group[GROUPS];
    uint32_t x, y, out; /* operands: inputs, then outputs */
    int added;          /* the bias, whose dims are the last ones of the output, or -1 */
} Contraction;

/* Reads the contraction of these shards off the op's signature; false if the op is not a
 * contraction, or its bias has other dims. */
bool contraction_bind(const Graph *graph, OpId id, const ExecShard *in,
                      const ExecShard *out, Contraction *c);

/* How a tensor over the loops of some groups, in that order, lies in a shard's memory: for each
 * loop its extent, and by how many elements a step moves. */
typedef struct {
    uint32_t n;
    uint64_t extent[OP_MAX_LOOPS], stride[OP_MAX_LOOPS];
} LoopOrder;

/* The order of an operand read as matrices [b][rows][columns], where rows and columns are groups of
 * loops. */
LoopOrder contraction_order(const Contraction *c, uint32_t operand,
                            const ExecShard *shard, uint32_t rows, uint32_t columns);

/* Whether a row-major tensor would lie as the order does. */
bool loop_order_is_dense(const LoopOrder *order);
