/* Many programs on the same device groups, quickly: what `stage` and `flow` over an ideal crossbar
 * say of them. Part of sim's public interface, included by sim/sim.h.
 *
 * What an op, an all-reduce or a transfer takes on which groups is found once and kept. A program's
 * tasks are then a list in an order in which each comes after what it waits for, and the time is
 * that of the longest chain: one pass. A program that begins like the one asked for before is
 * looked at from where they differ: what came before is known, and the pass goes on from the last
 * checkpoint. The numbers are the same bit for bit.
 *
 * Programs have one microbatch and the form Identity throughout, their groups are those given, by
 * number, and gradients are not fused. Times are those of fractional shares. Host launches, and
 * slowdowns of computation beside communication, are left out. */
#pragma once

#include "data/program/program.h"

typedef struct SimQuick SimQuick;

/* ratio: [device], sums to 1; a group's replicas share the batch by it. All but ratio and group
 * must outlive it. KILTER_ERROR_INPUT if the batch cannot be cut. For one thread at a time. */
SimQuick *sim_quick_new(const Graph *graph, const ClusterView *view, const double *ratio,
                        uint32_t n_groups, const DeviceGroup *group, GError **error);
/* Another one of the same groups at the same prices, for another thread. */
SimQuick *sim_quick_another(const SimQuick *quick);
AUTOPTR(sim_quick_free, SimQuick)

typedef struct {
    double flow_s;  /* communication beside computation */
    double stage_s; /* collectives, but not transfers, in place of computation */
    double busy_s;  /* computation of the busiest device */
    uint32_t n_tasks;
    uint32_t n_run; /* of these that were not known from the program before */
} SimQuickTimes;

SimQuickTimes sim_quick_times(SimQuick *quick, const Program *program);

/* The next program is looked at from its first instruction. */
void sim_quick_forget(SimQuick *quick);

/* When the first task of an instruction of that program starts and the last one ends, by flow;
 * false: it takes no time. */
bool sim_quick_span(const SimQuick *quick, uint32_t instr, double *start_s,
                    double *end_s);

/* How long a device computes in the program that was last asked for. */
double sim_quick_busy_s(const SimQuick *quick, uint32_t device);

/* Peak bytes of one GPU of each device, [device], as the fidelities report; whether all fit. */
bool sim_quick_memory(SimQuick *quick, const Program *program, uint64_t *peak);

/* How sums are priced from now on. FUSED: each of a parameter's gradient by its part of the
 * cheapest sum of any number of them, which is the least that buckets of whatever size leave of it
 * (servers are not fused). FREE: at nothing. */
typedef enum { SIM_SUMS_EACH, SIM_SUMS_FUSED, SIM_SUMS_FREE } SimQuickSums;
void sim_quick_price_sums(SimQuick *quick, SimQuickSums sums);
SimQuickSums sim_quick_sums(const SimQuick *quick);

/* Seconds of an op on the device at a place (replica * n_devices + position) of a group, on its
 * share of the batch; and that share. */
double sim_quick_place_s(SimQuick *quick, uint32_t group, OpId op, uint32_t place);
/* An all-reduce over a group's replicas, and a transfer from group to group; from is not to. */
double sim_quick_sum_s(SimQuick *quick, uint32_t group, TensorId tensor);
/* The same by whichever of them serves it best. */
double sim_quick_served_s(SimQuick *quick, uint32_t group, TensorId tensor);
double sim_quick_transfer_s(SimQuick *quick, uint32_t from, uint32_t to, TensorId tensor);
double sim_quick_share(const SimQuick *quick, uint32_t group, uint32_t place);
