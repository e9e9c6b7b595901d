/* The best rates that a rank's device reaches while all ranks work: a measure for the kernels of a
 * profile. */
#ifndef KILTER_EXEC_LIMITS_H
#define KILTER_EXEC_LIMITS_H

#include "exec/profile.h"

typedef struct {
    double rate; /* FLOP/s of a product of two matrices [extent, extent] */
    /* bytes/s of adding a tensor of `elements` to another: two are read, one is written */
    double bandwidth;
    uint32_t extent, elements;
} ExecLimits;

/* By the fastest run of any rank. The sizes grow until one run takes long enough for launches and
 * clocks not to count, or they are as large as any op of a profile. KILTER_ERROR_FAILED if memory
 * lacks. */
bool exec_limits(ExecBackend *backend, const ExecProfile *profile, ExecLimits *limits,
                 GError **error);

#endif
