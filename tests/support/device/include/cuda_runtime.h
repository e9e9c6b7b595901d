/* The part of CUDA's runtime that the cuda backend uses, on emulated devices
 * (tests/support/device/device.h). */
#ifndef KILTER_TESTS_DEVICE_CUDA_RUNTIME_H
#define KILTER_TESTS_DEVICE_CUDA_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#include <cmath>
#include <functional>
extern "C" {
#endif

typedef enum {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidResourceHandle = 400,
} cudaError_t;

typedef struct DeviceStream *cudaStream_t;
typedef struct DeviceEvent *cudaEvent_t;
typedef struct Gpu *cudaMemPool_t;

enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
enum cudaMemPoolAttr {
    cudaMemPoolAttrReleaseThreshold = 4,
    cudaMemPoolAttrUsedMemHigh = 8
};
enum { cudaMemLocationTypeDevice = 1, cudaMemAccessFlagsProtReadWrite = 3 };

struct cudaMemLocation {
    int type, id;
};
struct cudaMemAccessDesc {
    struct cudaMemLocation location;
    int flags;
};

const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void);
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaMallocAsync(void **data, size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *data, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *data, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemGetInfo(size_t *unused, size_t *total);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value);
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool,
                                 const struct cudaMemAccessDesc *access, size_t n);

#ifdef __cplusplus
}

#define __host__
#define __device__
#define __global__

struct dim3 {
    unsigned x, y, z;
};
extern thread_local dim3 gridDim, blockDim, blockIdx, threadIdx;

/* A grid of threads, one after the other, in the order of the stream. A warp has one thread. */
void device_launch(const char *kernel, unsigned blocks, unsigned threads,
                   cudaStream_t stream, std::function<void()> thread);
#define CUDA_WARP 1
#ifndef CUDA_SLAB
#define CUDA_SLAB 1000 /* scores of attention that are computed at once */
#endif
#define CUDA_LAUNCH(kernel, blocks, threads, stream, ...)       \
    device_launch(__PRETTY_FUNCTION__, blocks, threads, stream, \
                  [=]() mutable { kernel(__VA_ARGS__); })
#endif
#endif
