/* The order of cuts where shards and positions cut the same dim (private to data). */
#pragma once

#include "data/program/program.h"

/* Whether a form that cuts one dim over both cuts it over the positions first: any dim but the
 * sequence, dim 1; and dim 1 where it counts experts, in a group that was added to share them. */
bool nesting_starts_inside(const Program *program, const Graph *graph, uint32_t group,
                           TensorId tensor, Form form);
