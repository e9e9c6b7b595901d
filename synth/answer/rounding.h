/* Shards in whole units, chosen by time (private to synth). HAP rounds ratios to the nearest
 * units (Sec. 5.1); where units are few, as experts are, the nearest ones are not the fastest. */
#pragma once

#include "synth/spmd/spmd.h"

/* Moves units of a rounded plan of one program between devices as long as that makes the iteration
 * shorter, at most `most_moves` times: single ones, or one from each device of a kind to each of
 * another, in one cut at a time.
 * A plan that fits the memory goes on fitting. share: as from sim_plan_shares(), changed in place
 * like the plan's splits. Returns the iteration's time. */
double rounding_climb(Plan *plan, const SimLinear *linear, const SimMemory *memory,
                      const ClusterView *view, double *share, uint32_t most_moves);

/* The shares for all numbers of units in the graph: those of the plan's splits where it has them,
 * its rounded ratios elsewhere. */
typedef struct {
    SynthShares shares;
    uint32_t *units;
    double *share;
} RoundedShares;

void rounded_shares_init(RoundedShares *rounded, const Plan *plan, const Graph *graph);
AUTOCLEAR(rounded_shares_clear, RoundedShares)
