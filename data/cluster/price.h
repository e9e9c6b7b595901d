/* The cost of collectives among devices by the links between them: one price for all planners and
 * fidelities.
 *
 * A set of ranks lies on units: machines, each with its GPUs on a switch or on direct links, and
 * one port of all its NICs; or domains of machines on one switch. What a set has of them while all
 * sets of a place communicate at once:
 *
 *     inner   inside a unit: the machine's link; with direct links (data/cluster/peers.h) as many of
 *             them as there are rings among just these GPUs, or the link of those that find no ring
 *     ring    between units, in a *wired* cluster: the least over units of
 *                 port_capacity(port, GPUs of all sets there) / sets there
 *             so that ports count by the ranks that use them; a domain has those of all its machines.
 *             Between regions, or switches of a topology, no more than the links there, divided among
 *             the sets that cross them
 *
 * On V bytes of n ranks on h units, a ranks on each, by the cheapest of
 *
 *                      latency                                     bytes on a link, per byte of V
 *     ring             base + 2 (h-1) hop + 2 (n-h) inner hop      2 (n-1)/n  on inner and ring
 *     machine_tree     base + 2 ceil(log2 h) hop + 2 (a-1) inner   ring: 1 if h = 2, else 2;
 *                                            hop                   inner: 2, or where switches sum up
 *                                                                  tree_sums (a+1)/a
 *     the other kinds  base + rounds hop + inner latency / 2       as in sim/sim.h
 *
 * Two trees, each of half the tensor, pass a port between two units once up and once down: half of
 * a ring's bytes. Inside a single unit the tensor goes around a ring, or through the switch that
 * sums up: min(2 (n-1)/n, sums (n+1)/n). In clusters that state their collectives, and for kinds
 * with a measured curve (data/cluster/curve.h), these lines count instead. */
#pragma once

#include "data/cluster/cluster.h"
#include "data/cluster/tuning.h"

/* Sets of n devices each that do the same at once; `device`: [set * n + rank], of a view. */
typedef struct {
    uint32_t n_sets, n;
    const uint32_t *device;
} PriceSets;

/* How sets lie on the machines. */
typedef struct {
    /* of a set: ranks, units, and the most ranks on one of them */
    uint32_t ranks, hosts, most;
    /* the slowest of a set's links inside a unit; bandwidth INFINITY: none */
    LinkCost inner;
    uint32_t slowest; /* a device on it */
    double inner_hop_s;
    double sums, tree_sums; /* the most of the switches; 0: some do not sum up */
    double ring;            /* bytes/s of each set's ring between units; 0: not wired */
    double exchange; /* the same of one rank's all-to-all with ranks of other units */
    double base_s, hop_s;
    uint32_t sites; /* of a set, between which the network may be narrow; 0: one */
    double far_s;   /* the longest latency between two of them */
    uint32_t port_sets, port_devices; /* sets and devices behind the busiest port */
    bool own; /* it is priced by this file rather than by stated lines */
} PricePlace;

/* The link among the GPUs of a machine whose bits are set (of the first PEERS_MAX_GPUS). */
LinkCost machine_line(const Cluster *cluster, const Machine *machine, uint32_t set);

/* The place of a set of so many ranks on so many machines like one, in blocks of its GPUs, whose
 * ports `sets` such sets share. False if the place is not priced here. */
bool price_of_machine(const Cluster *cluster, const Machine *machine, uint32_t ranks,
                      uint32_t hosts, uint32_t sets, PricePlace *place);

void price_place(const ClusterView *view, const PriceSets *sets, PricePlace *place);

/* The line of a collective on `bytes` in a place that is priced here (place->own); *algorithm,
 * where not NULL, gets the algorithm of an all-reduce. */
LinkCost price_line(const PricePlace *place, Collective kind, double bytes,
                    Algorithm *algorithm);
/* The same for all sizes: pieces up to the sizes where another algorithm becomes cheaper, and *line
 * above them. The caller frees pieces->piece. */
void price_pieces(const PricePlace *place, Collective kind, CollectivePieces *pieces,
                  LinkCost *line);

/* The line of a message between a GPU of each of two machines of a wired cluster, by ports. */
LinkCost price_between(const ClusterView *view, uint32_t machine, uint32_t other);
