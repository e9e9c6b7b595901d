/* Times of devices in an iteration, by its spans, which need not be kept. Private to sim. */
#pragma once

#include "sim/sim.h"

typedef struct {
    uint32_t n_lanes, n_stages;
    GArray **interval;         /* [2 * lane + communicates]: Interval */
    double *first_s, *last_s;  /* [2 * lane + launch]: received data apart */
    double *stage_s, *start_s; /* [stage * 2 * n_lanes + as above]; [stage] */
} SimTally;

/* n_stages: 0: stages are not told apart. */
SimTally *sim_tally_new(uint32_t n_lanes, uint32_t n_stages);
AUTOPTR(sim_tally_free, SimTally)
/* That of a timeline. program: NULL: received data are as other communication. */
SimTally *sim_timeline_tally(const SimTimeline *timeline, const Program *program,
                             uint32_t n_stages);

/* Adds a span on n lanes. */
void sim_tally_add(SimTally *tally, const SimSpan *span, bool received,
                   const uint32_t *lane, uint32_t n);

/* of: out, [lane]. */
void sim_tally_breakdown(SimTally *tally, double end_s, SimBreakdown *of);
/* From the first task of a device, or of its host, to its last one, where that is longest. */
double sim_tally_period_s(const SimTally *tally, uint32_t *lane);
/* When stages start, and their collectives and computations on the lanes where they take
 * longest. */
void sim_tally_stages(const SimTally *tally, double end_s, SimReport *report);
