/* The CUDA kernel of each op kind, by the op table. */
#include "exec/cuda/kernels.h"

static const CudaKernel KERNELS[OP_KINDS] = {
#define X(id, kernel, name, signature, linear, flops) cuda_##kernel,
    OP_TABLE(X)
#undef X
};

CudaKernel cuda_kernel_of(OpKind kind)
{
    g_assert(kind < OP_KINDS);
    return KERNELS[kind];
}
