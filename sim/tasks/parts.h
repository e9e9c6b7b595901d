/* Parts: which part of a tensor or of an op each device of a group has. Private to sim.
 *
 * The batch is cut first (data/program/program.h): of a tensor with parts a replica has share /
 * microbatches in each microbatch; then what is over shards and replicas. Inside of a replica the devices
 * divide by the form, as in an SPMD program. */
#ifndef KILTER_SIM_TASKS_PARTS_H
#define KILTER_SIM_TASKS_PARTS_H

#include "sim/sim.h"

typedef struct {
    Split key; /* no counts */
    /* [replica * n_devices + position], of the replica; of a batch split of all, of one over the shards of
     * the set of these */
    double *share;
    double *replica; /* [replica]: of a batch split, and of one over the shards */
} SimPartSplit;

typedef struct {
    PlanLayout layout;
    uint32_t n_splits;
    /* sorted; by the plan's rounded splits, by its ratios where it has none */
    SimPartSplit *split;
} SimParts;

/* The plan's groups have been checked. KILTER_ERROR_INPUT if its batch cannot be cut. */
SimParts *sim_parts_new(const Plan *plan, const Graph *graph, GError **error);
void sim_parts_free(SimParts *parts);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimParts, sim_parts_free)

/* What the axes leave of a tensor to device i (replica * n_devices + position) of a group: factors.
 * `batch` is of one microbatch, the part of the device's set of shards. */
typedef struct {
    double batch, shards, replicas, inside;
} SimPart;
SimPart sim_part(const SimParts *parts, uint32_t group, TensorId tensor, Form form,
                 uint32_t i);

/* Of one microbatch of a tensor: what replica r of the group has; 1 if it is all of it. */
double sim_part_replica(const SimParts *parts, uint32_t group, TensorId tensor, Form form,
                        uint32_t replica);
/* The share of its replica's part that device i (replica * n_devices + position) has, in that
 * form. */
double sim_part_inside(const SimParts *parts, uint32_t group, TensorId tensor, Form form,
                       uint32_t i);
/* Both together: of the whole tensor. */
double sim_part_of(const SimParts *parts, uint32_t group, TensorId tensor, Form form,
                   uint32_t i);

/* Seconds that the device at place i takes for a computation, on one microbatch. `more`: it does
 * not reduce a parameter's gradient inside of a machine, others are to add to it. */
double sim_part_s(const SimParts *parts, const ClusterView *view, const Instr *instr,
                  const Rule *rule, uint32_t i, bool more);

/* Shares of the replicas in the batch, [replica]; NULL if it is not cut. Where there are shards, those of
 * a set add up to the set's. */
const double *sim_part_replicas(const SimParts *parts, uint32_t group);

#endif
