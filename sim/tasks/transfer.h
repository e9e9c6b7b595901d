/* Transfers: who sends which part of a tensor to whom. Private to sim. */
#ifndef KILTER_SIM_TASKS_TRANSFER_H
#define KILTER_SIM_TASKS_TRANSFER_H

#include "sim/tasks/parts.h"

typedef struct {
    uint32_t from, to; /* devices; they differ */
    uint32_t replica;  /* of the receiver */
    double part;       /* of the tensor */
} SimPiece;

/* The transfer of any tensor between two groups that is cut like this one. */
typedef struct {
    uint16_t group, to_group;
    Form from, to;
    PlanCut cut, to_cut;
    double shard_part;        /* of the tensor, where shards divide it */
    GArray *pieces;           /* SimPiece */
    double latency_s, byte_s; /* latency_s + byte_s * bytes of the tensor */
} SimTransfer;

/* The replicas of `group` that have what replica `replica` of `to_group` needs: [*first, *end). */
void sim_transfer_sources(const SimParts *parts, uint32_t group, uint32_t to_group,
                          bool has_parts, uint32_t replica, uint32_t *first,
                          uint32_t *end);

/* The time of pieces that are sent at once: *latency_s, and *byte_s per byte of the tensor. Ports
 * are those of machines: what leaves a machine or enters it goes through one after the other. */
void sim_pieces_time(const ClusterView *view, const GArray *pieces, double *latency_s,
                     double *byte_s);

/* The transfer of an instruction, from `known` (GPtrArray of SimTransfer), to which it is added if
 * it is new. */
const SimTransfer *sim_transfer_of(const SimParts *parts, const ClusterView *view,
                                   const Instr *instr, GPtrArray *known);
void sim_transfer_free(gpointer transfer);

#endif
