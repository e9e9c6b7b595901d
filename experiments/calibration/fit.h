/* Fits of costs: non-negative, robust.
 *
 * Times of ops and messages span orders of magnitude and have outliers, so residuals are relative,
 * (a x - y) / y, and counted by Huber's loss. */
#pragma once

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

/* The sum of a row of k columns times x. */
double fit_at(const double *a, const double *x, uint32_t k);

/* x >= 0 [k] for relative residuals under Huber's loss, by reweighting. y must be positive. */
void fit_robust(const FitData *data, double *x);

/* 95 % intervals of fit_robust's x from `rounds` resamplings of the rows. */
void fit_bootstrap(const FitData *data, uint32_t rounds, uint64_t seed, double *low,
                   double *high);
