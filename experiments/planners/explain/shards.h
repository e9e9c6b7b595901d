/* How a plan's dims are cut into whole units. */
#ifndef KILTER_EXPERIMENTS_PLANNERS_EXPLAIN_SHARDS_H
#define KILTER_EXPERIMENTS_PLANNERS_EXPLAIN_SHARDS_H

#include <jansson.h>

#include "data/data.h"

/* [{"units": 16, "counts": [4, 4, 2, ...], "uneven": true, "tensor": "moe.weight", "tensors": 12}]: a cut
 * for each number of units, the first forward tensor cut so, parameters before others, and how many are. Uneven: some device has
 * more than its ratio by over 5 %, so that the column of ratios does not say who has what. Empty for
 * programs with groups. */
json_t *explain_shards(const Plan *plan, const Graph *graph);

#endif
