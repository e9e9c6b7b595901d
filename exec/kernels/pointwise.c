/* Elementwise ops; curves are in exec/kernels/gated.c. */
#include <math.h>
#include <string.h>

#include "exec/kernels/kernels.h"
#include "exec/kernels/mask.h"
#include "exec/kernels/vector.h"

/* y = x / (1 - rate) where the element is kept, by a mask that is the same on every
 * device and in the backward, which is the same op on dy. */
void kernel_dropout(const KernelCall *call)
{
    g_assert(call->op->attr.rate >= 0 && call->op->attr.rate < 1);
    const OpAttr *attr = &call->op->attr;
    const ExecTensor *x = &call->in[0];
    const uint32_t *whole = graph_tensor(call->graph, call->op->in[0])->dim;
    double *y = call->out[0].data;
    const uint64_t n = exec_tensor_elements(x);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t index = mask_index(x->rank, x->dim, x->offset, whole, i);
        const bool keep = mask_uniform(attr->seed, index) >= attr->rate;
        y[i] = keep ? x->data[i] / (1 - attr->rate) : 0;
    }
}

/* add: equal shapes; add_rows: the second operand repeats along the first's leading dim. */
void kernel_add(const KernelCall *call)
{
    g_assert(call->op->n_in == 2);
    const double *a = call->in[0].data, *b = call->in[1].data;
    double *y = call->out[0].data;
    const uint64_t n = exec_tensor_elements(&call->in[0]);
    const uint64_t period = exec_tensor_elements(&call->in[1]);
    for (uint64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i % period];
}

/* split and merge: the same elements in the same order under another shape. */
void kernel_copy(const KernelCall *call)
{
    const uint64_t n = exec_tensor_elements(&call->in[0]);
    g_assert(n == exec_tensor_elements(&call->out[0]));
    memcpy(call->out[0].data, call->in[0].data, n * sizeof(double));
}

KERNEL_EACH(tanh, out[0],
            out->data[i] = call->op->attr.sigmoid ? sigmoid_of(in[0].data[i]).value
                                                  : tanh(in[0].data[i]))

/* In: dy, y = tanh x, or the sigmoid. */
KERNEL_EACH(tanh_dx, out[0], const double y = in[1].data[i];
            out->data[i] = in[0].data[i] *
                           (call->op->attr.sigmoid ? y * (1 - y) : 1 - y * y))

void kernel_scale(const KernelCall *call)
{
    add_scaled(call->out[0].data, call->op->attr.scale, call->in[0].data,
               exec_tensor_elements(&call->out[0]));
}

/* loss = sum of (x - t)^2 / 2. In: x, t [*]. */
KERNEL_EACH(square_loss, in[0], const double rest = in[0].data[i] - in[1].data[i];
            out->data[0] += rest * rest / 2)

/* In: dloss (a scalar), x, t. */
KERNEL_EACH(square_loss_dx, out[0],
            out->data[i] = in[0].data[0] * (in[1].data[i] - in[2].data[i]))
