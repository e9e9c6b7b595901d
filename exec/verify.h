/* The numeric proof of a plan: what its program computes on all ranks is what the single-device
 * graph computes. */
#ifndef KILTER_EXEC_VERIFY_H
#define KILTER_EXEC_VERIFY_H

#include "exec/replay.h"

typedef struct {
    uint32_t
        n_tensors; /* compared: the loss, gradients of parameters, next parameters and optimizer states */
    uint32_t n_zero; /* of them zero everywhere, which proves little */
    double error;    /* largest relative error of them */
    char *where;     /* the instance that has it, "fc.weight.grad|identity" */
    uint32_t rank;   /* and where it lies; 0 of partial sums */
    bool right;      /* every error is within the tolerance */
    /* NULL, or the first tensor in program order that is wrong, also one in between, */
    char *wrong_tensor;
    char *wrong_instr; /* and the instruction that made it */
} ExecVerdict;

/* Runs both on the same random values. Of a tensor in form Identity every rank's replica is
 * compared, in form Gather every shard with its place in the whole tensor, in form Reduce the sum.
 * Errors are relative to the tensor's largest element, or to 1/1000 of the largest one of all
 * tensors of its role if that is more (a gradient that is zero but for rounding). A plan whose
 * program cannot be run, or lacks a result, is KILTER_ERROR_FAILED; one that computes something
 * else is no error here: see verdict->right. */
bool exec_verify(ExecBackend *backend, const Plan *plan, const Graph *graph,
                 uint64_t seed, double tolerance, ExecVerdict *verdict, GError **error);
void exec_verdict_clear(ExecVerdict *verdict);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ExecVerdict, exec_verdict_clear)

/* A plan for the shrunk model: the same program and ratios, no splits, so that replays round anew.
 * `random` as in exec_shrink. *small gets the graph. */
Plan *exec_shrink_plan(const Plan *plan, const Graph *graph, GRand *random, Graph **small,
                       GError **error);

#endif
