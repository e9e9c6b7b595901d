/* Trials on threads. */
#ifndef KILTER_EXPERIMENTS_CALIBRATION_TRIAL_WORK_H
#define KILTER_EXPERIMENTS_CALIBRATION_TRIAL_WORK_H

#include "experiments/calibration/trial_plan.h"

/* Calls one(data, i) for each i < n, each on one of the threads (0: one per core). The first error
 * of any ends it, and is passed on. */
bool trial_work_each(uint32_t n, uint32_t threads,
                     bool (*one)(void *data, uint32_t i, GError **error), void *data,
                     GError **error);

#endif
