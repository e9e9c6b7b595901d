/* Fits of costs: non-negative, robust, in pieces.
 *
 * Times of ops and messages span orders of magnitude and have outliers, so residuals are relative,
 * (a x - y) / y, and counted by Huber's loss. */
#ifndef KILTER_EXPERIMENTS_CALIBRATION_FIT_H
#define KILTER_EXPERIMENTS_CALIBRATION_FIT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum { FIT_MAX_COLUMNS = 3 };

/* n rows of k columns a[i * k + column], and the values y[i] that they should give. */
typedef struct {
    uint32_t n, k;
    const double *a, *y;
} FitData;

/* x >= 0 [k] that minimises sum_i weight_i (y_i - sum_j a_ij x_j)^2. Columns that the others make
 * superfluous get 0. */
void fit_nnls(const FitData *data, const double *weight, double *x);

/* x >= 0 [k] for relative residuals under Huber's loss, by reweighting. y must be positive. */
void fit_robust(const FitData *data, double *x);

/* 95 % intervals of fit_robust's x from `rounds` resamplings of the rows. */
void fit_bootstrap(const FitData *data, uint32_t rounds, uint64_t seed, double *low,
                   double *high);

/* One line a x[0] + b x[1] per piece. */
typedef struct {
    double up_to; /* largest size of the piece; infinite for the last one */
    double x[2];
} FitPiece;
enum { FIT_MAX_PIECES = 5 };
typedef struct {
    uint32_t n;
    FitPiece piece[FIT_MAX_PIECES];
} FitPieces;

/* The data, k = 2, in pieces by size[i]: breakpoints that minimise the sum of relative errors, as
 * many as pay off under 5-fold cross-validation (the fewest within one standard error of the best). */
FitPieces fit_pieces(const FitData *data, const double *size);

#endif
