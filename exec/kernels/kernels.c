/* The kernel of each op kind, by the op table. */
#include "exec/kernels/kernels.h"

static const Kernel KERNELS[OP_KINDS] = {
#define X(id, kernel, name, signature, linear, flops) kernel_##kernel,
    OP_TABLE(X)
#undef X
};

Kernel kernel_of(OpKind kind)
{
    g_assert(kind < OP_KINDS);
    return KERNELS[kind];
}
