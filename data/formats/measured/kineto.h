/* Traces of PyTorch's profiler (Kineto), JSON, plain or gzipped, read as a stream.
 *
 * Kernels are joined with the ops that launched them by their external id. Products of matrices
 * (aten::mm, aten::addmm) whose shapes were recorded become measurements of `linear`, norms,
 * activations, sums and dropout (profile_elementwise) those of their kinds, with FLOPs and bytes of
 * their operands; kernels of NCCL and RCCL that name their collective become
 * measurements among the ranks of their group. A rank's time contains its waiting, so the lowest
 * quartile stands for the median. */
#pragma once

#include "data/measured/measurement.h"

typedef struct {
    uint64_t events, kernels, nccl_kernels, collective_kernels, matmul_ops;
    /* kernels that are in a measurement; those of collectives without sizes, as old versions write
     * them, and of collectives that no cost takes, or that took no time */
    uint64_t used_kernels, unsized_kernels, other_collectives;
    double kernel_us;
    uint32_t streams; /* number of streams with kernels */
    uint32_t devices_listed, world_size;
    int64_t rank; /* -1: not given */
    char *device; /* "" if not given */
    /* lines about the parts of the file that are damaged or missing, and about kernels left out */
    GPtrArray *note;
} KinetoFacts;

void kineto_facts_clear(KinetoFacts *facts);

/* Appends the file's measurements: of an object with the list traceEvents, or of the list alone.
 * Events that are whole count, whatever became of the others (data/base/json_stream.h).
 * KILTER_ERROR_INPUT if it is not a timeline (an execution trace has no times) or has no whole
 * event. */
bool kineto_read(const char *file, GArray *list, GArray *tables, KinetoFacts *facts,
                 GError **error);
