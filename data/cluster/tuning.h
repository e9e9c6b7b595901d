/* The algorithm that a collective takes on a cluster, by kind, ranks and size: a table, like NCCL's
 * tuner. data/tuning/default.yaml on the search path has the rules for all clusters; the `tuning`
 * section of a cluster file has rules of its own, which come first, such as
 *
 *     rules: [{collective: all_reduce, most_ranks: 8, most_bytes: 64 KiB, algorithm: tree}]
 *
 * The first rule that fits decides; keys that a rule leaves out always fit. Bytes count the whole
 * tensor. sim/network/lower/lowering.h describes the algorithms. */
#pragma once

#include "data/cluster/cluster.h"

/* The kinds of traffic that a group of ranks can send. The first ones are the priced collectives,
 * in their order (data/cluster/cluster.h). */
#define TRAFFIC_TABLE(X)                                \
    X(ALL_REDUCE, "all_reduce")                         \
    X(ALL_GATHER, "all_gather")                         \
    X(GROUPED_ALL_GATHER, "grouped_all_gather")         \
    X(REDUCE_SCATTER, "reduce_scatter")                 \
    X(GROUPED_REDUCE_SCATTER, "grouped_reduce_scatter") \
    X(ALL_TO_ALL, "all_to_all")                         \
    X(BROADCAST, "broadcast")                           \
    X(REDUCE, "reduce")                                 \
    X(SEND, "send")                                     \
    X(PUSH, "push")                                     \
    X(PULL, "pull")

#define TRAFFIC_ID(id, name) TRAFFIC_##id,
typedef enum { TRAFFIC_TABLE(TRAFFIC_ID) TRAFFICS } Traffic;

/* AUTO means that the table decides. */
#define ALGORITHM_TABLE(X)          \
    X(AUTO, "auto")                 \
    X(RING, "ring")                 \
    X(TREE, "tree")                 \
    X(DOUBLE_TREE, "double_tree")   \
    X(HALVING, "halving")           \
    X(PAIRWISE, "pairwise")         \
    X(DIRECT, "direct")             \
    X(HIERARCHICAL, "hierarchical") \
    X(MACHINE_TREE, "machine_tree")

#define ALGORITHM_ID(id, name) ALGORITHM_##id,
typedef enum { ALGORITHM_TABLE(ALGORITHM_ID) ALGORITHMS } Algorithm;

/* The algorithms for each kind of traffic, with the function that lowers it to messages
 * (sim/network/lower). Everything else that names a lowering follows from these rows. */
#define LOWERING_TABLE(X)                                \
    X(ALL_REDUCE, RING, ring_all_reduce)                 \
    X(ALL_REDUCE, TREE, tree)                            \
    X(ALL_REDUCE, DOUBLE_TREE, double_tree)              \
    X(ALL_REDUCE, HALVING, halving)                      \
    X(ALL_REDUCE, HIERARCHICAL, hierarchical)            \
    X(ALL_REDUCE, MACHINE_TREE, machine_tree)            \
    X(ALL_GATHER, RING, ring_parts)                      \
    X(ALL_GATHER, HALVING, halving_parts)                \
    X(ALL_GATHER, DIRECT, direct_parts)                  \
    X(ALL_GATHER, HIERARCHICAL, hierarchical)            \
    X(GROUPED_ALL_GATHER, RING, ring_grouped)            \
    X(GROUPED_ALL_GATHER, DIRECT, direct_parts)          \
    X(REDUCE_SCATTER, RING, ring_parts)                  \
    X(REDUCE_SCATTER, HALVING, halving_parts)            \
    X(REDUCE_SCATTER, DIRECT, direct_parts)              \
    X(REDUCE_SCATTER, HIERARCHICAL, hierarchical)        \
    X(GROUPED_REDUCE_SCATTER, RING, ring_grouped)        \
    X(GROUPED_REDUCE_SCATTER, DIRECT, direct_parts)      \
    X(ALL_TO_ALL, PAIRWISE, pairwise)                    \
    X(ALL_TO_ALL, DIRECT, direct_all_to_all)             \
    X(ALL_TO_ALL, HIERARCHICAL, hierarchical_all_to_all) \
    X(BROADCAST, RING, chain)                            \
    X(BROADCAST, TREE, tree)                             \
    X(BROADCAST, DIRECT, direct_root)                    \
    X(REDUCE, RING, chain)                               \
    X(REDUCE, TREE, tree)                                \
    X(REDUCE, DIRECT, direct_root)                       \
    X(SEND, DIRECT, direct_root)                         \
    X(PUSH, DIRECT, direct_server)                       \
    X(PULL, DIRECT, direct_server)

const char *traffic_name(Traffic traffic);
const char *algorithm_name(Algorithm algorithm);
/* Finds a kind of traffic by name; KILTER_ERROR_INPUT lists the names. */
bool traffic_find(const char *name, Traffic *traffic, GError **error);
bool algorithm_find(const char *name, Algorithm *algorithm, GError **error);

/* Whether the algorithm can do that kind of traffic, for some number of ranks at least; if not,
 * KILTER_ERROR_INPUT lists the algorithms that can. */
bool algorithm_check(Algorithm algorithm, Traffic traffic, GError **error);

typedef struct {
    Traffic traffic;
    uint32_t most_ranks;
    double most_bytes;
    bool power_of_two; /* fits powers of two as numbers of ranks only */
    Algorithm algorithm;
} TuningRule;

typedef struct Tuning {
    uint32_t n;
    TuningRule *rule;
    double piece_bytes, least_piece_bytes; /* 0: not given */
    char *source;
} Tuning;

/* The cluster's rules, followed by the default rules. KILTER_ERROR_INPUT. */
Tuning *tuning_of_cluster(const Cluster *cluster, GError **error);
/* The same as JSON with sorted keys, for the identity of results. Caller frees. */
char *tuning_canonical(const Cluster *cluster, GError **error);
AUTOPTR(tuning_free, Tuning)

/* The algorithm of the first rule that fits; ALGORITHM_AUTO if none does. */
Algorithm tuning_choose(const Tuning *tuning, Traffic traffic, uint32_t ranks,
                        double bytes);
