/* Collectives that a cluster's curves, ports or direct links price (data/cluster/curve.h, price.h),
 * and messages between machines that its line of transfers prices, as flows. Private to sim.
 *
 * A collective that was measured takes, alone on the network, the measured time, whatever its
 * messages would take: it ends no earlier, and if its messages alone take longer, their bytes and
 * latencies are multiplied by the measured part of that time. So its bytes still take the room of
 * other flows, and it is late where others take its own. */
#pragma once

#include "sim/network/lower/lowering.h"

/* The seconds of a collective by the curves of the cluster (of sends: by its line of transfers),
 * where all of its groups run at the same time; 0: it was not measured in such a place. */
double sim_measured_s(const ClusterView *view, const SimCollective *collective);

/* Whether a curve says so. */
bool sim_measured_by_curve(const ClusterView *view, const SimCollective *collective);

/* The bytes that all ranks of one group send then; of sends in one group. */
double sim_measured_bytes(const ClusterView *view, const SimCollective *collective);

/* Gives lowered collectives their measured times; the view and the topology must outlive it. */
typedef struct SimMeasured SimMeasured;
SimMeasured *sim_measured_new(const ClusterView *view, const Topology *topology);
void sim_measured_free(SimMeasured *measured);

/* Lowers a collective as sim_lower_like does, by the algorithm that is cheapest where ports price
 * it (data/cluster/price.h) and neither it nor the cluster's own rules name one, and gives it its
 * time. */
SimLowered *sim_measured_lower(SimMeasured *measured, SimNetwork *network,
                               const SimCollective *collective, const SimLowered *like,
                               GArray *messages, GError **error);
