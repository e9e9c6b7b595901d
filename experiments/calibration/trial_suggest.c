/* Trials by the information that they would give. */
#include "experiments/calibration/trial_suggest.h"

#include <gsl/gsl_blas.h>
#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/parallel.h"
#include "experiments/calibration/gsl_auto.h"

/* Limits: models and clusters for which strategies are made, and the strategies of each. */
enum { MOST_SUBJECTS = 4, MOST_DEGREE = 16, MOST_MICRO = 8 };

typedef struct {
    Trial trial;
    /* [fit->costs.n] of log(time); NULL: the candidate cannot be made, or does not fit */
    double *slope;
    double time_s;
} Candidate;

typedef struct {
    const TrialFit *fit;
    GArray *candidate;
} Search;

static CLEAR_DEFINE(clear_candidate, Candidate, candidate, trial_clear(&candidate->trial),
                    g_free(candidate->slope));

static CLEAR_DEFINE(clear_suggestion, Suggestion, data, trial_clear(&data->trial));

static void add_candidate(GArray *list, const Trial *like, const char *options)
{
    const Candidate candidate = {.trial = trial_copy(like, options)};
    g_array_append_val(list, candidate);
}

static bool is_known(const GArray *list, const Trial *trial, const char *options)
{
    return any_in(array_each (const Trial, other, list),
                  strcmp(other->contest, trial->contest) == 0 &&
                      strcmp(other->options, options) == 0);
}

/* Adds strategies for the trial's model on its cluster. */
static void add_strategies(GArray *candidates, const GArray *list, const Trial *like)
{
    const uint32_t gpus = least_over(uint32_t, i, like->cluster->n_machines, UINT32_MAX,
                                     like->cluster->machine[i].gpus);
    for (uint32_t tp = 1; tp <= MIN(gpus, MOST_DEGREE); tp *= 2)
        for (uint32_t pp = 1; pp * tp <= trial_gpus(like) && pp <= MOST_DEGREE; pp *= 2)
            for (uint32_t micro = 1; micro <= MOST_MICRO; micro *= 2) {
                g_autofree char *options =
                    g_strdup_printf("pp=%u,tp=%u,micro_batch=%u", pp, tp, micro);
                if (!is_known(list, like, options))
                    add_candidate(candidates, like, options);
            }
}

static GArray *list_candidates(const GArray *list)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    GArray *candidates = array_owning(Candidate, clear_candidate);
    array_each (const Trial, trial, list) {
        if (!trial_is_measured(trial) && !trial->failed)
            add_candidate(candidates, trial, trial->options);
        else if (trial_is_measured(trial) && strcmp(trial->planner, "manual") == 0 &&
                 g_hash_table_size(seen) < MOST_SUBJECTS &&
                 g_hash_table_add(seen, trial->contest))
            add_strategies(candidates, list, trial);
    }
    return candidates;
}

/* Finds the slopes of a candidate if it can be made and fits the memory. */
static bool price(void *data, uint32_t i, GError **error)
{
    const Search *search = data;
    Candidate *candidate = &g_array_index(search->candidate, Candidate, i);
    g_auto(TrialPlan) plan = {0};
    TrialDetail detail;
    g_autofree double *log = fitted_costs_at(&search->fit->costs, &candidate->trial);
    if (!trial_plan_make(&candidate->trial, log, &plan, NULL))
        return true;
    if (!trial_plan_predict(&plan, log, &candidate->time_s, &detail, error))
        return false;
    if (detail.peak_bytes > trial_memory_bytes(&candidate->trial))
        return true;
    candidate->slope = g_new(double, search->fit->costs.n + 1);
    return trial_fit_slopes(search->fit, &plan, candidate->slope, error);
}

/* log(1 + s' C s / e^2) / 2 with the covariance C, and C s. */
static double information(const gsl_matrix *covariance, double expected,
                          const double *slope, gsl_vector *spread)
{
    const gsl_vector_const_view s = gsl_vector_const_view_array(slope, covariance->size1);
    double variance;
    gsl_blas_dsymv(CblasLower, 1, covariance, &s.vector, 0, spread);
    gsl_blas_ddot(&s.vector, spread, &variance);
    return log1p(variance / (expected * expected)) / 2;
}

/* Updates the covariance by the best candidate: C -= C s s' C / (e^2 + s' C s). */
static void learn(gsl_matrix *covariance, double expected, const double *slope)
{
    g_autoptr(gsl_vector) spread = gsl_vector_alloc(covariance->size1);
    const double nats = information(covariance, expected, slope, spread);
    const double all = expected * expected * exp(2 * nats);
    gsl_blas_dsyr(CblasLower, -1 / all, spread, covariance);
}

/* The candidate that tells the most; NULL: none tells anything. */
static Candidate *best_of(GArray *candidates, const gsl_matrix *covariance,
                          double expected, double *nats)
{
    g_autoptr(gsl_vector) spread = gsl_vector_alloc(covariance->size1);
    Candidate *best = NULL;
    *nats = 0;
    array_each (Candidate, candidate, candidates) {
        const double now =
            candidate->slope ? information(covariance, expected, candidate->slope, spread)
                             : 0;
        if (now > *nats) {
            *nats = now;
            best = candidate;
        }
    }
    return best;
}

/* The cost that contributes most to a candidate's variance. */
static const FittedCost *told(const TrialFit *fit, const gsl_matrix *covariance,
                              const double *slope)
{
    uint32_t most = 0;
    double largest = -1;
    for (uint32_t p = 0; p < fit->costs.n; p++) {
        const double now =
            fabs(slope[p]) * sqrt(fmax(0, gsl_matrix_get(covariance, p, p)));
        if (now > largest) {
            largest = now;
            most = p;
        }
    }
    return &fit->costs.cost[most];
}

static GArray *suggest_choose(const TrialFit *fit, GArray *candidates, uint32_t n)
{
    GArray *list = array_owning(Suggestion, clear_suggestion);
    g_autoptr(gsl_matrix) covariance = gsl_matrix_alloc(fit->costs.n, fit->costs.n);
    const gsl_matrix_const_view now =
        gsl_matrix_const_view_array(fit->covariance, fit->costs.n, fit->costs.n);
    gsl_matrix_memcpy(covariance, &now.matrix);
    for (uint32_t k = 0; k < n; k++) {
        double nats;
        Candidate *best = best_of(candidates, covariance, fit->expected, &nats);
        if (!best)
            break;
        const FittedCost *cost = told(fit, covariance, best->slope);
        learn(covariance, fit->expected, best->slope);
        const Suggestion suggestion = {best->trial, best->time_s, nats, cost->cost,
                                       cost->key};
        g_array_append_val(list, suggestion);
        best->trial = (Trial){0};
        g_clear_pointer(&best->slope, g_free);
    }
    return list;
}

GArray *trial_suggest(const TrialFit *fit, const GArray *list, uint32_t n,
                      uint32_t threads, GError **error)
{
    g_autoptr(GArray) candidates = list_candidates(list);
    Search search = {fit, candidates};
    if (!parallel_each(candidates->len, threads, price, &search, error))
        return NULL;
    return suggest_choose(fit, candidates, n);
}
