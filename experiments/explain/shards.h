/* How a plan's dims are cut into whole units. */
#pragma once

#include <jansson.h>

#include "data/plan/plan.h"

/* [{"units": 16, "counts": [4, 4, 2, ...], "uneven": true, "tensor": "moe.weight", "tensors": 12}]:
 * one entry per number of units, with the first forward tensor that is cut so (parameters before
 * others) and the number of such tensors. Uneven: some device has over 5 % more than its ratio, so
 * that the ratios do not show the true shares. Empty for programs with groups. */
json_t *explain_shards(const Plan *plan, const Graph *graph);
