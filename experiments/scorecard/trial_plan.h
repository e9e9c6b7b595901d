/* A trial as a plan on a cluster of its devices, and what the simulator says of it. */
#ifndef KILTER_EXPERIMENTS_SCORECARD_TRIAL_PLAN_H
#define KILTER_EXPERIMENTS_SCORECARD_TRIAL_PLAN_H

#include "experiments/scorecard/trials.h"
#include "sim/sim.h"

typedef struct {
    const Trial *trial;
    Graph *graph;
    Plan *plan;
    SimOptions options;
} TrialPlan;

/* More of what was predicted of a trial. */
typedef struct {
    double peak_bytes; /* of one device, the largest */
    double comm_s;     /* in which a device communicates, on average over devices, */
    double hidden_s;   /* part of it in which it computes as well */
} ScoreDetail;

/* The fidelity that predicts it: `stage`, or of a plan by one of the planners, some of which
 * overlap, `flow`. */
const char *trial_fidelity(const Trial *trial);

/* The plan of the trial's degrees, or that its planner makes on devices of these costs.
 * KILTER_ERROR_INPUT: a strategy that cannot be made; no such planner, option or model. */
bool trial_plan_make(const Trial *trial, const double *parameter, TrialPlan *plan,
                     GError **error);
void trial_plan_clear(TrialPlan *plan);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(TrialPlan, trial_plan_clear)

/* The time of an iteration at these costs. detail: NULL if it is not asked for. */
bool trial_plan_predict(const TrialPlan *plan, const double *parameter, double *time_s,
                        ScoreDetail *detail, GError **error);

#endif
