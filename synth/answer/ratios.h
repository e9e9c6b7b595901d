/* Ratios by a rule (private to synth). */
#pragma once

#include "sim/sim.h"
#include "synth/question/planner_options.h"

/* Ratios in proportion to the devices' numbers of GPUs, to the memory of one GPU of each, and to
 * their speed. Caller frees. */
double *ratios_even(const ClusterView *view);
double *ratios_by_memory(const ClusterView *view);
double *ratios_proportional(const ClusterView *view);

/* The ratios that the options `ratios` and `mix` fix, NULL if they fix none. Caller frees. */
double *ratios_pinned(const ClusterView *view, const PlannerOptions *options);

/* The number of limits, parts of the memory, that balancing tries in turn until the rounded shards
 * fit the whole memory: rounding adds up to a unit to each cut, a few percent where units are
 * few. */
enum { RATIOS_ROOMS = 4 };
extern const double RATIOS_ROOM[RATIOS_ROOMS];

/* balance_ratios() where every device has `part` of its memory. */
bool ratios_balance(const SimLinear *linear, const SimMemory *memory,
                    const ClusterView *view, uint32_t n_segments, double part,
                    double *ratio, GError **error);

/* Whether the ratios differ by no more than rounding errors. */
bool ratios_same(const double *a, const double *b, uint32_t n);
