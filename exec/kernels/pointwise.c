/* Elementwise ops. */
#include <math.h>
#include <string.h>

#include "exec/kernels/kernels.h"
#include "exec/kernels/mask.h"
#include "exec/kernels/vector.h"

/* y = x Phi(x), Phi the normal distribution function (Hendrycks and Gimpel 2016, the
 * exact form). */
void kernel_gelu(const KernelCall *call)
{
    g_assert(call->op->n_out == 1);
    const double *x = call->in[0].data;
    double *y = call->out[0].data;
    const uint64_t n = exec_tensor_elements(&call->out[0]);
    for (uint64_t i = 0; i < n; i++)
        y[i] = 0.5 * x[i] * (1 + erf(x[i] * M_SQRT1_2));
}

/* dx = dy (Phi(x) + x phi(x)), phi the normal density. */
void kernel_gelu_dx(const KernelCall *call)
{
    const double *dy = call->in[0].data, *x = call->in[1].data;
    double *dx = call->out[0].data;
    const uint64_t n = exec_tensor_elements(&call->out[0]);
    for (uint64_t i = 0; i < n; i++) {
        const double distribution = 0.5 * (1 + erf(x[i] * M_SQRT1_2));
        const double density = exp(-0.5 * x[i] * x[i]) / sqrt(2 * M_PI);
        dx[i] = dy[i] * (distribution + x[i] * density);
    }
}

void kernel_relu(const KernelCall *call)
{
    const double *x = call->in[0].data;
    double *y = call->out[0].data;
    const uint64_t n = exec_tensor_elements(&call->out[0]);
    for (uint64_t i = 0; i < n; i++)
        y[i] = x[i] > 0 ? x[i] : 0;
}

/* dx = dy where x > 0, or where y = relu(x) > 0, which is the same: the derivative at
 * 0 is 0. */
void kernel_relu_dx(const KernelCall *call)
{
    const double *dy = call->in[0].data, *x = call->in[1].data;
    double *dx = call->out[0].data;
    const uint64_t n = exec_tensor_elements(&call->out[0]);
    for (uint64_t i = 0; i < n; i++)
        dx[i] = x[i] > 0 ? dy[i] : 0;
}

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

/* add: equal shapes; add_rows: the second operand repeats along the first's leading
 * dim. */
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

void kernel_tanh(const KernelCall *call)
{
    const uint64_t n = exec_tensor_elements(&call->out[0]);
    for (uint64_t i = 0; i < n; i++)
        call->out[0].data[i] = tanh(call->in[0].data[i]);
}

/* In: dy, y = tanh x. */
void kernel_tanh_dx(const KernelCall *call)
{
    const uint64_t n = exec_tensor_elements(&call->out[0]);
    const double *dy = call->in[0].data, *y = call->in[1].data;
    for (uint64_t i = 0; i < n; i++)
        call->out[0].data[i] = dy[i] * (1 - y[i] * y[i]);
}

void kernel_scale(const KernelCall *call)
{
    add_scaled(call->out[0].data, call->op->attr.scale, call->in[0].data,
               exec_tensor_elements(&call->out[0]));
}

/* loss = sum of (x - t)^2 / 2. In: x, t [*]. */
void kernel_square_loss(const KernelCall *call)
{
    const uint64_t n = exec_tensor_elements(&call->in[0]);
    for (uint64_t i = 0; i < n; i++) {
        const double rest = call->in[0].data[i] - call->in[1].data[i];
        call->out[0].data[0] += rest * rest / 2;
    }
}

/* In: dloss (a scalar), x, t. */
void kernel_square_loss_dx(const KernelCall *call)
{
    const uint64_t n = exec_tensor_elements(&call->out[0]);
    for (uint64_t i = 0; i < n; i++)
        call->out[0].data[i] =
            call->in[0].data[0] * (call->in[1].data[i] - call->in[2].data[i]);
}
