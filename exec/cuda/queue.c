/* The queue of one GPU: memory, streams, matrix products. */
#include "exec/cuda/queue.h"

#include "exec/half.h"

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <glib.h>
#include <string.h>

void cuda_queue_check(CudaQueue *queue, int code, const char *call)
{
    if (code == cudaSuccess || queue->trouble)
        return;
    g_autofree char *text = g_strdup_printf("%s on GPU %d: %s", call, queue->device,
                                            cudaGetErrorString((cudaError_t)code));
    queue->trouble = g_intern_string(text);
}

static void check_blas(CudaQueue *queue, cublasStatus_t status, const char *call)
{
    if (status == CUBLAS_STATUS_SUCCESS || queue->trouble)
        return;
    g_autofree char *text = g_strdup_printf("%s on GPU %d: %s", call, queue->device,
                                            cublasGetStatusString(status));
    queue->trouble = g_intern_string(text);
}

/* The pool of the GPU's memory, which allocations in the order of a stream come from; NULL after a
 * failure. */
static cudaMemPool_t pool_of(CudaQueue *queue)
{
    cudaMemPool_t pool = NULL;
    cuda_queue_check(queue, cudaDeviceGetDefaultMemPool(&pool, queue->device),
                     "cudaDeviceGetDefaultMemPool");
    return pool;
}

/* Keeps released memory in the pool. By default each wait gives it back to the system, so that the
 * next iteration would have to map it again. */
static void queue_keep_memory(CudaQueue *queue)
{
    uint64_t all = UINT64_MAX;
    cudaMemPool_t pool = pool_of(queue);
    if (pool)
        cuda_queue_check(
            queue, cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all),
            "cudaMemPoolSetAttribute");
}

bool cuda_queue_init(CudaQueue *queue, int device, bool single)
{
    *queue = (CudaQueue){.single = single, .device = device, .unscale = 1};
    cudaStream_t stream = NULL;
    cuda_queue_check(queue, cudaSetDevice(device), "cudaSetDevice");
    if (!queue->trouble)
        cuda_queue_check(queue, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                         "cudaStreamCreate");
    queue->stream = stream;
    if (!queue->trouble)
        queue_keep_memory(queue);
    return !queue->trouble;
}

void cuda_queue_share(CudaQueue *queue, int device)
{
    int reaches = 0;
    cudaMemPool_t pool = queue->trouble ? NULL : pool_of(queue);
    cuda_queue_check(queue, cudaDeviceCanAccessPeer(&reaches, device, queue->device),
                     "cudaDeviceCanAccessPeer");
    const struct cudaMemAccessDesc access = {
        .location = {.type = cudaMemLocationTypeDevice, .id = device},
        .flags = cudaMemAccessFlagsProtReadWrite};
    if (pool && reaches)
        cuda_queue_check(queue, cudaMemPoolSetAccess(pool, &access, 1),
                         "cudaMemPoolSetAccess");
}

/* The handle, made when it is first needed. */
static cublasHandle_t blas_of(CudaQueue *queue)
{
    cublasHandle_t blas = queue->blas;
    if (!blas) {
        check_blas(queue, cublasCreate(&blas), "cublasCreate");
        check_blas(queue, cublasSetStream(blas, queue->stream), "cublasSetStream");
        queue->blas = blas;
    }
    return blas;
}

void cuda_queue_clear(CudaQueue *queue)
{
    cuda_queue_enter(queue);
    if (queue->blas)
        cublasDestroy(queue->blas);
    if (queue->stream)
        cudaStreamDestroy(queue->stream);
}

void cuda_queue_enter(CudaQueue *queue)
{
    cuda_queue_check(queue, cudaSetDevice(queue->device), "cudaSetDevice");
}

void cuda_queue_wait(CudaQueue *queue)
{
    cuda_queue_check(queue, cudaStreamSynchronize(queue->stream),
                     "cudaStreamSynchronize");
}

void *cuda_queue_allocate(CudaQueue *queue, uint64_t elements)
{
    /* One element more than needed, so that an empty shard's memory is not NULL. */
    const size_t bytes = (elements + 1) * cuda_queue_size(queue);
    void *data = NULL;
    return cudaMallocAsync(&data, bytes, queue->stream) == cudaSuccess ? data : NULL;
}

void *cuda_queue_scratch(CudaQueue *queue, uint64_t elements)
{
    void *data = cuda_queue_allocate(queue, elements);
    if (!data)
        cuda_queue_check(queue, cudaErrorMemoryAllocation,
                         "the temporary memory of an op");
    return data;
}

void cuda_queue_release(CudaQueue *queue, void *data)
{
    if (!data)
        return;
    cuda_queue_check(queue, cudaFreeAsync(data, queue->stream), "cudaFreeAsync");
}

void cuda_queue_zero_bytes(CudaQueue *queue, void *data, uint64_t bytes)
{
    if (bytes == 0 || queue->trouble)
        return; /* an empty shard has no memory */
    cuda_queue_check(queue, cudaMemsetAsync(data, 0, bytes, queue->stream), "cudaMemset");
}

uint64_t cuda_queue_peak(CudaQueue *queue)
{
    uint64_t peak = 0, none = 0;
    cudaMemPool_t pool = pool_of(queue);
    if (!pool)
        return 0;
    cuda_queue_check(queue,
                     cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &peak),
                     "cudaMemPoolGetAttribute");
    cuda_queue_check(queue,
                     cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &none),
                     "cudaMemPoolSetAttribute");
    return peak;
}

uint64_t cuda_queue_used(CudaQueue *queue)
{
    size_t unused = 0, total = 0;
    cuda_queue_check(queue, cudaMemGetInfo(&unused, &total), "cudaMemGetInfo");
    return total - unused;
}

/* --- to and from the host --- */

static void move(CudaQueue *queue, void *to, const void *from, size_t bytes,
                 enum cudaMemcpyKind kind)
{
    cuda_queue_check(queue, cudaMemcpyAsync(to, from, bytes, kind, queue->stream),
                     "cudaMemcpy");
    cuda_queue_wait(queue);
}

static size_t number_size(const CudaQueue *queue, uint32_t numbers)
{
    return numbers == EXEC_PLAIN ? cuda_queue_size(queue) : sizeof(uint16_t);
}

static double number_of(const CudaQueue *queue, const void *data, uint32_t numbers,
                        uint64_t i)
{
    if (numbers != EXEC_PLAIN)
        return (double)exec_half_value(((const uint16_t *)data)[i], (ExecNumbers)numbers);
    return queue->single ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static void set_number(const CudaQueue *queue, void *data, uint32_t numbers, uint64_t i,
                       double value)
{
    if (numbers != EXEC_PLAIN)
        ((uint16_t *)data)[i] = exec_half_bits((float)value, (ExecNumbers)numbers);
    else if (queue->single)
        ((float *)data)[i] = (float)value;
    else
        ((double *)data)[i] = value;
}

void cuda_queue_write(CudaQueue *queue, const ExecShard *to, const double *from)
{
    const uint64_t n = exec_shard_elements(to);
    const size_t size = number_size(queue, to->numbers);
    g_autofree void *host = g_malloc((n + 1) * size);
    for (uint64_t i = 0; i < n; i++)
        set_number(queue, host, to->numbers, i, from[i]);
    move(queue, to->data, host, n * size, cudaMemcpyHostToDevice);
}

void cuda_queue_read(CudaQueue *queue, const ExecShard *from, double *to)
{
    const uint64_t n = exec_shard_elements(from);
    const size_t size = number_size(queue, from->numbers);
    g_autofree void *host = g_malloc((n + 1) * size);
    move(queue, host, from->data, n * size, cudaMemcpyDeviceToHost);
    for (uint64_t i = 0; i < n; i++)
        to[i] = number_of(queue, host, from->numbers, i);
}

/* --- matrix products --- */

static cudaDataType_t blas_type(uint32_t numbers)
{
    return numbers == EXEC_FP16   ? CUDA_R_16F
           : numbers == EXEC_BF16 ? CUDA_R_16BF
                                  : CUDA_R_32F;
}

/* cuBLAS is column-major, so it sees a row-major product x y as y' x'. */
static void multiply_strided(CudaQueue *queue, const CudaProduct *p, cublasOperation_t ty,
                             cublasOperation_t tx)
{
    const CudaMatrix *x = p->x, *y = p->y;
    cublasHandle_t blas = blas_of(queue);
    const double zero = 0;
    const float alpha = (float)p->alpha, none = 0;
    if (queue->single)
        check_blas(queue,
                   cublasGemmStridedBatchedEx(
                       blas, ty, tx, (int)p->n, (int)p->m, (int)p->k, &alpha, y->data,
                       blas_type(y->numbers), (int)y->ld, (long long)y->step, x->data,
                       blas_type(x->numbers), (int)x->ld, (long long)x->step, &none,
                       p->out, blas_type(p->numbers), (int)p->ld, (long long)p->step,
                       (int)p->batch, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                   "cublasGemmStridedBatchedEx");
    else
        check_blas(queue,
                   cublasDgemmStridedBatched(
                       blas, ty, tx, (int)p->n, (int)p->m, (int)p->k, &p->alpha, y->data,
                       (int)y->ld, (long long)y->step, x->data, (int)x->ld,
                       (long long)x->step, &zero, p->out, (int)p->ld, (long long)p->step,
                       (int)p->batch),
                   "cublasDgemmStridedBatched");
}

/* The same by the addresses of x, y and the output of each product, on the GPU. */
static void multiply_scattered(CudaQueue *queue, const CudaProduct *p, void **at,
                               cublasOperation_t ty, cublasOperation_t tx)
{
    cublasHandle_t blas = blas_of(queue);
    const uint64_t n = p->batch * p->samples;
    const void *const *x = (const void *const *)at, *const *y = x + n;
    void **out = at + 2 * n;
    const double zero = 0;
    const float alpha = (float)p->alpha, none = 0;
    if (queue->single)
        check_blas(queue,
                   cublasGemmBatchedEx(blas, ty, tx, (int)p->n, (int)p->m, (int)p->k,
                                       &alpha, y, blas_type(p->y->numbers), (int)p->y->ld,
                                       x, blas_type(p->x->numbers), (int)p->x->ld, &none,
                                       out, blas_type(p->numbers), (int)p->ld, (int)n,
                                       CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                   "cublasGemmBatchedEx");
    else
        check_blas(queue,
                   cublasDgemmBatched(blas, ty, tx, (int)p->n, (int)p->m, (int)p->k,
                                      &p->alpha, (const double *const *)y, (int)p->y->ld,
                                      (const double *const *)x, (int)p->x->ld, &zero,
                                      (double *const *)out, (int)p->ld, (int)n),
                   "cublasDgemmBatched");
}

void cuda_queue_multiply(CudaQueue *queue, const CudaProduct *p, void **at)
{
    g_assert(p->x->numbers == p->y->numbers);
    if (p->m == 0 || p->n == 0 || p->batch == 0 || queue->trouble)
        return;
    const cublasOperation_t tx = p->x->transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                            ty = p->y->transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    if (at)
        multiply_scattered(queue, p, at, ty, tx);
    else
        multiply_strided(queue, p, ty, tx);
}
