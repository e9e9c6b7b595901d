/* A trial as a plan on its cluster, and the simulator's prediction for it at given costs. */
#pragma once

#include "experiments/calibration/trial.h"
#include "sim/sim.h"

typedef struct {
    const Trial *trial;
    Graph *graph;
    Plan *plan;
    /* each prediction sets its costs, so predictions run one at a time */
    Cluster *cluster;
    SimOptions options;
    /* NULL, or the same strategy on fewer microbatches: the plan has n_most of them, this one
     * n_fewer, the trial n_all. A pipeline that is full takes as long for each further one. */
    Plan *fewer;
    Graph *fewer_graph;
    uint32_t n_all, n_most, n_fewer;
    bool shared; /* all but the trial belongs to another one, which is predicted alike */
} TrialPlan;

/* Further predictions for a trial. */
typedef struct {
    double peak_bytes; /* on the device where it is largest */
    double comm_s;   /* the time in which a device communicates, averaged over devices */
    double hidden_s; /* the part of comm_s in which the device computes as well */
} TrialDetail;

/* The fidelity that predicts the trial, unless the trial names one: `stage` for strategies, `flow`
 * for plans of the other planners, some of which overlap communication. */
const char *trial_fidelity(const Trial *trial);

/* Makes the plan of the trial's strategy, or the plan that its planner makes, on devices with these
 * costs (log: see costs_apply). KILTER_ERROR_INPUT: a strategy that cannot be made; no such
 * planner, option or model. The caller clears the plan, also after a failure. */
bool trial_plan_make(const Trial *trial, const double *log, TrialPlan *plan,
                     GError **error);
AUTOCLEAR(trial_plan_clear, TrialPlan)

/* The time of an iteration at these costs. detail may be NULL. */
bool trial_plan_predict(TrialPlan *plan, const double *log, double *time_s,
                        TrialDetail *detail, GError **error);

/* The measured time of an iteration, computed from tokens or samples per second where the trial
 * gives these; NAN: not measured. */
double trial_plan_measured_s(const TrialPlan *plan);
