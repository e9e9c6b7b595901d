/* Memory over time. Private to sim. */
#ifndef KILTER_SIM_FLOW_MEMORY_TIMELINE_H
#define KILTER_SIM_FLOW_MEMORY_TIMELINE_H

#include "sim/evaluate.h"

/* Adds to the timeline what each lane has in memory when: a buffer is there from the
 * start of the instruction that makes it until as many instructions have ended as refer to
 * it. */
void sim_memory_record(const SimCase *sim, SimTimeline *timeline);

#endif
