/* The class token: x[b,S,h] with a token[h] in front is y[b,T,h], T = S + 1. */
#include <string.h>

#include "exec/kernels/kernels.h"

/* Copies n rows of each sample, from row `first` of [b,T,h] to row `place` of another such tensor.
 * [b,h] has one row per sample, and [h] the same one for all. */
static void copy_rows(const ExecTensor *from, uint64_t first, const ExecTensor *to,
                      uint64_t place, uint64_t n)
{
    const uint64_t h = to->dim[to->rank - 1],
                   all = from->rank == 3 ? from->dim[1] : from->rank - 1,
                   room = to->rank == 3 ? to->dim[1] : 1;
    for (uint64_t b = 0; b < to->dim[0]; b++)
        memcpy(to->data + (b * room + place) * h, from->data + (b * all + first) * h,
               n * h * sizeof(double));
}

void kernel_append_token(const KernelCall *call)
{
    const ExecTensor *x = &call->in[0], *y = &call->out[0];
    g_assert(y->dim[1] == x->dim[1] + 1);
    copy_rows(&call->in[1], 0, y, 0, 1);
    copy_rows(x, 0, y, 1, x->dim[1]);
}

/* dx[b,S,h] of append_token from dy[b,T,h]: all rows but the first. */
void kernel_drop_token(const KernelCall *call)
{
    g_assert(call->in[0].dim[1] == call->out[0].dim[1] + 1);
    copy_rows(&call->in[0], 1, &call->out[0], 0, call->out[0].dim[1]);
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
KERNEL(take_token, copy_rows(&call->in[0], 0, &call->out[0], 0, 1))

/* dx[b,T,h] of take_token from dy[b,h]: zero but for the first row. */
KERNEL(pad_token, copy_rows(&call->in[0], 0, &call->out[0], 0, 1))
