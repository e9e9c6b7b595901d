/* Lines of collectives that follow from the machines' ports. */
#include "data/cluster/derive.h"

#include <math.h>

/* Latencies are those of the algorithms that NCCL takes for small messages, base + rounds x hop:
 * two trees for all-reduce, halving or doubling for its halves, n - 1 simultaneous messages for
 * all-to-all. Bandwidths are the port's, which a ring passes once in each direction. */
void derive_collectives(Cluster *cluster, const Port *port)
{
    const double rounds = ceil(log2(MAX(cluster->n_machines, 2)));
    Port slow = port[0];
    for (uint32_t i = 1; i < cluster->n_machines; i++) {
        slow.bandwidth = fmin(slow.bandwidth, port[i].bandwidth);
        slow.base_s = fmax(slow.base_s, port[i].base_s);
        slow.hop_s = fmax(slow.hop_s, port[i].hop_s);
    }
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
        const double hops = kind == COLLECTIVE_ALL_REDUCE   ? 2 * rounds
                            : kind == COLLECTIVE_ALL_TO_ALL ? 1
                                                            : rounds;
        cluster->collective[kind] =
            (LinkCost){slow.base_s + hops * slow.hop_s, slow.bandwidth};
    }
}
