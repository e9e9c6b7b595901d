/* How much a data set's errors depend on the starting values of its costs, which are guesses about
 * software (experiments/calibration/costs.h). */
#pragma once

#include "experiments/scorecard/scorecard.h"

typedef struct {
    Agreement calibration, test;
    double regret; /* NAN: the set has no contest */
} StartScore;

/* Scores the set from n other starting values: each cost's is multiplied by exp(u width), with the
 * cost's width and u at random from -1 to 1, the same for all device types. of: [n]. The set has
 * its starting values again afterwards. Errors as score_trials. */
bool starts_score(TrialSet *set, const ScoreOptions *options, uint32_t n, uint64_t seed,
                  StartScore *of, GError **error);
