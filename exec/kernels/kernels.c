/* The kernel of each op kind, by the op table. */
#include "exec/kernels/kernels.h"

#define OP_HOST_KERNEL(id, kernel, name, signature, linear, flops) kernel_##kernel,
static const Kernel KERNELS[OP_KINDS] = {OP_TABLE(OP_HOST_KERNEL)};

Kernel kernel_of(OpKind kind)
{
    g_assert(kind < OP_KINDS);
    return KERNELS[kind];
}
