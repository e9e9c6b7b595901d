/* The queue of one GPU: memory, streams, matrix products. */
#include "exec/cuda/queue.h"

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
static void keep_memory(CudaQueue *queue)
{
    uint64_t all = UINT64_MAX;
    cudaMemPool_t pool = pool_of(queue);
    if (pool)
        cuda_queue_check(
            queue, cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all),
            "cudaMemPoolSetAttribute");
}

bool cuda_queue_init(CudaQueue *queue, bool host, int device, bool single)
{
    *queue = (CudaQueue){.host = host, .single = single, .device = device};
    if (host)
        return true;
    cudaStream_t stream = NULL;
    cuda_queue_check(queue, cudaSetDevice(device), "cudaSetDevice");
    if (!queue->trouble)
        cuda_queue_check(queue, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                         "cudaStreamCreate");
    queue->stream = stream;
    if (!queue->trouble)
        keep_memory(queue);
    return !queue->trouble;
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
    if (queue->host)
        return;
    cuda_queue_enter(queue);
    if (queue->blas)
        cublasDestroy(queue->blas);
    if (queue->stream)
        cudaStreamDestroy(queue->stream);
}

void cuda_queue_enter(CudaQueue *queue)
{
    if (!queue->host)
        cuda_queue_check(queue, cudaSetDevice(queue->device), "cudaSetDevice");
}

void cuda_queue_wait(CudaQueue *queue)
{
    if (!queue->host)
        cuda_queue_check(queue, cudaStreamSynchronize(queue->stream),
                         "cudaStreamSynchronize");
}

void *cuda_queue_allocate(CudaQueue *queue, uint64_t elements)
{
    /* One element more than needed, so that an empty shard's memory is not NULL. */
    const size_t bytes = (elements + 1) * cuda_queue_size(queue);
    if (queue->host)
        return g_try_malloc(bytes);
    void *data = NULL;
    return cudaMallocAsync(&data, bytes, queue->stream) == cudaSuccess ? data : NULL;
}

void cuda_queue_release(CudaQueue *queue, void *data)
{
    if (queue->host)
        g_free(data);
    else
        cuda_queue_check(queue, cudaFreeAsync(data, queue->stream), "cudaFreeAsync");
}

void cuda_queue_zero(CudaQueue *queue, void *data, uint64_t elements)
{
    const size_t bytes = elements * cuda_queue_size(queue);
    if (queue->host)
        memset(data, 0, bytes);
    else
        cuda_queue_check(queue, cudaMemsetAsync(data, 0, bytes, queue->stream),
                         "cudaMemset");
}

uint64_t cuda_queue_peak(CudaQueue *queue)
{
    uint64_t peak = 0, none = 0;
    cudaMemPool_t pool = queue->host ? NULL : pool_of(queue);
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
    if (!queue->host)
        cuda_queue_check(queue, cudaMemGetInfo(&unused, &total), "cudaMemGetInfo");
    return total - unused;
}

/* --- to and from the host --- */

static void move(CudaQueue *queue, void *to, const void *from, size_t bytes,
                 enum cudaMemcpyKind kind)
{
    if (queue->host) {
        memcpy(to, from, bytes);
        return;
    }
    cuda_queue_check(queue, cudaMemcpyAsync(to, from, bytes, kind, queue->stream),
                     "cudaMemcpy");
    cuda_queue_wait(queue);
}

void cuda_queue_write(CudaQueue *queue, void *to, const double *from, uint64_t elements)
{
    if (!queue->single) {
        move(queue, to, from, elements * sizeof *from, cudaMemcpyHostToDevice);
        return;
    }
    g_autofree float *single = g_new(float, elements + 1);
    for (uint64_t i = 0; i < elements; i++)
        single[i] = (float)from[i];
    move(queue, to, single, elements * sizeof *single, cudaMemcpyHostToDevice);
}

void cuda_queue_read(CudaQueue *queue, const void *from, double *to, uint64_t elements)
{
    if (!queue->single) {
        move(queue, to, from, elements * sizeof *to, cudaMemcpyDeviceToHost);
        return;
    }
    g_autofree float *single = g_new(float, elements + 1);
    move(queue, single, from, elements * sizeof *single, cudaMemcpyDeviceToHost);
    for (uint64_t i = 0; i < elements; i++)
        to[i] = (double)single[i];
}

/* --- matrix products --- */

static double element(const CudaQueue *queue, const void *data, uint64_t i)
{
    return queue->single ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static void multiply_on_host(const CudaQueue *queue, const CudaProduct *p)
{
    const CudaMatrix *x = p->x, *y = p->y;
    for (uint64_t b = 0; b < p->batch; b++)
        for (uint64_t i = 0; i < p->m; i++)
            for (uint64_t j = 0; j < p->n; j++) {
                double sum = 0;
                for (uint64_t l = 0; l < p->k; l++)
                    sum += element(queue, x->data,
                                   b * x->step +
                                       (x->transposed ? l * x->ld + i : i * x->ld + l)) *
                           element(queue, y->data,
                                   b * y->step +
                                       (y->transposed ? j * y->ld + l : l * y->ld + j));
                const uint64_t at = b * p->step + i * p->ld + j;
                if (queue->single)
                    ((float *)p->out)[at] = (float)(p->alpha * sum);
                else
                    ((double *)p->out)[at] = p->alpha * sum;
            }
}

/* cuBLAS is column-major, so it sees a row-major product x y as y' x'. */
void cuda_queue_multiply(CudaQueue *queue, const CudaProduct *p)
{
    const CudaMatrix *x = p->x, *y = p->y;
    if (p->m == 0 || p->n == 0 || p->batch == 0)
        return;
    if (queue->host) {
        multiply_on_host(queue, p);
        return;
    }
    const cublasOperation_t tx = x->transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                            ty = y->transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasHandle_t blas = blas_of(queue);
    if (queue->single) {
        const float a = (float)p->alpha, zero = 0;
        check_blas(
            queue,
            cublasSgemmStridedBatched(blas, ty, tx, (int)p->n, (int)p->m, (int)p->k, &a,
                                      y->data, (int)y->ld, (long long)y->step, x->data,
                                      (int)x->ld, (long long)x->step, &zero, p->out,
                                      (int)p->ld, (long long)p->step, (int)p->batch),
            "cublasSgemmStridedBatched");
    } else {
        const double zero = 0;
        check_blas(queue,
                   cublasDgemmStridedBatched(
                       blas, ty, tx, (int)p->n, (int)p->m, (int)p->k, &p->alpha, y->data,
                       (int)y->ld, (long long)y->step, x->data, (int)x->ld,
                       (long long)x->step, &zero, p->out, (int)p->ld, (long long)p->step,
                       (int)p->batch),
                   "cublasDgemmStridedBatched");
    }
}
