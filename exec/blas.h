/* Contractions of two tensors by matrix products of OpenBLAS (private to exec; only where the build
 * has it). */
#pragma once

#include <cblas.h>

#include "exec/backend.h"

/* OpenBLAS's products. They are looked up in that library by name, since another library that a
 * program is linked with (GSL's BLAS, twenty times slower) may have functions of the same names.
 * The library is loaded only when it is needed, since it starts its threads at once. */
typedef struct {
    void (*sgemm)(CBLAS_ORDER, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, blasint m, blasint n,
                  blasint k, float alpha, const float *x, blasint ldx, const float *y,
                  blasint ldy, float beta, float *out, blasint ldout);
    void (*dgemm)(CBLAS_ORDER, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, blasint m, blasint n,
                  blasint k, double alpha, const double *x, blasint ldx, const double *y,
                  blasint ldy, double beta, double *out, blasint ldout);
} Blas;

/* Opens OpenBLAS with one thread per process, as ranks share the cores. KILTER_ERROR_FAILED if it
 * cannot be loaded. */
bool blas_open(Blas *blas, GError **error);

/* Runs op `id` on host memory, in numbers of `element_bytes` (8 or 4), if it is a contraction of
 * two inputs, with or without a bias. Otherwise returns false and does nothing. */
bool blas_contract(const Blas *blas, const Graph *graph, OpId id, const ExecShard *in,
                   const ExecShard *out, size_t element_bytes);
