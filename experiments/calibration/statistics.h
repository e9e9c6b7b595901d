/* How well predictions agree with measurements. */
#pragma once

#include <stdint.h>

/* Relative errors are |predicted - measured| / measured. A member that n is too small for is
 * NaN. */
typedef struct {
    uint32_t n;
    double mape, p95, worst;  /* of the relative errors: mean, 95th percentile, largest */
    double bias;              /* mean of (predicted - measured) / measured */
    double pearson, spearman; /* correlation of the times, and of their ranks */
} Agreement;

/* Measured times must be positive. */
Agreement statistics_agreement(const double *predicted, const double *measured,
                               uint32_t n);

/* Top-1 regret: how much slower the one predicted fastest is than the truly fastest, as a share of
 * the latter. n > 0. */
double statistics_regret(const double *predicted, const double *measured, uint32_t n);
