/* Attention to chosen keys (DeepSeek-AI 2025, DeepSeek-V3.2, Eqs. 1-2): an indexer with few, small
 * heads scores all keys,
 *
 *     I[q,k] = sum over h of w[q,h] relu(q[q,h] . k[k]),
 *
 * and a query sees the T keys with the largest scores. Chosen keys are numbers of positions; -1
 * stands for none. */
#include <math.h>

#include "exec/kernels/kernels.h"
#include "exec/kernels/vector.h"

/* Scores that differ by less than this share of themselves are equal. Keys of equal tokens have
 * equal scores, which sums taken in another order return a few roundings apart. */
#define EQUAL_SCORES 1e-9

/* In: q[b,Q,H,D], k[b,K,D], w[b,Q,H]. Out: chosen[b,Q,T], by falling scores, the first key first
 * where they are equal. */
void kernel_top_keys(const KernelCall *call)
{
    const ExecTensor *q = &call->in[0], *k = &call->in[1];
    const uint64_t queries = q->dim[1], heads = q->dim[2], size = q->dim[3],
                   keys = k->dim[1], top = call->out[0].dim[2];
    g_autofree double *score = g_new(double, keys);
    for (uint64_t b = 0; b < q->dim[0]; b++)
        for (uint64_t i = 0; i < queries; i++) {
            const uint64_t row = b * queries + i;
            const uint64_t seen = call->op->attr.causal ? MIN(i + 1, keys) : keys;
            for (uint64_t j = 0; j < seen; j++) {
                score[j] = 0;
                for (uint64_t h = 0; h < heads; h++)
                    score[j] += call->in[2].data[row * heads + h] *
                                fmax(0, dot(q->data + (row * heads + h) * size,
                                            k->data + (b * keys + j) * size, size));
            }
            for (uint64_t t = 0; t < top; t++) {
                uint64_t best = seen;
                for (uint64_t j = 0; j < seen; j++)
                    if (!isnan(score[j]) &&
                        (best == seen ||
                         score[j] > score[best] + EQUAL_SCORES * fabs(score[best])))
                        best = j;
                call->out[0].data[row * top + t] = best < seen ? (double)best : -1;
                if (best < seen)
                    score[best] = NAN;
            }
        }
}

/* A choice has no slope: the outputs stay 0. */
void kernel_top_keys_dx(const KernelCall *call)
{
    g_assert(call->op->n_out == 3);
}

typedef struct {
    uint64_t batch, queries, heads, group, size, value, keys, top;
    bool causal;
    double scale;
} Sparse;

/* `q`: the index of q among the op's inputs; kv and the chosen keys follow. */
static Sparse sparse_of(const KernelCall *call, uint32_t q)
{
    const ExecTensor *x = &call->in[q], *kv = &call->in[q + 1];
    return (Sparse){.batch = x->dim[0],
                    .queries = x->dim[1],
                    .heads = x->dim[2],
                    .group = x->dim[3],
                    .size = x->dim[4],
                    .value = kv->dim[3] - x->dim[4],
                    .keys = kv->dim[1],
                    .top = call->in[q + 2].dim[2],
                    .causal = call->op->attr.causal,
                    .scale = 1 / sqrt((double)x->dim[4])};
}

/* One query r: sample, place in the sequence, head, and its place in [b,h,g,Q]. */
typedef struct {
    uint64_t b, i, h, statistic;
} SparseQuery;

static SparseQuery sparse_query_of(const Sparse *n, uint64_t r)
{
    const uint64_t g = r % n->group, h = r / n->group % n->heads,
                   i = r / n->group / n->heads % n->queries,
                   b = r / n->group / n->heads / n->queries;
    return (SparseQuery){b, i, h, ((b * n->heads + h) * n->group + g) * n->queries + i};
}

/* The first element of the t-th chosen key of a query in kv[b,K,h,E]; false if there is none. */
static bool sparse_key(const Sparse *n, const double *chosen, const SparseQuery *q,
                       uint64_t t, uint64_t *at)
{
    const double key = chosen[(q->b * n->queries + q->i) * n->top + t];
    if (!(key >= 0) || key >= (double)n->keys || (n->causal && key > (double)q->i))
        return false;
    *at = ((q->b * n->keys + (uint64_t)key) * n->heads + q->h) * (n->size + n->value);
    return true;
}

/* In: q[b,Q,h,g,D], kv[b,K,h,E], chosen[b,Q,T]. Out: y[b,Q,h,g,V], log of the sum of exponentials
 * [b,h,g,Q]. */
void kernel_sparse_attention(const KernelCall *call)
{
    const Sparse n = sparse_of(call, 0);
    const double *kv = call->in[1].data, *chosen = call->in[2].data;
    for (uint64_t r = 0; r < n.batch * n.queries * n.heads * n.group; r++) {
        const SparseQuery of = sparse_query_of(&n, r);
        const double *q = call->in[0].data + r * n.size;
        double *y = call->out[0].data + r * n.value;
        double most = -INFINITY, sum = 0;
        uint64_t at;
        for (uint64_t t = 0; t < n.top; t++)
            if (sparse_key(&n, chosen, &of, t, &at))
                most = fmax(most, n.scale * dot(q, kv + at, n.size));
        for (uint64_t t = 0; t < n.top; t++)
            if (sparse_key(&n, chosen, &of, t, &at)) {
                const double p = exp(n.scale * dot(q, kv + at, n.size) - most);
                sum += p;
                add_scaled(y, p, kv + at + n.size, n.value);
            }
        for (uint64_t v = 0; v < n.value && sum > 0; v++)
            y[v] /= sum;
        call->out[1].data[of.statistic] = sum > 0 ? most + log(sum) : 0;
    }
}

/* dP = dy . V, dS = P (dP - sum P dP), dq = dS K, dK = dS q, dV = P dy. In: dy, q, kv, chosen, log
 * of the sum. Out: dq, dkv, and 0 for the chosen keys. */
void kernel_sparse_attention_dx(const KernelCall *call)
{
    const Sparse n = sparse_of(call, 1);
    const double *kv = call->in[2].data, *chosen = call->in[3].data;
    for (uint64_t r = 0; r < n.batch * n.queries * n.heads * n.group; r++) {
        const SparseQuery of = sparse_query_of(&n, r);
        const double *q = call->in[1].data + r * n.size,
                     *dy = call->in[0].data + r * n.value;
        const double log_sum = call->in[4].data[of.statistic];
        double *dq = call->out[0].data + r * n.size, *dkv = call->out[1].data, mean = 0;
        uint64_t at;
        for (uint64_t t = 0; t < n.top; t++)
            if (sparse_key(&n, chosen, &of, t, &at))
                mean += exp(n.scale * dot(q, kv + at, n.size) - log_sum) *
                        dot(dy, kv + at + n.size, n.value);
        for (uint64_t t = 0; t < n.top; t++)
            if (sparse_key(&n, chosen, &of, t, &at)) {
                const double p = exp(n.scale * dot(q, kv + at, n.size) - log_sum);
                const double ds =
                    n.scale * p * (dot(dy, kv + at + n.size, n.value) - mean);
                add_scaled(dq, ds, kv + at, n.size);
                add_scaled(dkv + at, ds, q, n.size);
                add_scaled(dkv + at + n.size, p, dy, n.value);
            }
    }
}
