/* Costs that follow from links, for clusters that do not state them (private to data). */
#ifndef KILTER_DATA_CLUSTER_DERIVE_H
#define KILTER_DATA_CLUSTER_DERIVE_H

#include "data/cluster/cluster.h"

/* The port of a machine: all of its NICs together. */
typedef struct {
    double bandwidth;     /* bytes/s for collectives */
    double base_s, hop_s; /* see LinkSheet */
} Port;

/* Prices the collectives between machines by the slowest port. port: [n_machines]. */
void derive_collectives(Cluster *cluster, const Port *port);

#endif
