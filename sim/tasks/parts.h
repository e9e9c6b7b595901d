/* Parts: which part of a tensor or an op each device of a group has. Private to sim.
 *
 * The batch is cut first (data/program/program.h): of a tensor with parts a replica has share /
 * microbatches in each microbatch. Forms over shards and replicas divide it next. Inside of a
 * replica the devices divide by the form, as in an SPMD program. */
#pragma once

#include "data/plan/layout.h"
#include "sim/sim.h"

typedef struct {
    Split key; /* has no counts */
    /* [replica * n_devices + position]: share of the replica's part; in a batch split of
     * everything, in a split over shards of the set's part */
    double *share;
    /* [replica]: its share, in a batch split and in a split over shards */
    double *replica;
    double *set;   /* [replica]: the sum of the shares of its set of shards */
    double *start; /* [replica + 1]: sum of the shares of the replicas before */
} SimPartSplit;

typedef struct {
    PlanLayout layout;
    uint32_t n_splits;
    /* sorted; from the plan's rounded splits, or its ratios where it has no such split */
    SimPartSplit *split;
    GPtrArray *tokens; /* of strategy_expert_tokens; NULL: experts have equal tokens */
    /* [tensor]: of experts' slots, [batch, expert, slot, ...], the `tokens` of their layer, else
     * NULL; NULL: experts have equal tokens */
    const double **slots;
    SimMemo *memo; /* of ops' times; so parts are for one thread at a time */
} SimParts;

/* The plan's groups must have been checked. KILTER_ERROR_INPUT if its batch cannot be cut. */
SimParts *sim_parts_new(const Plan *plan, const Graph *graph, GError **error);
AUTOPTR(sim_parts_free, SimParts)

/* The part of a tensor that device i (replica * n_devices + position) of a group has, as one factor
 * per axis. `batch` is the part of one microbatch that the device's set of shards has. */
typedef struct {
    double batch, shards, replicas, inside;
} SimPart;
SimPart sim_part(const SimParts *parts, uint32_t group, TensorId tensor, Form form,
                 uint32_t i);

/* The part of a microbatch of a tensor that `replica` of the group has; 1 if it has all. */
double sim_part_replica(const SimParts *parts, uint32_t group, TensorId tensor, Form form,
                        uint32_t replica);
/* The share of its replica's part that device i (replica * n_devices + position) has in the
 * form. */
double sim_part_inside(const SimParts *parts, uint32_t group, TensorId tensor, Form form,
                       uint32_t i);
/* The part of the whole tensor that device i has: the product of both. */
double sim_part_of(const SimParts *parts, uint32_t group, TensorId tensor, Form form,
                   uint32_t i);

/* Seconds that the device at place i takes for a computation, on one microbatch. `more`: further
 * computations add to its parameter's gradient, so it does not reduce the gradient inside the
 * machine yet. */
double sim_part_s(const SimParts *parts, const ClusterView *view, const Instr *instr,
                  const Rule *rule, uint32_t i, bool more);

/* The replicas' shares of the batch, [replica]; NULL if the batch is not cut. The shares of a set
 * of shards add up to the set's share. */
const double *sim_part_replicas(const SimParts *parts, uint32_t group);
/* Where the part of each replica begins, [replica + 1]; NULL if the batch is not cut. */
const double *sim_part_starts(const SimParts *parts, uint32_t group);
