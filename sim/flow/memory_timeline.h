/* Memory over time. Private to sim. */
#pragma once

#include "sim/evaluate.h"

/* Adds to the timeline how much memory each lane uses when. A buffer is alive from the start of the
 * instruction that makes it until all instructions that use it have ended. */
void sim_memory_record(const SimCase *sim, SimTimeline *timeline);
