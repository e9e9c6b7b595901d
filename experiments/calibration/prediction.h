/* How far a prediction on a fitted cluster can be trusted. */
#ifndef KILTER_EXPERIMENTS_CALIBRATION_PREDICTION_H
#define KILTER_EXPERIMENTS_CALIBRATION_PREDICTION_H

#include <jansson.h>

#include "data/data.h"
#include "experiments/calibration/trial_plan.h"

FittedPoint prediction_point_of_trial(const TrialPlan *plan);

/* The record of past predictions: n plans of measured trials, and the times predicted for each by a
 * fit that left its group out. Free with fitted_free. */
Fitted *prediction_record(const TrialPlan *plan, const double *held_out_s, uint32_t n);

/* Adds interval_50_s and interval_90_s ([low, high], or null where there are too few trials), out_of_domain and
 * outside (texts) to the object; nothing on a cluster that was not fitted. */
void prediction_add(json_t *object, const Plan *plan, const Graph *graph,
                    const ClusterView *view, const SimReport *report);

/* The part of pairs of different trials' errors by which a plan predicted to take a_s would be faster than one predicted to
 * take b_s, both on devices of these types: of the errors of these types where there are enough, else of all. Plans that are
 * alike err alike, so that it says too little of them, not too much. False: fewer than ten errors, or plans on clusters
 * that were fitted to other trials. */
bool prediction_faster(const Fitted *a, const Fitted *b, const char *types, double a_s,
                       double b_s, double *probability);

/* Types of the view's devices, as trials' errors have them. Interned. */
const char *prediction_types(const ClusterView *view);

#endif
