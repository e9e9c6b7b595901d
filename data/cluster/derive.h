/* Costs that follow from links, for clusters that do not state them (private to data). */
#pragma once

#include "data/cluster/cluster.h"

/* The lines of collectives among the machines of a wired cluster by the slowest port. */
void derive_collectives(Cluster *cluster);
