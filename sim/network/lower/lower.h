/* How algorithms say which messages they send. Private to sim's lowering.
 *
 * An algorithm is a function that calls lower_message for the messages of a round and then
 * lower_rounds for equal rounds, or lower_free for messages that wait for no others. It does so for
 * all groups at once. Positions are ranks in the topology's order. */
#pragma once

#include "sim/network/lower/lowering.h"

typedef struct {
    uint32_t from, to; /* group * n + rank */
    uint32_t first_use, n_uses;
    double bytes, latency_s;
} LoweredMessage;

/* The parts of a phase that do not depend on the size of the tensor: its links, the sum of the
 * weights of its messages, and the longest latency of a message. */
typedef struct {
    uint32_t first_use, n_uses;
    double sent, longest_s;
} LoweredRound;

/* The rounds of lowerings that differ in the size of the tensor only, with the uses of their links
 * or, where there are no rounds, of the links of messages. */
typedef struct {
    uint32_t n_owners;
    GArray *use, *round;
} LoweredUses;

/* Equal rounds that advance together. */
typedef struct {
    double bytes, payload, latency_s;
} LoweredPhase;

/* Messages that have the same rate while nothing else shares their links (sim/network/bundle.c). */
typedef struct {
    uint32_t first, n;          /* its messages, in `member` */
    uint32_t first_use, n_uses; /* the uses of all together, in bundle_use */
    double bytes, latency_s;    /* of each message */
} LoweredBundle;

struct SimLowered {
    uint32_t n_ranks; /* ranks of all groups */
    Algorithm algorithm;
    bool has_bytes;
    double efficiency, sent;
    /* bytes that links count per byte of a message that is not in a phase */
    double payload;
    double least_s; /* it takes no less time (sim/network/measured.h) */
    LoweredUses *uses;
    GArray *phase,
        *message; /* phases, each with its round, or messages, whichever the algorithm has */
    /* messages of rank r as sender or receiver: message_of[first_of[r]...first_of[r + 1]]; NULL
     * without messages */
    uint32_t *first_of, *message_of;
    uint32_t n_bundles; /* 0: messages are too different to be bundled */
    LoweredBundle *bundle;
    uint32_t *member; /* messages, bundle by bundle */
    GArray *bundle_use;
};

/* Multiplies bytes and latencies by a factor; links count as many bytes as before. */
void lowered_scale(SimLowered *lowered, double factor);

/* Finds the bundles of the messages, if any. */
void lower_bundles(SimLowered *lowered, const Topology *topology);

typedef struct {
    SimNetwork *network;
    const SimCollective *collective;
    SimLowered *lowered;
    /* the rounds are those of another lowering: messages need not be looked at */
    bool known;
    uint32_t n, n_groups;
    uint32_t *ring;     /* [group * n + position]: rank */
    uint32_t *position; /* [group * n + rank] */
    /* the round that is being filled */
    double *weight;  /* [link] */
    GArray *touched; /* links with a weight */
    double sent, longest_s;
    /* SimMessage, or NULL if not asked for; the round's messages begin at round_first */
    GArray *messages;
    uint32_t round_first;
} Lower;

/* Adds a message of `weight` times the round's bytes to the round, between ranks of the group. */
void lower_message(Lower *lower, uint32_t group, uint32_t from, uint32_t to,
                   double weight);
/* The same between positions of the group. */
void lower_hop(Lower *lower, uint32_t group, uint32_t from, uint32_t to, double weight);

/* `steps` rounds of the messages so far, in which a message of weight 1 moves `bytes` in
 * all; `idle_bytes` more would fit into the time when it has nothing to send (the filling
 * of a pipeline). */
void lower_rounds(Lower *lower, uint32_t steps, double bytes, double idle_bytes);

void lower_free(Lower *lower, uint32_t group, uint32_t from, uint32_t to, double bytes);

/* The share of a rank before and after, and the largest share of each. */
double lower_share_from(const Lower *lower, uint32_t rank);
double lower_share_to(const Lower *lower, uint32_t rank);
/* bytes of a padded part of an all-gather or reduce-scatter: max(B) V */
double lower_part_bytes(const Lower *lower);

/* The number of pieces into which a pipeline of `hops` cuts `bytes`: of `piece` bytes, but more and
 * smaller ones, down to `least_piece`, if they would not fill the pipeline
 * (data/cluster/tuning.h). */
double lower_pieces(const Lower *lower, double bytes, uint32_t hops);

typedef bool (*LowerAlgorithm)(Lower *lower, GError **error);
#define X(traffic, algorithm, how) bool lower_##how(Lower *lower, GError **error);
LOWERING_TABLE(X) /* a lowering of several rows is declared again */
#undef X
