/* Costs fitted to trials: least squares of log(predicted / measured), outliers weighing less
 * (Huber), and each cost held near where it starts, by its width, where the trials say little.
 * Launches that nothing waits for have no slope, so that the fit begins from several; the minimum
 * that leaves the least of the trials is taken. */
#ifndef KILTER_EXPERIMENTS_SCORECARD_FIT_H
#define KILTER_EXPERIMENTS_SCORECARD_FIT_H

#include "experiments/calibration/statistics.h"
#include "experiments/scorecard/trial_work.h"

/* Of the trials of `work`, which are made. parameter: where it starts, and the costs that were
 * found; agreement: what they leave. An error of a trial is passed on. */
bool score_fit(TrialWork *work, uint32_t threads, const double *measured_s,
               double *parameter, Agreement *agreement, GError **error);

#endif
