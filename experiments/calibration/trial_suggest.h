/* Which trials would tell the most next. */
#ifndef KILTER_EXPERIMENTS_CALIBRATION_TRIAL_SUGGEST_H
#define KILTER_EXPERIMENTS_CALIBRATION_TRIAL_SUGGEST_H

#include "experiments/calibration/trial_fit.h"

typedef struct {
    Trial trial;        /* to do */
    double predicted_s; /* at the fit's costs */
    double information; /* nats by which the fit's costs would be better known */
    Cost cost;          /* that it tells the most of, */
    const char *key;    /* and whose; interned */
} Suggestion;

/* The n best ones of the trials that were not measured, and of strategies of `manual` by other tp, pp and
 * micro_batch for the models and clusters of those that were, each the one that tells the most beside
 * those before it: the one that shrinks the costs' covariance the most (D-optimal). `list`: of Trial.
 * Suggestions, free with g_array_unref; those whose memory would not do are left out. */
GArray *trial_suggest(const TrialFit *fit, const GArray *list, uint32_t n,
                      uint32_t threads, GError **error);

#endif
