/* What predicts iterations without a simulation, to hold the scorecard's errors against.
 *
 *     mfu       FLOPs of the model a GPU, at one rate
 *     bubble    the same times a pipeline's bubble, 1 + (pp - 1) / (stages of a device * microbatches)
 *     ridge     log(time) as a sum of seven terms: 1 and the logarithms of FLOPs a GPU, bubble, tp, pp, replicas,
 *               samples of a microbatch
 *
 * All are fitted to the trials that costs are fitted to: rates are those of the median trial of a device type and
 * precision, or of all trials where the type has none; the sum is ridge regression, which keeps terms that few trials tell near 0. */
#ifndef KILTER_EXPERIMENTS_SCORECARD_BASELINE_H
#define KILTER_EXPERIMENTS_SCORECARD_BASELINE_H

#include "experiments/calibration/trial_plan.h"

/* id, name */
#define BASELINE_TABLE(X)         \
    X(MFU, "constant MFU")        \
    X(BUBBLE, "MFU times bubble") \
    X(RIDGE, "ridge of 7 terms")

typedef enum {
#define X(id, name) BASELINE_##id,
    BASELINE_TABLE(X)
#undef X
        BASELINES
} Baseline;
const char *baseline_name(Baseline baseline);

enum { BASELINE_TERMS = 7 };

/* A trial, as baselines see it. */
typedef struct {
    const char *
        kind; /* device type and precision, interned; NULL: the trial could not be made */
    double term[BASELINE_TERMS];
} BaselinePoint;

BaselinePoint baseline_point(const TrialPlan *plan);

typedef struct {
    double weight[BASELINE_TERMS]; /* of the ridge */
    double rate[BASELINES];        /* logarithms; of MFU and BUBBLE, of all trials */
    GHashTable *own;               /* kind -> double[BASELINES], owned */
} BaselineFit;

/* Fits to n > 0 points and their measured times. */
void baseline_fit(const BaselinePoint *point, const double *measured_s, uint32_t n,
                  BaselineFit *fit);
void baseline_fit_clear(BaselineFit *fit);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(BaselineFit, baseline_fit_clear)

double baseline_predict(const BaselineFit *fit, Baseline baseline,
                        const BaselinePoint *point);

#endif
