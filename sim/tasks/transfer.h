/* Transfers: which device sends which part of a tensor to which device. Private to sim. */
#pragma once

#include "sim/tasks/parts.h"

/* The transfer between two groups of any tensor with the same cut. */
typedef struct {
    uint16_t group, to_group;
    Form from, to;
    PlanCut cut, to_cut;
    double shard_part;        /* part of the tensor per shard, where shards divide it */
    GArray *pieces;           /* SimPiece */
    double latency_s, byte_s; /* latency_s + byte_s * bytes of the tensor */
} SimTransfer;

/* The replicas [*first, *end) of `group` that have the data that replica `replica` of `to_group`
 * needs. */
void sim_transfer_sources(const SimParts *parts, uint32_t group, uint32_t to_group,
                          bool has_parts, uint32_t replica, uint32_t *first,
                          uint32_t *end);

/* The transfer of an instruction, taken from `known` (GPtrArray of SimTransfer) or added to it if
 * it is new. */
const SimTransfer *sim_transfer_of(const SimParts *parts, const ClusterView *view,
                                   const Instr *instr, GPtrArray *known);
void sim_transfer_free(SimTransfer *transfer);
