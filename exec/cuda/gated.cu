/* Gated units, rotary positions and joined keys, on GPUs. */
// Gated units, SiLU, rotary embeddings and joined keys; see exec/kernels/gated.c for the
// equations.
#include <cmath>

#include "exec/cuda/launch.cuh"
#include "exec/kernels/position.h"

template <typename T> struct Activation {
    T value, slope;
};

struct Silu {
    template <typename T> __host__ __device__ static Activation<T> of(T x)
    {
        const T sigmoid = 1 / (1 + exp(-x));
        return {x * sigmoid, sigmoid * (1 + x * (1 - sigmoid))};
    }
};

struct Gelu {
    template <typename T> __host__ __device__ static Activation<T> of(T x)
    {
        const T distribution = T(0.5) * (1 + erf(x * T(M_SQRT1_2)));
        return {x * distribution,
                distribution + x * exp(T(-0.5) * x * x) * T(0.3989422804014327)};
    }
};

template <typename T> static void silu(const CudaCall *call)
{
    const In<T> x = in<T>(call, 0);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]),
        BODY(uint64_t i) { y[i] = Silu::of(x[i]).value; });
}
CUDA_KERNEL(cuda_silu, silu)

template <typename T> static void silu_dx(const CudaCall *call)
{
    const In<T> dy = in<T>(call, 0), x = in<T>(call, 1);
    Out<T> dx = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]),
        BODY(uint64_t i) { dx[i] = dy[i] * Silu::of(x[i]).slope; });
}
CUDA_KERNEL(cuda_silu_dx, silu_dx)

template <typename T, typename F> static void glu(const CudaCall *call)
{
    const ExecShard *shard = &call->out[0];
    const Divisor n(shard->dim[shard->rank - 1]);
    const In<T> x = in<T>(call, 0);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(shard), BODY(uint64_t i) {
            const uint64_t at = i / n * 2 * n + i % n;
            y[i] = F::of(x[at]).value * x[at + n];
        });
}

template <typename T, typename F> static void glu_dx(const CudaCall *call)
{
    const ExecShard *shard = &call->in[0];
    const Divisor n(shard->dim[shard->rank - 1]);
    const In<T> dy = in<T>(call, 0), x = in<T>(call, 1);
    Out<T> dx = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(shard), BODY(uint64_t i) {
            const uint64_t at = i / n * 2 * n + i % n;
            const Activation<T> f = F::of(x[at]);
            dx[at] = dy[i] * x[at + n] * f.slope;
            dx[at + n] = dy[i] * f.value;
        });
}

#define GLU(name, kernel, F)                                          \
    template <typename T> static void name##_of(const CudaCall *call) \
    {                                                                 \
        kernel<T, F>(call);                                           \
    }                                                                 \
    CUDA_KERNEL(cuda_##name, name##_of)

GLU(swiglu, glu, Silu)
GLU(swiglu_dx, glu_dx, Silu)
GLU(geglu, glu, Gelu)
GLU(geglu_dx, glu_dx, Gelu)

template <typename T> static void turn(const CudaCall *call, double sign)
{
    const ExecShard *shard = &call->in[0];
    const Divisor width(shard->dim[shard->rank - 1]), seq(shard->dim[1]);
    const uint64_t offset = shard->offset[1];
    const uint64_t first = call->op->attr.first, turned = call->op->attr.span;
    uint64_t size = 1;
    for (uint32_t d = 2; d < shard->rank; d++)
        size *= shard->dim[d];
    const Divisor inner(size);
    const In<T> x = in<T>(call, 0);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(shard), BODY(uint64_t at) {
            const uint64_t i = at % width, half = turned / 2;
            if (i < first || i >= first + turned) {
                y[at] = x[at];
                return;
            }
            const bool second = i - first >= half;
            const uint64_t low = at - (second ? half : 0);
            const double both[] = {(double)x[low], (double)x[low + half]};
            const double angle = rotary_angle(at / inner % seq + offset,
                                              i - first - (second ? half : 0), turned);
            y[at] = T(rotary_element(both, second, angle, sign));
        });
}

template <typename T> static void rotary(const CudaCall *call)
{
    turn<T>(call, 1);
}
CUDA_KERNEL(cuda_rotary, rotary)

template <typename T> static void rotary_dx(const CudaCall *call)
{
    turn<T>(call, -1);
}
CUDA_KERNEL(cuda_rotary_dx, rotary_dx)

template <typename T> static void join_keys(const CudaCall *call)
{
    const uint64_t own = call->in[0].dim[3], shared = call->in[1].dim[2],
                   heads = call->in[0].dim[2], width = own + shared,
                   first = call->op->attr.first;
    const In<T> x = in<T>(call, 0), r = in<T>(call, 1);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t at) {
            const uint64_t i = at % width, row = at / width;
            y[at] = i < first            ? x[row * own + i]
                    : i < first + shared ? r[row / heads * shared + i - first]
                                         : x[row * own + i - shared];
        });
}
CUDA_KERNEL(cuda_join_keys, join_keys)

template <typename T> static void join_keys_dx(const CudaCall *call)
{
    const uint64_t own = call->out[0].dim[3], width = call->in[0].dim[3],
                   shared = width - own, first = call->op->attr.first;
    const In<T> dy = in<T>(call, 0);
    Out<T> dx = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t at) {
            const uint64_t i = at % own;
            dx[at] = dy[at / own * width + (i < first ? i : i + shared)];
        });
}
CUDA_KERNEL(cuda_join_keys_dx, join_keys_dx)

template <typename T> static void join_keys_dr(const CudaCall *call)
{
    const uint64_t shared = call->out[0].dim[2], heads = call->in[0].dim[2],
                   width = call->in[0].dim[3], first = call->op->attr.first;
    const In<T> dy = in<T>(call, 0);
    Out<T> dr = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t at) {
            T sum = 0;
            for (uint64_t h = 0; h < heads; h++)
                sum += dy[(at / shared * heads + h) * width + first + at % shared];
            dr[at] = sum;
        });
}
CUDA_KERNEL(cuda_join_keys_dr, join_keys_dr)
