/* Costs fitted to trials, of several device types and networks at once.
 *
 * Each cost of a device type or a network is where it starts times exp(common + own): `common` is
 * what all of them are off alike (of costs that only one has there is none), `own` what is left.
 * Both are expected within the cost's width, so that few trials leave a cost where it is, and a
 * device type without any is predicted with what the others have in common. The fit is least squares
 * of log(predicted / measured), outliers weighing less (Huber), by Gauss-Newton steps with GSL's
 * Cholesky factors. Launches that nothing waits for have no slope, so that it begins from several;
 * the minimum that leaves the least of the trials is taken.
 *
 * Leave-one-group-out: for each group of trials the costs are those of one more step without it, and
 * its trials are simulated again with these. */
#ifndef KILTER_EXPERIMENTS_CALIBRATION_TRIAL_FIT_H
#define KILTER_EXPERIMENTS_CALIBRATION_TRIAL_FIT_H

#include "experiments/calibration/fitted_costs.h"
#include "experiments/calibration/statistics.h"

/* A trial is expected to be met within 10 %, so that few trials leave a cost where it is. */
#define TRIAL_EXPECTED_ERROR 0.1

typedef struct {
    uint32_t threads; /* 0: one per core */
    bool one_start;   /* begin once */
    bool hold_out;    /* leave-one-group-out, too */
} TrialFitOptions;

typedef struct {
    FittedCosts costs;
    uint32_t n;          /* trials */
    double *predicted_s; /* [n] */
    double
        *held_out_s; /* [n], by fits without the trial's group; NULL unless asked for */
    double *covariance; /* [costs.n * costs.n] of the logarithms */
    Agreement fitted, held_out;
} TrialFit;

/* Of n plans, all measured. An error of a trial is passed on. */
bool trial_fit(TrialPlan *plan, uint32_t n, const TrialFitOptions *options, TrialFit *fit,
               GError **error);
void trial_fit_clear(TrialFit *fit);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(TrialFit, trial_fit_clear)

/* The slopes of log(time) of a trial by the fit's costs, at them: row [fit->costs.n]. */
bool trial_fit_slopes(const TrialFit *fit, TrialPlan *plan, double *row, GError **error);

#endif
