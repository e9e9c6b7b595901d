/* Contractions of two tensors by matrix products of OpenBLAS (private to exec; only where the build has it). */
#ifndef KILTER_EXEC_BLAS_H
#define KILTER_EXEC_BLAS_H

#include "exec/backend.h"

/* Runs op `id` on host memory of `element_bytes` (8 or 4) numbers if it is a contraction of two inputs, with or without a
 * bias; false, and nothing done, if it is not. */
bool blas_contract(const Graph *graph, OpId id, const ExecShard *in, const ExecShard *out,
                   size_t element_bytes);

/* One thread a process: ranks share the cores. */
void blas_use_one_thread(void);

#endif
