/* Predictions without a simulation. */
#include "experiments/scorecard/baseline.h"
#include "data/base/free.h"
#include "data/base/names.h"
#include "experiments/calibration/gsl_auto.h"

#include <gsl/gsl_linalg.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

enum { TERM_ONE, TERM_FLOPS, TERM_BUBBLE, TERM_TP, TERM_PP, TERM_DP, TERM_SAMPLES };

#define BASELINE_TEXT(id, text) text,
NAMES_LIST(baseline_name, Baseline, BASELINES, BASELINE_TABLE(BASELINE_TEXT))

BaselinePoint baseline_point(const TrialPlan *plan)
{
    g_autoptr(ClusterView) view = cluster_view(plan->cluster, GRANULARITY_GPU);
    const SimWorkload work = sim_workload(plan->plan, plan->graph, view);
    const Strategy *s = &plan->plan->strategy;
    const double pp = MAX(s->pp, 1), tp = MAX(s->tp, 1), cp = MAX(s->cp, 1);
    const double dp = fmax(1, work.gpus / (pp * tp * cp));
    const double stages = MAX(s->virtual_stages, 1);
    const double microbatches =
        plan->fewer ? plan->n_all : plan->plan->program->n_microbatches;
    const double times = plan->fewer ? (double)plan->n_all / plan->n_most : 1;
    g_autofree char *kind = g_strdup_printf("%s %s", plan->trial->cluster->type[0].name,
                                            precision_name(graph_precision(plan->graph)));
    return (BaselinePoint){
        .kind = g_intern_string(kind),
        .term = {[TERM_ONE] = 1,
                 [TERM_FLOPS] = log(times * work.model_flops / work.gpus),
                 [TERM_BUBBLE] = log1p((pp - 1) / (stages * microbatches)),
                 [TERM_TP] = log(tp * cp),
                 [TERM_PP] = log(pp),
                 [TERM_DP] = log(dp),
                 [TERM_SAMPLES] =
                     log(fmax(1, times * work.samples / (dp * microbatches)))}};
}

/* --- rates --- */

/* The logarithm of the time at rate 1. */
static double work_of(Baseline baseline, const BaselinePoint *point)
{
    return point->term[TERM_FLOPS] +
           (baseline == BASELINE_BUBBLE ? point->term[TERM_BUBBLE] : 0);
}

/* The median log(work / time) over the points of a kind; NULL: over all points. */
static double median_rate(Baseline baseline, const BaselinePoint *point,
                          const double *measured_s, uint32_t n, const char *kind)
{
    g_autofree double *rate = g_new(double, n);
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!kind || point[i].kind == kind)
            rate[m++] = work_of(baseline, &point[i]) - log(measured_s[i]);
    return gsl_stats_median(rate, 1, m);
}

/* --- the ridge --- */

/* Keeps terms small about which few trials tell: the prior weighs a hundredth of a trial. */
static const double RIDGE = 0.01;

/* Fits the ridge to terms and times minus their means, so that the constant is not penalized. */
static void fit_ridge(const BaselinePoint *point, const double *measured_s, uint32_t n,
                      double *weight)
{
    g_autoptr(gsl_matrix) a = gsl_matrix_calloc(BASELINE_TERMS, BASELINE_TERMS);
    g_autoptr(gsl_vector) b = gsl_vector_calloc(BASELINE_TERMS),
                          x = gsl_vector_alloc(BASELINE_TERMS);
    double mean[BASELINE_TERMS] = {0}, mean_log = 0;
    for (uint32_t i = 0; i < n; i++) {
        mean_log += log(measured_s[i]) / n;
        for (uint32_t j = 0; j < BASELINE_TERMS; j++)
            mean[j] += point[i].term[j] / n;
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < BASELINE_TERMS; j++) {
            const double term = point[i].term[j] - mean[j];
            *gsl_vector_ptr(b, j) += term * (log(measured_s[i]) - mean_log);
            for (uint32_t k = 0; k < BASELINE_TERMS; k++)
                *gsl_matrix_ptr(a, j, k) += term * (point[i].term[k] - mean[k]);
        }
    for (uint32_t j = 0; j < BASELINE_TERMS; j++)
        *gsl_matrix_ptr(a, j, j) += RIDGE;
    gsl_linalg_cholesky_decomp1(a);
    gsl_linalg_cholesky_solve(a, b, x);
    weight[TERM_ONE] = mean_log;
    for (uint32_t j = TERM_ONE + 1; j < BASELINE_TERMS; j++) {
        weight[j] = gsl_vector_get(x, j);
        weight[TERM_ONE] -= weight[j] * mean[j];
    }
}

void baseline_fit(const BaselinePoint *point, const double *measured_s, uint32_t n,
                  BaselineFit *fit)
{
    g_assert(n > 0);
    *fit = (BaselineFit){
        .own = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, g_free)};
    fit_ridge(point, measured_s, n, fit->weight);
    for (Baseline b = 0; b < BASELINE_RIDGE; b++)
        fit->rate[b] = median_rate(b, point, measured_s, n, NULL);
    for (uint32_t i = 0; i < n; i++) {
        if (g_hash_table_contains(fit->own, point[i].kind))
            continue;
        double *rate = g_new0(double, BASELINES);
        for (Baseline b = 0; b < BASELINE_RIDGE; b++)
            rate[b] = median_rate(b, point, measured_s, n, point[i].kind);
        g_hash_table_insert(fit->own, (gpointer)point[i].kind, rate);
    }
}

CLEAR_DEFINE(baseline_fit_clear, BaselineFit, fit, let_go(fit->own, g_hash_table_unref));

double baseline_predict(const BaselineFit *fit, Baseline baseline,
                        const BaselinePoint *point)
{
    if (baseline == BASELINE_RIDGE) {
        const double sum =
            sum_over(double, j, BASELINE_TERMS, fit->weight[j] * point->term[j]);
        return exp(sum);
    }
    const double *own = g_hash_table_lookup(fit->own, point->kind);
    return exp(work_of(baseline, point) - (own ? own : fit->rate)[baseline]);
}
