/* A trial that names its planner (experiments/scorecard/trials.h), as the plan that the planner
 * makes on the trial's devices. */
#ifndef KILTER_EXPERIMENTS_SCORECARD_TRIAL_PLAN_H
#define KILTER_EXPERIMENTS_SCORECARD_TRIAL_PLAN_H

#include "experiments/planner.h"
#include "experiments/scorecard/trials.h"

/* *graph gets the trial's model, *sim how it is simulated. KILTER_ERROR_INPUT: no such planner, an option or a model that is
 * not known. */
Plan *trial_plan(const Trial *trial, const ClusterView *view, Graph **graph,
                 SimOptions *sim, GError **error);

#endif
