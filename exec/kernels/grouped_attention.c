/* Attention in which g queries share a key and a value (Ainslie et al. 2023), over q[b,Q,h,g,D] and
 * kv[b,K,h,E], where each E elements are a key of D and then a value of V:
 *
 *     S[q,k] = Q[q] . K[k] / sqrt(D) - slope (q - k)     over the keys that q sees
 *     L[q] = log(sum over k of exp S[q,k] + exp sink)     P[q,k] = exp(S[q,k] - L[q])
 *     y[q] = sum over k of f P[q,k] V[k]                  f: dropout's factor, 1 without
 *
 * for each head and sample separately. The materialised kind keeps P, the fused one L, from which
 * the backward makes P again (Dao et al. 2022, Algorithm 4). Sinks: Xiao et al. 2023, as logits.
 * Plain attention (Vaswani et al. 2017, Eq. 1) has g = 1 and one tensor qkv[b,s,3,h,D].
 * With tables of distances r = q - k, S = (Q . K + Q . A[r] + K . B[r]) / sqrt(3 D), A the third
 * operand, B the fourth (DeBERTa: He et al. 2021, Eq. 4). */
#include <math.h>

#include "data/graph/documents.h"
#include "exec/kernels/kernels.h"
#include "exec/kernels/position.h"
#include "exec/kernels/vector.h"

/* Extents of one call, on this shard, and its masks. */
typedef struct {
    uint64_t batch, queries, keys, heads, group, size, values;
    uint64_t first_head, first_member, all_members;
    uint64_t first_query; /* position in the sequence of the shard's first query */
    /* elements of a token in the tensors of queries and of keys; those before its first key, from
     * a head's key to the next one's, and from a key to its value */
    uint64_t q_row, kv_row, first_key, key_step, to_value;
    const OpAttr *attr;
    const double *a, *b; /* A[R,h,D], B[R,h,g,D], or NULL */
    uint64_t rows;
    double scale;
    MaskRows mask;
} Shape;

/* qkv[b,s,3,h,D], whose tokens have three rows of heads. */
static void packed_shape_set(Shape *n, const ExecTensor *x, const uint32_t *whole)
{
    n->heads = x->dim[3];
    n->group = n->all_members = 1;
    n->values = n->key_step = n->size;
    n->first_head = x->offset[3];
    n->first_member = 0;
    n->first_key = n->to_value = n->heads * n->size;
    n->q_row = n->kv_row = 3 * n->first_key;
    n->mask.heads = n->mask.all_heads = whole[3];
}

static bool attention_is_packed(const Op *op)
{
    return op->kind == OP_ATTENTION || op->kind == OP_ATTENTION_DX;
}

/* `q`: the index of q among the op's inputs; kv is next, or the same. */
static Shape grouped_shape_of(const KernelCall *call, uint32_t q)
{
    const bool packed = attention_is_packed(call->op);
    const ExecTensor *x = &call->in[q], *kv = packed ? x : x + 1;
    const uint32_t *whole = graph_tensor(call->graph, call->op->in[q])->dim;
    Shape n = {.batch = x->dim[0],
               .queries = x->dim[1],
               .keys = kv->dim[1],
               .heads = x->dim[2],
               .group = x->dim[3],
               .size = x->dim[4],
               .values = kv->dim[3] - x->dim[4],
               .first_head = x->offset[2],
               .first_member = x->offset[3],
               .all_members = whole[3],
               .first_query = x->offset[1],
               .q_row = (uint64_t)x->dim[2] * x->dim[3] * x->dim[4],
               .kv_row = (uint64_t)x->dim[2] * kv->dim[3],
               .key_step = kv->dim[3],
               .to_value = x->dim[4],
               .attr = &call->op->attr,
               .scale = 1 / sqrt((double)x->dim[4])};
    if (call->op->kind == OP_RELATIVE_ATTENTION ||
        call->op->kind == OP_RELATIVE_ATTENTION_DX) {
        n.a = call->in[q + 2].data;
        n.b = call->in[q + 3].data;
        n.rows = call->in[q + 2].dim[1];
        n.scale = 1 / sqrt(3 * (double)x->dim[4]);
    }
    n.mask = (MaskRows){.rate = n.attr->rate,
                        .seed = n.attr->seed,
                        .heads = (uint64_t)whole[2] * whole[3],
                        .first_sample = x->offset[0],
                        .all_heads = (uint64_t)whole[2] * whole[3],
                        .size = MAX(whole[1], n.keys)};
    if (packed)
        packed_shape_set(&n, x, whole);
    return n;
}

/* One query: its place in the shard and in the whole tensor. */
typedef struct {
    uint64_t b, q, h, at; /* at: index of y[b,q,h,g,.], in vectors */
    uint64_t first;       /* first element of q[b,q,h,g,.] */
    uint64_t statistic;   /* index of L[b,h,g,q] */
    uint64_t head;        /* head in the whole tensor */
} Query;

static Query query_of(const Shape *n, uint64_t i)
{
    const uint64_t g = i % n->group, h = i / n->group % n->heads,
                   q = i / (n->group * n->heads) % n->queries;
    const uint64_t b = i / (n->group * n->heads * n->queries);
    return (Query){.b = b,
                   .q = q,
                   .h = h,
                   .at = i,
                   .first =
                       (b * n->queries + q) * n->q_row + (h * n->group + g) * n->size,
                   .statistic = ((b * n->heads + h) * n->group + g) * n->queries + q,
                   .head = (h + n->first_head) * n->all_members + g + n->first_member};
}

static uint64_t n_queries(const Shape *n)
{
    return n->batch * n->queries * n->heads * n->group;
}

/* First element of kv[b,k,h,.]. */
static uint64_t at_key(const Shape *n, const Query *i, uint64_t k)
{
    return (i->b * n->keys + k) * n->kv_row + n->first_key + i->h * n->key_step;
}

static double factor_of(const Shape *n, const Query *i, uint64_t k)
{
    return mask_factor(
        &n->mask, (i->b * n->mask.heads + i->head) * n->mask.size + n->first_query + i->q,
        k);
}

/* The index in A and in B of a query's distance from key k. */
static uint64_t at_distance(const Shape *n, const Query *i, uint64_t k, uint64_t *of_b)
{
    const uint64_t at =
        attention_distance(n->first_query + i->q, k, n->rows, n->attr->first) * n->heads +
        i->h;
    *of_b = (at * n->group + i->at % n->group) * n->size;
    return at * n->size;
}

/* Computes S of one query; -infinity where it does not see the key. */
static void grouped_scores_of(const Shape *n, const Query *i, const double *q,
                              const double *kv, double *row)
{
    const double slope = attention_slope(n->attr->alibi, i->head, n->mask.all_heads);
    const uint64_t at = n->first_query + i->q,
                   first = documents_first(n->attr->documents, at);
    for (uint64_t k = 0; k < n->keys; k++) {
        const double *x = q + i->first, *y = kv + at_key(n, i, k);
        double sum = dot(x, y, n->size);
        if (n->a) {
            uint64_t b, a = at_distance(n, i, k, &b);
            sum += dot(x, n->a + a, n->size) + dot(y, n->b + b, n->size);
        }
        row[k] = k >= first && attention_sees(n->attr->causal, n->attr->span, at, k)
                     ? sum * n->scale - slope * ((double)at - (double)k)
                     : -INFINITY;
    }
}

/* Writes P of one query in place of its S; returns L. `sink` is -infinity if there is none. */
static double softmax_row(double *row, uint64_t n, double sink)
{
    double top = sink, sum;
    for (uint64_t i = 0; i < n; i++)
        top = fmax(top, row[i]);
    sum = exp(sink - top);
    for (uint64_t i = 0; i < n; i++)
        sum += row[i] = exp(row[i] - top);
    for (uint64_t i = 0; i < n; i++)
        row[i] /= sum;
    return top + log(sum);
}

static void attend(const KernelCall *call, bool fused)
{
    const Shape n = grouped_shape_of(call, 0);
    const double *q = call->in[0].data,
                 *kv = call->in[attention_is_packed(call->op) ? 0 : 1].data;
    g_autofree double *scratch = g_new(double, n.keys + 1);
    for (uint64_t i = 0; i < n_queries(&n); i++) {
        const Query query = query_of(&n, i);
        double *row =
            fused || n.a ? scratch : call->out[1].data + query.statistic * n.keys;
        const double sink = call->op->n_in > 2 && !n.a
                                ? call->in[2].data[query.h * n.group + i % n.group]
                                : -INFINITY;
        grouped_scores_of(&n, &query, q, kv, row);
        const double statistic = softmax_row(row, n.keys, sink);
        if (fused)
            call->out[1].data[query.statistic] = statistic;
        for (uint64_t k = 0; k < n.keys; k++)
            add_scaled(call->out[0].data + i * n.values,
                       factor_of(&n, &query, k) * row[k],
                       kv + at_key(&n, &query, k) + n.to_value, n.values);
    }
}

/* In: qkv[b,Q,3,h,D]. Out: y[b,Q,h,D], P[b,h,Q,K]. */
KERNEL(attention, attend(call, false))

/* In: q[b,Q,h,g,D], kv[b,K,h,E]. Out: y[b,Q,h,g,V], P[b,h,g,Q,K]. */
KERNEL(grouped_attention, attend(call, false))

/* In: q, kv, A[1,R,h,D], B[1,R,h,g,D]. Out: y. */
KERNEL(relative_attention, attend(call, false))

/* In: q, kv, sink[h,g] or none. Out: y, L[b,h,g,Q]. */
KERNEL(fused_attention, attend(call, true))

/* dP = f dy . V, dS = P (dP - sum P dP), dQ = dS K, dK = dS Q, dV = f P dy. In: dy, q and kv (or
 * qkv), and P, L, or A and B, which have gradients, too. Out: dq, dkv. */
static void attend_dx(const KernelCall *call, bool fused)
{
    const Shape n = grouped_shape_of(call, 1);
    const uint32_t more = attention_is_packed(call->op) ? 0 : 1;
    const double *dy = call->in[0].data, *q = call->in[1].data,
                 *kv = call->in[1 + more].data, *kept = call->in[2 + more].data;
    double *dq = call->out[0].data, *dkv = call->out[more].data;
    g_autofree double *scratch = g_new(double, n.keys + 1);
    for (uint64_t i = 0; i < n_queries(&n); i++) {
        const Query query = query_of(&n, i);
        const double *p = fused || n.a ? scratch : kept + query.statistic * n.keys;
        const double *g = dy + i * n.values;
        double mean = 0;
        if (fused) {
            grouped_scores_of(&n, &query, q, kv, scratch);
            for (uint64_t k = 0; k < n.keys; k++)
                scratch[k] = exp(scratch[k] - kept[query.statistic]);
        }
        if (n.a) {
            grouped_scores_of(&n, &query, q, kv, scratch);
            softmax_row(scratch, n.keys, -INFINITY);
        }
        for (uint64_t k = 0; k < n.keys; k++)
            mean += factor_of(&n, &query, k) * p[k] *
                    dot(g, kv + at_key(&n, &query, k) + n.to_value, n.values);
        for (uint64_t k = 0; k < n.keys; k++) {
            const uint64_t key = at_key(&n, &query, k);
            const double f = factor_of(&n, &query, k);
            const double ds =
                n.scale * p[k] * (f * dot(g, kv + key + n.to_value, n.values) - mean);
            add_scaled(dq + query.first, ds, kv + key, n.size);
            add_scaled(dkv + key, ds, q + query.first, n.size);
            add_scaled(dkv + key + n.to_value, f * p[k], g, n.values);
            if (!n.a)
                continue;
            uint64_t b, a = at_distance(&n, &query, k, &b);
            add_scaled(dq + query.first, ds, n.a + a, n.size);
            add_scaled(dkv + key, ds, n.b + b, n.size);
            add_scaled(call->out[2].data + a, ds, q + query.first, n.size);
            add_scaled(call->out[3].data + b, ds, kv + key, n.size);
        }
    }
}

KERNEL(attention_dx, attend_dx(call, false))
KERNEL(grouped_attention_dx, attend_dx(call, false))
KERNEL(relative_attention_dx, attend_dx(call, false))
KERNEL(fused_attention_dx, attend_dx(call, true))

/* dsink = - sum over b, q of exp(sink - L) (dy . y). In: dy, y [b,Q,h,g,V], sink[h,g],
 * L[b,h,g,Q]. */
void kernel_attention_sink_dw(const KernelCall *call)
{
    const ExecTensor *dy = &call->in[0];
    const uint64_t seq = dy->dim[1], heads = (uint64_t)dy->dim[2] * dy->dim[3];
    const uint64_t values = dy->dim[4], rows = dy->dim[0] * seq * heads;
    for (uint64_t i = 0; i < rows; i++) {
        const uint64_t head = i % heads, q = i / heads % seq, b = i / (heads * seq);
        const double statistic = call->in[3].data[(b * heads + head) * seq + q];
        call->out[0].data[head] -=
            exp(call->in[2].data[head] - statistic) *
            dot(dy->data + i * values, call->in[1].data + i * values, values);
    }
}
