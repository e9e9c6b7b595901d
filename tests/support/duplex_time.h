/* HiDup's formula for two microbatches in alternation, with which simulations are compared. */
#ifndef KILTER_TESTS_SUPPORT_DUPLEX_TIME_H
#define KILTER_TESTS_SUPPORT_DUPLEX_TIME_H

#include <math.h>
#include <stdint.h>

/* A stage of both microbatches: communication, then computation. */
typedef struct {
    double comm_s[2], comp_s[2];
} DuplexStage;

/* Time of two microbatches that take turns (HiDup Sec. 3, Eq. 4 and 5): while the first one
 * computes its stage i the second one communicates for its stage i, then the second computes and
 * the first communicates for its stage i + 1. With psi the time up to a stage and -phi the second
 * microbatch's computation in it,
 *
 *     phi_i = -comp2_i                                                                      (4)
 *     psi_i = psi_(i-1) + phi_(i-1) + max(-phi_(i-1), comm1_i) + max(comm2_i, comp1_i) - phi_i  (5)
 *
 * In the paper both microbatches have the same times. Here they differ where one of them
 * communicates for both: a parameter gathered for the first microbatch serves the second too, and
 * gradients are summed before they are synchronized. */
static inline double duplex_time(uint32_t n_stages, const DuplexStage *stage)
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

#endif
