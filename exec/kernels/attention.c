/* Scaled dot-product self-attention (Vaswani et al. 2017, Eq. 1), all heads at once:
 *
 *     P[b,h,q,.] = softmax over k of (Q[b,q,h,.] . K[b,k,h,.] / sqrt(D))
 *     y[b,q,h,.] = sum over k of P[b,h,q,k] V[b,k,h,.]
 *
 * over all k, or with `causal` over k <= q. Dropout scales P in the second line by a factor f that
 * is 0 or 1 / (1 - rate), a function of the element's place in the whole P. Q, K, V are
 * qkv[b,s,0..2,h,D]. Batch and heads are independent, so shards along them are too. */
#include <math.h>

#include "exec/kernels/kernels.h"
#include "exec/kernels/mask.h"
#include "exec/kernels/vector.h"

/* Extents of one call, on this shard. */
typedef struct {
    uint64_t batch, seq, heads, size;
    double scale;
    MaskRows mask;
} Shape;

/* `qkv`: the index of qkv among the op's inputs. */
static Shape attention_shape_of(const KernelCall *call, uint32_t qkv)
{
    const ExecTensor *x = &call->in[qkv];
    g_assert(x->dim[2] == 3);
    return (Shape){
        .batch = x->dim[0],
        .seq = x->dim[1],
        .heads = x->dim[3],
        .size = x->dim[4],
        .scale = 1 / sqrt((double)x->dim[4]),
        .mask = {.rate = call->op->attr.rate,
                 .seed = call->op->attr.seed,
                 .heads = x->dim[3],
                 .first_sample = x->offset[0],
                 .first_head = x->offset[3],
                 .all_heads = graph_tensor(call->graph, call->op->in[qkv])->dim[3],
                 .size = x->dim[1]}};
}

/* First element of vector t (0 query, 1 key, 2 value) of position s in qkv[b,s,t,h,.]. */
static uint64_t at_qkv(const Shape *n, uint64_t b, uint64_t s, uint64_t t, uint64_t h)
{
    KILTER_ASSERT(t < 3);
    return (((b * n->seq + s) * 3 + t) * n->heads + h) * n->size;
}

/* First element of y[b,s,h,.]. */
static uint64_t at_y(const Shape *n, uint64_t b, uint64_t s, uint64_t h)
{
    return ((b * n->seq + s) * n->heads + h) * n->size;
}

/* In: qkv[b,Q,3,h,D]. Out: y[b,Q,h,D], P[b,h,Q,K]. */
void kernel_attention(const KernelCall *call)
{
    const Shape n = attention_shape_of(call, 0);
    const double *qkv = call->in[0].data;
    for (uint64_t b = 0; b < n.batch; b++)
        for (uint64_t h = 0; h < n.heads; h++)
            for (uint64_t q = 0; q < n.seq; q++) {
                const uint64_t r = (b * n.heads + h) * n.seq + q;
                double *row = call->out[1].data + r * n.seq;
                double *y = call->out[0].data + at_y(&n, b, q, h);
                const double *query = qkv + at_qkv(&n, b, q, 0, h);
                for (uint64_t k = 0; k < n.seq; k++)
                    row[k] =
                        call->op->attr.causal && k > q
                            ? -INFINITY
                            : n.scale * dot(query, qkv + at_qkv(&n, b, k, 1, h), n.size);
                softmax(row, row, n.seq);
                for (uint64_t k = 0; k < n.seq; k++)
                    add_scaled(y, mask_factor(&n.mask, r, k) * row[k],
                               qkv + at_qkv(&n, b, k, 2, h), n.size);
            }
}

/* Gradients of one query's row:
 *
 *     dP = f dy . V, dS = P (dP - sum P dP), dQ = dS K, dK = dS Q, dV = f P dy */
static void attention_row_dx(const Shape *n, uint64_t b, uint64_t h, uint64_t q,
                             const double *dy, const double *qkv, const double *p,
                             double *dqkv)
{
    const double *query = qkv + at_qkv(n, b, q, 0, h);
    const uint64_t r = (b * n->heads + h) * n->seq + q;
    double mean = 0;
    for (uint64_t k = 0; k < n->seq; k++)
        mean += mask_factor(&n->mask, r, k) * p[k] *
                dot(dy, qkv + at_qkv(n, b, k, 2, h), n->size);
    for (uint64_t k = 0; k < n->seq; k++) {
        const double f = mask_factor(&n->mask, r, k);
        const double dp = f * dot(dy, qkv + at_qkv(n, b, k, 2, h), n->size);
        const double ds = n->scale * p[k] * (dp - mean);
        add_scaled(dqkv + at_qkv(n, b, q, 0, h), ds, qkv + at_qkv(n, b, k, 1, h),
                   n->size);
        add_scaled(dqkv + at_qkv(n, b, k, 1, h), ds, query, n->size);
        add_scaled(dqkv + at_qkv(n, b, k, 2, h), f * p[k], dy, n->size);
    }
}

/* In: dy[b,Q,h,D], qkv[b,Q,3,h,D], P[b,h,Q,K]. Out: dqkv[b,Q,3,h,D]. */
void kernel_attention_dx(const KernelCall *call)
{
    const Shape n = attention_shape_of(call, 1);
    const double *dy = call->in[0].data, *qkv = call->in[1].data, *p = call->in[2].data;
    for (uint64_t b = 0; b < n.batch; b++)
        for (uint64_t h = 0; h < n.heads; h++)
            for (uint64_t q = 0; q < n.seq; q++)
                attention_row_dx(&n, b, h, q, dy + at_y(&n, b, q, h), qkv,
                                 p + ((b * n.heads + h) * n.seq + q) * n.seq,
                                 call->out[0].data);
}
