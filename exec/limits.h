/* The best rates that a rank's device reaches while all ranks work, to compare a profile's kernels
 * with. */
#pragma once

#include "exec/profile.h"

typedef struct {
    double rate; /* FLOP/s of a product of two matrices [extent, extent] */
    /* bytes/s of adding a tensor of `elements` to another, which reads two and writes one */
    double bandwidth;
    uint32_t extent, elements;
} ExecLimits;

/* Measured by the fastest run of any rank. The sizes grow until one run takes long enough for
 * launches and clocks not to count, or until they are as large as the largest op of a profile.
 * KILTER_ERROR_FAILED if memory runs out. */
bool exec_limits(ExecBackend *backend, const ExecProfile *profile, ExecLimits *limits,
                 GError **error);
