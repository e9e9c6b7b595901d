/* Where a plan's ops run, in numbers (private to experiments/sweep). */
#ifndef KILTER_EXPERIMENTS_SWEEP_PLACEMENT_H
#define KILTER_EXPERIMENTS_SWEEP_PLACEMENT_H

#include <jansson.h>

#include "experiments/sweep/configuration.h"

/* {"devices_an_op": {device type: the mean over ops}, "served", "all_reduced": gradients of parameters that have a server,
 * or have none; "duplicated": {kind of op: how many run whole on several devices}}. */
json_t *placement_json(const Evaluation *evaluation);

#endif
