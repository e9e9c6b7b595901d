/* Whether a plan stays within what its cluster was calibrated on. */
#pragma once

#include "sim/sim.h"

/* The number of instructions whose bytes, on some device, lie outside of the sizes measured for
 * their kind; 0 on a cluster that was not calibrated. */
uint32_t calibrated_outside(const Plan *plan, const Graph *graph,
                            const ClusterView *view);
