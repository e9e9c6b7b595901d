/* The CUDA kernel of each op kind, by the op table. */
#include "exec/cuda/kernels.h"

#define OP_CUDA_KERNEL(id, kernel, name, signature, linear, flops) cuda_##kernel,
static const CudaKernel KERNELS[OP_KINDS] = {OP_TABLE(OP_CUDA_KERNEL)};

CudaKernel cuda_kernel_of(OpKind kind)
{
    g_assert(kind < OP_KINDS);
    return KERNELS[kind];
}
