/* The class token: x[b,S,h] with a token[h] in front is y[b,T,h], T = S + 1. */
#include <string.h>

#include "exec/kernels/kernels.h"

void kernel_append_token(const KernelCall *call)
{
    const ExecTensor *x = &call->in[0], *token = &call->in[1], *y = &call->out[0];
    const uint64_t h = y->dim[2], row = h * sizeof(double);
    g_assert(y->dim[1] == x->dim[1] + 1);
    for (uint64_t b = 0; b < y->dim[0]; b++) {
        double *to = y->data + b * y->dim[1] * h;
        memcpy(to, token->data, row);
        memcpy(to + h, x->data + b * x->dim[1] * h, x->dim[1] * row);
    }
}

/* dx[b,S,h] of append_token from dy[b,T,h]: all rows but the first. */
void kernel_drop_token(const KernelCall *call)
{
    const ExecTensor *dy = &call->in[0], *dx = &call->out[0];
    const uint64_t h = dy->dim[2];
    g_assert(dy->dim[1] == dx->dim[1] + 1);
    for (uint64_t b = 0; b < dy->dim[0]; b++)
        memcpy(dx->data + b * dx->dim[1] * h, dy->data + (b * dy->dim[1] + 1) * h,
               dx->dim[1] * h * sizeof(double));
}

/* dtoken[h] of append_token: the first rows of dy[b,T,h], summed over b. */
void kernel_sum_token(const KernelCall *call)
{
    g_assert(call->in[0].rank == 3);
    const ExecTensor *dy = &call->in[0];
    const uint64_t h = dy->dim[2];
    for (uint64_t b = 0; b < dy->dim[0]; b++)
        for (uint64_t i = 0; i < h; i++)
            call->out[0].data[i] += dy->data[b * dy->dim[1] * h + i];
}

/* y[b,h] = x[b,0,h]. */
void kernel_take_token(const KernelCall *call)
{
    g_assert(call->in[0].rank == 3);
    const ExecTensor *x = &call->in[0];
    const uint64_t h = x->dim[2];
    for (uint64_t b = 0; b < x->dim[0]; b++)
        memcpy(call->out[0].data + b * h, x->data + b * x->dim[1] * h,
               h * sizeof(double));
}

/* dx[b,T,h] of take_token from dy[b,h]: zero but for the first row. */
void kernel_pad_token(const KernelCall *call)
{
    g_assert(call->out[0].rank == 3);
    const ExecTensor *dx = &call->out[0];
    const uint64_t h = dx->dim[2];
    for (uint64_t b = 0; b < dx->dim[0]; b++)
        memcpy(dx->data + b * dx->dim[1] * h, call->in[0].data + b * h,
               h * sizeof(double));
}
