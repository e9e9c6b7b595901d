/* Attention of queries that share keys, on GPUs. */
// Attention in which g queries share a key and a value; see exec/kernels/grouped_attention.c for
// shapes and equations. Queries are packed as [b, h, g, Q, D], so that all heads of several samples
// are one batch of matrix products: of as many samples as have SLAB scores together, since scores
// take scratch memory of the GPU. The fused kind keeps only their statistics.
#include <cmath>

#include "exec/cuda/launch.cuh"
#include "exec/kernels/position.h"

// A test may bring its own, so that small batches are several slabs.
#ifndef CUDA_SLAB
#define CUDA_SLAB (1 << 24)
#endif
enum { SLAB = CUDA_SLAB };

// `batch`: the samples of a slab, from `first_sample` of the shard's.
struct Shape {
    uint64_t batch, first_sample;
    Divisor queries, keys, heads, group, members; // members: heads x group
    uint64_t size, width, values;
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
    const uint64_t longest = whole[1] > kv->dim[1] ? whole[1] : kv->dim[1];
    return {x->dim[0],
            0,
            Divisor(x->dim[1]),
            Divisor(kv->dim[1]),
            Divisor(x->dim[2]),
            Divisor(x->dim[3]),
            Divisor((uint64_t)x->dim[2] * x->dim[3]),
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

static uint64_t rows_of_sample(const Shape &n)
{
    return n.members * n.queries;
}

static uint64_t rows_of(const Shape &n)
{
    return n.batch * rows_of_sample(n);
}

// The samples from `first` on of the shard that are computed at once; none after the last.
static Shape slab(const Shape &all, uint64_t first)
{
    Shape n = all;
    const uint64_t scores = rows_of_sample(n) * n.keys, rest = all.batch - first,
                   fit = scores == 0     ? rest
                         : scores < SLAB ? SLAB / scores
                                         : 1;
    n.first_sample = first;
    n.batch = fit < rest ? fit : rest;
    return n;
}

// The head that row `r` of [b, h, g, Q] belongs to, counted in the whole tensor.
__host__ __device__ static uint64_t head_of(const Shape &n, uint64_t r)
{
    const uint64_t member = r / n.queries % n.members;
    return (member / n.group + n.first_head) * n.all_members + member % n.group +
           n.first_member;
}

__host__ __device__ static double factor_of(const Shape &n, uint64_t r, uint64_t k)
{
    const uint64_t b = n.first_sample + r / n.queries / n.members;
    return mask_factor(&n.mask,
                       (b * n.mask.heads + head_of(n, r)) * n.mask.size + n.first_query +
                           r % n.queries,
                       k);
}

// Index in [b, Q, h, g, D] of element `i` of [b, h, g, Q, D].
__host__ __device__ static uint64_t unpacked(const Shape &n, uint64_t i,
                                             const Divisor &size)
{
    const uint64_t row = i / size, q = row % n.queries, all = row / n.queries;
    return ((all / n.members * n.queries + q) * n.members + all % n.members) * size +
           i % size;
}

template <typename T>
static void pack(CudaQueue *queue, const Shape &n, In<T> from, Out<T> to, uint64_t size)
{
    const Shape shape = n;
    const Divisor by(size);
    each(
        queue, rows_of(n) * size,
        BODY(uint64_t i) { to[i] = from[unpacked(shape, i, by)]; });
}

template <typename T>
static void unpack(CudaQueue *queue, const Shape &n, In<T> from, Out<T> to, uint64_t size)
{
    const Shape shape = n;
    const Divisor by(size);
    each(
        queue, rows_of(n) * size,
        BODY(uint64_t i) { to[unpacked(shape, i, by)] = from[i]; });
}

// Matrices of the heads: [g Q, size], [g Q, K], and [K, D or V] of the keys or values.
template <typename P>
static CudaMatrix packed(const Shape &n, P data, uint64_t size, bool transposed)
{
    const uint64_t step = n.group * n.queries * size;
    return samples(data, transposed, size, step, n.heads * step);
}

template <typename P>
static CudaMatrix keys(const Shape &n, P kv, uint64_t first, bool transposed)
{
    const uint64_t row = n.heads * n.width;
    return samples(kv + first, transposed, row, n.width, n.keys * row);
}

static void multiply(CudaQueue *queue, const Shape &n, uint64_t m, uint64_t columns,
                     uint64_t sum, double alpha, const CudaMatrix &x, const CudaMatrix &y,
                     const CudaMatrix &z)
{
    queue_multiply(queue,
                   {m, columns, sum, n.heads, alpha, &x, &y, const_cast<void *>(z.data),
                    z.ld, z.step, z.numbers, n.batch, z.sample});
}

// Computes S of the rows; -infinity where a query does not see the key.
template <typename T>
static void scores(CudaQueue *queue, const Shape &n, In<T> q, In<T> kv, Out<T> s)
{
    const Shape shape = n;
    multiply(queue, n, n.group * n.queries, n.keys, n.size, n.scale,
             packed(n, q, n.size, false), keys(n, kv, 0, true),
             packed(n, s, n.keys, false));
    each(
        queue, rows_of(n) * n.keys, BODY(uint64_t i) {
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
        queue, rows_of(n), BODY(uint64_t r, Lane lane) {
            Out<T> row = s + r * shape.keys;
            const T extra = sink ? sink[r / shape.queries % shape.members] : T(-INFINITY);
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
static In<T> drop(CudaQueue *queue, const Shape &n, In<T> from, Out<T> to)
{
    const Shape shape = n;
    if (n.mask.rate == 0)
        return from;
    each(
        queue, rows_of(n) * n.keys, BODY(uint64_t i) {
            to[i] = from[i] * T(factor_of(shape, i / shape.keys, i % shape.keys));
        });
    return to;
}

template <typename T> static void attend(const CudaCall *call, bool fused)
{
    const Shape all = shape_of(call, 0);
    CudaQueue *queue = call->queue;
    const uint64_t each_sample = rows_of_sample(all), m = all.group * all.queries,
                   most = slab(all, 0).batch * each_sample;
    const In<T> sink = call->op->n_in > 2 ? in<T>(call, 2) : In<T>();
    const In<T> like = in<T>(call, 0);
    const Out<T> q = scratch_like<T>(queue, most * all.size, like),
                 y = scratch_like<T>(queue, most * all.values, like);
    const Out<T> spare = fused ? scratch_like<T>(queue, most * all.keys, like) : Out<T>();
    const Out<T> dropped =
        all.mask.rate > 0 ? scratch_like<T>(queue, most * all.keys, like) : Out<T>();
    for (Shape n = slab(all, 0); n.batch > 0; n = slab(all, n.first_sample + n.batch)) {
        if (each_sample == 0)
            continue;
        const uint64_t b = n.first_sample, r = b * each_sample;
        const In<T> kv = in<T>(call, 1) + b * n.keys * n.heads * n.width;
        Out<T> p = fused ? spare : out<T>(call, 1) + r * n.keys;
        pack<T>(queue, n, in<T>(call, 0) + r * n.size, q, n.size);
        scores<T>(queue, n, q, kv, p);
        softmax<T>(queue, n, p, sink, fused ? out<T>(call, 1) + r : Out<T>());
        multiply(queue, n, m, n.values, n.keys, 1,
                 packed(n, drop<T>(queue, n, p, dropped), n.keys, false),
                 keys(n, kv, n.size, false), packed(n, y, n.values, false));
        unpack<T>(queue, n, y, out<T>(call, 0) + r * n.values, n.values);
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
        queue, rows_of(n), BODY(uint64_t r, Lane lane) {
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
    const Shape all = shape_of(call, 1);
    CudaQueue *queue = call->queue;
    const uint64_t each_sample = rows_of_sample(all), m = all.group * all.queries,
                   most = slab(all, 0).batch * each_sample;
    const In<T> like = in<T>(call, 1);
    const Out<T> q = scratch_like<T>(queue, most * all.size, like),
                 dq = scratch_like<T>(queue, most * all.size, like),
                 dy = scratch_like<T>(queue, most * all.values, like),
                 ds = scratch_like<T>(queue, most * all.keys, like);
    const Out<T> spare = fused ? scratch_like<T>(queue, most * all.keys, like) : Out<T>();
    const Out<T> dropped =
        all.mask.rate > 0 ? scratch_like<T>(queue, most * all.keys, like) : Out<T>();
    for (Shape n = slab(all, 0); n.batch > 0; n = slab(all, n.first_sample + n.batch)) {
        const uint64_t b = n.first_sample, r = b * each_sample;
        const uint64_t row = n.heads * n.width;
        const In<T> kv = in<T>(call, 2) + b * n.keys * row;
        const In<T> kept = in<T>(call, 3) + r * (fused ? 1 : n.keys.by);
        Out<T> dkv = out<T>(call, 1) + b * n.keys * row;
        if (each_sample == 0) {
            zero(queue, dkv, n.batch * n.keys * row);
            continue;
        }
        pack<T>(queue, n, in<T>(call, 1) + r * n.size, q, n.size);
        pack<T>(queue, n, in<T>(call, 0) + r * n.values, dy, n.values);
        if (fused) {
            const Divisor n_keys = n.keys;
            scores<T>(queue, n, q, kv, spare);
            each(
                queue, rows_of(n) * n.keys,
                BODY(uint64_t i) { spare[i] = exp(spare[i] - kept[i / n_keys]); });
        }
        const In<T> p = fused ? In<T>(spare) : kept;
        multiply(queue, n, m, n.keys, n.values, 1, packed(n, dy, n.values, false),
                 keys(n, kv, n.size, true), packed(n, ds, n.keys, false));
        drop<T>(queue, n, ds, ds);
        softmax_dx<T>(queue, n, p, ds);
        multiply(queue, n, m, n.size, n.keys, n.scale, packed(n, ds, n.keys, false),
                 keys(n, kv, 0, false), packed(n, dq, n.size, false));
        unpack<T>(queue, n, dq, out<T>(call, 0) + r * n.size, n.size);
        multiply(queue, n, n.keys, n.size, m, n.scale, packed(n, ds, n.keys, true),
                 packed(n, q, n.size, false), keys(n, dkv, 0, false));
        multiply(queue, n, n.keys, n.values, m, 1,
                 packed(n, drop<T>(queue, n, p, dropped), n.keys, true),
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

// --- attention with tables of distances, a thread for each query ---

struct Distances {
    uint64_t batch, seq, heads, group, size, values, rows, far, row;
    MaskRows mask;
    uint64_t first_head, first_member, all_members;
};

static Distances distances_of(const CudaCall *call, uint32_t q)
{
    const ExecShard *x = &call->in[q], *kv = &call->in[q + 1];
    const uint32_t *whole = graph_tensor(call->graph, call->op->in[q])->dim;
    const OpAttr *attr = &call->op->attr;
    const uint64_t all = (uint64_t)whole[2] * whole[3];
    return {x->dim[0],
            x->dim[1],
            x->dim[2],
            x->dim[3],
            x->dim[4],
            kv->dim[3] - x->dim[4],
            call->in[q + 2].dim[1],
            attr->first,
            kv->dim[3],
            {attr->rate, attr->seed, all, x->offset[0], 0, all, x->dim[1]},
            x->offset[2],
            x->offset[3],
            whole[3]};
}

// The places of a query and a key, and of their distance in both tables.
struct DistancePair {
    uint64_t q, kv, a, b;
    double factor;

    __host__ __device__ DistancePair(const Distances &n, uint64_t i, uint64_t k)
    {
        const uint64_t g = i % n.group, h = i / n.group % n.heads,
                       at = i / (n.group * n.heads) % n.seq,
                       sample = i / (n.group * n.heads * n.seq);
        const uint64_t r = attention_distance(at, k, n.rows, n.far) * n.heads + h;
        q = i * n.size;
        kv = ((sample * n.seq + k) * n.heads + h) * n.row;
        a = r * n.size;
        b = (r * n.group + g) * n.size;
        const uint64_t head = (h + n.first_head) * n.all_members + g + n.first_member;
        factor =
            mask_factor(&n.mask, (sample * n.mask.heads + head) * n.mask.size + at, k);
    }
};

template <typename T>
__host__ __device__ static T distance_score(const Distances &n, const DistancePair &p,
                                            In<T> q, In<T> kv, In<T> a, In<T> b)
{
    T sum = 0;
    for (uint64_t d = 0; d < n.size; d++)
        sum += q[p.q + d] * (kv[p.kv + d] + a[p.a + d]) + kv[p.kv + d] * b[p.b + d];
    return sum / sqrt(T(3 * n.size));
}

// Writes a query's probabilities.
template <typename T>
__host__ __device__ static void distance_softmax(const Distances &n, uint64_t i, In<T> q,
                                                 In<T> kv, In<T> a, In<T> b, T *row)
{
    T top = T(-INFINITY), sum = 0;
    for (uint64_t k = 0; k < n.seq; k++) {
        row[k] = distance_score<T>(n, DistancePair(n, i, k), q, kv, a, b);
        top = row[k] > top ? row[k] : top;
    }
    for (uint64_t k = 0; k < n.seq; k++) {
        row[k] = exp(row[k] - top);
        sum += row[k];
    }
    for (uint64_t k = 0; k < n.seq; k++)
        row[k] /= sum;
}

template <typename T> static void relative_attention(const CudaCall *call)
{
    const Distances n = distances_of(call, 0);
    const In<T> q = in<T>(call, 0), kv = in<T>(call, 1), a = in<T>(call, 2),
                b = in<T>(call, 3);
    Out<T> y = out<T>(call, 0);
    const uint64_t runs = n.batch * n.seq * n.heads * n.group;
    T *room = scratch<T>(call->queue, runs * n.seq);
    each(
        call->queue, runs, BODY(uint64_t i) {
            T *row = room + i * n.seq;
            distance_softmax<T>(n, i, q, kv, a, b, row);
            for (uint64_t v = 0; v < n.values; v++) {
                T sum = 0;
                for (uint64_t k = 0; k < n.seq; k++) {
                    const DistancePair p(n, i, k);
                    sum += T(p.factor) * row[k] * kv[p.kv + n.size + v];
                }
                y[i * n.values + v] = sum;
            }
        });
    release(call->queue, room);
}
CUDA_KERNEL(cuda_relative_attention, relative_attention)

// A thread has all queries of the head whose tables it adds to.
template <typename T> static void relative_attention_dx(const CudaCall *call)
{
    const Distances n = distances_of(call, 1);
    const In<T> dy = in<T>(call, 0), q = in<T>(call, 1), kv = in<T>(call, 2),
                a = in<T>(call, 3), b = in<T>(call, 4);
    Out<T> dq = out<T>(call, 0), dkv = out<T>(call, 1), da = out<T>(call, 2),
           db = out<T>(call, 3);
    for (uint32_t o = 0; o < 4; o++)
        zero(call->queue, out<T>(call, o), exec_shard_elements(&call->out[o]));
    T *room = scratch<T>(call->queue, n.heads * n.seq);
    each(
        call->queue, n.heads, BODY(uint64_t h) {
            T *row = room + h * n.seq;
            for (uint64_t j = 0; j < n.batch * n.seq * n.group; j++) {
                const uint64_t i = (j / n.group * n.heads + h) * n.group + j % n.group,
                               from = i * n.values;
                T mean = 0;
                distance_softmax<T>(n, i, q, kv, a, b, row);
                for (uint64_t k = 0; k < n.seq; k++) {
                    const DistancePair p(n, i, k);
                    for (uint64_t v = 0; v < n.values; v++)
                        mean +=
                            T(p.factor) * row[k] * dy[from + v] * kv[p.kv + n.size + v];
                }
                for (uint64_t k = 0; k < n.seq; k++) {
                    const DistancePair p(n, i, k);
                    T along = 0;
                    for (uint64_t v = 0; v < n.values; v++) {
                        along += dy[from + v] * kv[p.kv + n.size + v];
                        dkv[p.kv + n.size + v] += T(p.factor) * row[k] * dy[from + v];
                    }
                    const T ds =
                        row[k] * (T(p.factor) * along - mean) / sqrt(T(3 * n.size));
                    for (uint64_t d = 0; d < n.size; d++) {
                        dq[p.q + d] += ds * (kv[p.kv + d] + a[p.a + d]);
                        dkv[p.kv + d] += ds * (q[p.q + d] + b[p.b + d]);
                        da[p.a + d] += ds * q[p.q + d];
                        db[p.b + d] += ds * kv[p.kv + d];
                    }
                }
            }
        });
    release(call->queue, room);
}
CUDA_KERNEL(cuda_relative_attention_dx, relative_attention_dx)
