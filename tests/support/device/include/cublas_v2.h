/* The part of cuBLAS that the cuda backend uses, on emulated devices. */
#ifndef KILTER_TESTS_DEVICE_CUBLAS_H
#define KILTER_TESTS_DEVICE_CUBLAS_H

#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_INVALID_VALUE = 7
} cublasStatus_t;
typedef enum { CUBLAS_OP_N, CUBLAS_OP_T } cublasOperation_t;
typedef enum {
    CUDA_R_32F = 0,
    CUDA_R_64F = 1,
    CUDA_R_16F = 2,
    CUDA_R_16BF = 14
} cudaDataType_t;
typedef enum { CUBLAS_COMPUTE_32F = 68 } cublasComputeType_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1 } cublasGemmAlgo_t;
typedef struct DeviceBlas *cublasHandle_t;

const char *cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasCreate(cublasHandle_t *blas);
cublasStatus_t cublasDestroy(cublasHandle_t blas);
cublasStatus_t cublasSetStream(cublasHandle_t blas, cudaStream_t stream);
cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t blas, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
    const void *alpha, const void *a, cudaDataType_t a_type, int lda, long long a_step,
    const void *b, cudaDataType_t b_type, int ldb, long long b_step, const void *beta,
    void *c, cudaDataType_t c_type, int ldc, long long c_step, int batch,
    cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
cublasStatus_t cublasGemmBatchedEx(cublasHandle_t blas, cublasOperation_t ta,
                                   cublasOperation_t tb, int m, int n, int k,
                                   const void *alpha, const void *const a[],
                                   cudaDataType_t a_type, int lda, const void *const b[],
                                   cudaDataType_t b_type, int ldb, const void *beta,
                                   void *const c[], cudaDataType_t c_type, int ldc,
                                   int batch, cublasComputeType_t compute,
                                   cublasGemmAlgo_t algorithm);
cublasStatus_t cublasDgemmBatched(cublasHandle_t blas, cublasOperation_t ta,
                                  cublasOperation_t tb, int m, int n, int k,
                                  const double *alpha, const double *const a[], int lda,
                                  const double *const b[], int ldb, const double *beta,
                                  double *const c[], int ldc, int batch);
cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t blas, cublasOperation_t ta,
                                         cublasOperation_t tb, int m, int n, int k,
                                         const double *alpha, const double *a, int lda,
                                         long long a_step, const double *b, int ldb,
                                         long long b_step, const double *beta, double *c,
                                         int ldc, long long c_step, int batch);

#ifdef __cplusplus
}
#endif
#endif
