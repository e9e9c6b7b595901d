// Kernels as bodies: functions of an index, or of a row and the lane of a warp, that run on the GPU.
//
//     each(queue, n, BODY(uint64_t i) { y[i] = x[i] > 0 ? x[i] : 0; });
//     rows(queue, n, BODY(uint64_t row, Lane lane) { ... lane.sum(part) ... });
//
// Bodies capture pointers and numbers by value. A row is one warp's; on GPUs that tests emulate it
// has one lane.
#pragma once

#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "exec/cuda/kernels.h"

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

    /* The sum over the lanes before this one. */
    __host__ __device__ uint32_t before(uint32_t value) const
    {
        uint32_t sum = value;
#ifdef __CUDA_ARCH__
        for (uint32_t offset = 1; offset < 32; offset *= 2) {
            const uint32_t other = __shfl_up_sync(0xffffffffu, sum, offset);
            sum += id >= offset ? other : 0;
        }
#endif
        return sum - value;
    }
};

// A divisor of indices, which GPUs divide slowly: below 2^32 by a product and a shift (Granlund and
// Montgomery 1994, Sec. 4).
struct Divisor {
    uint64_t by;
    uint32_t factor, shift;

    Divisor(uint64_t n = 1) : by(n), factor(0), shift(0)
    {
        if (n == 0 || n >> 31)
            return;
        while (UINT64_C(1) << shift < n)
            shift++;
        factor = (uint32_t)((((UINT64_C(1) << shift) - n) << 32) / n + 1);
    }
    __host__ __device__ uint64_t of(uint64_t i) const
    {
        return factor && i >> 32 == 0 ? ((factor * i >> 32) + i) >> shift : i / by;
    }
    __host__ __device__ operator uint64_t() const
    {
        return by;
    }
};
__host__ __device__ static inline uint64_t operator/(uint64_t i, const Divisor &d)
{
    return d.of(i);
}
__host__ __device__ static inline uint64_t operator%(uint64_t i, const Divisor &d)
{
    return i - d.of(i) * d.by;
}

// A test may bring its own way to launch a kernel, and its own size of a warp.
#ifndef CUDA_LAUNCH
#define CUDA_WARP 32
#define CUDA_LAUNCH(kernel, blocks, threads, stream, ...) \
    kernel<<<blocks, threads, 0, stream>>>(__VA_ARGS__)
#endif

enum { BLOCK = 256, WARP = CUDA_WARP, MAX_BLOCKS = 1 << 20 };

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
    if (n == 0 || queue->trouble)
        return;
    CUDA_LAUNCH(each_kernel, blocks_for(n, BLOCK), BLOCK, (cudaStream_t)queue->stream, n,
                body);
    cuda_queue_check(queue, cudaGetLastError(), "a kernel");
}

template <typename Body> void rows(CudaQueue *queue, uint64_t n, Body body)
{
    if (n == 0 || queue->trouble)
        return;
    CUDA_LAUNCH(rows_kernel, blocks_for(n, BLOCK / WARP), BLOCK,
                (cudaStream_t)queue->stream, n, body);
    cuda_queue_check(queue, cudaGetLastError(), "a kernel");
}

// Operands of kernels in numbers of type T: pointers to double, or, where T is float, readers and writers of numbers that may be
// stored in two bytes. These are widened when read and rounded when written.

__host__ __device__ static inline float number_at(const void *data, uint32_t numbers,
                                                  uint64_t i)
{
    return numbers == EXEC_FP16   ? __half2float(((const __half *)data)[i])
           : numbers == EXEC_BF16 ? __bfloat162float(((const __nv_bfloat16 *)data)[i])
                                  : ((const float *)data)[i];
}

__host__ __device__ static inline uint64_t number_bytes(uint32_t numbers, uint64_t n)
{
    return n * (numbers == EXEC_PLAIN ? sizeof(float) : sizeof(__half));
}

struct Reader {
    const void *data;
    uint32_t numbers;

    __host__ __device__ float operator[](uint64_t i) const
    {
        return number_at(data, numbers, i);
    }
    __host__ __device__ Reader operator+(uint64_t n) const
    {
        return {(const char *)data + number_bytes(numbers, n), numbers};
    }
    __host__ __device__ explicit operator bool() const
    {
        return data != NULL;
    }
};

// One number that can be read and written.
struct Slot {
    void *data;
    uint32_t numbers;
    uint64_t i;

    __host__ __device__ operator float() const
    {
        return number_at(data, numbers, i);
    }
    __host__ __device__ float operator=(float value) const
    {
        if (numbers == EXEC_FP16)
            ((__half *)data)[i] = __float2half_rn(value);
        else if (numbers == EXEC_BF16)
            ((__nv_bfloat16 *)data)[i] = __float2bfloat16_rn(value);
        else
            ((float *)data)[i] = value;
        return value;
    }
    __host__ __device__ float operator+=(float value) const
    {
        return *this = (float)*this + value;
    }
    __host__ __device__ float operator/=(float value) const
    {
        return *this = (float)*this / value;
    }
};

struct Writer {
    void *data;
    uint32_t numbers;

    __host__ __device__ Slot operator[](uint64_t i) const
    {
        return {data, numbers, i};
    }
    __host__ __device__ Writer operator+(uint64_t n) const
    {
        return {(char *)data + number_bytes(numbers, n), numbers};
    }
    __host__ __device__ operator Reader() const
    {
        return {data, numbers};
    }
    __host__ __device__ explicit operator bool() const
    {
        return data != NULL;
    }
};

template <typename T> struct KernelOperand {
    typedef const T *In;
    typedef T *Out;
};
template <> struct KernelOperand<float> {
    typedef Reader In;
    typedef Writer Out;
};
template <typename T> using In = typename KernelOperand<T>::In;
template <typename T> using Out = typename KernelOperand<T>::Out;

static inline void *raw(const void *data)
{
    return const_cast<void *>(data);
}
static inline void *raw(const Reader &reader)
{
    return const_cast<void *>(reader.data);
}
static inline void *raw(const Writer &writer)
{
    return writer.data;
}
static inline uint32_t numbers_of(const void *)
{
    return EXEC_PLAIN;
}
static inline uint32_t numbers_of(const Reader &reader)
{
    return reader.numbers;
}
static inline uint32_t numbers_of(const Writer &writer)
{
    return writer.numbers;
}

/* A shard as an operand. */
template <typename T> static inline Out<T> operand(const ExecShard *shard)
{
    if constexpr (std::is_same<T, float>::value)
        return {shard->data, (uint32_t)shard->numbers};
    else
        return (T *)shard->data;
}

template <typename T> static inline In<T> in(const CudaCall *call, uint32_t i)
{
    return operand<T>(&call->in[i]);
}

template <typename T> static inline Out<T> out(const CudaCall *call, uint32_t o)
{
    return operand<T>(&call->out[o]);
}

/* Scratch memory in the numbers of a kernel, and in those of `like`; the caller releases it. */
template <typename T> static inline T *scratch(CudaQueue *queue, uint64_t elements)
{
    return (T *)cuda_queue_scratch(queue, elements);
}
template <typename T, typename P>
static inline Out<T> scratch_like(CudaQueue *queue, uint64_t elements, const P &like)
{
    const uint32_t numbers = numbers_of(like);
    const uint64_t room = numbers == EXEC_PLAIN ? elements : (elements + 1) / 2;
    const ExecShard shard = {
        0, {}, {}, (ExecNumbers)numbers, cuda_queue_scratch(queue, room)};
    return operand<T>(&shard);
}
template <typename P> static inline void release(CudaQueue *queue, const P &data)
{
    cuda_queue_release(queue, raw(data));
}

/* Zeroes `n` numbers. */
template <typename P> static inline void zero(CudaQueue *queue, const P &data, uint64_t n)
{
    cuda_queue_zero_bytes(queue, raw(data),
                          numbers_of(data) == EXEC_PLAIN ? n * cuda_queue_size(queue)
                                                         : n * sizeof(__half));
}

// out[0]: the sum of a body's n terms, by one warp.
template <typename T, typename Term>
static inline void sum_all(const CudaCall *call, uint64_t n, Term term)
{
    Out<T> to = out<T>(call, 0);
    rows(
        call->queue, 1, BODY(uint64_t, Lane lane) {
            T sum = 0;
            for (uint64_t i = lane.id; i < n; i += lane.n)
                sum += term(i);
            sum = lane.sum(sum);
            if (lane.id == 0)
                to[0] = sum;
        });
}

/* --- matrix products --- */

template <typename P>
static inline CudaMatrix matrix(const P &data, bool transposed, uint64_t ld,
                                uint64_t step)
{
    return {raw(data), transposed, ld, step, numbers_of(data), 0};
}

// Matrices of several samples: those of a sample are `step` apart, samples `sample`.
template <typename P>
static inline CudaMatrix samples(const P &data, bool transposed, uint64_t ld,
                                 uint64_t step, uint64_t sample)
{
    CudaMatrix all = matrix(data, transposed, ld, step);
    all.sample = sample;
    return all;
}

/* A copy of a product's factor in numbers of two bytes; the caller releases its data. */
static inline CudaMatrix narrowed(CudaQueue *queue, const CudaProduct &p,
                                  const CudaMatrix &x, uint64_t rows, uint64_t columns,
                                  uint32_t numbers)
{
    const uint64_t high = x.transposed ? columns : rows,
                   wide = x.transposed ? rows : columns,
                   n = (p.samples > 0 ? p.samples - 1 : 0) * x.sample +
                       (p.batch - 1) * x.step + (high - 1) * x.ld + wide;
    const Reader from = {x.data, x.numbers};
    const Writer to = {cuda_queue_scratch(queue, (n + 1) / 2), numbers};
    each(
        queue, n, BODY(uint64_t i) { to[i] = from[i]; });
    return {to.data, x.transposed, x.ld, x.step, numbers, x.sample};
}

static inline uint64_t number_size(const CudaQueue *queue, uint32_t numbers)
{
    return numbers == EXEC_PLAIN ? cuda_queue_size(queue) : sizeof(__half);
}

/* The products of all samples by one call, which takes the addresses of their matrices. */
static inline void multiply_samples(CudaQueue *queue, const CudaProduct &p)
{
    const uint64_t n = p.samples * p.batch, size = number_size(queue, p.x->numbers),
                   out_size = number_size(queue, p.numbers);
    char **at =
        (char **)cuda_queue_scratch(queue, 3 * n * (sizeof(char *) / sizeof(float)));
    const CudaMatrix x = *p.x, y = *p.y;
    const Divisor batch(p.batch);
    char *const first_x = (char *)raw(x.data), *const first_y = (char *)raw(y.data),
                *const first = (char *)p.out;
    const uint64_t step = p.step, sample = p.sample;
    each(
        queue, n, BODY(uint64_t i) {
            const uint64_t s = i / batch, b = i % batch;
            at[i] = first_x + (s * x.sample + b * x.step) * size;
            at[n + i] = first_y + (s * y.sample + b * y.step) * size;
            at[2 * n + i] = first + (s * sample + b * step) * out_size;
        });
    cuda_queue_multiply(queue, &p, (void **)at);
    cuda_queue_release(queue, at);
}

/* Both factors of a product are of one kind of numbers: where one has two bytes, the other is
 * narrowed. */
static inline void queue_multiply(CudaQueue *queue, const CudaProduct &product)
{
    CudaProduct p = product;
    if (p.m == 0 || p.n == 0 || p.batch == 0)
        return;
    const bool first = p.x->numbers == EXEC_PLAIN;
    CudaMatrix copy = first ? *p.x : *p.y;
    void *owned = NULL;
    if (p.x->numbers != p.y->numbers) {
        const uint32_t numbers = first ? p.y->numbers : p.x->numbers;
        if (p.k > 0) {
            copy = first ? narrowed(queue, p, copy, p.m, p.k, numbers)
                         : narrowed(queue, p, copy, p.k, p.n, numbers);
            owned = const_cast<void *>(copy.data);
        }
        copy.numbers = numbers;
        (first ? p.x : p.y) = &copy;
    }
    if (p.samples > 1)
        multiply_samples(queue, p);
    else
        cuda_queue_multiply(queue, &p, NULL);
    cuda_queue_release(queue, owned);
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
