/* Lowering: collectives as flows. Private to sim.
 *
 * A collective of V bytes over n ranks becomes phases, one after the other, by its algorithm. A
 * phase is either
 *
 *   lockstep   one flow (sim/network/network.h) for all messages of `steps` equal rounds: the
 *              rounds of a ring see the same active flows, so they advance together and
 *              cost one event. It starts when every rank has arrived and the phase before
 *              it is done. Its latency is steps * the longest route's;
 *   free       one flow per message, which starts when its two ranks have arrived. When
 *              all arrive at once on a network that carries nothing else, messages that
 *              cannot be told apart are one flow, until another flow comes (sim/network/bundle.c).
 *
 * Bytes are those of the whole tensor, as in sim/sim.h; shares say which part of it a rank has
 * (NULL: 1/n each). What each rank sends, with B = shares:
 *
 *     all_reduce            V in, V out, everywhere
 *     all_gather            padded: every rank's part counts as max(B) V
 *     grouped_all_gather    n broadcasts of the exact parts, pipelined, one after another
 *     reduce_scatter, grouped_reduce_scatter   likewise
 *     all_to_all            from i to j: from_i to_j V
 *     broadcast, reduce     V from or to the root
 *     send                  V from rank 0 to rank 1; with weights in lockstep, and groups may
 *                           share devices
 *     push, pull            to or from the servers: the root has the whole V or, without
 *                           one (root = n), rank i is server of to_i V
 *
 * Algorithms (ALGORITHM_AUTO: the rule of the cluster, data/cluster/tuning.h):
 *
 *     ring            2 (n-1) rounds of V/n (all-reduce); n-1 of a part (the others); a
 *                     pipelined chain (broadcast, reduce)
 *     tree            a binary tree, pipelined in pieces: all-reduce, broadcast, reduce
 *     double_tree     two trees with half the bytes each: all-reduce
 *     halving         recursive halving and doubling, nearest partner first; all-reduce
 *                     folds the ranks beyond a power of two into it, all-gather and
 *                     reduce-scatter need a power of two
 *     pairwise        n-1 rounds of all-to-all, in round k rank i sends to i+k
 *     direct          every message at once (free)
 *     hierarchical    inside machines, between them, inside again: all-reduce, all-gather,
 *                     reduce-scatter; all-to-all inside, then between GPUs of the same
 *                     index; machines must hold equally many ranks
 *
 * Neighbours in rings and trees follow the topology's order, not the order of the ranks.
 *
 * `groups` disjoint groups that do the same in the same instant (the tensor-parallel groups of a
 * cluster) can be one collective: a lockstep phase then holds the messages of all of them. */
#pragma once

#include "sim/network/network.h"

typedef struct {
    Traffic traffic;
    Algorithm algorithm;
    double bytes; /* bytes of one group's whole tensor */
    /* ranks per group; number of groups, 0 counts as 1 */
    uint32_t n, n_groups;
    const uint32_t *device; /* [group * n + rank], all different */
    /* [rank]: shares of the tensor; NULL: 1/n each */
    const double *share_from, *share_to;
    uint32_t root; /* rank */
    /* [group]: sends of `weight` times `bytes` each, at the same time; NULL */
    const double *weight;
} SimCollective;

/* The flows of a collective, which can be run any number of times, also concurrently.
 * KILTER_ERROR_INPUT if the algorithm does not do this kind. */
typedef struct SimLowered SimLowered;
SimLowered *sim_lower(SimNetwork *network, const SimCollective *collective,
                      GError **error);
/* One message of a collective, in `steps` equal rounds, which follow the rounds of lower phases.
 * Messages of a free phase have steps = 1. */
typedef struct {
    uint32_t phase, steps;
    uint32_t from, to; /* devices */
    double bytes;      /* of all steps together */
} SimMessage;

/* The same; appends the messages to `messages` (SimMessage; may be NULL) in the order of their
 * phases. `like` (may be NULL) is a lowering of the same traffic in the same groups with the same
 * shares, weights and root: if the algorithm is the same too, it has the same messages but for
 * their sizes, and they are not made again. */
SimLowered *sim_lower_like(SimNetwork *network, const SimCollective *collective,
                           const SimLowered *like, GArray *messages, GError **error);

/* Links that all flows of these lowerings use with the same weights, and that have the same
 * bandwidth, count as one (sim/network/lower/fold.c): all but the first are taken out of the flows,
 * and rates stay the same. Returns [link] the link that stands for it, which carries the same bytes
 * at the same times; the caller frees it. A link that is `apart` ([link]), as its bandwidth may
 * change, stands for itself, and so do the links of messages that are kept one by one. */
uint32_t *sim_lowered_fold(SimLowered *const *lowered, uint32_t n,
                           const Topology *topology, const bool *apart);
AUTOPTR(sim_lowered_free, SimLowered)

Algorithm sim_lowered_algorithm(const SimLowered *lowered); /* never AUTO */
double sim_lowered_latency_s(const SimLowered *lowered); /* of all phases, one by one */
double sim_lowered_bytes(const SimLowered *lowered);     /* sent by all ranks together */

/* One execution. `rank_done` (may be NULL) is called once for each rank (group * n + rank), `done`
 * once when all ranks are done; both get `context`, done also gets `argument`. In a lockstep phase
 * a rank is done when all ranks are, in a free phase when it has sent and received all its
 * messages. The caller frees the run, in `done` at the earliest. A rank that has nothing to send or
 * receive is done when it arrives, inside sim_run_arrive. */
typedef struct SimRun SimRun;
SimRun *sim_run_new(SimNetwork *network, const SimLowered *lowered, SimHandler rank_done,
                    SimHandler done, void *context, uint64_t argument);
void sim_run_arrive(SimRun *run, uint32_t rank); /* rank (group * n + rank) arrives now */
void sim_run_arrive_all(SimRun *run);
AUTOPTR(sim_run_free, SimRun)

/* Seconds of one execution whose ranks arrive together, on a network on which nothing else runs. */
double sim_run_alone_s(SimNetwork *network, const SimLowered *lowered);
