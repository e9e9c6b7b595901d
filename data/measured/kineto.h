/* Traces of PyTorch's profiler (Kineto), JSON, plain or gzipped, read as a stream.
 *
 * Kernels are joined with the ops that launched them by their external id. Products of matrices (aten::mm, aten::addmm) whose
 * shapes were recorded become measurements of `linear`, with FLOPs and bytes of their operands; kernels of NCCL and RCCL that
 * say which collective they are become measurements among the ranks of their group. A rank's time has its waiting in it, so the
 * lowest quartile stands for the median. */
#ifndef KILTER_DATA_MEASURED_KINETO_H
#define KILTER_DATA_MEASURED_KINETO_H

#include "data/measured/measurement.h"

typedef struct {
    uint64_t events, kernels, nccl_kernels, collective_kernels, matmul_ops;
    double kernel_us;
    uint32_t streams; /* that kernels ran on */
    uint32_t devices_listed, world_size;
    int64_t rank; /* -1: not said */
    char *device; /* "" if not said */
} KinetoFacts;

void kineto_facts_clear(KinetoFacts *facts);

/* Whether the file, or what it holds gzipped, begins as a trace, or an execution trace, of PyTorch. */
bool kineto_is_trace(const char *file);

/* Appends what the file holds. KILTER_ERROR_INPUT: not a timeline (an execution trace has no times), not JSON.
 * KILTER_ERROR_FAILED: this build has no yajl. */
bool kineto_read(const char *file, GArray *list, GArray *tables, KinetoFacts *facts,
                 GError **error);

#endif
