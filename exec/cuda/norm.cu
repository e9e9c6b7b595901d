/* Layer norm and log-softmax, on GPUs. */
// Normalisation over the last dim, which is whole: one warp per row. See exec/kernels/norm.c for
// the equations.
#include <cmath>

#include "exec/cuda/launch.cuh"

static uint64_t last_dim(const ExecShard *shard)
{
    return shard->dim[shard->rank - 1];
}

static uint64_t rows_of(const ExecShard *shard)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d + 1 < shard->rank; d++)
        n *= shard->dim[d];
    return n;
}

template <typename T> struct Moments {
    T mean, inverse; // 1 / standard deviation
};

template <typename T>
__host__ __device__ static Moments<T> moments(In<T> x, uint64_t n, Lane lane)
{
    T sum = 0, squares = 0;
    for (uint64_t i = lane.id; i < n; i += lane.n)
        sum += x[i];
    const T mean = lane.sum(sum) / T(n);
    for (uint64_t i = lane.id; i < n; i += lane.n)
        squares += (x[i] - mean) * (x[i] - mean);
    return {mean, T(1 / sqrt(lane.sum(squares) / T(n) + T(LAYER_NORM_EPSILON)))};
}

template <typename T> static void layer_norm(const CudaCall *call)
{
    const bool plain = call->op->n_in == 1;
    const In<T> x = in<T>(call, 0), gamma = in<T>(call, plain ? 0 : 1),
                beta = in<T>(call, plain ? 0 : 2);
    Out<T> y = out<T>(call, 0);
    const uint64_t n = last_dim(&call->in[0]);
    rows(
        call->queue, rows_of(&call->in[0]), BODY(uint64_t r, Lane lane) {
            const Moments<T> m = moments<T>(x + r * n, n, lane);
            for (uint64_t i = lane.id; i < n; i += lane.n)
                y[r * n + i] =
                    (x[r * n + i] - m.mean) * m.inverse * (plain ? T(1) : T(gamma[i])) +
                    (plain ? T(0) : T(beta[i]));
        });
}
CUDA_KERNEL(cuda_layer_norm, layer_norm)

template <typename T> static void layer_norm_dx(const CudaCall *call)
{
    const bool plain = call->op->n_in == 2;
    const In<T> dy = in<T>(call, 0), x = in<T>(call, 1),
                gamma = in<T>(call, plain ? 0 : 2);
    Out<T> dx = out<T>(call, 0);
    const uint64_t n = last_dim(&call->in[1]);
    rows(
        call->queue, rows_of(&call->in[1]), BODY(uint64_t r, Lane lane) {
            const In<T> from = x + r * n, g = dy + r * n;
            const Moments<T> m = moments<T>(from, n, lane);
            T sum = 0, dot = 0;
            for (uint64_t i = lane.id; i < n; i += lane.n) {
                const T slope_i = plain ? T(g[i]) : g[i] * gamma[i];
                sum += slope_i;
                dot += slope_i * (from[i] - m.mean) * m.inverse;
            }
            const T mean = lane.sum(sum) / T(n), slope = lane.sum(dot) / T(n);
            for (uint64_t i = lane.id; i < n; i += lane.n)
                dx[r * n + i] = m.inverse * ((plain ? T(g[i]) : g[i] * gamma[i]) - mean -
                                             (from[i] - m.mean) * m.inverse * slope);
        });
}
CUDA_KERNEL(cuda_layer_norm_dx, layer_norm_dx)

// Columns are summed over rows in blocks of rows first, then over blocks, always in the same order.
template <typename T> static void layer_norm_dw(const CudaCall *call)
{
    const uint64_t block = 64;
    const In<T> dy = in<T>(call, 0), x = in<T>(call, 1);
    Out<T> dgamma = out<T>(call, 0), dbeta = out<T>(call, 1);
    const uint64_t n = last_dim(&call->in[1]), h = last_dim(&call->in[0]);
    const uint64_t n_rows = rows_of(&call->in[1]), blocks = (n_rows + block - 1) / block;
    const uint64_t first = call->in[0].offset[call->in[0].rank - 1] -
                           call->in[1].offset[call->in[1].rank - 1];
    T *moment = scratch<T>(call->queue, 2 * n_rows);
    T *part = scratch<T>(call->queue, 2 * blocks * h);
    rows(
        call->queue, n_rows, BODY(uint64_t r, Lane lane) {
            const Moments<T> m = moments<T>(x + r * n, n, lane);
            if (lane.id == 0) {
                moment[2 * r] = m.mean;
                moment[2 * r + 1] = m.inverse;
            }
        });
    each(
        call->queue, blocks * h, BODY(uint64_t at) {
            const uint64_t b = at / h, i = at % h;
            T gamma = 0, beta = 0;
            for (uint64_t r = b * block; r < (b + 1) * block && r < n_rows; r++) {
                gamma += dy[r * h + i] * (x[r * n + first + i] - moment[2 * r]) *
                         moment[2 * r + 1];
                beta += dy[r * h + i];
            }
            part[2 * at] = gamma;
            part[2 * at + 1] = beta;
        });
    each(
        call->queue, h, BODY(uint64_t i) {
            T gamma = 0, beta = 0;
            for (uint64_t b = 0; b < blocks; b++) {
                gamma += part[2 * (b * h + i)];
                beta += part[2 * (b * h + i) + 1];
            }
            dgamma[i] = gamma;
            dbeta[i] = beta;
        });
    release(call->queue, moment);
    release(call->queue, part);
}
CUDA_KERNEL(cuda_layer_norm_dw, layer_norm_dw)

template <typename T> static void log_softmax(const CudaCall *call)
{
    const In<T> x = in<T>(call, 0);
    Out<T> y = out<T>(call, 0);
    const uint64_t n = last_dim(&call->in[0]);
    rows(
        call->queue, rows_of(&call->in[0]), BODY(uint64_t r, Lane lane) {
            const In<T> from = x + r * n;
            T top = -INFINITY, sum = 0;
            for (uint64_t i = lane.id; i < n; i += lane.n)
                top = from[i] > top ? from[i] : top;
            top = lane.max(top);
            for (uint64_t i = lane.id; i < n; i += lane.n)
                sum += exp(from[i] - top);
            const T logarithm = log(lane.sum(sum));
            for (uint64_t i = lane.id; i < n; i += lane.n)
                y[r * n + i] = from[i] - top - logarithm;
        });
}
CUDA_KERNEL(cuda_log_softmax, log_softmax)

template <typename T> static void log_softmax_dx(const CudaCall *call)
{
    const In<T> dy = in<T>(call, 0), y = in<T>(call, 1);
    Out<T> dx = out<T>(call, 0);
    const uint64_t n = last_dim(&call->in[1]);
    rows(
        call->queue, rows_of(&call->in[1]), BODY(uint64_t r, Lane lane) {
            T sum = 0;
            for (uint64_t i = lane.id; i < n; i += lane.n)
                sum += dy[r * n + i];
            sum = lane.sum(sum);
            for (uint64_t i = lane.id; i < n; i += lane.n)
                dx[r * n + i] = dy[r * n + i] - exp(y[r * n + i]) * sum;
        });
}
CUDA_KERNEL(cuda_log_softmax_dx, log_softmax_dx)
