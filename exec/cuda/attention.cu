/* Attention with stored probabilities, on GPUs. */
// Scaled dot-product self-attention; see exec/kernels/grouped_attention.c for shapes and equations.
// All heads of all samples are one batch of matrix products over qkv where it lies.
#include <cmath>

#include "exec/cuda/launch.cuh"
#include "exec/kernels/mask.h"

struct Shape {
    uint64_t batch, seq, heads, size;
    MaskRows mask;
};

// `qkv`: the index of qkv among the op's inputs.
static Shape shape_of(const CudaCall *call, uint32_t qkv)
{
    const ExecShard *x = &call->in[qkv];
    const uint32_t all_heads = graph_tensor(call->graph, call->op->in[qkv])->dim[3];
    return {x->dim[0],
            x->dim[1],
            x->dim[3],
            x->dim[4],
            {call->op->attr.rate, call->op->attr.seed, x->dim[3], x->offset[0],
             x->offset[3], all_heads, x->dim[1]}};
}

// Query (0), key (1) or value (2) matrices [seq, size] of all heads in qkv[b, s, t, h, D].
template <typename P>
static CudaMatrix part(const Shape &n, P qkv, uint64_t t, bool transposed)
{
    const uint64_t row = n.heads * n.size;
    return samples(qkv + t * row, transposed, 3 * row, n.size, 3 * n.seq * row);
}

// Matrices of the heads in y[b, s, h, D], and matrices [seq, seq] in P[b, h, s, s].
template <typename P> static CudaMatrix heads(const Shape &n, P y)
{
    return samples(y, false, n.heads * n.size, n.size, n.seq * n.heads * n.size);
}

template <typename P> static CudaMatrix square(const Shape &n, P p, bool transposed)
{
    return samples(p, transposed, n.seq, n.seq * n.seq, n.heads * n.seq * n.seq);
}

static void multiply(CudaQueue *queue, const Shape &n, uint64_t rows, uint64_t columns,
                     uint64_t sum, double alpha, const CudaMatrix &x, const CudaMatrix &y,
                     const CudaMatrix &z)
{
    if (n.batch > 0)
        queue_multiply(queue, {rows, columns, sum, n.heads, alpha, &x, &y,
                               const_cast<void *>(z.data), z.ld, z.step, z.numbers,
                               n.batch, z.sample});
}

// Softmax of the rows of P[.., q, k]; a causal query sees no later key.
template <typename T>
static void softmax_rows(CudaQueue *queue, Out<T> p, uint64_t n_rows, uint64_t seq,
                         bool causal)
{
    rows(
        queue, n_rows, BODY(uint64_t r, Lane lane) {
            const Out<T> row = p + r * seq;
            const uint64_t keys = causal ? r % seq + 1 : seq;
            T top = -INFINITY, sum = 0;
            for (uint64_t i = lane.id; i < keys; i += lane.n)
                top = row[i] > top ? row[i] : top;
            top = lane.max(top);
            for (uint64_t i = lane.id; i < keys; i += lane.n) {
                row[i] = exp(row[i] - top);
                sum += row[i];
            }
            sum = lane.sum(sum);
            for (uint64_t i = lane.id; i < seq; i += lane.n)
                row[i] = i < keys ? row[i] / sum : 0;
        });
}

// to = from times dropout's factors, for all rows of P; returns `from` itself without dropout.
template <typename T>
static In<T> drop(CudaQueue *queue, const Shape &n, In<T> from, Out<T> to)
{
    const MaskRows mask = n.mask;
    const Divisor seq(n.seq);
    if (mask.rate == 0)
        return from;
    each(
        queue, n.batch * n.heads * seq * seq,
        BODY(uint64_t i) { to[i] = from[i] * T(mask_factor(&mask, i / seq, i % seq)); });
    return to;
}

// Room for a matrix like P if there is dropout, else NULL.
template <typename T> static Out<T> room(CudaQueue *queue, const Shape &n, In<T> like)
{
    return n.mask.rate == 0
               ? Out<T>()
               : scratch_like<T>(queue, n.batch * n.heads * n.seq * n.seq, like);
}

template <typename T> static void attention(const CudaCall *call)
{
    const Shape n = shape_of(call, 0);
    const In<T> qkv = in<T>(call, 0);
    Out<T> y = out<T>(call, 0), p = out<T>(call, 1);
    const double scale = 1 / sqrt((double)n.size);
    multiply(call->queue, n, n.seq, n.seq, n.size, scale, part(n, qkv, 0, false),
             part(n, qkv, 1, true), square(n, p, false));
    softmax_rows<T>(call->queue, p, n.batch * n.heads * n.seq, n.seq,
                    call->op->attr.causal);
    const Out<T> spare = room<T>(call->queue, n, qkv);
    const In<T> dropped = drop<T>(call->queue, n, p, spare);
    multiply(call->queue, n, n.seq, n.size, n.seq, 1, square(n, dropped, false),
             part(n, qkv, 2, false), heads(n, y));
    if (spare)
        release(call->queue, spare);
}
CUDA_KERNEL(cuda_attention, attention)

// dP = f dy V', in place dS = P (dP - sum P dP), dQ = scale dS K, dK = scale dS' Q, dV = (f P)' dy.
template <typename T> static void attention_dx(const CudaCall *call)
{
    const Shape n = shape_of(call, 1);
    const In<T> dy = in<T>(call, 0), qkv = in<T>(call, 1), p = in<T>(call, 2);
    Out<T> dqkv = out<T>(call, 0);
    const double scale = 1 / sqrt((double)n.size);
    const uint64_t seq = n.seq, n_rows = n.batch * n.heads * n.seq;
    const Out<T> ds = scratch_like<T>(call->queue, n_rows * seq, qkv);
    const Out<T> spare = room<T>(call->queue, n, qkv);
    const In<T> dropped = drop<T>(call->queue, n, p, spare);
    multiply(call->queue, n, seq, seq, n.size, 1, heads(n, dy), part(n, qkv, 2, true),
             square(n, ds, false));
    drop<T>(call->queue, n, ds, ds);
    rows(
        call->queue, n_rows, BODY(uint64_t r, Lane lane) {
            T mean = 0;
            for (uint64_t i = lane.id; i < seq; i += lane.n)
                mean += p[r * seq + i] * ds[r * seq + i];
            mean = lane.sum(mean);
            for (uint64_t i = lane.id; i < seq; i += lane.n)
                ds[r * seq + i] = p[r * seq + i] * (ds[r * seq + i] - mean);
        });
    multiply(call->queue, n, seq, n.size, seq, scale, square(n, ds, false),
             part(n, qkv, 1, false), part(n, dqkv, 0, false));
    multiply(call->queue, n, seq, n.size, seq, scale, square(n, ds, true),
             part(n, qkv, 0, false), part(n, dqkv, 1, false));
    multiply(call->queue, n, seq, n.size, seq, 1, square(n, dropped, true), heads(n, dy),
             part(n, dqkv, 2, false));
    if (spare)
        release(call->queue, spare);
    release(call->queue, ds);
}
CUDA_KERNEL(cuda_attention_dx, attention_dx)
