/* How far a prediction on a fitted cluster can be trusted. */
#ifndef KILTER_EXPERIMENTS_CALIBRATION_PREDICTION_H
#define KILTER_EXPERIMENTS_CALIBRATION_PREDICTION_H

#include <jansson.h>

#include "data/data.h"
#include "experiments/calibration/trial_plan.h"

FittedPoint prediction_point_of_trial(const TrialPlan *plan);

/* What trials say of predictions like theirs: n plans of measured trials, and their times as fits without
 * their groups have them. Free with fitted_free. */
Fitted *prediction_record(const TrialPlan *plan, const double *held_out_s, uint32_t n);

/* Adds interval_50_s and interval_90_s ([low, high], or null where there are too few trials), out_of_domain and
 * outside (texts) to the object; nothing on a cluster that was not fitted. */
void prediction_add(json_t *object, const Plan *plan, const Graph *graph,
                    const ClusterView *view, const SimReport *report);

#endif
