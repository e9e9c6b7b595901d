/* The scorecard's trials in the result store (data/store/store.h): a row per trial that was
 * predicted, experiment "scorecard:NAME". Its configuration is the trial, the costs that were
 * fitted, fidelity and version; `iteration_time_s` and `peak_memory_bytes` are what was predicted,
 * status "oom" that it does not fit; `detail` holds split, contest and what was measured. */
#ifndef KILTER_EXPERIMENTS_SCORECARD_RECORD_H
#define KILTER_EXPERIMENTS_SCORECARD_RECORD_H

#include "data/data.h"
#include "experiments/scorecard/scorecard.h"

/* Writes them in the run that the store has begun. Rows that are there are kept. */
bool score_record(const TrialSet *set, const Score *score, Store *store, GError **error);

#endif
