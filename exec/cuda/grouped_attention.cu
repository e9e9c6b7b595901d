/* Attention of queries that share keys, on GPUs. */
// Attention in which g queries share a key and a value; see exec/kernels/grouped_attention.c for
// shapes and equations. Samples are computed one at a time: the queries of a sample are packed as
// [h, g, Q, D], so that all its heads are one batch of matrix products. The scores of a sample take
// scratch memory of the GPU; the fused kind keeps only their statistics.
#include <cmath>

#include "exec/cuda/launch.cuh"
#include "exec/kernels/position.h"

struct Shape {
    uint64_t batch, queries, keys, heads, group, size, width, values;
    uint64_t first_head, first_member, all_members, first_query, span;
    bool causal, alibi;
    double scale;
    MaskRows mask;
};

// `q`: the place of q among the op's inputs; kv is next.
static Shape shape_of(const CudaCall *call, uint32_t q)
{
    const ExecShard *x = &call->in[q], *kv = &call->in[q + 1];
    const uint32_t *whole = graph_tensor(call->graph, call->op->in[q])->dim;
    const OpAttr *attr = &call->op->attr;
    const uint64_t all = (uint64_t)whole[2] * whole[3];
    const uint64_t longest = x->dim[1] > kv->dim[1] ? x->dim[1] : kv->dim[1];
    return {x->dim[0],
            x->dim[1],
            kv->dim[1],
            x->dim[2],
            x->dim[3],
            x->dim[4],
            kv->dim[3],
            kv->dim[3] - x->dim[4],
            x->offset[2],
            x->offset[3],
            whole[3],
            x->offset[1],
            attr->span,
            attr->causal,
            attr->alibi,
            1 / sqrt((double)x->dim[4]),
            {attr->rate, attr->seed, all, x->offset[0], 0, all, longest}};
}

__host__ __device__ static uint64_t rows_of_sample(const Shape &n)
{
    return n.heads * n.group * n.queries;
}

// The head that row `r` of [h, g, Q] belongs to, counted in the whole tensor.
__host__ __device__ static uint64_t head_of(const Shape &n, uint64_t r)
{
    const uint64_t g = r / n.queries % n.group, h = r / (n.queries * n.group);
    return (h + n.first_head) * n.all_members + g + n.first_member;
}

__host__ __device__ static double factor_of(const Shape &n, uint64_t b, uint64_t r,
                                            uint64_t k)
{
    return mask_factor(&n.mask,
                       (b * n.mask.heads + head_of(n, r)) * n.mask.size + n.first_query +
                           r % n.queries,
                       k);
}

// Index in [Q, h, g, D] of element `i` of [h, g, Q, D].
__host__ __device__ static uint64_t unpacked(const Shape &n, uint64_t i, uint64_t size)
{
    const uint64_t d = i % size, q = i / size % n.queries, head = i / (size * n.queries);
    return (q * n.heads * n.group + head) * size + d;
}

template <typename T>
static void pack(CudaQueue *queue, const Shape &n, In<T> from, Out<T> to, uint64_t size)
{
    const Shape shape = n;
    each(
        queue, rows_of_sample(n) * size,
        BODY(uint64_t i) { to[i] = from[unpacked(shape, i, size)]; });
}

template <typename T>
static void unpack(CudaQueue *queue, const Shape &n, In<T> from, Out<T> to, uint64_t size)
{
    const Shape shape = n;
    each(
        queue, rows_of_sample(n) * size,
        BODY(uint64_t i) { to[unpacked(shape, i, size)] = from[i]; });
}

// Matrices of the heads: [g Q, size], [g Q, K], and [K, D or V] of a sample's keys or values.
template <typename P>
static CudaMatrix packed(const Shape &n, P data, uint64_t size, bool transposed)
{
    return matrix(data, transposed, size, n.group * n.queries * size);
}

template <typename P>
static CudaMatrix keys(const Shape &n, P kv, uint64_t first, bool transposed)
{
    return matrix(kv + first, transposed, n.heads * n.width, n.width);
}

static void multiply(CudaQueue *queue, const Shape &n, uint64_t m, uint64_t columns,
                     uint64_t sum, double alpha, const CudaMatrix &x, const CudaMatrix &y,
                     const CudaMatrix &z)
{
    queue_multiply(queue, {m, columns, sum, n.heads, alpha, &x, &y,
                           const_cast<void *>(z.data), z.ld, z.step, z.numbers});
}

// Computes S of a sample's rows; -infinity where a query does not see the key.
template <typename T>
static void scores(CudaQueue *queue, const Shape &n, In<T> q, In<T> kv, Out<T> s)
{
    const Shape shape = n;
    multiply(queue, n, n.group * n.queries, n.keys, n.size, n.scale,
             packed(n, q, n.size, false), keys(n, kv, 0, true),
             packed(n, s, n.keys, false));
    each(
        queue, rows_of_sample(n) * n.keys, BODY(uint64_t i) {
            const uint64_t k = i % shape.keys, r = i / shape.keys,
                           at = shape.first_query + r % shape.queries;
            const double slope =
                attention_slope(shape.alibi, head_of(shape, r), shape.mask.all_heads);
            s[i] = attention_sees(shape.causal, shape.span, at, k)
                       ? T(s[i] - slope * ((double)at - (double)k))
                       : T(-INFINITY);
        });
}

// Writes P in place of S, and L if `statistic` is not NULL. `sink`: [h, g] or NULL.
template <typename T>
static void softmax(CudaQueue *queue, const Shape &n, Out<T> s, In<T> sink,
                    Out<T> statistic)
{
    const Shape shape = n;
    rows(
        queue, rows_of_sample(n), BODY(uint64_t r, Lane lane) {
            Out<T> row = s + r * shape.keys;
            const T extra = sink ? sink[r / shape.queries] : T(-INFINITY);
            T top = extra, sum = 0;
            for (uint64_t i = lane.id; i < shape.keys; i += lane.n)
                top = row[i] > top ? row[i] : top;
            top = lane.max(top);
            for (uint64_t i = lane.id; i < shape.keys; i += lane.n) {
                row[i] = exp(row[i] - top);
                sum += row[i];
            }
            sum = lane.sum(sum) + exp(extra - top);
            for (uint64_t i = lane.id; i < shape.keys; i += lane.n)
                row[i] /= sum;
            if (statistic && lane.id == 0)
                statistic[r] = top + log(sum);
        });
}

// to = from times dropout's factors; returns `from` itself without dropout.
template <typename T>
static In<T> drop(CudaQueue *queue, const Shape &n, uint64_t b, In<T> from, Out<T> to)
{
    const Shape shape = n;
    if (n.mask.rate == 0)
        return from;
    each(
        queue, rows_of_sample(n) * n.keys, BODY(uint64_t i) {
            to[i] = from[i] * T(factor_of(shape, b, i / shape.keys, i % shape.keys));
        });
    return to;
}

template <typename T> static void attend(const CudaCall *call, bool fused)
{
    const Shape n = shape_of(call, 0);
    CudaQueue *queue = call->queue;
    const uint64_t r = rows_of_sample(n), m = n.group * n.queries;
    const In<T> sink = call->op->n_in > 2 ? in<T>(call, 2) : In<T>();
    const In<T> like = in<T>(call, 0);
    const Out<T> q = scratch_like<T>(queue, r * n.size, like),
                 y = scratch_like<T>(queue, r * n.values, like);
    const Out<T> spare = fused ? scratch_like<T>(queue, r * n.keys, like) : Out<T>();
    const Out<T> dropped =
        n.mask.rate > 0 ? scratch_like<T>(queue, r * n.keys, like) : Out<T>();
    for (uint64_t b = 0; r > 0 && b < n.batch; b++) {
        const In<T> kv = in<T>(call, 1) + b * n.keys * n.heads * n.width;
        Out<T> p = fused ? spare : out<T>(call, 1) + b * r * n.keys;
        pack<T>(queue, n, in<T>(call, 0) + b * r * n.size, q, n.size);
        scores<T>(queue, n, q, kv, p);
        softmax<T>(queue, n, p, sink, fused ? out<T>(call, 1) + b * r : Out<T>());
        multiply(queue, n, m, n.values, n.keys, 1,
                 packed(n, drop<T>(queue, n, b, p, dropped), n.keys, false),
                 keys(n, kv, n.size, false), packed(n, y, n.values, false));
        unpack<T>(queue, n, y, out<T>(call, 0) + b * r * n.values, n.values);
    }
    for (const Out<T> &used : {q, y, spare, dropped})
        if (used)
            release(queue, used);
}

template <typename T> static void grouped_attention(const CudaCall *call)
{
    attend<T>(call, false);
}
CUDA_KERNEL(cuda_grouped_attention, grouped_attention)

template <typename T> static void fused_attention(const CudaCall *call)
{
    attend<T>(call, true);
}
CUDA_KERNEL(cuda_fused_attention, fused_attention)

// Writes dS in place of dP.
template <typename T>
static void softmax_dx(CudaQueue *queue, const Shape &n, In<T> p, Out<T> ds)
{
    const uint64_t n_keys = n.keys;
    rows(
        queue, rows_of_sample(n), BODY(uint64_t r, Lane lane) {
            T mean = 0;
            for (uint64_t i = lane.id; i < n_keys; i += lane.n)
                mean += p[r * n_keys + i] * ds[r * n_keys + i];
            mean = lane.sum(mean);
            for (uint64_t i = lane.id; i < n_keys; i += lane.n)
                ds[r * n_keys + i] = p[r * n_keys + i] * (ds[r * n_keys + i] - mean);
        });
}

template <typename T> static void attend_dx(const CudaCall *call, bool fused)
{
    const Shape n = shape_of(call, 1);
    CudaQueue *queue = call->queue;
    const uint64_t r = rows_of_sample(n), m = n.group * n.queries, n_keys = n.keys;
    const In<T> like = in<T>(call, 1);
    const Out<T> q = scratch_like<T>(queue, r * n.size, like),
                 dq = scratch_like<T>(queue, r * n.size, like),
                 dy = scratch_like<T>(queue, r * n.values, like),
                 ds = scratch_like<T>(queue, r * n.keys, like);
    const Out<T> spare = fused ? scratch_like<T>(queue, r * n.keys, like) : Out<T>();
    const Out<T> dropped =
        n.mask.rate > 0 ? scratch_like<T>(queue, r * n.keys, like) : Out<T>();
    for (uint64_t b = 0; n.heads > 0 && b < n.batch; b++) {
        const In<T> kv = in<T>(call, 2) + b * n.keys * n.heads * n.width;
        const In<T> kept = in<T>(call, 3) + b * r * (fused ? 1 : n.keys);
        Out<T> dkv = out<T>(call, 1) + b * n.keys * n.heads * n.width;
        if (r == 0) {
            zero(queue, dkv, n.keys * n.heads * n.width);
            continue;
        }
        pack<T>(queue, n, in<T>(call, 1) + b * r * n.size, q, n.size);
        pack<T>(queue, n, in<T>(call, 0) + b * r * n.values, dy, n.values);
        if (fused) {
            scores<T>(queue, n, q, kv, spare);
            each(
                queue, r * n.keys,
                BODY(uint64_t i) { spare[i] = exp(spare[i] - kept[i / n_keys]); });
        }
        const In<T> p = fused ? In<T>(spare) : kept;
        multiply(queue, n, m, n.keys, n.values, 1, packed(n, dy, n.values, false),
                 keys(n, kv, n.size, true), packed(n, ds, n.keys, false));
        drop<T>(queue, n, b, ds, ds);
        softmax_dx<T>(queue, n, p, ds);
        multiply(queue, n, m, n.size, n.keys, n.scale, packed(n, ds, n.keys, false),
                 keys(n, kv, 0, false), packed(n, dq, n.size, false));
        unpack<T>(queue, n, dq, out<T>(call, 0) + b * r * n.size, n.size);
        multiply(queue, n, n.keys, n.size, m, n.scale, packed(n, ds, n.keys, true),
                 packed(n, q, n.size, false), keys(n, dkv, 0, false));
        multiply(queue, n, n.keys, n.values, m, 1,
                 packed(n, drop<T>(queue, n, b, p, dropped), n.keys, true),
                 packed(n, dy, n.values, false), keys(n, dkv, n.size, false));
    }
    for (const Out<T> &used : {q, dq, dy, ds, spare, dropped})
        if (used)
            release(queue, used);
}

template <typename T> static void grouped_attention_dx(const CudaCall *call)
{
    attend_dx<T>(call, false);
}
CUDA_KERNEL(cuda_grouped_attention_dx, grouped_attention_dx)

template <typename T> static void fused_attention_dx(const CudaCall *call)
{
    attend_dx<T>(call, true);
}
CUDA_KERNEL(cuda_fused_attention_dx, fused_attention_dx)

template <typename T> static void attention_sink_dw(const CudaCall *call)
{
    const ExecShard *shard = &call->in[0];
    const uint64_t seq = shard->dim[1], heads = (uint64_t)shard->dim[2] * shard->dim[3],
                   values = shard->dim[4], samples = shard->dim[0];
    const In<T> dy = in<T>(call, 0), y = in<T>(call, 1), sink = in<T>(call, 2),
                statistic = in<T>(call, 3);
    Out<T> dsink = out<T>(call, 0);
    rows(
        call->queue, heads, BODY(uint64_t head, Lane lane) {
            T sum = 0;
            for (uint64_t i = lane.id; i < samples * seq; i += lane.n) {
                const uint64_t b = i / seq, q = i % seq, row = i * heads + head;
                T dot = 0;
                for (uint64_t v = 0; v < values; v++)
                    dot += dy[row * values + v] * y[row * values + v];
                sum -= exp(sink[head] - statistic[(b * heads + head) * seq + q]) * dot;
            }
            sum = lane.sum(sum);
            if (lane.id == 0)
                dsink[head] = sum;
        });
}
CUDA_KERNEL(cuda_attention_sink_dw, attention_sink_dw)
