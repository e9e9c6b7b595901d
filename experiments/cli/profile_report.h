/* The report of kilter profile beside its file: the rates of kernels, and the device's limits. */
#pragma once

#include "exec/exec.h"
#include "experiments/cli/command.h"

/* The best rates that an op kind reached in any shape on any rank. */
typedef struct {
    OpKind kind;
    uint32_t shapes;
    double rate, bandwidth; /* FLOP/s, bytes/s of its operands */
} KernelRate;

/* The rates of each kind of kernel that was measured; free with g_array_unref. */
GArray *profile_kernel_rates(const GArray *measurements);

/* The template of the report, which has these members too. */
extern const char PROFILE_REPORT_TEXT[];
/* {"limits": {...}, "kernels": [...]} */
json_t *profile_rates_json(const GArray *rates, const ExecLimits *limits);
