/* Pieces of a tensor that devices send one another, and the time that they take. Part of sim's
 * public interface, included by sim/sim.h. */
#pragma once

#include "data/cluster/cluster.h"

/* A part of a tensor that one device sends another, where the tensor passes between groups. */
typedef struct {
    uint32_t from, to; /* devices; they differ */
    uint32_t replica;  /* of the receiver */
    double part;       /* of the tensor */
} SimPiece;

/* The time of pieces that are sent at once: *latency_s, and *byte_s per byte of the tensor. Pieces
 * that leave or enter a machine pass its port one after the other. */
void sim_pieces_time(const ClusterView *view, const GArray *pieces, double *latency_s,
                     double *byte_s);
