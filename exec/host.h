/* Members of ExecBackendOps that backends share whose shards lie in the memory of this process
 * (private to exec). */
#pragma once

#include "exec/backend.h"

void *exec_host_allocate(ExecBackend *backend, uint32_t local, uint64_t elements);
void exec_host_release(ExecBackend *backend, uint32_t local, void *data);
void exec_host_write(ExecBackend *backend, uint32_t local, const ExecShard *to,
                     const double *from);
void exec_host_read(ExecBackend *backend, uint32_t local, const ExecShard *from,
                    double *to);
void exec_host_copy(ExecBackend *backend, uint32_t local, const ExecShard *from,
                    const ExecShard *to);
void exec_host_add(ExecBackend *backend, uint32_t local, const ExecShard *from,
                   const ExecShard *to);
/* By the reference's kernels; float32 by way of float64. */
void exec_host_run_op(ExecBackend *backend, uint32_t local, const Graph *graph, OpId op,
                      const ExecShard *in, const ExecShard *out);
