/* Costs that follow from links (private to data): for clusters that do not state them. */
#ifndef KILTER_DATA_CLUSTER_DERIVE_H
#define KILTER_DATA_CLUSTER_DERIVE_H

#include "data/cluster/cluster.h"

/* The port of a machine: of all of its NICs. */
typedef struct {
    double bandwidth;     /* bytes/s that collectives get */
    double base_s, hop_s; /* see LinkSheet */
} Port;

/* Prices the collectives between machines, port[n_machines], of which the slowest decides. */
void derive_collectives(Cluster *cluster, const Port *port);

#endif
