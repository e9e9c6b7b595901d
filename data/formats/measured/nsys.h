/* Reports of Nsight Systems, as `nsys export --type sqlite` writes them (private to data).
 *
 * A kernel belongs to the innermost NVTX range with sizes around the call that launched it, as
 * torch.autograd.profiler.emit_nvtx(record_shapes=True) makes them:
 *
 *     aten::mm, op_id = 7, sizes = [[4096, 1024], [1024, 1024]]
 *
 * Matrix products become measurements of `linear`, norms, activations, sums and dropout those of
 * their kinds (profile_elementwise), with the time of all kernels of the range. Collectives
 * (nccl:all_reduce, ...) are measured among the GPUs of the report that run kernels of NCCL. Number
 * formats are those in the kernels' names. */
#pragma once

#include "data/measured/measurement.h"

/* Appends the report's measurements, and one table that says how many kernels it has and the
 * median time of a launch. KILTER_ERROR_INPUT: no report, or no tables of kernels. */
bool nsys_read(const char *file, GArray *list, GArray *tables, GError **error);
