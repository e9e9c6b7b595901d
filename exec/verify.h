/* The numeric proof of a plan: its program on all ranks computes the same values as the
 * single-device graph. */
#pragma once

#include "exec/replay.h"
#include "exec/theory.h"

/* Allowed relative errors: of float64 (roundings grow with each layer, to 6e-10 in the 48 of
 * Qwen3-Next), of float32, and of tensors kept in two bytes, where each rounding errs
 * by up to 0.0005 (fp16) or 0.004 (bf16) of a number. There the error is the root of the mean
 * square, as some numbers fall on the other side of a kink. */
#define EXEC_DEEP_TOLERANCE   1e-8
#define EXEC_SINGLE_TOLERANCE 1e-4
#define EXEC_FP16_TOLERANCE   0.05
#define EXEC_BF16_TOLERANCE   0.15

double exec_tolerance(const ExecBackend *backend);

typedef struct {
    /* compared tensors: loss, gradients of parameters, next parameters and states */
    uint32_t n_tensors;
    uint32_t n_zero; /* how many of them are zero everywhere, which proves little */
    double error;    /* the largest relative error */
    char *where;     /* the instance with that error, such as "fc.weight.grad|identity" */
    uint32_t rank;   /* the rank that has it; 0 for partial sums */
    bool right;      /* every error is within the tolerance */
    /* of all experts that tokens are routed to: the fewest and the most tokens of a sequence that
     * choose one, its least slots, and the tokens that get none; slots = 0: there are none */
    uint32_t fewest, fullest, slots, dropped;
    /* NULL, or the first wrong tensor in program order, intermediate ones included, */
    char *wrong_tensor;
    char *wrong_instr; /* and the instruction that made it */
} ExecVerdict;

/* Runs plan and graph on the same random values. For a tensor in form Identity every rank's replica
 * is compared, in form Gather every shard with its place in the whole tensor, in form Reduce the
 * sum. Errors are relative to the tensor's largest element, or to 1/1000 of the largest one of all
 * tensors of its role if that is more (a gradient that is zero but for rounding).
 * KILTER_ERROR_FAILED if the program cannot be run or lacks a result; wrong numbers are no error
 * here, but make verdict->right false. */
bool exec_verify(ExecBackend *backend, const Plan *plan, const Graph *graph,
                 uint64_t seed, double tolerance, ExecVerdict *verdict, GError **error);
AUTOCLEAR(exec_verdict_clear, ExecVerdict)

/* A plan for the shrunk model: the same program and ratios, but no splits, so that replays round
 * anew, and neither time nor memory. `random` as in model_shrink. *small gets the graph. The
 * program is checked against its rules at both sizes, and the graphs differ in extents only
 * (exec_same_structure); else KILTER_ERROR_INPUT. Of the microbatches in the middle, which repeat
 * what others do, it has few. */
Plan *exec_shrink_plan(const Plan *plan, const Graph *graph, GRand *random, Graph **small,
                       GError **error);
