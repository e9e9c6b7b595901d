/* Statistics of relative errors. */
#include "experiments/calibration/statistics.h"

#include <glib.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <jansson.h>
#include <math.h>

#include "data/base/free.h"
#include "data/base/json.h"

/* Ranks of the values, equal ones sharing the mean of their ranks. Caller frees. */
static double *ranks_of(const double *value, uint32_t n)
{
    g_autofree size_t *order = g_new(size_t, n);
    double *rank = g_new(double, n);
    gsl_sort_index(order, value, 1, n);
    for (uint32_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && value[order[end]] == value[order[first]]; end++)
            ;
        for (uint32_t i = first; i < end; i++)
            rank[order[i]] = (first + end + 1) / 2.0;
    }
    return rank;
}

/* The correlation; NaN if one of the two does not vary. */
static double correlation(const double *a, const double *b, uint32_t n)
{
    if (n < 2 || gsl_stats_variance(a, 1, n) == 0 || gsl_stats_variance(b, 1, n) == 0)
        return NAN;
    return gsl_stats_correlation(a, 1, b, 1, n);
}

Agreement statistics_agreement(const double *predicted, const double *measured,
                               uint32_t n)
{
    if (n == 0)
        return (Agreement){0, NAN, NAN, NAN, NAN, NAN, NAN};
    g_autofree double *relative = g_new(double, n);
    Agreement a = {.n = n};
    for (uint32_t i = 0; i < n; i++) {
        const double difference = (predicted[i] - measured[i]) / measured[i];
        a.bias += difference / n;
        relative[i] = fabs(difference);
    }
    a.mape = gsl_stats_mean(relative, 1, n);
    gsl_sort(relative, 1, n);
    a.p95 = gsl_stats_quantile_from_sorted_data(relative, 1, n, 0.95);
    a.worst = relative[n - 1];
    g_autofree double *p = ranks_of(predicted, n), *m = ranks_of(measured, n);
    a.pearson = correlation(predicted, measured, n);
    a.spearman = correlation(p, m, n);
    return a;
}

double statistics_regret(const double *predicted, const double *measured, uint32_t n)
{
    const size_t chosen = gsl_stats_min_index(predicted, 1, n);
    return measured[chosen] / gsl_stats_min(measured, 1, n) - 1;
}

json_t *statistics_json(const Agreement *a, const char *of)
{
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o}", of, (int)a->n, "mape",
                     json_number(a->mape), "p95", json_number(a->p95), "worst",
                     json_number(a->worst), "bias", json_number(a->bias), "pearson",
                     json_number(a->pearson), "spearman", json_number(a->spearman));
}

void pairs_add(Pairs *pairs, double predicted, double measured)
{
    if (!isfinite(predicted) || !isfinite(measured))
        return;
    pairs->predicted = g_renew(double, pairs->predicted, pairs->n + 1);
    pairs->measured = g_renew(double, pairs->measured, pairs->n + 1);
    pairs->predicted[pairs->n] = predicted;
    pairs->measured[pairs->n++] = measured;
}

CLEAR_DEFINE(pairs_clear, Pairs, pairs, free_each(pairs->predicted, pairs->measured));

Agreement statistics_of_pairs(const Pairs *pairs)
{
    return statistics_agreement(pairs->predicted, pairs->measured, pairs->n);
}
