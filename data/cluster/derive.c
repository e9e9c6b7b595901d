/* Lines of collectives that follow from the machines' ports. */
#include "data/cluster/derive.h"

#include <math.h>

/* Latencies are those of the algorithms that NCCL takes for small messages, base + rounds x hop:
 * two trees for all-reduce, halving or doubling for its halves, n - 1 simultaneous messages for
 * all-to-all. Bandwidths are the port's, which a ring passes once in each direction. */
void derive_collectives(Cluster *cluster)
{
    const double rounds = ceil(log2(MAX(cluster->n_machines, 2)));
    bool joined = true;
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        joined = joined && cluster_unit(cluster, i) == 0;
    if (joined) { /* one machine, or one domain */
        for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
            cluster->collective[kind] = cluster->machine[0].inner;
        return;
    }
    Port slow = {.bandwidth = INFINITY};
    for (uint32_t i = 0; i < cluster->n_machines; i++) {
        const Port *port = &cluster->machine[i].port;
        slow.bandwidth =
            fmin(slow.bandwidth,
                 port_capacity(port, cluster->machine[i].gpus, cluster->machine[i].gpus));
        slow.base_s = fmax(slow.base_s, port->base_s);
        slow.hop_s = fmax(slow.hop_s, port->hop_s);
    }
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
        const double hops = kind == COLLECTIVE_ALL_REDUCE   ? 2 * rounds
                            : kind == COLLECTIVE_ALL_TO_ALL ? 1
                                                            : rounds;
        cluster->collective[kind] =
            (LinkCost){slow.base_s + hops * slow.hop_s, slow.bandwidth};
    }
}
