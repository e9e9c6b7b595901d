/* The stages of a plan and the devices that limit each (private to experiments; see explain.h). */
#pragma once

#include <jansson.h>

#include "sim/sim.h"

/* [{"stage", "communication_s", "computation_s", "limited_by", "collectives"}]; the times add up to
 * the iteration. In a program with groups a stage is a group, with its "devices"; its times are
 * those of the timeline's critical path, and it is limited by the devices that compute longest on
 * that path. */
json_t *explain_stages(const Plan *plan, const Graph *graph, const ClusterView *view,
                       const SimReport *report);

/* The entry of `list` whose `key` is `value`, with an array "tensors"; added if absent. */
json_t *explain_entry(json_t *list, const char *key, const char *value);
