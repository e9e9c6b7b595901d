/* Kinds of collectives, and the lines that price them. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Collectives and free local conversions. The priced ones come first. */
#define COLLECTIVE_TABLE(X)                                                              \
    X(ALL_REDUCE, "all_reduce") /* Reduce -> Identity */                                 \
    X(ALL_GATHER, "all_gather") /* Gather(d) -> Identity, padded to the largest shard */ \
    X(GROUPED_ALL_GATHER,                                                                \
      "grouped_all_gather")             /* the same as n broadcasts of exact shards */   \
    X(REDUCE_SCATTER, "reduce_scatter") /* Reduce -> Gather(d), padded */                \
    X(GROUPED_REDUCE_SCATTER,                                                            \
      "grouped_reduce_scatter") /* the same as n reduces of exact shards */              \
    X(ALL_TO_ALL, "all_to_all") /* Gather(a) -> Gather(b) */                             \
    X(SLICE, "slice")           /* Identity -> Gather(d), local */                       \
    X(KEEP,                                                                              \
      "keep") /* Identity -> Reduce: device 0 keeps it, the others hold zeros; local */  \
    X(PAD, "pad") /* Gather(d) -> Reduce: zero-padded, local */

#define COLLECTIVE_ID(id, name) COLLECTIVE_##id,
typedef enum { COLLECTIVE_TABLE(COLLECTIVE_ID) COLLECTIVES } Collective;
enum { COLLECTIVES_PRICED = COLLECTIVE_SLICE };

const char *collective_name(Collective kind);
Collective collective_from_name(const char *name); /* COLLECTIVES if unknown */

/* A fitted line: time of a message of V bytes = latency + (algorithm's factor) V / bandwidth. */
typedef struct {
    double latency_s;
    double bandwidth; /* bytes/s */
} LinkCost;

/* The port of a machine: all of its NICs together. */
typedef struct {
    double bandwidth;     /* bytes/s for collectives; 0: not known */
    double gpu;           /* bytes/s that one GPU can send to the NICs; 0: not known */
    double base_s, hop_s; /* latency: base + rounds x hop */
    uint32_t nics;        /* each GPU uses those next to it; 0: not known, all use all */
} Port;

/* The bandwidth of a machine's port for so many of its GPUs: of the NICs next to them, at least one
 * for each, and no more than they can send to NICs. */
double port_capacity(const Port *port, uint32_t machine_gpus, uint32_t gpus);

/* Lines for smaller tensors, fitted to measurements: the first piece with V <= up_to applies, and
 * above all pieces the kind's own line. */
typedef struct {
    double up_to; /* bytes of the whole tensor, rising */
    LinkCost line;
} CollectivePiece;
typedef struct {
    uint32_t n;
    CollectivePiece *piece;
    double smallest, largest; /* range of bytes that were measured; 0: not fitted */
} CollectivePieces;
