/* Scores from other starting values. */
#include "experiments/scorecard/starts.h"

#include <gsl/gsl_rng.h>

static void shift_all(TrialSet *set, const double *shift, double sign)
{
    double own[COSTS];
    for (Cost cost = 0; cost < COSTS; cost++)
        own[cost] = sign * shift[cost];
    array_each (Trial, trial, set->trial)
        if (trial->cluster)
            costs_shift(own, trial->cluster, trial->start);
}

bool starts_score(TrialSet *set, const ScoreOptions *options, uint32_t n, uint64_t seed,
                  StartScore *of, GError **error)
{
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    bool good = true;
    gsl_rng_set(random, (unsigned long)seed + 1);
    for (uint32_t k = 0; good && k < n; k++) {
        double shift[COSTS];
        g_auto(Score) score = {0};
        for (Cost cost = 0; cost < COSTS; cost++)
            shift[cost] = cost_info(cost)->width * (2 * gsl_rng_uniform(random) - 1);
        shift_all(set, shift, 1);
        good = score_trials(set, options, &score, error);
        shift_all(set, shift, -1);
        of[k] = (StartScore){score.calibration, score.test, score.regret};
    }
    gsl_rng_free(random);
    return good;
}
