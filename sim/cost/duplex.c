/* The time of two microbatches that take turns. */
#include "sim/sim.h"

#include <math.h>

double sim_duplex_time(uint32_t n_stages, const SimDuplexStage *stage)
{
    double time_s = 0,
           behind_s = 0; /* computation of the second microbatch still to be done */

    for (uint32_t i = 0; i < n_stages; i++) {
        time_s += fmax(behind_s, stage[i].comm_s[0]);
        time_s += fmax(stage[i].comm_s[1], stage[i].comp_s[0]);
        behind_s = stage[i].comp_s[1];
    }
    return time_s + behind_s;
}
