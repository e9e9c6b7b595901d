/* A small linear program, independent of the solver:
 *
 *     min  sum_j c_j x_j    s.t.   lower_i <= sum_j a_ij x_j <= upper_i   every row i
 *                                  lower_j <= x_j <= upper_j              every column j
 *
 * Indices start at 0; a missing bound is -INFINITY or INFINITY; equal bounds make an
 * equation. Columns and rows may be added after a solve: the next solve starts from the
 * last basis.
 *
 * At LP_OPTIMAL, values x and prices y satisfy rows and bounds to LP_TOLERANCE (absolute:
 * scale costs and rows to about 1), y_i >= 0 where only the lower side of row i binds,
 * y_i <= 0 where only the upper one does, and 0 where none does; the reduced cost
 * c_j - sum_i y_i a_ij is >= 0 for x_j at its lower bound, <= 0 at its upper. No answer
 * is to be trusted before it is checked: balance/check.h.
 *
 * An Lp belongs to the thread that made it, which can have one at a time. GLPK's quirks
 * live in lp.c alone. */
#pragma once

#include <stdint.h>

#include "data/base/free.h"

/* Of constraints, in the scaled problem: finer than the gaps that are asked for. */
#define LP_TOLERANCE 1e-12

typedef struct Lp Lp;

typedef enum {
    LP_OPTIMAL,
    LP_INFEASIBLE, /* no x satisfies rows and bounds */
    LP_UNBOUNDED,  /* the objective has no minimum */
    LP_FAILED,     /* the solver gave up: error is set, and the Lp is of no further use */
} LpStatus;

/* KILTER_ERROR_FAILED when this thread already has an Lp, or memory ran out. */
Lp *lp_new(GError **error);
AUTOPTR(lp_free, Lp)

/* Each returns the index of the column or row that it adds. Columns of a row are distinct; zero
 * values are allowed. */
uint32_t lp_column(Lp *lp, double lower, double upper, double cost);
uint32_t lp_row(Lp *lp, double lower, double upper, uint32_t n, const uint32_t *column,
                const double *value);
uint32_t lp_columns(const Lp *lp);
uint32_t lp_rows(const Lp *lp);

/* KILTER_ERROR_FAILED (with LP_FAILED only) names what the solver said. */
LpStatus lp_solve(Lp *lp, GError **error);

/* To be called after LP_OPTIMAL; value and price are 0 for columns and rows added since. */
double lp_objective(const Lp *lp);
double lp_value(const Lp *lp, uint32_t column);
double lp_price(const Lp *lp, uint32_t row);
