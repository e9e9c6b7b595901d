/* Costs fitted to trials on several device types and networks at once.
 *
 * Each cost of a device type or a network is its starting value times exp(common + own): `common`
 * is the factor that all types or networks share (absent where only one of them has the cost),
 * `own` is the rest. Both are expected within the cost's width, so that few trials leave a cost
 * where it is, and a device type without any trial is predicted with the common factor of the
 * others. The fit is least squares of log(predicted / measured), outliers weighing less (Huber), by
 * Gauss-Newton steps with GSL's Cholesky factors. Launches that nothing waits for have no slope, so
 * the fit starts from several points and keeps the minimum with the smallest loss.
 *
 * Leave-one-group-out errors: for each group of trials, one more step without the group gives other
 * costs, and the group's trials are simulated again with these.
 *
 * Where these errors are smaller than the 10 % that are expected at first, trials count for more
 * beside starting values: the fit is repeated with the error that was found, as long as this lowers
 * the errors.
 *
 * Mechanisms that are absent at first (COST_TABLE) are then tried, and the best one taken, again
 * and again: a cost may stay if the mean of the groups' errors, each predicted without the group,
 * gets smaller by more than the standard error of that gain and by more than a twentieth. So it is
 * left out wherever leaving it out does not hurt. */
#pragma once

#include "experiments/calibration/fitted_costs.h"
#include "experiments/calibration/statistics.h"

/* Predictions are expected within 10 % of the trials at first, so that few trials leave a cost near
 * its starting value. */
#define TRIAL_EXPECTED_ERROR 0.1

typedef struct {
    uint32_t threads; /* 0: one per core */
    bool one_start;   /* start from one point only */
    /* also compute leave-one-group-out errors, and try what is absent at first */
    bool hold_out;
} TrialFitOptions;

typedef struct {
    FittedCosts costs;
    uint32_t n;          /* trials */
    double *predicted_s; /* [n] */
    /* [n], by fits without the trial's group; NULL unless asked for */
    double *held_out_s;
    double *covariance; /* [costs.n * costs.n] of the logarithms */
    double expected;    /* error of a prediction */
    Agreement fitted, held_out;
} TrialFit;

/* Fits costs to n plans, all of them measured. An error of a trial is passed on. */
bool trial_fit(TrialPlan *plan, uint32_t n, const TrialFitOptions *options, TrialFit *fit,
               GError **error);
AUTOCLEAR(trial_fit_clear, TrialFit)

/* The slopes of a trial's log(time) by each of the fit's costs, at these costs: row
 * [fit->costs.n]. */
bool trial_fit_slopes(const TrialFit *fit, TrialPlan *plan, double *row, GError **error);
