/* Measurements for calibration: ops and collectives on a backend's ranks. All ranks work at the
 * same time, as they do when a plan runs, since they share memory bandwidth and caches. */
#pragma once

#include "exec/replay.h"

typedef struct {
    const char *device;        /* the name of the device type in the rows */
    uint32_t warm_up, repeats; /* repeats > 0 */
    uint64_t seed;
} ExecProfile;

/* Times each op of the graph, in the graph's order and as one instruction of a replay, under one of
 * its rules: op i under rule (i + variant) modulo the number of its rules. ratio: [n_ranks].
 * Appends one Measurement (data/measured/measurement.h) per rank and op to `list`, the same in
 * every process. */
bool exec_profile_ops(ExecBackend *backend, const ExecProfile *profile,
                      const Graph *graph, const double *ratio, uint32_t variant,
                      GArray *list, GError **error);

/* Times every priced collective on a float32 tensor of about `bytes`, cut along one of its two
 * dims. The first rank has each share of `share` in turn, and the other ranks divide the rest
 * evenly. A time is from a common start to the end of the last rank. */
bool exec_profile_collectives(ExecBackend *backend, const ExecProfile *profile,
                              double bytes, const double *share, uint32_t n_shares,
                              GArray *list, GError **error);

/* Joins rows of the same device, kind, shape, ranks and share into one, with the median of their
 * medians and the widest quartiles. */
void exec_profile_join(GArray *list);
