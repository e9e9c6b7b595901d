/* Statistics of where a plan's ops run (private to experiments/sweep). */
#pragma once

#include <jansson.h>

#include "experiments/sweep/configuration.h"

/* {"devices_an_op": {device type: mean over ops}, "served": gradients of parameters with a server,
 * "all_reduced": gradients of the others, "duplicated": {kind of op: number of ops that run whole
 * on several devices}}. */
json_t *placement_json(const Evaluation *evaluation);
