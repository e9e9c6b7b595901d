/* Kernels of the CUDA backend: one per op kind, on whole tensors or on shards, in float32 or
 * float64 (private to exec). The float32 ones read and write tensors of two bytes as well
 * (launch.cuh).
 *
 * As in exec/kernels/kernels.h a kernel reads the shapes and offsets of its operands and never the
 * devices or the rule. Outputs may hold anything on entry. Every row of the op table has a kernel
 * (kernels.c). */
#pragma once

#ifdef __cplusplus
#include <glib.h> /* before extern "C", as it has templates */
extern "C" {
#endif

#include "exec/backend.h"
#include "exec/cuda/queue.h"
#include "exec/kernels/kernels.h"

typedef struct {
    CudaQueue *queue;
    const Graph *graph;
    OpId id;
    const Op *op;
    const ExecShard *in, *out;
} CudaCall;

typedef void (*CudaKernel)(const CudaCall *call);

/* The kernel of a kind. */
CudaKernel cuda_kernel_of(OpKind kind);

/* The kernels that the op table names, in the .cu files. */
#define X(id, kernel, name, signature, linear, flops) \
    void cuda_##kernel(const CudaCall *call);
OP_TABLE(X)
#undef X

/* Copies or adds the part of the whole tensor that both shards cover (boxes.cu); both lie on the
 * queue's GPU. */
void cuda_copy_overlap(CudaQueue *queue, const ExecShard *from, const ExecShard *to);
void cuda_add_overlap(CudaQueue *queue, const ExecShard *from, const ExecShard *to);

#ifdef __cplusplus
}
#endif
