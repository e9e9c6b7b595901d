/* Ratios by a rule (private to experiments). */
#ifndef KILTER_EXPERIMENTS_PLANNERS_RATIOS_H
#define KILTER_EXPERIMENTS_PLANNERS_RATIOS_H

#include "sim/sim.h"

/* Ratios by the devices' numbers of GPUs, by the memory of a GPU, and by speed. Caller frees. */
double *ratios_even(const ClusterView *view);
double *ratios_by_memory(const ClusterView *view);
double *ratios_proportional(const ClusterView *view);

/* The ratios that the option `ratios` pins, NULL if it pins none. Caller frees. */
double *ratios_pinned(const ClusterView *view, uint32_t choice);

/* Parts of the memory to balance within, one after the other, until the rounded shards fit all of it: rounding adds up to
 * a unit to each cut, a few percent where units are few. */
enum { RATIOS_ROOMS = 4 };
extern const double RATIOS_ROOM[RATIOS_ROOMS];

/* balance_ratios() where every device has `part` of its memory. */
bool ratios_balance(const SimLinear *linear, const SimMemory *memory,
                    const ClusterView *view, uint32_t n_segments, double part,
                    double *ratio, GError **error);

/* Whether they differ by no more than what rounding errors do. */
bool ratios_same(const double *a, const double *b, uint32_t n);

#endif
