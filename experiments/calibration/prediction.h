/* How far a prediction on a fitted cluster can be trusted. */
#pragma once

#include <jansson.h>

#include "experiments/calibration/trial_plan.h"

FittedPoint prediction_point_of_trial(const TrialPlan *plan);

/* The record of past predictions: n plans of measured trials, and the times predicted for each by a
 * fit that left its group out. Free with fitted_free. */
Fitted *prediction_record(const TrialPlan *plan, const double *held_out_s, uint32_t n);

/* The ends of the interval in which measured times lie in a part `coverage` of cases, for a plan on
 * all devices of the view that is predicted to take time_s. False on a cluster that was not fitted,
 * and where there are too few trials. */
bool prediction_interval(const ClusterView *view, double coverage, double time_s,
                         double ends[2]);

/* Adds interval_50_s and interval_90_s ([low, high], or null where there are too few trials),
 * out_of_domain and outside (texts) to the object; adds nothing on a cluster that was not
 * fitted. */
void prediction_add(json_t *object, const Plan *plan, const Graph *graph,
                    const ClusterView *view, const SimReport *report);

/* The probability that a plan predicted to take a_s is faster than one predicted to take b_s, both
 * on devices of these types: the share of pairs of errors, from different trials, with which it
 * would be. Errors on these device types are used where there are enough of them, otherwise all
 * errors. Similar plans have similar errors, so for them the probability is nearer 1/2 than it
 * could be. False if there are fewer than ten errors, or if the two clusters were fitted to
 * different trials. */
bool prediction_faster(const Fitted *a, const Fitted *b, const char *types, double a_s,
                       double b_s, double *probability);

/* The same as JSON of two predictions on these views: by the errors on the device types of the two,
 * where these are equal, otherwise by all errors. null if there is no probability. */
json_t *prediction_faster_json(const ClusterView *a, double a_s, const ClusterView *b,
                               double b_s);

/* The types of the view's devices as one text, as the errors of trials name them. Interned. */
const char *prediction_types(const ClusterView *view);
