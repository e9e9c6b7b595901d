/* Parts of layers beside attention, on GPUs. */
// Gates, convolutions of a few tokens, joined vectors and norms of all heads; see exec/kernels/mixer.c for the equations.
#include <cmath>

#include "exec/cuda/launch.cuh"

template <typename T> struct GateValue {
    T value, slope;
};

template <typename T> __host__ __device__ static GateValue<T> gate_of(bool sigmoid, T x)
{
    const T s = 1 / (1 + exp(-x));
    return sigmoid ? GateValue<T>{s, s * (1 - s)}
                   : GateValue<T>{x * s, s * (1 + x * (1 - s))};
}

template <typename T> static void gate(const CudaCall *call)
{
    const ExecShard *shard = &call->in[0];
    const uint64_t width = shard->dim[shard->rank - 1],
                   gates = call->in[1].dim[shard->rank - 1];
    const bool sigmoid = call->op->attr.sigmoid;
    const In<T> x = in<T>(call, 0), g = in<T>(call, 1);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(shard), BODY(uint64_t i) {
            y[i] = x[i] * gate_of<T>(sigmoid, g[gates == 1 ? i / width : i]).value;
        });
}
CUDA_KERNEL(cuda_gate, gate)

template <typename T> static void gate_dg(const CudaCall *call)
{
    const ExecShard *shard = &call->in[1];
    const uint64_t width = shard->dim[shard->rank - 1],
                   gates = call->in[2].dim[shard->rank - 1],
                   part = gates == 1 ? width : 1;
    const bool sigmoid = call->op->attr.sigmoid;
    const In<T> dy = in<T>(call, 0), x = in<T>(call, 1), g = in<T>(call, 2);
    Out<T> dg = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t i) {
            T sum = 0;
            for (uint64_t j = i * part; j < (i + 1) * part; j++)
                sum += dy[j] * x[j];
            dg[i] = sum * gate_of<T>(sigmoid, g[i]).slope;
        });
}
CUDA_KERNEL(cuda_gate_dg, gate_dg)

template <typename T> static void multiply(const CudaCall *call)
{
    const In<T> x = in<T>(call, 0), y = in<T>(call, 1);
    Out<T> z = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]),
        BODY(uint64_t i) { z[i] = x[i] * y[i]; });
}
CUDA_KERNEL(cuda_multiply, multiply)

template <typename T> static void relu2(const CudaCall *call)
{
    const In<T> x = in<T>(call, 0);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]),
        BODY(uint64_t i) { y[i] = x[i] > 0 ? x[i] * x[i] : T(0); });
}
CUDA_KERNEL(cuda_relu2, relu2)

template <typename T> static void relu2_dx(const CudaCall *call)
{
    const In<T> dy = in<T>(call, 0), x = in<T>(call, 1);
    Out<T> dx = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]),
        BODY(uint64_t i) { dx[i] = x[i] > 0 ? dy[i] * 2 * x[i] : T(0); });
}
CUDA_KERNEL(cuda_relu2_dx, relu2_dx)

/* Elements of a token of x[b,s,*]. */
static uint64_t token_elements(const ExecShard *x)
{
    uint64_t n = 1;
    for (uint32_t d = 2; d < x->rank; d++)
        n *= x->dim[d];
    return n;
}

template <typename T> static void short_conv(const CudaCall *call)
{
    const ExecShard *w = &call->in[1];
    const uint64_t seq = call->in[0].dim[1], channels = token_elements(&call->in[0]),
                   width = w->dim[w->rank - 1];
    const bool biased = call->op->n_in > 2;
    const In<T> x = in<T>(call, 0), weight = in<T>(call, 1),
                bias = in<T>(call, biased ? 2 : 1);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t at) {
            const uint64_t c = at % channels, t = at / channels % seq;
            T sum = biased ? T(bias[c]) : T(0);
            for (uint64_t back = 0; back < width && back <= t; back++)
                sum += weight[c * width + width - 1 - back] * x[at - back * channels];
            y[at] = sum;
        });
}
CUDA_KERNEL(cuda_short_conv, short_conv)

template <typename T> static void short_conv_dx(const CudaCall *call)
{
    const ExecShard *w = &call->in[1];
    const uint64_t seq = call->in[0].dim[1], channels = token_elements(&call->in[0]),
                   width = w->dim[w->rank - 1];
    const In<T> dy = in<T>(call, 0), weight = in<T>(call, 1);
    Out<T> dx = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t at) {
            const uint64_t c = at % channels, t = at / channels % seq;
            T sum = 0;
            for (uint64_t on = 0; on < width && t + on < seq; on++)
                sum += weight[c * width + width - 1 - on] * dy[at + on * channels];
            dx[at] = sum;
        });
}
CUDA_KERNEL(cuda_short_conv_dx, short_conv_dx)

template <typename T> static void short_conv_dw(const CudaCall *call)
{
    const ExecShard *w = &call->out[0];
    const uint64_t tokens = (uint64_t)call->in[0].dim[0] * call->in[0].dim[1],
                   seq = call->in[0].dim[1], channels = token_elements(&call->in[0]),
                   width = w->dim[w->rank - 1];
    const In<T> dy = in<T>(call, 0), x = in<T>(call, 1);
    Out<T> dw = out<T>(call, 0);
    each(
        call->queue, channels * width, BODY(uint64_t i) {
            const uint64_t c = i / width, back = width - 1 - i % width;
            T sum = 0;
            for (uint64_t t = 0; t < tokens; t++)
                if (t % seq >= back)
                    sum += dy[t * channels + c] * x[(t - back) * channels + c];
            dw[i] = sum;
        });
}
CUDA_KERNEL(cuda_short_conv_dw, short_conv_dw)

template <typename T> static void join(const CudaCall *call)
{
    const ExecShard *shard = &call->out[0];
    const uint64_t width = shard->dim[shard->rank - 1],
                   first = call->in[0].dim[shard->rank - 1], second = width - first;
    const In<T> x = in<T>(call, 0), y = in<T>(call, 1);
    Out<T> z = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(shard), BODY(uint64_t at) {
            const uint64_t i = at % width, row = at / width;
            z[at] = i < first ? x[row * first + i] : y[row * second + i - first];
        });
}
CUDA_KERNEL(cuda_join, join)

template <typename T> static void join_part(const CudaCall *call)
{
    const ExecShard *shard = &call->out[0];
    const uint64_t from = call->in[0].dim[shard->rank - 1],
                   to = shard->dim[shard->rank - 1], first = call->op->attr.first;
    const In<T> x = in<T>(call, 0);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(shard),
        BODY(uint64_t at) { y[at] = x[at / to * from + first + at % to]; });
}
CUDA_KERNEL(cuda_join_part, join_part)

template <typename T> __host__ __device__ static T inverse_of(T squares, uint64_t n)
{
    return 1 / sqrt((squares > 0 ? squares : T(0)) / T(n) + T(RMS_NORM_EPSILON));
}

template <typename T>
__host__ __device__ static T row_inverse(In<T> x, uint64_t n, Lane lane)
{
    T squares = 0;
    for (uint64_t i = lane.id; i < n; i += lane.n)
        squares += x[i] * x[i];
    return inverse_of<T>(lane.sum(squares), n);
}

struct GroupRows {
    uint64_t rows, width, groups;
};

static GroupRows group_rows_of(const ExecShard *x)
{
    GroupRows n = {1, x->dim[x->rank - 1], 1};
    for (uint32_t d = 0; d + 1 < x->rank; d++) {
        n.rows *= x->dim[d];
        n.groups *= d < 2 ? 1 : x->dim[d];
    }
    return n;
}

template <typename T> static void group_norm(const CudaCall *call)
{
    const GroupRows n = group_rows_of(&call->in[0]);
    const In<T> x = in<T>(call, 0), gamma = in<T>(call, 1);
    Out<T> y = out<T>(call, 0);
    rows(
        call->queue, n.rows, BODY(uint64_t r, Lane lane) {
            const T inverse = row_inverse<T>(x + r * n.width, n.width, lane);
            for (uint64_t i = lane.id; i < n.width; i += lane.n)
                y[r * n.width + i] =
                    x[r * n.width + i] * inverse * gamma[r % n.groups * n.width + i];
        });
}
CUDA_KERNEL(cuda_group_norm, group_norm)

template <typename T> static void group_norm_dx(const CudaCall *call)
{
    const GroupRows n = group_rows_of(&call->in[1]);
    const In<T> dy = in<T>(call, 0), x = in<T>(call, 1), gamma = in<T>(call, 2);
    Out<T> dx = out<T>(call, 0);
    rows(
        call->queue, n.rows, BODY(uint64_t r, Lane lane) {
            const In<T> from = x + r * n.width, d = dy + r * n.width,
                        weight = gamma + r % n.groups * n.width;
            const T inverse = row_inverse<T>(from, n.width, lane);
            T along = 0;
            for (uint64_t i = lane.id; i < n.width; i += lane.n)
                along += d[i] * weight[i] * from[i];
            along = lane.sum(along) * inverse * inverse / T(n.width);
            for (uint64_t i = lane.id; i < n.width; i += lane.n)
                dx[r * n.width + i] = inverse * (d[i] * weight[i] - from[i] * along);
        });
}
CUDA_KERNEL(cuda_group_norm_dx, group_norm_dx)

template <typename T> static void group_norm_dw(const CudaCall *call)
{
    const GroupRows n = group_rows_of(&call->in[1]);
    const In<T> dy = in<T>(call, 0), x = in<T>(call, 1);
    Out<T> dgamma = out<T>(call, 0);
    T *inverse = scratch<T>(call->queue, n.rows);
    rows(
        call->queue, n.rows, BODY(uint64_t r, Lane lane) {
            const T value = row_inverse<T>(x + r * n.width, n.width, lane);
            if (lane.id == 0)
                inverse[r] = value;
        });
    each(
        call->queue, n.groups * n.width, BODY(uint64_t i) {
            T sum = 0;
            for (uint64_t r = i / n.width; r < n.rows; r += n.groups)
                sum += dy[r * n.width + i % n.width] * x[r * n.width + i % n.width] *
                       inverse[r];
            dgamma[i] = sum;
        });
    release(call->queue, inverse);
}
CUDA_KERNEL(cuda_group_norm_dw, group_norm_dw)

template <typename T> static void squares(const CudaCall *call)
{
    const uint64_t n = token_elements(&call->in[0]);
    const In<T> x = in<T>(call, 0);
    Out<T> y = out<T>(call, 0);
    rows(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t r, Lane lane) {
            T sum = 0;
            for (uint64_t i = lane.id; i < n; i += lane.n)
                sum += x[r * n + i] * x[r * n + i];
            sum = lane.sum(sum);
            if (lane.id == 0)
                y[r] = sum;
        });
}
CUDA_KERNEL(cuda_squares, squares)

template <typename T> static void squares_dx(const CudaCall *call)
{
    const uint64_t n = token_elements(&call->in[1]);
    const In<T> dm = in<T>(call, 0), x = in<T>(call, 1);
    Out<T> dx = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]),
        BODY(uint64_t i) { dx[i] = 2 * dm[i / n] * x[i]; });
}
CUDA_KERNEL(cuda_squares_dx, squares_dx)

template <typename T> static void norm_by(const CudaCall *call)
{
    const uint64_t n = token_elements(&call->in[0]), span = call->op->attr.span;
    const In<T> x = in<T>(call, 0), m = in<T>(call, 1), gamma = in<T>(call, 2);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]),
        BODY(uint64_t i) { y[i] = x[i] * gamma[i % n] * inverse_of<T>(m[i / n], span); });
}
CUDA_KERNEL(cuda_norm_by, norm_by)

template <typename T> static void norm_by_dm(const CudaCall *call)
{
    const uint64_t n = token_elements(&call->in[1]), span = call->op->attr.span;
    const In<T> dy = in<T>(call, 0), x = in<T>(call, 1), m = in<T>(call, 2),
                gamma = in<T>(call, 3);
    Out<T> dm = out<T>(call, 0);
    rows(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t r, Lane lane) {
            const T inverse = inverse_of<T>(m[r], span);
            T sum = 0;
            for (uint64_t i = lane.id; i < n; i += lane.n)
                sum += dy[r * n + i] * x[r * n + i] * gamma[i];
            sum = lane.sum(sum);
            if (lane.id == 0)
                dm[r] = -sum * inverse * inverse * inverse / (2 * T(span));
        });
}
CUDA_KERNEL(cuda_norm_by_dm, norm_by_dm)

template <typename T> static void norm_by_dw(const CudaCall *call)
{
    const uint64_t n = token_elements(&call->in[1]), span = call->op->attr.span,
                   tokens = exec_shard_elements(&call->in[2]);
    const In<T> dy = in<T>(call, 0), x = in<T>(call, 1), m = in<T>(call, 2);
    Out<T> dgamma = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t i) {
            T sum = 0;
            for (uint64_t r = 0; r < tokens; r++)
                sum += dy[r * n + i] * x[r * n + i] * inverse_of<T>(m[r], span);
            dgamma[i] = sum;
        });
}
CUDA_KERNEL(cuda_norm_by_dw, norm_by_dw)

// --- differences of tokens, and biases of samples ---

template <typename T> static void shift(const CudaCall *call, bool back)
{
    const ExecShard *shard = &call->in[0];
    const uint64_t n = exec_shard_elements(shard), seq = shard->dim[1];
    const uint64_t row = n ? n / ((uint64_t)shard->dim[0] * seq) : 1;
    const In<T> x = in<T>(call, 0);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, n, BODY(uint64_t i) {
            const uint64_t t = i / row % seq;
            const bool other = back ? t + 1 < seq : t > 0;
            y[i] = (other ? T(x[back ? i + row : i - row]) : T(0)) - x[i];
        });
}

template <typename T> static void token_shift(const CudaCall *call)
{
    shift<T>(call, false);
}
CUDA_KERNEL(cuda_token_shift, token_shift)

template <typename T> static void token_shift_dx(const CudaCall *call)
{
    shift<T>(call, true);
}
CUDA_KERNEL(cuda_token_shift_dx, token_shift_dx)

template <typename T> static void sample_bias(const CudaCall *call)
{
    const ExecShard *shard = &call->in[0];
    const uint64_t n = exec_shard_elements(shard), seq = shard->dim[1];
    const uint64_t row = n ? n / ((uint64_t)shard->dim[0] * seq) : 1;
    const In<T> x = in<T>(call, 0), bias = in<T>(call, 1);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, n,
        BODY(uint64_t i) { y[i] = x[i] + bias[i / (row * seq) * row + i % row]; });
}
CUDA_KERNEL(cuda_sample_bias, sample_bias)
