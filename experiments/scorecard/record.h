/* The scorecard's trials in the result store (data/store/store.h): one row per predicted trial, of
 * the experiment "scorecard:NAME". The row's configuration is the trial, the fitted costs, the
 * fidelity and the version. `iteration_time_s` and `peak_memory_bytes` are predictions, and status
 * "oom" predicts that the trial does not fit; `detail` holds split, contest and the measured
 * numbers. */
#pragma once

#include "experiments/scorecard/scorecard.h"

typedef struct Store Store; /* data/store/store.h */

/* Writes the rows in the run that the store has begun. Rows that exist are kept. */
bool score_record(const TrialSet *set, const Score *score, Store *store, GError **error);
