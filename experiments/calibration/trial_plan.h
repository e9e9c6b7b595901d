/* A trial as a plan on its cluster, and what the simulator says of it at given costs. */
#ifndef KILTER_EXPERIMENTS_CALIBRATION_TRIAL_PLAN_H
#define KILTER_EXPERIMENTS_CALIBRATION_TRIAL_PLAN_H

#include "experiments/calibration/trial.h"
#include "sim/sim.h"

typedef struct {
    const Trial *trial;
    Graph *graph;
    Plan *plan;
    Cluster *cluster; /* whose costs each prediction sets: one prediction at a time */
    SimOptions options;
    /* NULL, or the same strategy on fewer microbatches: the plan has n_most of them, this one n_fewer, the
     * trial n_all. A pipeline that is full takes as long for each further one. */
    Plan *fewer;
    Graph *fewer_graph;
    uint32_t n_all, n_most, n_fewer;
} TrialPlan;

/* More of what was predicted of a trial. */
typedef struct {
    double peak_bytes; /* of one device, the largest */
    double comm_s;     /* in which a device communicates, on average over devices, */
    double hidden_s;   /* part of it in which it computes as well */
} TrialDetail;

/* The fidelity that predicts it, unless the trial says one: `stage` of strategies; of a plan by one of the
 * other planners, some of which overlap, `flow`. */
const char *trial_fidelity(const Trial *trial);

/* The plan of the trial's strategy, or that its planner makes on devices of these costs (log as
 * costs_apply takes it). KILTER_ERROR_INPUT: a strategy that cannot be made; no such planner, option
 * or model. Cleared by the caller also then. */
bool trial_plan_make(const Trial *trial, const double *log, TrialPlan *plan,
                     GError **error);
void trial_plan_clear(TrialPlan *plan);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(TrialPlan, trial_plan_clear)

/* The time of an iteration at these costs. detail: NULL if it is not asked for. */
bool trial_plan_predict(TrialPlan *plan, const double *log, double *time_s,
                        TrialDetail *detail, GError **error);

/* The measured time of an iteration, also of trials that say tokens or samples; NAN: not measured. */
double trial_plan_measured_s(const TrialPlan *plan);

#endif
