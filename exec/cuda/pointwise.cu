/* Elementwise ops and updates, on GPUs. */
// Elementwise ops and updates; see exec/kernels/pointwise.c and exec/kernels/update.c for what they
// compute.
#include <cmath>

#include "exec/cuda/launch.cuh"
#include "exec/kernels/mask.h"

template <typename T> static void gelu(const CudaCall *call)
{
    const In<T> x = in<T>(call, 0);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]),
        BODY(uint64_t i) { y[i] = T(0.5) * x[i] * (1 + erf(x[i] * T(M_SQRT1_2))); });
}
CUDA_KERNEL(cuda_gelu, gelu)

template <typename T> static void gelu_dx(const CudaCall *call)
{
    const In<T> dy = in<T>(call, 0), x = in<T>(call, 1);
    Out<T> dx = out<T>(call, 0);
    const T scale = T(1 / sqrt(2 * M_PI));
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t i) {
            const T distribution = T(0.5) * (1 + erf(x[i] * T(M_SQRT1_2)));
            dx[i] = dy[i] * (distribution + x[i] * scale * exp(T(-0.5) * x[i] * x[i]));
        });
}
CUDA_KERNEL(cuda_gelu_dx, gelu_dx)

template <typename T> static void relu(const CudaCall *call)
{
    const In<T> x = in<T>(call, 0);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]),
        BODY(uint64_t i) { y[i] = x[i] > 0 ? x[i] : 0; });
}
CUDA_KERNEL(cuda_relu, relu)

template <typename T> static void relu_dx(const CudaCall *call)
{
    const In<T> dy = in<T>(call, 0), x = in<T>(call, 1);
    Out<T> dx = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]),
        BODY(uint64_t i) { dx[i] = x[i] > 0 ? dy[i] : 0; });
}
CUDA_KERNEL(cuda_relu_dx, relu_dx)

// A shape that a body can capture.
struct Whole {
    uint32_t dim[TENSOR_MAX_RANK];
};

template <typename T> static void dropout(const CudaCall *call)
{
    const ExecShard shard = call->in[0];
    const OpAttr attr = call->op->attr;
    const In<T> x = in<T>(call, 0);
    Out<T> y = out<T>(call, 0);
    Whole whole;
    for (uint32_t d = 0; d < TENSOR_MAX_RANK; d++)
        whole.dim[d] = graph_tensor(call->graph, call->op->in[0])->dim[d];
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t i) {
            const uint64_t index =
                mask_index(shard.rank, shard.dim, shard.offset, whole.dim, i);
            y[i] = mask_uniform(attr.seed, index) >= attr.rate ? T(x[i] / (1 - attr.rate))
                                                               : 0;
        });
}
CUDA_KERNEL(cuda_dropout, dropout)

template <typename T> static void add(const CudaCall *call)
{
    const In<T> a = in<T>(call, 0), b = in<T>(call, 1);
    Out<T> y = out<T>(call, 0);
    const Divisor period(exec_shard_elements(&call->in[1]));
    each(
        call->queue, exec_shard_elements(&call->out[0]),
        BODY(uint64_t i) { y[i] = a[i] + b[i % period]; });
}
CUDA_KERNEL(cuda_add, add)

template <typename T> static void copy(const CudaCall *call)
{
    const In<T> x = in<T>(call, 0);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]),
        BODY(uint64_t i) { y[i] = x[i]; });
}
CUDA_KERNEL(cuda_copy, copy)

// --- updates: with a master copy, their last input and output, or without ---

// An update without a master copy has n inputs and n - 1 outputs; with one, the value is read from
// the last input, and the next value goes to the last output as well.
struct Updated {
    uint32_t from, copy;

    Updated(const CudaCall *call, uint32_t n)
        : from(call->op->n_in > n ? n : 0), copy(from ? n - 1 : 0)
    {
    }
};

// `kernel` as the C functions of the update with and without a master copy.
#define CUDA_UPDATE(name, kernel)    \
    CUDA_KERNEL(cuda_##name, kernel) \
    CUDA_KERNEL(cuda_##name##_master, kernel)

// Adam; the value decays by `decay`.
template <typename T> static void adam_decayed(const CudaCall *call, double decay)
{
    const T unscale = T(call->queue->unscale);
    const Updated u(call, 4);
    const In<T> p = in<T>(call, u.from), g = in<T>(call, 1);
    const In<T> m = in<T>(call, 2), v = in<T>(call, 3);
    Out<T> p1 = out<T>(call, 0), m1 = out<T>(call, 1), v1 = out<T>(call, 2);
    Out<T> p2 = out<T>(call, u.copy);
    const T unbias1 = T(1 / (1 - pow(ADAM_BETA1, ADAM_STEP)));
    const T unbias2 = T(1 / (1 - pow(ADAM_BETA2, ADAM_STEP)));
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t i) {
            const T slope = g[i] * unscale;
            m1[i] = T(ADAM_BETA1) * m[i] + T(1 - ADAM_BETA1) * slope;
            v1[i] = T(ADAM_BETA2) * v[i] + T(1 - ADAM_BETA2) * slope * slope;
            p1[i] = p2[i] =
                p[i] - T(LEARNING_RATE) *
                           (m1[i] * unbias1 / (sqrt(v1[i] * unbias2) + T(ADAM_EPSILON)) +
                            T(decay) * p[i]);
        });
}

template <typename T> static void adam(const CudaCall *call)
{
    adam_decayed<T>(call, 0);
}
CUDA_UPDATE(adam, adam)

template <typename T> static void adamw(const CudaCall *call)
{
    adam_decayed<T>(call, ADAMW_DECAY);
}
CUDA_UPDATE(adamw, adamw)

// Adafactor on matrices: the means of squared gradients by row and by column, then the clipped step
// (exec/kernels/update.c). A warp takes a row; columns are summed in blocks of rows first.
template <typename T> static void adafactor(const CudaCall *call)
{
    const T unscale = T(call->queue->unscale);
    const Updated u(call, 4);
    const ExecShard *shard = &call->in[0];
    const In<T> p = in<T>(call, u.from), g = in<T>(call, 1);
    const In<T> r = in<T>(call, 2), c = in<T>(call, 3);
    Out<T> p1 = out<T>(call, 0), r1 = out<T>(call, 1), c1 = out<T>(call, 2);
    Out<T> p2 = out<T>(call, u.copy);
    const Divisor high(shard->dim[shard->rank - 2]), wide(shard->dim[shard->rank - 1]);
    const uint64_t n = high * wide, elements = exec_shard_elements(shard);
    if (elements == 0)
        return;
    enum { BLOCK_ROWS = 64 };
    const uint64_t n_rows = exec_shard_elements(&call->out[1]),
                   n_columns = exec_shard_elements(&call->out[2]),
                   blocks = (high + BLOCK_ROWS - 1) / BLOCK_ROWS,
                   matrices = n_rows / high;
    const T keep = T(ADAFACTOR_BETA), add = T(1 - ADAFACTOR_BETA);
    T *part = scratch<T>(call->queue, blocks * n_columns);
    T *mean = scratch<T>(call->queue, 2 * matrices + n_rows), *rate = mean + matrices,
      *squares = rate + matrices;
    rows(
        call->queue, n_rows, BODY(uint64_t i, Lane lane) {
            T sum = 0;
            for (uint64_t j = lane.id; j < wide; j += lane.n) {
                const T slope = g[i * wide + j] * unscale;
                sum += slope * slope + T(ADAFACTOR_EPSILON);
            }
            sum = lane.sum(sum);
            if (lane.id == 0)
                r1[i] = keep * r[i] + add * sum / T(wide);
        });
    each(
        call->queue, blocks * n_columns, BODY(uint64_t at) {
            const uint64_t b = at / n_columns, k = at % n_columns;
            const In<T> column = g + k / wide * n + k % wide;
            T sum = 0;
            for (uint64_t i = b * BLOCK_ROWS; i < (b + 1) * BLOCK_ROWS && i < high; i++) {
                const T slope = column[i * wide] * unscale;
                sum += slope * slope + T(ADAFACTOR_EPSILON);
            }
            part[at] = sum;
        });
    each(
        call->queue, n_columns, BODY(uint64_t k) {
            T sum = 0;
            for (uint64_t b = 0; b < blocks; b++)
                sum += part[b * n_columns + k];
            c1[k] = keep * c[k] + add * sum / T(high);
        });
    rows(
        call->queue, matrices, BODY(uint64_t m, Lane lane) {
            T sum = 0;
            for (uint64_t i = lane.id; i < high; i += lane.n)
                sum += r1[m * high + i];
            sum = lane.sum(sum);
            if (lane.id == 0)
                mean[m] = sum / T(high);
        });
    rows(
        call->queue, n_rows, BODY(uint64_t i, Lane lane) {
            const uint64_t m = i / high;
            T sum = 0;
            for (uint64_t j = lane.id; j < wide; j += lane.n) {
                const T slope = g[i * wide + j] * unscale;
                sum += slope * slope * mean[m] / (r1[i] * c1[m * wide + j]);
            }
            sum = lane.sum(sum);
            if (lane.id == 0)
                squares[i] = sum;
        });
    rows(
        call->queue, matrices, BODY(uint64_t m, Lane lane) {
            T sum = 0;
            for (uint64_t i = lane.id; i < high; i += lane.n)
                sum += squares[m * high + i];
            const T size = sqrt(lane.sum(sum) / T(n)) / T(ADAFACTOR_CLIPPING);
            if (lane.id == 0)
                rate[m] = T(LEARNING_RATE) / (size > 1 ? size : T(1));
        });
    each(
        call->queue, elements, BODY(uint64_t at) {
            const uint64_t i = at / wide, m = i / high;
            p1[at] = p2[at] =
                p[at] - rate[m] * unscale * g[at] /
                            sqrt(r1[i] * c1[m * wide + at % wide] / mean[m]);
        });
    release(call->queue, part);
    release(call->queue, mean);
}
CUDA_UPDATE(adafactor, adafactor)

template <typename T> static void adafactor_vector(const CudaCall *call)
{
    const T unscale = T(call->queue->unscale);
    const Updated u(call, 3);
    const In<T> p = in<T>(call, u.from), g = in<T>(call, 1), v = in<T>(call, 2);
    Out<T> p1 = out<T>(call, 0), v1 = out<T>(call, 1), p2 = out<T>(call, u.copy);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t i) {
            const T slope = g[i] * unscale;
            v1[i] = T(ADAFACTOR_BETA) * v[i] +
                    T(1 - ADAFACTOR_BETA) * (slope * slope + T(ADAFACTOR_EPSILON));
            p1[i] = p2[i] = p[i] - T(LEARNING_RATE) * slope / sqrt(v1[i]);
        });
}
CUDA_UPDATE(adafactor_vector, adafactor_vector)

template <typename T> static void sgd(const CudaCall *call)
{
    const T unscale = T(call->queue->unscale);
    const Updated u(call, 2);
    const In<T> p = in<T>(call, u.from), g = in<T>(call, 1);
    Out<T> p1 = out<T>(call, 0), p2 = out<T>(call, u.copy);
    each(
        call->queue, exec_shard_elements(&call->out[0]),
        BODY(uint64_t i) { p1[i] = p2[i] = p[i] - T(LEARNING_RATE) * unscale * g[i]; });
}
CUDA_UPDATE(sgd, sgd)

template <typename T> static void lion(const CudaCall *call)
{
    const T unscale = T(call->queue->unscale);
    const Updated u(call, 3);
    const In<T> p = in<T>(call, u.from), g = in<T>(call, 1), m = in<T>(call, 2);
    Out<T> p1 = out<T>(call, 0), m1 = out<T>(call, 1), p2 = out<T>(call, u.copy);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t i) {
            const T slope = g[i] * unscale;
            const T v = T(LION_BETA1) * m[i] + T(1 - LION_BETA1) * slope;
            m1[i] = T(LION_BETA2) * m[i] + T(1 - LION_BETA2) * slope;
            p1[i] = p2[i] = p[i] - T(LEARNING_RATE) * (v > 0   ? T(1)
                                                       : v < 0 ? T(-1)
                                                               : T(0));
        });
}
CUDA_UPDATE(lion, lion)

// out [n, m] = a x y + b z of plain numbers, x [n, k] and y [k, m], or y [m, k] if it is turned.
template <typename T>
static void multiply_add(CudaQueue *queue, T a, const T *x, const T *y, bool turned, T b,
                         const T *z, uint64_t n, uint64_t k, uint64_t m, T *out)
{
    each(
        queue, n * m, BODY(uint64_t i) {
            const T *row = x + i / m * k;
            T sum = 0;
            for (uint64_t l = 0; l < k; l++)
                sum += row[l] * (turned ? y[i % m * k + l] : y[l * m + i % m]);
            out[i] = a * sum + (z ? b * z[i] : T(0));
        });
}

template <typename T> static void muon(const CudaCall *call)
{
    const T unscale = T(call->queue->unscale);
    const ExecShard *shard = &call->in[0];
    const Updated u(call, 3);
    const In<T> p = in<T>(call, u.from), g = in<T>(call, 1), m = in<T>(call, 2);
    Out<T> p1 = out<T>(call, 0), m1 = out<T>(call, 1), p2 = out<T>(call, u.copy);
    const uint64_t rows_n = shard->dim[shard->rank - 2],
                   columns = shard->dim[shard->rank - 1], size = rows_n * columns;
    const bool tall = rows_n > columns;
    const uint64_t n = tall ? columns : rows_n, wide = tall ? rows_n : columns;
    const uint64_t matrices = size ? exec_shard_elements(shard) / size : 0;
    T *both = scratch<T>(call->queue, 2 * size), *x = both, *next = both + size;
    T *a = scratch<T>(call->queue, 2 * n * n), *b = a + n * n;
    for (uint64_t k = 0; k < matrices; k++) {
        const uint64_t at = k * size;
        each(
            call->queue, size, BODY(uint64_t i) {
                const T slope = g[at + i] * unscale;
                const T mean =
                    T(MUON_MOMENTUM) * m[at + i] + T(1 - MUON_MOMENTUM) * slope;
                m1[at + i] = mean;
                next[tall ? i % columns * rows_n + i / columns : i] =
                    T(MUON_MOMENTUM) * mean + T(1 - MUON_MOMENTUM) * slope;
            });
        rows(
            call->queue, 1, BODY(uint64_t, Lane lane) {
                T squares = 0;
                for (uint64_t i = lane.id; i < size; i += lane.n)
                    squares += next[i] * next[i];
                const T norm = sqrt(lane.sum(squares)) + T(MUON_EPSILON);
                for (uint64_t i = lane.id; i < size; i += lane.n)
                    x[i] = next[i] / norm;
            });
        for (uint32_t step = 0; step < MUON_STEPS; step++) {
            multiply_add<T>(call->queue, 1, x, x, true, 0, NULL, n, wide, n, a);
            multiply_add<T>(call->queue, T(MUON_C), a, a, false, T(MUON_B), a, n, n, n,
                            b);
            multiply_add<T>(call->queue, 1, b, x, false, T(MUON_A), x, n, n, wide, next);
            T *last = x;
            x = next;
            next = last;
        }
        const T rate =
            T(LEARNING_RATE * sqrt(tall ? (double)rows_n / (double)columns : 1.0));
        each(
            call->queue, size, BODY(uint64_t i) {
                p1[at + i] = p2[at + i] =
                    p[at + i] - rate * x[tall ? i % columns * rows_n + i / columns : i];
            });
    }
    release(call->queue, both);
    release(call->queue, a);
}

CUDA_UPDATE(muon, muon)

// --- tanh, scales, and the loss of differences ---

template <typename T> static void cuda_tanh_of(const CudaCall *call)
{
    const bool sigmoid = call->op->attr.sigmoid;
    const In<T> x = in<T>(call, 0);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]),
        BODY(uint64_t i) { y[i] = sigmoid ? 1 / (1 + exp(-T(x[i]))) : tanh(T(x[i])); });
}
CUDA_KERNEL(cuda_tanh, cuda_tanh_of)

template <typename T> static void tanh_dx(const CudaCall *call)
{
    const bool sigmoid = call->op->attr.sigmoid;
    const In<T> dy = in<T>(call, 0), y = in<T>(call, 1);
    Out<T> dx = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t i) {
            dx[i] = dy[i] * (sigmoid ? y[i] * (1 - y[i]) : 1 - y[i] * y[i]);
        });
}
CUDA_KERNEL(cuda_tanh_dx, tanh_dx)

template <typename T> static void scale(const CudaCall *call)
{
    const T by = T(call->op->attr.scale);
    const In<T> x = in<T>(call, 0);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]),
        BODY(uint64_t i) { y[i] = by * x[i]; });
}
CUDA_KERNEL(cuda_scale, scale)

template <typename T> static void square_loss(const CudaCall *call)
{
    const In<T> x = in<T>(call, 0), t = in<T>(call, 1);
    sum_all<T>(
        call, exec_shard_elements(&call->in[0]),
        BODY(uint64_t i) { return (x[i] - t[i]) * (x[i] - t[i]) / 2; });
}
CUDA_KERNEL(cuda_square_loss, square_loss)

template <typename T> static void square_loss_dx(const CudaCall *call)
{
    const In<T> loss = in<T>(call, 0), x = in<T>(call, 1), t = in<T>(call, 2);
    Out<T> dx = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]),
        BODY(uint64_t i) { dx[i] = loss[0] * (x[i] - t[i]); });
}
CUDA_KERNEL(cuda_square_loss_dx, square_loss_dx)
