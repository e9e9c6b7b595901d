/* Root mean square norm (Zhang and Sennrich 2019): of whole rows, of rows of several groups with
 * weights of their own, or of the first elements of each row (the keys of a vector of keys and
 * values), while the other elements pass unchanged. */
#include <math.h>

#include "exec/kernels/kernels.h"

/* Rows of `width` elements of which the first `n` are normalised; row r has the weights of group r
 * % groups. */
typedef struct {
    uint64_t rows, width, n, groups;
} Rows;

/* gamma[n], or of group norm gamma[*,n] for x[b,s,*,n]. */
static Rows rows_of(const ExecTensor *x, const ExecTensor *gamma)
{
    return (Rows){.rows = kernel_rows(x),
                  .width = x->dim[x->rank - 1],
                  .n = gamma->dim[gamma->rank - 1],
                  .groups = kernel_rows(gamma)};
}

/* 1 / sqrt(mean of squares + epsilon). */
static double row_inverse(const double *x, uint64_t n)
{
    double squares = 0;
    for (uint64_t i = 0; i < n; i++)
        squares += x[i] * x[i];
    return 1 / sqrt(squares / (double)n + RMS_NORM_EPSILON);
}

/* y = x gamma / rms(x). In: x[*,H], gamma[H]; x[b,s,*,H], gamma[*,H]; or x[*,E], gamma[D]. */
void kernel_rms_norm(const KernelCall *call)
{
    const Rows n = rows_of(&call->in[0], &call->in[1]);
    for (uint64_t r = 0; r < n.rows; r++) {
        const double *x = call->in[0].data + r * n.width,
                     *gamma = call->in[1].data + r % n.groups * n.n;
        double *y = call->out[0].data + r * n.width;
        const double inverse = row_inverse(x, n.n);
        for (uint64_t i = 0; i < n.width; i++)
            y[i] = i < n.n ? x[i] * inverse * gamma[i] : x[i];
    }
}

/* With g = dy gamma: dx = (g - x mean(g x) / rms^2) / rms. In: dy, x, gamma. */
void kernel_rms_norm_dx(const KernelCall *call)
{
    const Rows n = rows_of(&call->in[1], &call->in[2]);
    for (uint64_t r = 0; r < n.rows; r++) {
        const double *dy = call->in[0].data + r * n.width,
                     *x = call->in[1].data + r * n.width,
                     *gamma = call->in[2].data + r % n.groups * n.n;
        double *dx = call->out[0].data + r * n.width, dot = 0;
        const double inverse = row_inverse(x, n.n);
        for (uint64_t i = 0; i < n.n; i++)
            dot += dy[i] * gamma[i] * x[i];
        const double slope = dot / (double)n.n * inverse * inverse;
        for (uint64_t i = 0; i < n.width; i++)
            dx[i] = i < n.n ? inverse * (dy[i] * gamma[i] - x[i] * slope) : dy[i];
    }
}

/* dgamma = sum over the rows of dy x / rms(x), of whole rows or of the first elements that gamma
 * has. */
static void norm_dw(const KernelCall *call, bool whole)
{
    const ExecTensor *dy = &call->in[0], *x = &call->in[1];
    const Rows n = rows_of(x, &call->out[0]);
    const uint64_t h = dy->dim[dy->rank - 1],
                   first = dy->offset[dy->rank - 1] - x->offset[x->rank - 1];
    for (uint64_t r = 0; r < n.rows; r++) {
        const double *from = x->data + r * n.width,
                     inverse = row_inverse(from, whole ? n.width : n.n);
        double *dgamma = call->out[0].data + r % n.groups * n.n;
        for (uint64_t i = 0; i < n.n; i++)
            dgamma[i] += dy->data[r * h + i] * from[first + i] * inverse;
    }
}

/* In: dy[*,h], x[*,W], of which h may be a slice. */
KERNEL(rms_norm_dw, norm_dw(call, true))

/* For gamma[D] of x[*,E], or for gamma[*,H] of groups. In: dy, x. */
KERNEL(key_norm_dw, norm_dw(call, false))

KERNEL(group_norm, kernel_rms_norm(call))
KERNEL(group_norm_dx, kernel_rms_norm_dx(call))
KERNEL(group_norm_dw, norm_dw(call, false))
