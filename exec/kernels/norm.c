/* Normalisation over the last dim, which is whole: layer norm and log-softmax. */
#include <math.h>

#include "exec/kernels/kernels.h"

static uint64_t last_dim(const ExecTensor *tensor)
{
    g_assert(tensor->rank > 0);
    return tensor->dim[tensor->rank - 1];
}

/* Mean and 1 / standard deviation of the n numbers of a row. */
static void row_moments(const double *x, uint64_t n, double *mean, double *inverse)
{
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += x[i];
    *mean = sum / (double)n;
    for (uint64_t i = 0; i < n; i++)
        squares += (x[i] - *mean) * (x[i] - *mean);
    *inverse = 1 / sqrt(squares / (double)n + LAYER_NORM_EPSILON);
}

/* y = xhat gamma + beta, xhat = (x - mean) / sqrt(variance + epsilon). In: x[*,H],
 * gamma[H], beta[H]; a plain norm has neither. */
void kernel_layer_norm(const KernelCall *call)
{
    const bool plain = call->op->n_in == 1;
    const ExecTensor *x = &call->in[0];
    const double *gamma = plain ? NULL : call->in[1].data,
                 *beta = plain ? NULL : call->in[2].data;
    const uint64_t n = last_dim(x), rows = kernel_rows(x);
    for (uint64_t r = 0; r < rows; r++) {
        const double *from = x->data + r * n;
        double *y = call->out[0].data + r * n, mean, inverse;
        row_moments(from, n, &mean, &inverse);
        for (uint64_t i = 0; i < n; i++)
            y[i] = (from[i] - mean) * inverse * (plain ? 1 : gamma[i]) +
                   (plain ? 0 : beta[i]);
    }
}

/* With g = dy gamma: dx = (g - mean(g) - xhat mean(g xhat)) / sqrt(variance + epsilon).
 * In: dy[*,H], x[*,H], gamma[H] or none. */
void kernel_layer_norm_dx(const KernelCall *call)
{
    const ExecTensor *x = &call->in[1];
    const double *gamma = call->op->n_in > 2 ? call->in[2].data : NULL;
    const uint64_t n = last_dim(x), rows = kernel_rows(x);
    for (uint64_t r = 0; r < rows; r++) {
        const double *dy = call->in[0].data + r * n, *from = x->data + r * n;
        double *dx = call->out[0].data + r * n, mean, inverse, sum = 0, dot = 0;
        row_moments(from, n, &mean, &inverse);
        for (uint64_t i = 0; i < n; i++) {
            const double g = dy[i] * (gamma ? gamma[i] : 1);
            sum += g;
            dot += g * (from[i] - mean) * inverse;
        }
        for (uint64_t i = 0; i < n; i++) {
            const double xhat = (from[i] - mean) * inverse,
                         g = dy[i] * (gamma ? gamma[i] : 1);
            dx[i] = inverse * (g - sum / (double)n - xhat * dot / (double)n);
        }
    }
}

/* dgamma = sum of dy xhat, dbeta = sum of dy over the rows. In: dy[*,h], x[*,W]; h may be a slice
 * of the W features over which xhat is normalised. */
void kernel_layer_norm_dw(const KernelCall *call)
{
    const ExecTensor *dy = &call->in[0], *x = &call->in[1];
    const uint64_t n = last_dim(x), h = last_dim(dy), rows = kernel_rows(x);
    const uint64_t first = dy->offset[dy->rank - 1] - x->offset[x->rank - 1];
    g_assert(first + h <= n);
    double *dgamma = call->out[0].data, *dbeta = call->out[1].data;
    for (uint64_t r = 0; r < rows; r++) {
        const double *from = x->data + r * n;
        double mean, inverse;
        row_moments(from, n, &mean, &inverse);
        for (uint64_t i = 0; i < h; i++) {
            dgamma[i] += dy->data[r * h + i] * (from[first + i] - mean) * inverse;
            dbeta[i] += dy->data[r * h + i];
        }
    }
}

/* y = x - log(sum exp x) over the last dim. */
void kernel_log_softmax(const KernelCall *call)
{
    g_assert(call->op->n_in == 1);
    const ExecTensor *x = &call->in[0];
    const uint64_t n = last_dim(x), rows = kernel_rows(x);
    for (uint64_t r = 0; r < rows; r++) {
        const double *from = x->data + r * n;
        double *y = call->out[0].data + r * n, top = -INFINITY, sum = 0;
        for (uint64_t i = 0; i < n; i++)
            top = fmax(top, from[i]);
        for (uint64_t i = 0; i < n; i++)
            sum += exp(from[i] - top);
        for (uint64_t i = 0; i < n; i++)
            y[i] = from[i] - top - log(sum);
    }
}

/* dx = dy - exp(y) sum(dy), y the output of log_softmax. In: dy[*,V], y[*,V]. */
void kernel_log_softmax_dx(const KernelCall *call)
{
    const ExecTensor *y = &call->in[1];
    const uint64_t n = last_dim(y), rows = kernel_rows(y);
    for (uint64_t r = 0; r < rows; r++) {
        const double *dy = call->in[0].data + r * n, *from = y->data + r * n;
        double *dx = call->out[0].data + r * n, sum = 0;
        for (uint64_t i = 0; i < n; i++)
            sum += dy[i];
        for (uint64_t i = 0; i < n; i++)
            dx[i] = dy[i] - exp(from[i]) * sum;
    }
}
