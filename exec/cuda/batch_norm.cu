/* Batch normalisation, on GPUs. */
// Batch norm, joined channels, and losses of sigmoids and of smoothed labels; see
// exec/kernels/batch_norm.c.
#include <cmath>

#include "exec/cuda/launch.cuh"

// x[n, o, P, Q] of this shard; `count`: elements per channel of the whole batch.
struct Shape {
    uint64_t samples, channels, plane;
    double count;
};

static Shape shape_of(const CudaCall *call, uint32_t x)
{
    const ExecShard *shard = &call->in[x];
    const uint64_t plane = (uint64_t)shard->dim[2] * shard->dim[3];
    const Tensor *whole = graph_tensor(call->graph, call->op->in[x]);
    return {shard->dim[0], shard->dim[1], plane, (double)whole->dim[0] * (double)plane};
}

template <typename T> struct Moments {
    T mean, inverse;
};

template <typename T>
__host__ __device__ static Moments<T> moments_of(In<T> sums, const Shape &n,
                                                 uint64_t channel)
{
    const T mean = sums[channel] / T(n.count);
    const T squares = sums[n.channels + channel] / T(n.count);
    const T variance = squares - mean * mean;
    return {mean, T(1 / sqrt((variance > 0 ? variance : T(0)) + T(BATCH_NORM_EPSILON)))};
}

__host__ __device__ static uint64_t channel_of(const Shape &n, uint64_t i)
{
    return i / n.plane % n.channels;
}

// Index in the shard of element k of a channel.
__host__ __device__ static uint64_t element_of(const Shape &n, uint64_t channel,
                                               uint64_t k)
{
    return (k / n.plane * n.channels + channel) * n.plane + k % n.plane;
}

template <typename T> static void moments(const CudaCall *call)
{
    const Shape n = shape_of(call, 0);
    const In<T> x = in<T>(call, 0);
    Out<T> sums = out<T>(call, 0);
    rows(
        call->queue, n.channels, BODY(uint64_t o, Lane lane) {
            T sum = 0, squares = 0;
            for (uint64_t k = lane.id; k < n.samples * n.plane; k += lane.n) {
                const T value = x[element_of(n, o, k)];
                sum += value;
                squares += value * value;
            }
            sum = lane.sum(sum);
            squares = lane.sum(squares);
            if (lane.id == 0) {
                sums[o] = sum;
                sums[n.channels + o] = squares;
            }
        });
}
CUDA_KERNEL(cuda_moments, moments)

template <typename T> static void moments_dx(const CudaCall *call)
{
    const Shape n = shape_of(call, 1);
    const In<T> dm = in<T>(call, 0), x = in<T>(call, 1);
    Out<T> dx = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t i) {
            const uint64_t o = channel_of(n, i);
            dx[i] = dm[o] + 2 * x[i] * dm[n.channels + o];
        });
}
CUDA_KERNEL(cuda_moments_dx, moments_dx)

template <typename T> static void batch_norm(const CudaCall *call)
{
    const Shape n = shape_of(call, 0);
    const In<T> x = in<T>(call, 0), sums = in<T>(call, 1), gamma = in<T>(call, 2),
                beta = in<T>(call, 3);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t i) {
            const uint64_t o = channel_of(n, i);
            const Moments<T> m = moments_of<T>(sums, n, o);
            y[i] = (x[i] - m.mean) * m.inverse * gamma[o] + beta[o];
        });
}
CUDA_KERNEL(cuda_batch_norm, batch_norm)

template <typename T> static void batch_norm_dx(const CudaCall *call)
{
    const Shape n = shape_of(call, 0);
    const In<T> dy = in<T>(call, 0), sums = in<T>(call, 1), gamma = in<T>(call, 2);
    Out<T> dx = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t i) {
            const uint64_t o = channel_of(n, i);
            dx[i] = dy[i] * gamma[o] * moments_of<T>(sums, n, o).inverse;
        });
}
CUDA_KERNEL(cuda_batch_norm_dx, batch_norm_dx)

template <typename T> static void batch_norm_dm(const CudaCall *call)
{
    const Shape n = shape_of(call, 1);
    const In<T> dy = in<T>(call, 0), x = in<T>(call, 1), sums = in<T>(call, 2),
                gamma = in<T>(call, 3);
    Out<T> dm = out<T>(call, 0);
    rows(
        call->queue, n.channels, BODY(uint64_t o, Lane lane) {
            const Moments<T> m = moments_of<T>(sums, n, o);
            T mean = 0, slope = 0;
            for (uint64_t k = lane.id; k < n.samples * n.plane; k += lane.n) {
                const uint64_t i = element_of(n, o, k);
                const T g = dy[i] * gamma[o] * m.inverse;
                mean -= g;
                slope -= T(0.5) * g * (x[i] - m.mean) * m.inverse * m.inverse;
            }
            mean = lane.sum(mean);
            slope = lane.sum(slope);
            if (lane.id == 0) {
                dm[o] = (mean - 2 * m.mean * slope) / T(n.count);
                dm[n.channels + o] = slope / T(n.count);
            }
        });
}
CUDA_KERNEL(cuda_batch_norm_dm, batch_norm_dm)

template <typename T> static void batch_norm_dw(const CudaCall *call)
{
    const Shape n = shape_of(call, 1);
    const In<T> dy = in<T>(call, 0), x = in<T>(call, 1), sums = in<T>(call, 2);
    Out<T> dgamma = out<T>(call, 0), dbeta = out<T>(call, 1);
    rows(
        call->queue, n.channels, BODY(uint64_t o, Lane lane) {
            const Moments<T> m = moments_of<T>(sums, n, o);
            T gamma = 0, beta = 0;
            for (uint64_t k = lane.id; k < n.samples * n.plane; k += lane.n) {
                const uint64_t i = element_of(n, o, k);
                gamma += dy[i] * (x[i] - m.mean) * m.inverse;
                beta += dy[i];
            }
            gamma = lane.sum(gamma);
            beta = lane.sum(beta);
            if (lane.id == 0) {
                dgamma[o] = gamma;
                dbeta[o] = beta;
            }
        });
}
CUDA_KERNEL(cuda_batch_norm_dw, batch_norm_dw)

// --- channels ---

template <typename T>
static void copy_channels(const CudaCall *call, const ExecShard *from,
                          uint64_t from_first, const ExecShard *to, uint64_t to_first,
                          uint64_t channels)
{
    uint64_t inner = 1;
    for (uint32_t d = 2; d < from->rank; d++)
        inner *= from->dim[d];
    const uint64_t from_channels = from->dim[1], to_channels = to->dim[1];
    const In<T> x = operand<T>(from);
    Out<T> y = operand<T>(to);
    each(
        call->queue, from->dim[0] * channels * inner, BODY(uint64_t i) {
            const uint64_t n = i / (channels * inner), at = i % (channels * inner);
            y[(n * to_channels + to_first) * inner + at] =
                x[(n * from_channels + from_first) * inner + at];
        });
}

template <typename T> static void concat(const CudaCall *call)
{
    const ExecShard *a = &call->in[0], *b = &call->in[1];
    copy_channels<T>(call, a, 0, &call->out[0], 0, a->dim[1]);
    copy_channels<T>(call, b, 0, &call->out[0], a->dim[1], b->dim[1]);
}
CUDA_KERNEL(cuda_concat, concat)

template <typename T> static void concat_part(const CudaCall *call)
{
    copy_channels<T>(call, &call->in[0], call->op->attr.first, &call->out[0], 0,
                     call->out[0].dim[1]);
}
CUDA_KERNEL(cuda_concat_part, concat_part)

template <typename T> static void part_dx(const CudaCall *call)
{
    zero(call->queue, out<T>(call, 0), exec_shard_elements(&call->out[0]));
    copy_channels<T>(call, &call->in[0], 0, &call->out[0], call->op->attr.first,
                     call->in[0].dim[1]);
}
CUDA_KERNEL(cuda_part_dx, part_dx)

// --- losses ---

template <typename T> static void sigmoid_loss(const CudaCall *call)
{
    const In<T> x = in<T>(call, 0), t = in<T>(call, 1);
    sum_all<T>(
        call, exec_shard_elements(&call->in[0]), BODY(uint64_t i) {
            const T size = x[i] > 0 ? x[i] : -x[i];
            return (x[i] > 0 ? x[i] : T(0)) + log1p(exp(-size)) - x[i] * t[i];
        });
}
CUDA_KERNEL(cuda_sigmoid_loss, sigmoid_loss)

template <typename T> static void sigmoid_loss_dx(const CudaCall *call)
{
    const In<T> dloss = in<T>(call, 0), x = in<T>(call, 1), t = in<T>(call, 2);
    Out<T> dx = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->in[1]),
        BODY(uint64_t i) { dx[i] = dloss[0] * (1 / (1 + exp(-x[i])) - t[i]); });
}
CUDA_KERNEL(cuda_sigmoid_loss_dx, sigmoid_loss_dx)

// Weights of a token's entries in the loss.
struct Smooth {
    uint64_t v, first;
    double even, label;
};

static Smooth smooth_of(const CudaCall *call, const ExecShard *logp, TensorId whole)
{
    const uint32_t last = logp->rank - 1;
    const double scale = call->op->attr.scale;
    return {logp->dim[last], logp->offset[last],
            scale / graph_tensor(call->graph, whole)->dim[last], 1 - scale};
}

template <typename T>
__host__ __device__ static T weight_of(const Smooth &s, T label, uint64_t j)
{
    return T(s.even) + (label == T(j + s.first) ? T(s.label) : T(0));
}

template <typename T> static void smooth_nll_sum(const CudaCall *call)
{
    const Smooth s = smooth_of(call, &call->in[0], call->op->in[0]);
    const In<T> logp = in<T>(call, 0), label = in<T>(call, 1);
    sum_all<T>(
        call, exec_shard_elements(&call->in[0]),
        BODY(uint64_t i) { return -logp[i] * weight_of<T>(s, label[i / s.v], i % s.v); });
}
CUDA_KERNEL(cuda_smooth_nll_sum, smooth_nll_sum)

template <typename T> static void smooth_nll_sum_dx(const CudaCall *call)
{
    const Smooth s = smooth_of(call, &call->out[0], call->op->out[0]);
    const In<T> dloss = in<T>(call, 0), label = in<T>(call, 1);
    Out<T> dlogp = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t i) {
            dlogp[i] = -dloss[0] * weight_of<T>(s, label[i / s.v], i % s.v);
        });
}
CUDA_KERNEL(cuda_smooth_nll_sum_dx, smooth_nll_sum_dx)
