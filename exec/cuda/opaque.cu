/* The stand-in for ops of a profile, on GPUs. */
// A thread a number of the result. See exec/kernels/opaque.c for the function.
#include <cmath>

#include "exec/cuda/launch.cuh"

template <typename T>
__host__ __device__ static T wrapped(In<T> from, uint64_t n_from, uint64_t i,
                                     uint64_t n_to)
{
    const uint64_t most = n_from > n_to ? n_from : n_to;
    T sum = 0;
    for (uint64_t t = i; t < most; t += n_to)
        sum += from[t % n_from];
    return sum;
}

template <typename T> __host__ __device__ static T mean(uint64_t n_from, uint64_t n_to)
{
    return n_from > n_to ? T(1) / T((n_from + n_to - 1) / n_to) : T(1);
}

// The inputs from `first` on are rows of samples.
template <typename T> struct Inputs {
    In<T> data[OP_MAX_IN];
    uint64_t n[OP_MAX_IN];
    uint32_t n_in, first;
};

template <typename T> static void run(const CudaCall *call, uint32_t first)
{
    const uint64_t samples = call->out[0].dim[0], n_y = call->out[0].dim[1],
                   n_kept = call->out[1].dim[1];
    Out<T> y = out<T>(call, 0), kept = out<T>(call, 1);
    Inputs<T> x = {{}, {}, call->op->n_in, first};
    for (uint32_t i = 0; i < x.n_in; i++) {
        x.data[i] = in<T>(call, i);
        x.n[i] = call->in[i].dim[i < first ? 0 : 1];
    }
    each(
        call->queue, samples * n_kept, BODY(uint64_t at) {
            const uint64_t b = at / n_kept, s = at % n_kept;
            T sum = 0;
            for (uint32_t i = 0; i < x.n_in; i++)
                sum += mean<T>(x.n[i], n_kept) *
                       wrapped<T>(x.data[i] + (i < x.first ? 0 : b * x.n[i]), x.n[i], s,
                                  n_kept);
            kept[at] = tanh(sum);
        });
    each(
        call->queue, samples * n_y, BODY(uint64_t at) {
            const uint64_t b = at / n_y, o = at % n_y;
            y[at] = mean<T>(n_kept, n_y) * wrapped<T>(kept + b * n_kept, n_kept, o, n_y);
        });
}

template <typename T> static void opaque(const CudaCall *call)
{
    run<T>(call, 0);
}
CUDA_KERNEL(cuda_opaque, opaque)

template <typename T> static void opaque_weights(const CudaCall *call)
{
    run<T>(call, 1);
}
CUDA_KERNEL(cuda_opaque_weights, opaque_weights)

// The backward's operands: dy[b, n_y], kept[b, n_kept].
template <typename T> struct Outer {
    In<T> dy, kept;
    uint64_t n_y, n_kept;
};

template <typename T> static Outer<T> outer_of(const CudaCall *call)
{
    return {in<T>(call, 0), in<T>(call, 1), call->in[0].dim[1], call->in[1].dim[1]};
}

// Place i of the gradient of a row of n numbers.
template <typename T>
__host__ __device__ static T gradient_at(const Outer<T> &o, uint64_t b, uint64_t i,
                                         uint64_t n)
{
    const uint64_t most = n > o.n_kept ? n : o.n_kept;
    const T scale = mean<T>(n, o.n_kept) * mean<T>(o.n_kept, o.n_y);
    T sum = 0;
    for (uint64_t t = i; t < most; t += n) {
        const uint64_t s = t % o.n_kept;
        const T k = o.kept[b * o.n_kept + s];
        sum += wrapped<T>(o.dy + b * o.n_y, o.n_y, s, o.n_kept) * (1 - k * k);
    }
    return scale * sum;
}

template <typename T> static void opaque_dx(const CudaCall *call)
{
    const Outer<T> o = outer_of<T>(call);
    const uint64_t samples = call->out[0].dim[0], n = call->out[0].dim[1];
    Out<T> dx = out<T>(call, 0);
    each(
        call->queue, samples * n,
        BODY(uint64_t at) { dx[at] = gradient_at(o, at / n, at % n, n); });
}
CUDA_KERNEL(cuda_opaque_dx, opaque_dx)

template <typename T> static void opaque_dw(const CudaCall *call)
{
    const Outer<T> o = outer_of<T>(call);
    const uint64_t samples = call->in[0].dim[0], n = call->out[0].dim[0];
    Out<T> dw = out<T>(call, 0);
    each(
        call->queue, n, BODY(uint64_t i) {
            T sum = 0;
            for (uint64_t b = 0; b < samples; b++)
                sum += gradient_at(o, b, i, n);
            dw[i] = sum;
        });
}
CUDA_KERNEL(cuda_opaque_dw, opaque_dw)

template <typename T> static void opaque_loss(const CudaCall *call)
{
    const In<T> x = in<T>(call, 0);
    sum_all<T>(
        call, (uint64_t)call->in[0].dim[0] * call->in[0].dim[1],
        BODY(uint64_t i) { return x[i] * x[i] / 2; });
}
CUDA_KERNEL(cuda_opaque_loss, opaque_loss)

template <typename T> static void opaque_loss_dx(const CudaCall *call)
{
    const In<T> dloss = in<T>(call, 0), x = in<T>(call, 1);
    Out<T> dx = out<T>(call, 0);
    each(
        call->queue, (uint64_t)call->in[1].dim[0] * call->in[1].dim[1],
        BODY(uint64_t i) { dx[i] = dloss[0] * x[i]; });
}
CUDA_KERNEL(cuda_opaque_loss_dx, opaque_loss_dx)
