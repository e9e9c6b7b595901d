/* Nonnegative robust fits of lines to measurements. */
#include "experiments/calibration/fit.h"

#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multifit.h>
#include <gsl/gsl_rng.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <string.h>

#include "data/base/each.h"
#include "experiments/calibration/gsl_auto.h"

/* --- non-negative least squares --- */

/* The weighted rows [a scale | y] or, if there are more rows than columns, the triangle R of their
 * QR decomposition, which has the same least squares. */
static gsl_matrix *compress(const FitData *data, const double *weight,
                            const double *scale)
{
    const uint32_t k = data->k;
    gsl_matrix *m = gsl_matrix_alloc(data->n, k + 1);
    for (uint32_t i = 0; i < data->n; i++) {
        const double root = sqrt(weight[i]);
        for (uint32_t j = 0; j < k; j++)
            gsl_matrix_set(m, i, j, root * data->a[(size_t)i * k + j] * scale[j]);
        gsl_matrix_set(m, i, k, root * data->y[i]);
    }
    if (data->n <= k + 1)
        return m;
    g_autoptr(gsl_vector) tau = gsl_vector_alloc(k + 1);
    gsl_linalg_QR_decomp(m, tau);
    gsl_matrix *r = gsl_matrix_calloc(k + 1, k + 1);
    for (uint32_t i = 0; i <= k; i++)
        for (uint32_t j = i; j <= k; j++)
            gsl_matrix_set(r, i, j, gsl_matrix_get(m, i, j));
    gsl_matrix_free(m);
    return r;
}

/* Least squares over the columns of `set`, the others 0. Returns the cost; infinite if some x is
 * negative. */
static double solve_set(const gsl_matrix *m, uint32_t k, uint32_t set, double *x)
{
    const size_t rows = m->size1, columns = (size_t)__builtin_popcount(set);
    if (rows < columns)
        return INFINITY;
    g_autoptr(gsl_matrix) a = gsl_matrix_alloc(rows, columns),
                          cov = gsl_matrix_alloc(columns, columns);
    g_autoptr(gsl_vector) y = gsl_vector_alloc(rows), c = gsl_vector_alloc(columns);
    gsl_multifit_linear_workspace *work = gsl_multifit_linear_alloc(rows, columns);
    uint32_t column[FIT_MAX_COLUMNS], n = 0;
    for (uint32_t j = 0; j < k; j++)
        if (set >> j & 1u)
            column[n++] = j;
    for (size_t i = 0; i < rows; i++) {
        for (uint32_t j = 0; j < n; j++)
            gsl_matrix_set(a, i, j, gsl_matrix_get(m, i, column[j]));
        gsl_vector_set(y, i, gsl_matrix_get(m, i, k));
    }
    double cost;
    gsl_multifit_linear(a, y, c, cov, &cost, work);
    memset(x, 0, k * sizeof *x);
    for (uint32_t j = 0; j < n; j++) {
        x[column[j]] = gsl_vector_get(c, j);
        if (!(x[column[j]] >= 0))
            cost = INFINITY;
    }
    gsl_multifit_linear_free(work);
    return cost;
}

/* Tries every set of columns, smaller ones first; with at most three columns there are eight. */
void fit_nnls(const FitData *data, const double *weight, double *x)
{
    double scale[FIT_MAX_COLUMNS], best = 0, norm[FIT_MAX_COLUMNS] = {0};
    g_assert(data->k <= FIT_MAX_COLUMNS);
    for (uint32_t i = 0; i < data->n; i++) {
        best += weight[i] * data->y[i] * data->y[i];
        for (uint32_t j = 0; j < data->k; j++)
            norm[j] += weight[i] * pow(data->a[(size_t)i * data->k + j], 2);
    }
    for (uint32_t j = 0; j < data->k; j++)
        scale[j] = norm[j] > 0 ? 1 / sqrt(norm[j]) : 0;
    gsl_matrix *m = compress(data, weight, scale);
    memset(x, 0, data->k * sizeof *x);
    for (uint32_t size = 1; size <= data->k; size++)
        for (uint32_t set = 1; set < 1u << data->k; set++) {
            double trial[FIT_MAX_COLUMNS];
            bool used = (uint32_t)__builtin_popcount(set) == size;
            for (uint32_t j = 0; j < data->k; j++)
                used = used && !((set >> j & 1u) && scale[j] == 0);
            const double cost = used ? solve_set(m, data->k, set, trial) : INFINITY;
            if (cost < best * (1 - 1e-9)) {
                best = cost;
                memcpy(x, trial, data->k * sizeof *x);
            }
        }
    gsl_matrix_free(m);
    for (uint32_t j = 0; j < data->k; j++)
        x[j] *= scale[j];
}

/* --- robust --- */

double fit_at(const double *a, const double *x, uint32_t k)
{
    return sum_over(double, j, k, a[j] * x[j]);
}

static double relative_error(const FitData *data, uint32_t i, const double *x)
{
    return fabs(fit_at(data->a + (size_t)i * data->k, x, data->k) - data->y[i]) /
           data->y[i];
}

/* Huber 1964: quadratic within this many standard deviations, 95 % efficient for normal errors. */
static const double HUBER = 1.345;
/* The standard deviation of normal errors over the median of their absolute values. */
static const double MEDIAN_TO_DEVIATION = 1.4826;
/* Errors below a millionth are equal. */
static const double SMALLEST_SCALE = 1e-6;

void fit_robust(const FitData *data, double *x)
{
    enum { ROUNDS = 8 };
    g_autofree double *weight = g_new(double, data->n + 1);
    g_autofree double *error = g_new(double, data->n + 1);
    for (uint32_t i = 0; i < data->n; i++)
        weight[i] = 1 / (data->y[i] * data->y[i]);
    fit_nnls(data, weight, x);
    for (uint32_t round = 0; data->n > data->k && round < ROUNDS; round++) {
        for (uint32_t i = 0; i < data->n; i++)
            error[i] = relative_error(data, i, x);
        gsl_sort(error, 1, data->n);
        const double scale = fmax(
            MEDIAN_TO_DEVIATION * gsl_stats_median_from_sorted_data(error, 1, data->n),
            SMALLEST_SCALE);
        for (uint32_t i = 0; i < data->n; i++) {
            const double far = relative_error(data, i, x) / (HUBER * scale);
            weight[i] = 1 / (data->y[i] * data->y[i] * fmax(far, 1));
        }
        double before[FIT_MAX_COLUMNS];
        memcpy(before, x, data->k * sizeof *x);
        fit_nnls(data, weight, x);
        if (memcmp(before, x, data->k * sizeof *x) == 0)
            break;
    }
}

void fit_bootstrap(const FitData *data, uint32_t rounds, uint64_t seed, double *low,
                   double *high)
{
    const uint32_t n = data->n, k = data->k;
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(random, (unsigned long)seed);
    g_autofree double *a = g_new(double, (size_t)n *k + 1), *y = g_new(double, n + 1);
    g_autofree double *x = g_new(double, (size_t)rounds *k + 1);
    for (uint32_t round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t from = (uint32_t)gsl_rng_uniform_int(random, n);
            memcpy(a + (size_t)i * k, data->a + (size_t)from * k, k * sizeof *a);
            y[i] = data->y[from];
        }
        double own[FIT_MAX_COLUMNS];
        fit_robust(&(FitData){n, k, a, y}, own);
        for (uint32_t j = 0; j < k; j++)
            x[(size_t)j * rounds + round] = own[j];
    }
    for (uint32_t j = 0; j < k; j++) {
        double *all = x + (size_t)j * rounds;
        gsl_sort(all, 1, rounds);
        low[j] = gsl_stats_quantile_from_sorted_data(all, 1, rounds, 0.025);
        high[j] = gsl_stats_quantile_from_sorted_data(all, 1, rounds, 0.975);
    }
    gsl_rng_free(random);
}
