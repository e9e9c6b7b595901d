/* Predictions of iterations without a simulation: baselines for the scorecard's errors.
 *
 *     mfu       the model's FLOPs per GPU, at one rate
 *     bubble    the same times a pipeline's bubble, 1 + (pp - 1) / (stages of a device * microbatches)
 *     ridge     log(time) as a sum of seven terms: 1 and the logarithms of FLOPs per GPU, bubble, tp, pp, replicas,
 *               samples of a microbatch
 *
 * All are fitted to the same trials as the costs. A rate is the median over the trials of a device
 * type and precision, or over all trials where the type has none. The sum is fitted by ridge
 * regression, which keeps a term near 0 where few trials tell about it. */
#pragma once

#include "experiments/calibration/trial_plan.h"

/* id, name */
#define BASELINE_TABLE(X)         \
    X(MFU, "constant MFU")        \
    X(BUBBLE, "MFU times bubble") \
    X(RIDGE, "ridge of 7 terms")

#define BASELINE_ID(id, name) BASELINE_##id,
typedef enum { BASELINE_TABLE(BASELINE_ID) BASELINES } Baseline;
const char *baseline_name(Baseline baseline);

enum { BASELINE_TERMS = 7 };

/* A trial, as baselines see it. */
typedef struct {
    /* device type and precision, interned; NULL: the trial could not be made */
    const char *kind;
    double term[BASELINE_TERMS];
} BaselinePoint;

BaselinePoint baseline_point(const TrialPlan *plan);

typedef struct {
    double weight[BASELINE_TERMS]; /* weights of the ridge's terms */
    /* logarithms of the rates of MFU and BUBBLE over all trials */
    double rate[BASELINES];
    GHashTable *own; /* kind -> double[BASELINES], owned */
} BaselineFit;

/* Fits to n > 0 points and their measured times. */
void baseline_fit(const BaselinePoint *point, const double *measured_s, uint32_t n,
                  BaselineFit *fit);
AUTOCLEAR(baseline_fit_clear, BaselineFit)

double baseline_predict(const BaselineFit *fit, Baseline baseline,
                        const BaselinePoint *point);
