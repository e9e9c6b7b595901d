/* Scaled dot-product self-attention (Vaswani et al. 2017, Eq. 1), all heads of it:
 *
 *     P[b,h,q,.] = softmax over k of (Q[b,q,h,.] . K[b,k,h,.] / sqrt(D))
 *     y[b,q,h,.] = sum over k of P[b,h,q,k] V[b,k,h,.]
 *
 * over all k, or with `causal` over k <= q. Q, K, V are qkv[b,s,0..2,h,D]. Batch and heads
 * are independent, so shards of them are too. */
#include <math.h>

#include "exec/kernels/kernels.h"

/* Extents of one call, on this shard. */
typedef struct {
    uint64_t batch, seq, heads, size;
    double scale;
} Shape;

static Shape shape_of(const ExecTensor *qkv)
{
    g_assert(qkv->dim[2] == 3);
    return (Shape){qkv->dim[0], qkv->dim[1], qkv->dim[3], qkv->dim[4],
                   1 / sqrt((double)qkv->dim[4])};
}

/* First element of vector t (0 query, 1 key, 2 value) of position s in qkv[b,s,t,h,.]. */
static uint64_t at_qkv(const Shape *n, uint64_t b, uint64_t s, uint64_t t, uint64_t h)
{
    return (((b * n->seq + s) * 3 + t) * n->heads + h) * n->size;
}

/* First element of y[b,s,h,.]. */
static uint64_t at_y(const Shape *n, uint64_t b, uint64_t s, uint64_t h)
{
    return ((b * n->seq + s) * n->heads + h) * n->size;
}

static double dot(const double *a, const double *b, uint64_t n)
{
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add_scaled(double *to, double factor, const double *from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        to[i] += factor * from[i];
}

static void softmax_row(double *row, uint64_t n)
{
    double top = -INFINITY, sum = 0;
    for (uint64_t i = 0; i < n; i++)
        top = fmax(top, row[i]);
    for (uint64_t i = 0; i < n; i++)
        sum += row[i] = exp(row[i] - top);
    for (uint64_t i = 0; i < n; i++)
        row[i] /= sum;
}

/* In: qkv[b,Q,3,h,D]. Out: y[b,Q,h,D], P[b,h,Q,K]. */
void kernel_attention(const KernelCall *call)
{
    const Shape n = shape_of(&call->in[0]);
    const double *qkv = call->in[0].data;
    for (uint64_t b = 0; b < n.batch; b++)
        for (uint64_t h = 0; h < n.heads; h++)
            for (uint64_t q = 0; q < n.seq; q++) {
                double *row = call->out[1].data + ((b * n.heads + h) * n.seq + q) * n.seq;
                double *y = call->out[0].data + at_y(&n, b, q, h);
                const double *query = qkv + at_qkv(&n, b, q, 0, h);
                for (uint64_t k = 0; k < n.seq; k++)
                    row[k] =
                        call->op->attr.causal && k > q
                            ? -INFINITY
                            : n.scale * dot(query, qkv + at_qkv(&n, b, k, 1, h), n.size);
                softmax_row(row, n.seq);
                for (uint64_t k = 0; k < n.seq; k++)
                    add_scaled(y, row[k], qkv + at_qkv(&n, b, k, 2, h), n.size);
            }
}

/* Gradients of one query's row:
 *
 *     dP = dy . V, dS = P (dP - sum P dP), dQ = dS K, dK = dS Q, dV = P dy */
static void attention_row_dx(const Shape *n, uint64_t b, uint64_t h, uint64_t q,
                             const double *dy, const double *qkv, const double *p,
                             double *dqkv)
{
    const double *query = qkv + at_qkv(n, b, q, 0, h);
    double mean = 0;
    for (uint64_t k = 0; k < n->seq; k++)
        mean += p[k] * dot(dy, qkv + at_qkv(n, b, k, 2, h), n->size);
    for (uint64_t k = 0; k < n->seq; k++) {
        const double dp = dot(dy, qkv + at_qkv(n, b, k, 2, h), n->size);
        const double ds = n->scale * p[k] * (dp - mean);
        add_scaled(dqkv + at_qkv(n, b, q, 0, h), ds, qkv + at_qkv(n, b, k, 1, h),
                   n->size);
        add_scaled(dqkv + at_qkv(n, b, k, 1, h), ds, query, n->size);
        add_scaled(dqkv + at_qkv(n, b, k, 2, h), p[k], dy, n->size);
    }
}

/* In: dy[b,Q,h,D], qkv[b,Q,3,h,D], P[b,h,Q,K]. Out: dqkv[b,Q,3,h,D]. */
void kernel_attention_dx(const KernelCall *call)
{
    const Shape n = shape_of(&call->in[1]);
    const double *dy = call->in[0].data, *qkv = call->in[1].data, *p = call->in[2].data;
    for (uint64_t b = 0; b < n.batch; b++)
        for (uint64_t h = 0; h < n.heads; h++)
            for (uint64_t q = 0; q < n.seq; q++)
                attention_row_dx(&n, b, h, q, dy + at_y(&n, b, q, h), qkv,
                                 p + ((b * n.heads + h) * n.seq + q) * n.seq,
                                 call->out[0].data);
}
