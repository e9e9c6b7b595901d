// Kernels as bodies: a function of an index, or of a row and the lane of a warp, that runs on the GPU or on the host.
//
//     each(queue, n, BODY(uint64_t i) { y[i] = x[i] > 0 ? x[i] : 0; });
//     rows(queue, n, BODY(uint64_t row, Lane lane) { ... lane.sum(part) ... });
//
// Bodies capture pointers and numbers by value. On the GPU a row is one warp's; on the host it has one lane.
#ifndef KILTER_EXEC_CUDA_LAUNCH_CUH
#define KILTER_EXEC_CUDA_LAUNCH_CUH

#include <cuda_runtime.h>

#include "exec/cuda/kernels.h"

static inline void queue_multiply(CudaQueue *queue, const CudaProduct &product)
{
    cuda_queue_multiply(queue, &product);
}

#define BODY [=] __host__ __device__

struct Lane {
    uint32_t id, n; /* of n lanes */

    template <typename T> __host__ __device__ T sum(T value) const
    {
#ifdef __CUDA_ARCH__
        for (uint32_t offset = 16; offset > 0; offset /= 2)
            value += __shfl_xor_sync(0xffffffffu, value, offset);
#endif
        return value;
    }

    template <typename T> __host__ __device__ T max(T value) const
    {
#ifdef __CUDA_ARCH__
        for (uint32_t offset = 16; offset > 0; offset /= 2) {
            const T other = __shfl_xor_sync(0xffffffffu, value, offset);
            value = other > value ? other : value;
        }
#endif
        return value;
    }
};

enum { BLOCK = 256, WARP = 32, MAX_BLOCKS = 1 << 20 };

template <typename Body> __global__ void each_kernel(uint64_t n, Body body)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        body(i);
}

template <typename Body> __global__ void rows_kernel(uint64_t n, Body body)
{
    const uint32_t warps = BLOCK / WARP;
    const Lane lane = {threadIdx.x % WARP, WARP};
    for (uint64_t row = (uint64_t)blockIdx.x * warps + threadIdx.x / WARP; row < n;
         row += (uint64_t)gridDim.x * warps)
        body(row, lane);
}

static inline unsigned blocks_for(uint64_t n, uint64_t per_block)
{
    const uint64_t blocks = (n + per_block - 1) / per_block;
    return (unsigned)(blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS);
}

template <typename Body> void each(CudaQueue *queue, uint64_t n, Body body)
{
    if (n == 0)
        return;
    if (queue->host) {
        for (uint64_t i = 0; i < n; i++)
            body(i);
        return;
    }
    each_kernel<<<blocks_for(n, BLOCK), BLOCK, 0, (cudaStream_t)queue->stream>>>(n, body);
    cuda_queue_check(queue, cudaGetLastError(), "a kernel");
}

template <typename Body> void rows(CudaQueue *queue, uint64_t n, Body body)
{
    if (n == 0)
        return;
    if (queue->host) {
        for (uint64_t row = 0; row < n; row++)
            body(row, Lane{0, 1});
        return;
    }
    rows_kernel<<<blocks_for(n, BLOCK / WARP), BLOCK, 0, (cudaStream_t)queue->stream>>>(
        n, body);
    cuda_queue_check(queue, cudaGetLastError(), "a kernel");
}

/* Operands as numbers of type T. */
template <typename T> static inline const T *in(const CudaCall *call, uint32_t i)
{
    return (const T *)call->in[i].data;
}

template <typename T> static inline T *out(const CudaCall *call, uint32_t o)
{
    return (T *)call->out[o].data;
}

/* `kernel`, a template over the type of numbers, as the C function `name`. */
#define CUDA_KERNEL(name, kernel)              \
    extern "C" void name(const CudaCall *call) \
    {                                          \
        if (call->queue->single)               \
            kernel<float>(call);               \
        else                                   \
            kernel<double>(call);              \
    }

#endif
