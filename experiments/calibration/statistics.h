/* How well predictions agree with measurements. */
#pragma once

#include <stdint.h>

#include "data/base/free.h"

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

/* {`of`: n, "mape", "p95", "worst", "bias", "pearson", "spearman"} */
struct json_t *statistics_json(const Agreement *a, const char *of);

/* Top-1 regret: how much slower the one predicted fastest is than the truly fastest, as a share of
 * the latter. n > 0. */
double statistics_regret(const double *predicted, const double *measured, uint32_t n);

/* Predicted beside measured values; starts as {0}. */
typedef struct {
    uint32_t n;
    double *predicted, *measured; /* [n] */
} Pairs;

/* Adds a pair, unless one of the two is not finite. */
void pairs_add(Pairs *pairs, double predicted, double measured);
AUTOCLEAR(pairs_clear, Pairs)

Agreement statistics_of_pairs(const Pairs *pairs);
