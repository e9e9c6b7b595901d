/* Predictions of many trials, shared by threads. */
#ifndef KILTER_EXPERIMENTS_SCORECARD_TRIAL_WORK_H
#define KILTER_EXPERIMENTS_SCORECARD_TRIAL_WORK_H

#include "experiments/scorecard/trial_plan.h"

typedef struct {
    const TrialSet *set;
    const uint32_t *index; /* trials to do, */
    uint32_t n;
    TrialPlan *plan; /* [n]: as they are, or NULL: made and freed one by one */
    const double *parameter;
    double *time_s;      /* [n] */
    ScoreDetail *detail; /* [n], or NULL */
    gint next;
    GMutex lock;
    GError *error; /* the first */
} TrialWork;

/* Fills time_s and detail. The first error of any trial ends it. threads: 0: one per core. */
bool trial_work_run(TrialWork *work, uint32_t threads, GError **error);

#endif
