/* Matrix products of the emulator: cuBLAS's column-major definitions, summed in double. */
#include "tests/support/device/inside.h"

#include <cublas_v2.h>
#include <cuda_bf16.h>

struct DeviceBlas {
    Gpu *device;
    DeviceStream *stream;
};

extern "C" const char *cublasGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS"
                                           : "CUBLAS_STATUS_INVALID_VALUE";
}

extern "C" cublasStatus_t cublasCreate(cublasHandle_t *blas)
{
    *blas = new DeviceBlas{device_current(), NULL};
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t cublasDestroy(cublasHandle_t blas)
{
    delete blas;
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t cublasSetStream(cublasHandle_t blas, cudaStream_t stream)
{
    blas->stream = stream;
    return stream->device == blas->device ? CUBLAS_STATUS_SUCCESS
                                          : CUBLAS_STATUS_INVALID_VALUE;
}

struct BlasMatrix {
    void *data; /* or, if scattered, the addresses of the matrices, on the device */
    cudaDataType_t type;
    bool turned;
    int64_t ld, step;
    bool scattered;

    BlasMatrix at(int64_t b) const
    {
        return scattered
                   ? BlasMatrix{((void *const *)data)[b], type, turned, ld, 0, false}
                   : *this;
    }
    double get(int64_t b, int64_t row, int64_t column) const
    {
        const int64_t i = b * step + (turned ? row * ld + column : column * ld + row);
        switch (type) {
        case CUDA_R_64F:
            return ((const double *)data)[i];
        case CUDA_R_32F:
            return (double)((const float *)data)[i];
        case CUDA_R_16F:
            return (double)__half2float(((const __half *)data)[i]);
        default:
            return (double)__bfloat162float(((const __nv_bfloat16 *)data)[i]);
        }
    }
    void set(int64_t b, int64_t row, int64_t column, double value) const
    {
        const int64_t i = b * step + column * ld + row;
        switch (type) {
        case CUDA_R_64F:
            ((double *)data)[i] = value;
            break;
        case CUDA_R_32F:
            ((float *)data)[i] = (float)value;
            break;
        case CUDA_R_16F:
            ((__half *)data)[i] = __float2half_rn((float)value);
            break;
        default:
            ((__nv_bfloat16 *)data)[i] = __float2bfloat16_rn((float)value);
        }
    }
};

static cublasStatus_t blas_multiply(cublasHandle_t blas, int m, int n, int k,
                                    double alpha, double beta, BlasMatrix a, BlasMatrix b,
                                    BlasMatrix c, int batch)
{
    const int64_t high_a = a.turned ? k : m, high_b = b.turned ? n : k;
    if (blas->device != device_current() || !blas->stream || m < 0 || n < 0 || k < 0 ||
        a.ld < (high_a > 1 ? high_a : 1) || b.ld < (high_b > 1 ? high_b : 1) ||
        c.ld < (m > 1 ? m : 1) || a.type != b.type)
        return CUBLAS_STATUS_INVALID_VALUE;
    device_counted()->products++;
    DeviceWork work;
    work.name = "a matrix product";
    work.blocks = 1;
    work.run = [=]() {
        for (int64_t i = 0; i < batch; i++) {
            const BlasMatrix x = a.at(i), y = b.at(i), z = c.at(i);
            for (int64_t column = 0; column < n; column++)
                for (int64_t row = 0; row < m; row++) {
                    double sum = 0;
                    for (int64_t l = 0; l < k; l++)
                        sum += x.get(i, row, l) * y.get(i, l, column);
                    z.set(i, row, column,
                          alpha * sum + (beta != 0 ? beta * z.get(i, row, column) : 0));
                }
        }
    };
    device_append(blas->stream, std::move(work));
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t blas, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
    const void *alpha, const void *a, cudaDataType_t a_type, int lda, long long a_step,
    const void *b, cudaDataType_t b_type, int ldb, long long b_step, const void *beta,
    void *c, cudaDataType_t c_type, int ldc, long long c_step, int batch,
    cublasComputeType_t, cublasGemmAlgo_t)
{
    return blas_multiply(
        blas, m, n, k, (double)*(const float *)alpha, (double)*(const float *)beta,
        {const_cast<void *>(a), a_type, ta == CUBLAS_OP_T, lda, a_step, false},
        {const_cast<void *>(b), b_type, tb == CUBLAS_OP_T, ldb, b_step, false},
        {c, c_type, false, ldc, c_step, false}, batch);
}

extern "C" cublasStatus_t
cublasDgemmStridedBatched(cublasHandle_t blas, cublasOperation_t ta, cublasOperation_t tb,
                          int m, int n, int k, const double *alpha, const double *a,
                          int lda, long long a_step, const double *b, int ldb,
                          long long b_step, const double *beta, double *c, int ldc,
                          long long c_step, int batch)
{
    return blas_multiply(
        blas, m, n, k, *alpha, *beta,
        {const_cast<double *>(a), CUDA_R_64F, ta == CUBLAS_OP_T, lda, a_step, false},
        {const_cast<double *>(b), CUDA_R_64F, tb == CUBLAS_OP_T, ldb, b_step, false},
        {c, CUDA_R_64F, false, ldc, c_step, false}, batch);
}

extern "C" cublasStatus_t
cublasGemmBatchedEx(cublasHandle_t blas, cublasOperation_t ta, cublasOperation_t tb,
                    int m, int n, int k, const void *alpha, const void *const a[],
                    cudaDataType_t a_type, int lda, const void *const b[],
                    cudaDataType_t b_type, int ldb, const void *beta, void *const c[],
                    cudaDataType_t c_type, int ldc, int batch, cublasComputeType_t,
                    cublasGemmAlgo_t)
{
    return blas_multiply(blas, m, n, k, (double)*(const float *)alpha,
                         (double)*(const float *)beta,
                         {(void *)a, a_type, ta == CUBLAS_OP_T, lda, 0, true},
                         {(void *)b, b_type, tb == CUBLAS_OP_T, ldb, 0, true},
                         {(void *)c, c_type, false, ldc, 0, true}, batch);
}

extern "C" cublasStatus_t cublasDgemmBatched(cublasHandle_t blas, cublasOperation_t ta,
                                             cublasOperation_t tb, int m, int n, int k,
                                             const double *alpha, const double *const a[],
                                             int lda, const double *const b[], int ldb,
                                             const double *beta, double *const c[],
                                             int ldc, int batch)
{
    return blas_multiply(blas, m, n, k, *alpha, *beta,
                         {(void *)a, CUDA_R_64F, ta == CUBLAS_OP_T, lda, 0, true},
                         {(void *)b, CUDA_R_64F, tb == CUBLAS_OP_T, ldb, 0, true},
                         {(void *)c, CUDA_R_64F, false, ldc, 0, true}, batch);
}
