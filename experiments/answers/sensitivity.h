/* Sensitivity: how much each number of a cluster matters. */
#pragma once

#include <jansson.h>

#include "experiments/sweep/configuration.h"

/* The answer for a plan, with the members of data/schemas/sensitivity.json. configuration: what it
 * was made for, to make it again on better clusters; NULL: it is kept. Fails if the plan does not
 * fit. */
json_t *sensitivity_json(const Evaluation *evaluation, const Configuration *configuration,
                         GError **error);
