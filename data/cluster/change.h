/* What-if changes: a cluster with other numbers, or of other machines.
 *
 *     scale    network=2          bandwidths between machines, of all collectives and links
 *              latency=0.5        latencies between machines
 *              inner=2            bandwidths inside of machines
 *              h100.rate=1.1      FLOP/s of a device type, in all formats of numbers
 *              h100.bandwidth=2   its memory's bandwidth, where ops are fitted
 *              h100.memory=2      its memory
 *     only     h100,a100-0        machines of these names or device types, and no others
 *     without  v100               all machines but those
 *     add      h100 x 8           one more machine of 8 GPUs, otherwise like the cluster's first
 *                                 of that device type; without one, of the data sheet of that name
 *                                 or alias (data/devices), with the device's fastest links inside
 *                                 and the cluster's network outside
 *
 * Names of device types and machines may have `*` and `?`; a name that is neither may be an alias
 * of a data sheet. Of a machine with unlike GPUs a device type means those GPUs. */
#pragma once

#include "data/cluster/cluster.h"

typedef enum {
    CHANGE_ADD,
    CHANGE_ONLY,
    CHANGE_WITHOUT,
    CHANGE_SCALE,
    CHANGES
} ChangeKind;

const char *change_name(ChangeKind kind);

/* Applies one change and appends it to the cluster's name, as in "hap-8 only v100".
 * KILTER_ERROR_INPUT for a malformed text, an unknown name, a factor out of bounds, or a result
 * that no file could be (data/cluster/check.h), as machines without a network between them; the
 * cluster must then be freed. */
bool cluster_change(Cluster *cluster, ChangeKind kind, const char *text, GError **error);

/* The pattern of types that a name or an alias means. KILTER_ERROR_INPUT: none. Caller frees. */
char *cluster_types_named(const Cluster *cluster, const char *name, GError **error);

/* An equal cluster, by its own file. KILTER_ERROR_INPUT. */
Cluster *cluster_copy(const Cluster *cluster, GError **error);

/* Keeps the machines for which keep[machine] is set, at least one. */
bool cluster_keep(Cluster *cluster, const bool *keep, GError **error);
