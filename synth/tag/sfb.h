/* Sufficient factor broadcasting (TAG, TPDS 2023, Sec. 4.2.3): which ops of a data-parallel group
 * all devices run on the whole batch, so that the gradients made by these ops need no all-reduce.
 * Part of synth's public interface, included by synth/synth.h.
 *
 * The paper solves one integer program per gradient:
 *
 *     min  sum_i compute_i a_i + sum_(j,i) broadcast_ji b_ji - sum_g saved_g a_g
 *     b_ji >= a_i - a_j,   all binary                                                    (1)
 *
 * a_i: op i is duplicated; b_ji: the tensor that i reads from j is broadcast, as j's result is in
 * parts. This is a minimum cut: with the duplicated ops on the side of the source, arcs of capacity
 * saved_g from the source to g, compute_i from i to the sink and broadcast_ji from i to j. All
 * gradients together are one cut too, in which shared costs are paid once. A tensor that several
 * duplicated ops read is broadcast once: it gets a node of its own between its readers (arcs that
 * cannot be cut) and its producer. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define SFB_NO_OP UINT32_MAX

/* Costs are seconds, or in any common unit, and not negative. */
typedef struct {
    uint32_t op, tensor;
} SfbRead;

typedef struct {
    uint32_t n_ops, n_tensors, n_reads;
    const double *compute; /* [op]: cost of duplicating it; INFINITY: impossible */
    /* [op]: cost of the all-reduces that duplicating it saves; 0: none */
    const double *saved;
    /* [tensor]: its op; SFB_NO_OP: all devices have the tensor whole */
    const uint32_t *producer;
    const double *broadcast; /* [tensor] */
    const SfbRead *read;     /* ops and the tensors they read; a pair may occur twice */
    /* a tensor is broadcast once per duplicated reader, as in the paper's program */
    bool each_reader;
} SfbProblem;

/* The least value of (1), at most 0; duplicated: out, [op], the fewest ops that attain it. */
double synth_sfb(const SfbProblem *problem, bool *duplicated);

/* The value of (1) for any choice of ops. */
double synth_sfb_value(const SfbProblem *problem, const bool *duplicated);
