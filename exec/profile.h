/* Measuring what calibration fits: ops and collectives of a backend's ranks, all of them working at
 * the same time, as they do when a plan runs, since they share memory bandwidth and caches. */
#ifndef KILTER_EXEC_PROFILE_H
#define KILTER_EXEC_PROFILE_H

#include "exec/replay.h"

typedef struct {
    const char *device;        /* what the rows call the type of the ranks' devices */
    uint32_t warm_up, repeats; /* repeats > 0 */
    uint64_t seed;
} ExecProfile;

/* Times each op of the graph, in the graph's order and as one instruction of a replay, under one of
 * its rules: op i under rule (i + variant) modulo their number. ratio [n_ranks]. Appends a
 * Measurement (data/measured/measurement.h) a rank and op to `list`, the same in every process. */
bool exec_profile_ops(ExecBackend *backend, const ExecProfile *profile,
                      const Graph *graph, const double *ratio, uint32_t variant,
                      GArray *list, GError **error);

/* Times every priced collective on a float32 tensor of about `bytes`, cut along one of its two dims
 * so that the first rank has each of the shares and the others the rest alike. From a common start
 * to the end of the last rank. */
bool exec_profile_collectives(ExecBackend *backend, const ExecProfile *profile,
                              double bytes, const double *share, uint32_t n_shares,
                              GArray *list, GError **error);

/* Joins rows of the same device, kind, shape, ranks and share: the median of their medians, the
 * widest quartiles. */
void exec_profile_join(GArray *list);

#endif
