/* Where the CUDA backend's kernels run: a stream of one GPU. Private to exec. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#include <glib.h> /* before extern "C", as it has templates */
#endif
#include "exec/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    bool single;         /* float32; else float64 */
    int device;          /* GPU */
    void *stream;        /* cudaStream_t */
    void *blas;          /* cublasHandle_t, NULL until needed */
    const char *trouble; /* the first call that failed, or NULL */
    double unscale;      /* updates multiply gradients by it */
} CudaQueue;

/* False if the GPU cannot be used; queue->trouble says why. */
bool cuda_queue_init(CudaQueue *queue, int device, bool single);
void cuda_queue_clear(CudaQueue *queue);

/* Remembers what went wrong, with CUDA's reason. */
void cuda_queue_check(CudaQueue *queue, int code, const char *call);

/* Makes the queue's GPU that of this thread. */
void cuda_queue_enter(CudaQueue *queue);
void cuda_queue_wait(CudaQueue *queue);

static inline size_t cuda_queue_size(const CudaQueue *queue)
{
    return queue->single ? sizeof(float) : sizeof(double);
}

/* Memory for `elements` of the queue's numbers, allocated and released in the order of the stream;
 * NULL if memory runs out. */
void *cuda_queue_allocate(CudaQueue *queue, uint64_t elements);
void cuda_queue_release(CudaQueue *queue, void *data);
/* The same for an op's temporary memory; if memory runs out, this is the queue's trouble, and no
 * later kernel or product is launched. */
void *cuda_queue_scratch(CudaQueue *queue, uint64_t elements);
void cuda_queue_zero_bytes(CudaQueue *queue, void *data, uint64_t bytes);

/* Lets another GPU of this process read and write memory of the queue's GPU, if they reach each
 * other. */
void cuda_queue_share(CudaQueue *queue, int device);

/* The most bytes that were allocated on the queue's GPU at once since the last call. */
uint64_t cuda_queue_peak(CudaQueue *queue);
/* The bytes of that GPU that are in use, by all. */
uint64_t cuda_queue_used(CudaQueue *queue);

/* Copies between the host's float64 and the queue's numbers; both functions wait until the copy is
 * done. */
void cuda_queue_write(CudaQueue *queue, const ExecShard *to, const double *from);
void cuda_queue_read(CudaQueue *queue, const ExecShard *from, double *to);

/* A matrix in memory, used as its transpose if `transposed`. ld: elements per row in memory; step:
 * elements from one matrix of a batch to the next. */
typedef struct {
    const void *data;
    bool transposed;
    uint64_t ld, step;
    uint32_t numbers; /* ExecNumbers */
    uint64_t sample;  /* elements from one batch to the next, where there are several */
} CudaMatrix;
/* Row-major matrix products, `batch` of them: out[m, n] = alpha x[m, k] y[k, n]; the same in each
 * of `samples` places, if that is not 0. */
typedef struct {
    uint64_t m, n, k, batch;
    double alpha;
    const CudaMatrix *x, *y;
    void *out;
    uint64_t ld, step; /* of the output */
    uint32_t numbers;  /* of the output */
    uint64_t samples, sample;
} CudaProduct;
/* Both factors have the same numbers; where these have two bytes, sums are float32. `at`: NULL, or,
 * where there are samples, the addresses [3, batch x samples] of all x, y and outputs, on the
 * GPU. */
void cuda_queue_multiply(CudaQueue *queue, const CudaProduct *product, void **at);

#ifdef __cplusplus
}
#endif
