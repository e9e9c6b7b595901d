/* Minimises the sum of the pieces of BalanceRows under its limits, by cutting planes (J.
 * E. Kelley, "The cutting-plane method for solving convex programs", J. SIAM 8(4), 1960).
 *
 * Written out, the LP has a row for every stage and class. Few of them bind, and summed
 * over stages fewer still: with the pieces of a segment as a bundle g, the LP solved here
 * is
 *
 *     min  sum_g theta_g
 *     s.t. theta_g >= sum over i in g of row r_i(z)     points z visited, r_i(z) a
 *                                                       largest row of piece i at z
 *          theta_g >= 0                                 no piece is negative
 *          limit row <= 0                               limits that some z broke, (3) and (5)
 *          sum_c count_c x_kc = 1,  x >= 0              every segment k
 *
 * Its optimum never exceeds that of the whole LP. Each round visits its solution z; when
 * the pieces at z cost no more than the LP said, z is optimal, and the prices of the
 * cuts, spread over the rows they sum, are the prices of the whole LP. */
#pragma once

#include "balance/lp.h"
#include "balance/rows.h"

typedef struct {
    double *x;     /* [column] in: where to start; out: the best point found */
    double *price; /* [row] of the whole LP, >= 0: rows of a piece sum to 1 */
    double value;  /* of the pieces at x */
    double bound;  /* value of the last LP: a lower bound */
    uint32_t rows, columns, rounds; /* size of the last LP; number of LPs solved */
} BalanceCuts;

/* Pieces and limits should be scaled to about 1 where they matter. LP_INFEASIBLE: limits
 * cannot hold together. */
LpStatus balance_cuts(const BalanceRows *rows, BalanceCuts *cuts, GError **error);
