/* Independent check of a solution: from SimLinear and SimMemory alone, device by device, without
 * classes, rows or solver.
 *
 * Prices y >= 0 of the rows (1) to (3) of balance.h prove a bound on any ratios (weak duality).
 * With sum_j y_ij = 1 in every stage and z over the rows of term t summing to seconds_t,
 *
 *     time >= sum_i comm_i + sum_ij y_ij fixed_ij + sum_pj y_pj (held_pj - memory_j)
 *             + sum_k min_j g_kj
 *     g_kj  = sum_i y_ij slope_ijk + sum_t z_tj [k is t's] + sum_p y_pj bytes_pjk
 *
 * Where stages join in turns, sum_ij y_ij = 1 in every turn instead, and
 *
 *     a turn >= sum_ij y_ij ( sum of comm_k, k <= i + comp_ij + sum of comp_kj, k > i )
 *
 * with terms as parts of comm. The bound holds because a maximum is at least any average, a limit's
 * row is not positive, and sum_j B_kj = 1, B >= 0. The min is over devices of positive rate: the
 * others have B = 0. */
#pragma once

#include "sim/sim.h"

/* Largest (time - bound) / time of a solution that passes. */
#define BALANCE_GAP 1e-9

typedef struct {
    double *stage; /* [stage * n_devices + device] */
    double *from,
        /* [term * n_devices + device]; `to` counts where from != to; for terms inside of turns only
         * the proportions count */
        *to;
    double *memory; /* [point * n_devices + device], seconds per byte */
} BalancePrices;

/* Ratios [segment * n_devices + device], and the prices that are to prove them. */
typedef struct {
    uint32_t n_segments;
    const double *ratio;
    const BalancePrices *prices;
    double time_s, bound_s; /* set by balance_check */
} BalanceSolution;

/* Whether the ratios satisfy (3) and (4) to 1e-9, and their time is the bound to BALANCE_GAP.
 * KILTER_ERROR_FAILED says what is wrong. */
bool balance_check(const SimLinear *linear, const SimMemory *memory,
                   const ClusterView *view, BalanceSolution *solution, GError **error);
