/* A stand-in for ops of a profile, whose mathematics nobody wrote down: a fixed function of each
 * sample that every element of its operands goes into, so that a program that communicates the
 * wrong part of one gives another result. With s the numbers that a sample keeps,
 *
 *     kept = tanh(wrapped weights + sum over the inputs of wrapped x),  y = wrapped kept
 *
 * where a row of m numbers is wrapped around n places: the mean of those whose place is the same
 * modulo m and n. The gradients need dy and kept alone. */
#include <math.h>

#include "exec/kernels/kernels.h"

/* Place i of the n_to that a row of n_from numbers is wrapped around, as a sum. Swapping n_from and
 * n_to gives the transposed map. */
static double wrapped(const double *from, uint64_t n_from, uint64_t i, uint64_t n_to)
{
    const uint64_t most = MAX(n_from, n_to);
    double sum = 0;
    for (uint64_t t = i; t < most; t += n_to)
        sum += from[t % n_from];
    return sum;
}

/* One over how many numbers meet in a place. */
static double mean(uint64_t n_from, uint64_t n_to)
{
    return n_from > n_to ? 1 / ceil((double)n_from / (double)n_to) : 1;
}

static double wrapped_mean(const double *from, uint64_t n_from, uint64_t i, uint64_t n_to)
{
    return mean(n_from, n_to) * wrapped(from, n_from, i, n_to);
}

/* The inputs from `first` on are rows of samples; what lies before are weights. */
static void opaque_run(const KernelCall *call, uint32_t first)
{
    ExecTensor *y = &call->out[0], *kept = &call->out[1];
    const uint64_t n_y = y->dim[1], n_kept = kept->dim[1];
    for (uint64_t b = 0; b < y->dim[0]; b++) {
        double *k = kept->data + b * n_kept;
        for (uint64_t s = 0; s < n_kept; s++) {
            double sum = 0;
            items_at (const ExecTensor, x, i, call->in, call->op->n_in) {
                const uint64_t n = x->dim[i < first ? 0 : 1];
                sum += wrapped_mean(x->data + (i < first ? 0 : b * n), n, s, n_kept);
            }
            k[s] = tanh(sum);
        }
        for (uint64_t o = 0; o < n_y; o++)
            y->data[b * n_y + o] = wrapped_mean(k, n_kept, o, n_y);
    }
}

/* In: x[b,.], ... Out: y[b,O], kept[b,S]. */
KERNEL(opaque, opaque_run(call, 0))

/* In: weights[P], x[b,.], ... */
KERNEL(opaque_weights, opaque_run(call, 1))

/* The gradient of place s of what goes into tanh. */
static double inner_gradient(const KernelCall *call, uint64_t b, uint64_t s)
{
    const uint64_t n_y = call->in[0].dim[1], n_kept = call->in[1].dim[1];
    const double k = call->in[1].data[b * n_kept + s];
    return mean(n_kept, n_y) * wrapped(call->in[0].data + b * n_y, n_y, s, n_kept) *
           (1 - k * k);
}

/* Adds the gradient of a row of n numbers. */
static void add_gradient(const KernelCall *call, uint64_t b, uint64_t n, double *to)
{
    const uint64_t n_kept = call->in[1].dim[1], most = MAX(n, n_kept);
    g_autofree double *inner = g_new(double, n_kept);
    for (uint64_t s = 0; s < n_kept; s++)
        inner[s] = mean(n, n_kept) * inner_gradient(call, b, s);
    for (uint64_t t = 0; t < most; t++)
        to[t % n] += inner[t % n_kept];
}

/* In: dy[b,O], kept[b,S]. Out: dx[b,.]. */
void kernel_opaque_dx(const KernelCall *call)
{
    ExecTensor *dx = &call->out[0];
    for (uint64_t b = 0; b < dx->dim[0]; b++)
        add_gradient(call, b, dx->dim[1], dx->data + b * dx->dim[1]);
}

/* Out: that of the weights[P], summed over the samples. */
void kernel_opaque_dw(const KernelCall *call)
{
    ExecTensor *dw = &call->out[0];
    for (uint64_t b = 0; b < call->in[0].dim[0]; b++)
        add_gradient(call, b, dw->dim[0], dw->data);
}

/* Half the sum of squares. In: x[b,A]. */
KERNEL_EACH(opaque_loss, in[0], out->data[0] += in[0].data[i] * in[0].data[i] / 2)

/* In: the gradient of the loss, x[b,A]. */
KERNEL_EACH(opaque_loss_dx, in[1], out->data[i] = in[0].data[0] * in[1].data[i])
