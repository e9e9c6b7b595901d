/* Kernels of the reference backend: one per op kind, in float64, on whole tensors or on
 * shards.
 *
 * A kernel reads the shapes and offsets of its operands and never the devices or the
 * rule: what it computes on shards is the op restricted to those index ranges. Outputs
 * are zero on entry. Operands are row-major in the order of the kind's signature
 * (data/graph/op.h). */
#pragma once

#include "exec/tensor.h"

/* One call: `in` has op->n_in operands, `out` op->n_out. */
typedef struct {
    const Graph *graph;
    OpId id;
    const Op *op;
    const ExecTensor *in;
    ExecTensor *out;
} KernelCall;

typedef void (*Kernel)(const KernelCall *call);

/* The kernel of a kind. */
Kernel kernel_of(OpKind kind);

/* Added to the variance in layer norm (torch.nn.LayerNorm's default). */
#define LAYER_NORM_EPSILON 1e-5

/* Added to the mean square in RMS norm (the families' configurations have 1e-5 or 1e-6). */
#define RMS_NORM_EPSILON 1e-6

/* Added to the variance in batch norm (torch.nn.BatchNorm2d's default). */
#define BATCH_NORM_EPSILON 1e-5

/* Hyperparameters of the updates: the defaults of Adam (Kingma and Ba 2015, Algorithm
 * 1), at its first step; SGD uses the same rate. */
#define LEARNING_RATE 1e-3
#define ADAM_BETA1    0.9
#define ADAM_BETA2    0.999
#define ADAM_EPSILON  1e-8
#define ADAM_STEP     1
#define ADAMW_DECAY   0.01

/* Adafactor (Shazeer and Stern 2018, Sec. 7 and Algorithm 4): the moments' decay 1 - t^-0.8 at step
 * t = 2 (at the first step no moment is kept), what is added to squares, and where steps are
 * clipped. */
#define ADAFACTOR_BETA     0.42565082250148256
#define ADAFACTOR_EPSILON  1e-30
#define ADAFACTOR_CLIPPING 1.0

/* Lion (Chen et al. 2023, Algorithm 2) with its defaults, without decay; Muon (Jordan et al. 2024):
 * the coefficients of the steps of Newton and Schulz, how many, and momentum with Nesterov's
 * correction. */
#define LION_BETA1    0.9
#define LION_BETA2    0.99
#define MUON_A        3.4445
#define MUON_B        (-4.7750)
#define MUON_C        2.0315
#define MUON_STEPS    5
#define MUON_MOMENTUM 0.95
#define MUON_EPSILON  1e-7

/* A kernel that is a case of a function: KERNEL(gate_top1, gate(call, 1)). */
#define KERNEL(name, how)                      \
    void kernel_##name(const KernelCall *call) \
    {                                          \
        how;                                   \
    }

/* A kernel that takes a step for each element i of an operand: KERNEL_EACH(copy, in[0],
 * out->data[i] = in->data[i]). */
#define KERNEL_EACH(name, operand, step)                               \
    void kernel_##name(const KernelCall *call)                         \
    {                                                                  \
        const ExecTensor *const in = call->in, *const out = call->out; \
        const uint64_t n_elements = exec_tensor_elements(&operand);    \
        for (uint64_t i = 0; i < n_elements; i++) {                    \
            step;                                                      \
        }                                                              \
    }

/* Rows of the last dim: the product of the others. */
static inline uint64_t kernel_rows(const ExecTensor *tensor)
{
    return dims_elements(tensor->dim, 0, MAX(tensor->rank, 1) - 1);
}

/* Elements behind a place in the dims before `from`, those of a token of x[b,s,*] from dim 2 on. */
static inline uint64_t kernel_inner(const ExecTensor *tensor, uint32_t from)
{
    return dims_elements(tensor->dim, from, tensor->rank);
}

/* The kernels that the op table names. Several kinds may share a kernel, which is then declared
 * again. */
#define X(id, kernel, name, signature, linear, flops) \
    void kernel_##kernel(const KernelCall *call);
OP_TABLE(X)
#undef X
