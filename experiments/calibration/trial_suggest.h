/* Which trials would tell the most next. */
#pragma once

#include "experiments/calibration/trial_fit.h"

typedef struct {
    Trial trial;        /* the suggested trial */
    double predicted_s; /* at the fit's costs */
    double information; /* the gain in knowledge of the fit's costs, in nats */
    Cost cost;          /* the cost about which it tells the most */
    const char *key;    /* the device type or network of that cost; interned */
} Suggestion;

/* Suggests n trials, each the one that tells the most beside those before it: it shrinks the
 * covariance of the costs the most (D-optimal design). Candidates are the trials of `list` (Trial)
 * that were not measured and, for the models and clusters of the measured ones, strategies of
 * `manual` with other tp, pp and micro_batch; candidates that do not fit the memory are left out.
 * Returns Suggestions; free with g_array_unref. */
GArray *trial_suggest(const TrialFit *fit, const GArray *list, uint32_t n,
                      uint32_t threads, GError **error);
