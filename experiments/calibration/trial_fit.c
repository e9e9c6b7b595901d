/* Fitting costs to trials. */
#include "experiments/calibration/trial_fit.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/parallel.h"
#include "experiments/calibration/gsl_auto.h"

/* --- the problem that is solved --- */

/* A cost that changes a trial's time by less than this part of its own change is taken to have no
 * effect. */
#define TRIAL_UNFELT 2e-3

typedef struct {
    TrialPlan *plan;
    uint32_t n, threads;
    const uint32_t *first; /* [n] the first trial with the same plan: predicted for all */
    const FittedCosts *costs;    /* their logs are the current point */
    bool slopes;                 /* compute slopes, too */
    bool known;                  /* slopes are known already: costs without one stay so */
    double *time_s;              /* [n] */
    double *slope;               /* [n * costs->n] of log(time) */
    double *measured_s, *weight; /* [n] */
    /* error of a prediction: the smaller, the more trials count beside starting values */
    double expected;
} TrialProblem;

/* Beyond this a residual counts less: Huber's bound, in log(predicted / measured). */
static const double HUBER_BOUND = 0.1;
/* The step of slopes. Simulated times are exact but a maximum over paths, so differences of a few
 * percent say more than tiny ones. */
static const double DIFFERENCE = 0.03;
/* No step changes a cost by more than this, as a logarithm. */
static const double LONGEST_STEP = 1.0;
enum { STEPS = 10 };
static const uint32_t NO_COST = UINT32_MAX;

static uint32_t index_of(const FittedCosts *costs, Cost cost, const char *key)
{
    const FittedCost *found = fitted_costs_find(costs, cost, key);
    return found ? (uint32_t)(found - costs->cost) : NO_COST;
}

/* Finds the slopes by own costs and adds them to those of common costs. */
static bool find_slopes(TrialProblem *problem, uint32_t i, double *log, GError **error)
{
    TrialPlan *plan = &problem->plan[i];
    const uint32_t n = problem->costs->n;
    double *row = problem->slope + (size_t)i * n;
    g_autofree double *before = g_memdup2(row, n * sizeof *row);
    memset(row, 0, n * sizeof *row);
    for (uint32_t s = 0; s < trial_slots(plan->trial); s++) {
        if (!fitted_costs_slot_counts(s))
            continue;
        const Cost cost = (Cost)(s % COSTS);
        const uint32_t own =
                           index_of(problem->costs, cost, trial_slot_key(plan->trial, s)),
                       common = index_of(problem->costs, cost, "");
        /* a launch may be hidden only at present; other costs have no effect elsewhere either */
        const bool can_rest =
            cost != COST_LAUNCH && cost != COST_HANDOVER && cost != COST_OVERHEAD;
        if ((own == NO_COST && common == NO_COST) ||
            (problem->known && own != NO_COST && fabs(before[own]) < TRIAL_UNFELT &&
             can_rest))
            continue;
        const double at = log[s];
        double time_s;
        log[s] = at + DIFFERENCE;
        if (!trial_plan_predict(plan, log, &time_s, NULL, error))
            return false;
        log[s] = at;
        const double slope = log1p(time_s / problem->time_s[i] - 1) / DIFFERENCE;
        if (own != NO_COST)
            row[own] += slope;
        if (common != NO_COST)
            row[common] += slope;
    }
    return true;
}

/* The same of trial i alone; data: the problem, whose `slopes` says what is computed. */
static bool trial_problem_evaluate_one(void *data, uint32_t i, GError **error)
{
    TrialProblem *problem = data;
    TrialPlan *plan = &problem->plan[i];
    g_autofree double *log = fitted_costs_at(problem->costs, plan->trial);
    return trial_plan_predict(plan, log, &problem->time_s[i], NULL, error) &&
           (!problem->slopes || find_slopes(problem, i, log, error));
}

static bool evaluate_first(void *data, uint32_t i, GError **error)
{
    return ((TrialProblem *)data)->first[i] != i ||
           trial_problem_evaluate_one(data, i, error);
}

/* Times at the current point and, if asked for, slopes. */
static bool trial_problem_evaluate(TrialProblem *problem, bool slopes, GError **error)
{
    const size_t n = problem->costs->n;
    problem->slopes = slopes;
    if (!parallel_each(problem->n, problem->threads, evaluate_first, problem, error))
        return false;
    values_at (const uint32_t, first, i, problem->first, problem->n) {
        problem->time_s[i] = problem->time_s[first];
        if (slopes && first != i)
            memcpy(problem->slope + i * n, problem->slope + first * n,
                   n * sizeof(double));
    }
    return true;
}

/* log(predicted / measured) of a trial. */
static double trial_problem_residual(const TrialProblem *problem, uint32_t i)
{
    return log(problem->time_s[i] / problem->measured_s[i]);
}

static double prior_precision(const FittedCosts *costs, uint32_t p)
{
    const double width = cost_info(costs->cost[p].cost)->width;
    return 1 / (width * width);
}

/* The objective: Huber's loss of the residuals, plus the distance of costs from their starting
 * values. */
static double trial_problem_objective(const TrialProblem *problem)
{
    double sum = 0;
    for (uint32_t i = 0; i < problem->n; i++) {
        const double off = fabs(trial_problem_residual(problem, i));
        sum += (off <= HUBER_BOUND ? off * off : HUBER_BOUND * (2 * off - HUBER_BOUND)) /
               (problem->expected * problem->expected);
    }
    for (uint32_t p = 0; p < problem->costs->n; p++)
        sum += pow(problem->costs->cost[p].log, 2) * prior_precision(problem->costs, p);
    return sum;
}

/* Gives outliers less weight. */
static void trial_problem_weigh(TrialProblem *problem)
{
    for (uint32_t i = 0; i < problem->n; i++) {
        const double off = fabs(trial_problem_residual(problem, i));
        problem->weight[i] = off > HUBER_BOUND ? HUBER_BOUND / off : 1;
    }
}

/* curvature += w J^T J, gradient += w J^T r of trial i. */
static void trial_problem_add(const TrialProblem *problem, uint32_t i, double times,
                              gsl_matrix *curvature, gsl_vector *gradient)
{
    const uint32_t n = problem->costs->n;
    const gsl_vector_const_view row =
        gsl_vector_const_view_array(problem->slope + (size_t)i * n, n);
    const double weight =
        times * problem->weight[i] / (problem->expected * problem->expected);
    gsl_blas_dsyr(CblasLower, weight, &row.vector, curvature);
    gsl_blas_daxpy(weight * trial_problem_residual(problem, i), &row.vector, gradient);
}

/* The curvature and gradient of the objective at the current point; that of trial i is added
 * `times` times. */
static void trial_problem_add_all(const TrialProblem *problem, gsl_matrix *curvature,
                                  gsl_vector *gradient)
{
    gsl_matrix_set_zero(curvature);
    gsl_vector_set_zero(gradient);
    for (uint32_t p = 0; p < problem->costs->n; p++) {
        const double precision = prior_precision(problem->costs, p);
        gsl_matrix_set(curvature, p, p, precision);
        gsl_vector_set(gradient, p, precision * problem->costs->cost[p].log);
    }
    for (uint32_t i = 0; i < problem->n; i++)
        trial_problem_add(problem, i, 1, curvature, gradient);
}

/* step = -(curvature + damping diag(curvature))^-1 gradient, no longer than the longest. */
static void trial_problem_solve(const gsl_matrix *curvature, const gsl_vector *gradient,
                                double damping, gsl_vector *step)
{
    g_autoptr(gsl_matrix) factor = gsl_matrix_alloc(curvature->size1, curvature->size2);
    gsl_matrix_memcpy(factor, curvature);
    gsl_vector_view diagonal = gsl_matrix_diagonal(factor);
    gsl_vector_scale(&diagonal.vector, 1 + damping);
    gsl_linalg_cholesky_decomp1(factor); /* priors make it definite */
    gsl_linalg_cholesky_solve(factor, gradient, step);
    gsl_vector_scale(step, -1);
    for (size_t p = 0; p < step->size; p++)
        gsl_vector_set(step, p,
                       CLAMP(gsl_vector_get(step, p), -LONGEST_STEP, LONGEST_STEP));
}

/* --- minimisation --- */

/* Sets the point to `from` + step (NULL: 0). */
static void trial_problem_move(const FittedCosts *costs, const double *from,
                               const gsl_vector *step)
{
    for (uint32_t p = 0; p < costs->n; p++)
        costs->cost[p].log = from[p] + (step ? gsl_vector_get(step, p) : 0);
}

/* The point's logarithms [costs->n], which the caller frees. */
static double *trial_problem_logs(const FittedCosts *costs)
{
    double *log = g_new(double, costs->n);
    for (uint32_t p = 0; p < costs->n; p++)
        log[p] = costs->cost[p].log;
    return log;
}

/* Takes a step that lowers the objective, with more and more damping until one does. *done: no step
 * does. */
static bool step_once(TrialProblem *problem, double *damping, double *least,
                      gsl_matrix *curvature, gsl_vector *gradient, bool *done,
                      GError **error)
{
    enum { TRIES = 5 };
    static const double MORE = 10, ENOUGH = 1e-3;
    g_autofree double *from = trial_problem_logs(problem->costs);
    g_autoptr(gsl_vector) step = gsl_vector_alloc(problem->costs->n);
    bool good = trial_problem_evaluate(problem, true, error);
    *done = true;
    problem->known = true;
    trial_problem_weigh(problem);
    trial_problem_add_all(problem, curvature, gradient);
    for (uint32_t k = 0; good && k < TRIES; k++, *damping *= MORE) {
        trial_problem_solve(curvature, gradient, *damping, step);
        trial_problem_move(problem->costs, from, step);
        good = trial_problem_evaluate(problem, false, error);
        const double now = good ? trial_problem_objective(problem) : INFINITY;
        if (now < *least) {
            *done = *least - now < ENOUGH * *least;
            *least = now;
            *damping /= MORE;
            return good;
        }
    }
    trial_problem_move(problem->costs, from, NULL);
    return good && trial_problem_evaluate(problem, false, error);
}

/* Minimises from the current point; ends with the times at the minimum. */
static bool trial_problem_minimise(TrialProblem *problem, GError **error)
{
    const FittedCosts *costs = problem->costs;
    g_autoptr(gsl_matrix) curvature = gsl_matrix_alloc(costs->n, costs->n);
    g_autoptr(gsl_vector) gradient = gsl_vector_alloc(costs->n);
    double damping = 1e-3;
    bool done = false, good = trial_problem_evaluate(problem, false, error);
    double least = good ? trial_problem_objective(problem) : 0;
    problem->known = false;
    for (uint32_t k = 0; good && !done && k < STEPS; k++)
        good = step_once(problem, &damping, &least, curvature, gradient, &done, error);
    return good;
}

/* --- starting points --- */

/* Starting points of a fit: factors on launches, and on hand-overs and latencies. Hidden launches
 * and short hand-overs have no slope, so some starts are high. */
typedef struct {
    double launch, waiting;
} Start;
static const Start STARTS[] = {{1, 1}, {0.3, 1}, {3, 1}, {1, 8}};

static double start_of(const Start *start, Cost cost)
{
    const bool waits =
        cost == COST_HANDOVER || cost == COST_INNER_LATENCY || cost == COST_OUTER_LATENCY;
    return cost == COST_LAUNCH ? start->launch : waits ? start->waiting : 1;
}

static bool minimise_all(TrialProblem *problem, bool one_start, GError **error)
{
    g_autofree double *best = NULL;
    double least = INFINITY;
    for (uint32_t s = 0; s < (one_start ? 1 : G_N_ELEMENTS(STARTS)); s++) {
        items_each (FittedCost, cost, problem->costs->cost, problem->costs->n)
            cost->log = *cost->key ? log(start_of(&STARTS[s], cost->cost)) : 0;
        if (!trial_problem_minimise(problem, error))
            return false;
        const Agreement now =
            statistics_agreement(problem->time_s, problem->measured_s, problem->n);
        if (best && !(now.mape < least))
            continue;
        least = now.mape;
        put_block(best, trial_problem_logs(problem->costs));
    }
    trial_problem_move(problem->costs, best, NULL);
    return trial_problem_evaluate(problem, true, error);
}

/* --- what the fit is worth --- */

/* The covariance of the logarithms: the inverse of the curvature, widened if trials are predicted
 * worse than expected. */
static void find_covariance(const TrialProblem *problem, TrialFit *fit)
{
    /* 95 % of a normal distribution lie within this many deviations. */
    static const double DEVIATIONS = 1.96;
    const uint32_t n = problem->costs->n;
    fit->covariance = g_new(double, (size_t)n *n);
    gsl_matrix_view inverse = gsl_matrix_view_array(fit->covariance, n, n);
    g_autoptr(gsl_vector) gradient = gsl_vector_alloc(n);
    trial_problem_add_all(problem, &inverse.matrix, gradient);
    gsl_linalg_cholesky_decomp1(&inverse.matrix);
    gsl_linalg_cholesky_invert(&inverse.matrix);
    const double wider =
        fmax(1, sqrt(trial_problem_objective(problem) / MAX(problem->n, 1)));
    items_at (FittedCost, cost, p, fit->costs.cost, n) {
        const double far =
            DEVIATIONS * wider * sqrt(gsl_matrix_get(&inverse.matrix, p, p));
        cost->low = cost->log - far;
        cost->high = cost->log + far;
    }
}

/* Simulates the trials of a group with the costs after a step without the group. */
typedef struct {
    TrialProblem *problem;
    double *held_out_s;
    const FittedCosts *costs;
    const GArray *index; /* uint32_t: trials of the group */
} HeldOut;

static bool hold_out_one(void *data, uint32_t k, GError **error)
{
    HeldOut *held = data;
    const uint32_t i = g_array_index(held->index, uint32_t, k);
    TrialPlan *plan = &held->problem->plan[i];
    g_autofree double *log = fitted_costs_at(held->costs, plan->trial);
    return trial_plan_predict(plan, log, &held->held_out_s[i], NULL, error);
}

/* `all`: the curvature and the gradient by all trials. */
static bool hold_out_group(TrialProblem *problem, const GArray *index,
                           const gsl_matrix *all, const gsl_vector *all_gradient,
                           double *held_out_s, GError **error)
{
    const uint32_t n = problem->costs->n;
    g_autoptr(gsl_matrix) curvature = gsl_matrix_alloc(n, n);
    g_autoptr(gsl_vector) gradient = gsl_vector_alloc(n), step = gsl_vector_alloc(n);
    g_autoptr(GHashTable) own = g_hash_table_new(NULL, NULL);
    g_autoptr(GArray) different = g_array_new(false, false, sizeof(uint32_t));
    gsl_matrix_memcpy(curvature, all);
    gsl_vector_memcpy(gradient, all_gradient);
    for (uint32_t k = 0; k < index->len; k++) {
        const uint32_t i = g_array_index(index, uint32_t, k);
        trial_problem_add(problem, i, -1, curvature, gradient);
        if (g_hash_table_contains(own, GUINT_TO_POINTER(problem->first[i])))
            continue;
        g_hash_table_insert(own, GUINT_TO_POINTER(problem->first[i]),
                            GUINT_TO_POINTER(i));
        g_array_append_val(different, i);
    }
    trial_problem_solve(curvature, gradient, 1e-9, step);
    FittedCosts costs = {n, g_memdup2(problem->costs->cost, n * sizeof(FittedCost))};
    for (uint32_t p = 0; p < n; p++)
        costs.cost[p].log += gsl_vector_get(step, p);
    HeldOut held = {problem, held_out_s, &costs, different};
    const bool good =
        parallel_each(different->len, problem->threads, hold_out_one, &held, error);
    for (uint32_t k = 0; good && k < index->len; k++) {
        const uint32_t i = g_array_index(index, uint32_t, k);
        held_out_s[i] = held_out_s[GPOINTER_TO_UINT(
            g_hash_table_lookup(own, GUINT_TO_POINTER(problem->first[i])))];
    }
    g_free(costs.cost);
    return good;
}

/* Times of all trials by fits without their groups: [n]. */
static bool hold_out(TrialProblem *problem, double *held_out_s, GError **error)
{
    const uint32_t n = problem->costs->n;
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(gsl_matrix) all = gsl_matrix_alloc(n, n);
    g_autoptr(gsl_vector) gradient = gsl_vector_alloc(n);
    bool good = true;
    trial_problem_add_all(problem, all, gradient);
    for (uint32_t i = 0; good && i < problem->n; i++) {
        const char *group = problem->plan[i].trial->group;
        if (!g_hash_table_add(seen, (gpointer)group))
            continue;
        g_autoptr(GArray) index = g_array_new(false, false, sizeof(uint32_t));
        for (uint32_t k = i; k < problem->n; k++)
            if (strcmp(problem->plan[k].trial->group, group) == 0)
                g_array_append_val(index, k);
        good = hold_out_group(problem, index, all, gradient, held_out_s, error);
    }
    return good;
}

/* --- further mechanisms --- */

/* How much nearer the times `now` of the trials like i are than those `before`, on average, by
 * their logarithms. */
static double gain_of_group(const TrialProblem *problem, uint32_t i, const double *before,
                            const double *now)
{
    const char *group = problem->plan[i].trial->group;
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t k = i; k < problem->n; k++)
        if (strcmp(problem->plan[k].trial->group, group) == 0) {
            sum += fabs(log(before[k] / problem->measured_s[k])) -
                   fabs(log(now[k] / problem->measured_s[k]));
            n++;
        }
    return sum / n;
}

static double mean_error(const TrialProblem *problem, const double *time_s)
{
    const double sum =
        sum_over(double, i, problem->n, fabs(log(time_s[i] / problem->measured_s[i])));
    return sum / MAX(problem->n, 1);
}

/* A gain by less than this part of the errors is not worth a cost, nor another fit. */
static const double LEAST_GAIN = 0.05;

/* The groups' mean gain if it is larger than its standard error, and worth a cost; else 0. */
static double gain_of(const TrialProblem *problem, const double *before,
                      const double *now)
{
    enum { LEAST_GROUPS = 3 };
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    double sum = 0, squares = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < problem->n; i++) {
        if (!g_hash_table_add(seen, (gpointer)problem->plan[i].trial->group))
            continue;
        const double gain = gain_of_group(problem, i, before, now);
        sum += gain;
        squares += gain * gain;
        n++;
    }
    const double mean = sum / n, variance = fmax(0, squares / n - mean * mean);
    const bool is_worth = n >= LEAST_GROUPS && mean > sqrt(variance / (n - 1)) &&
                          mean > LEAST_GAIN * mean_error(problem, before);
    return is_worth ? mean : 0;
}

/* Whether any trial feels the last costs, from the first_new-th on. */
static bool is_felt(const TrialProblem *problem, uint32_t first_new)
{
    const uint32_t n = problem->costs->n;
    for (uint32_t i = 0; i < problem->n; i++)
        for (uint32_t p = first_new; p < n; p++)
            if (fabs(problem->slope[(size_t)i * n + p]) >= TRIAL_UNFELT)
                return true;
    return false;
}

/* Minimises from the current point; now_s: the times by fits without the trials' groups. */
static bool fit_again(TrialProblem *problem, double *now_s, GError **error)
{
    const bool good = trial_problem_minimise(problem, error) &&
                      trial_problem_evaluate(problem, true, error);
    trial_problem_weigh(problem);
    return good && hold_out(problem, now_s, error);
}

/* Fits again with the error that fits without groups have, as long as it is smaller than the
 * expected one and the errors get smaller by a worthwhile part. */
static bool sharpen(TrialProblem *problem, TrialFit *fit, GError **error)
{
    enum { ROUNDS = 3 };
    /* the deviation of normal errors over their mean size; the smallest error that is expected; a
     * worthwhile change */
    static const double DEVIATION = 1.2533, LEAST = 0.01, SMALLER = 0.8;
    g_autofree double *now_s = g_new0(double, problem->n + 1);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const double before = problem->expected,
                     found = DEVIATION * mean_error(problem, fit->held_out_s);
        if (fmax(found, LEAST) > SMALLER * before)
            return true;
        g_autofree double *logs = trial_problem_logs(&fit->costs);
        problem->expected = fmax(found, LEAST);
        if (!fit_again(problem, now_s, error))
            return false;
        if (mean_error(problem, now_s) >
            (1 - LEAST_GAIN) * mean_error(problem, fit->held_out_s)) {
            problem->expected = before;
            trial_problem_move(&fit->costs, logs, NULL);
            return trial_problem_evaluate(problem, true, error);
        }
        memcpy(fit->held_out_s, now_s, problem->n * sizeof *now_s);
    }
    return true;
}

/* A fit with one more cost, and by how much its errors are smaller. */
typedef struct {
    FittedCosts costs;
    double *held_out_s; /* [n] */
    double gain;        /* 0: it is not worth the cost */
} Variant;

static CLEAR_DEFINE(variant_clear, Variant, variant, let_go(variant->costs.cost, g_free),
                    let_go(variant->held_out_s, g_free));

static void set_costs(TrialProblem *problem, TrialFit *fit, FittedCosts costs)
{
    fit->costs = costs;
    problem->slope = g_renew(double, problem->slope, (size_t)problem->n *costs.n + 1);
    problem->known = false;
}

/* Fits with a cost that was absent; the problem keeps its costs. */
static bool try_cost(TrialProblem *problem, Cost cost, TrialFit *fit, Variant *variant,
                     GError **error)
{
    const FittedCosts before = fit->costs;
    variant->costs = fitted_costs_with(&before, cost, problem->plan, problem->n);
    variant->held_out_s = g_new0(double, problem->n + 1);
    set_costs(problem, fit, variant->costs);
    bool good = trial_problem_evaluate(problem, true, error);
    if (good && is_felt(problem, before.n)) {
        good = fit_again(problem, variant->held_out_s, error);
        if (good)
            variant->gain = gain_of(problem, fit->held_out_s, variant->held_out_s);
    }
    set_costs(problem, fit, before);
    return good;
}

/* Tries each open cost, and closes those that are not worth it; the best one is taken. */
static bool try_open(TrialProblem *problem, bool *open, TrialFit *fit, bool *taken,
                     GError **error)
{
    Variant best = {0};
    Cost chosen = COSTS;
    bool good = true;
    for (Cost cost = 0; good && cost < COSTS; cost++) {
        Variant now = {0};
        if (!open[cost])
            continue;
        good = try_cost(problem, cost, fit, &now, error);
        open[cost] = now.gain > 0;
        if (now.gain > best.gain) {
            chosen = cost;
            const Variant worse = best;
            best = now;
            now = worse;
        }
        variant_clear(&now);
    }
    *taken = good && chosen < COSTS;
    if (*taken) {
        open[chosen] = false;
        memcpy(fit->held_out_s, best.held_out_s, problem->n * sizeof *fit->held_out_s);
        g_free(fit->costs.cost);
        set_costs(problem, fit, best.costs);
        best.costs = (FittedCosts){0};
    }
    variant_clear(&best);
    return good;
}

static bool trial_try_all(TrialProblem *problem, TrialFit *fit, GError **error)
{
    bool open[COSTS], taken = true;
    for (Cost cost = 0; cost < COSTS; cost++)
        open[cost] = cost_info(cost)->absent;
    while (taken)
        if (!try_open(problem, open, fit, &taken, error))
            return false;
    return trial_problem_evaluate(problem, true, error);
}

/* --- all of it --- */

CLEAR_DEFINE(trial_fit_clear, TrialFit, fit,
             free_each(fit->costs.cost, fit->predicted_s, fit->held_out_s,
                       fit->covariance),
             *fit = (TrialFit){0});

/* The fit, with errors of fits without each group if asked for, and then with the further
 * mechanisms that lower them. */
static bool fit_problem(TrialProblem *problem, const TrialFitOptions *options,
                        TrialFit *fit, GError **error)
{
    if (!minimise_all(problem, options->one_start, error))
        return false;
    trial_problem_weigh(problem);
    if (options->hold_out) {
        fit->held_out_s = g_new0(double, problem->n + 1);
        if (!hold_out(problem, fit->held_out_s, error) || !sharpen(problem, fit, error) ||
            !trial_try_all(problem, fit, error) || !sharpen(problem, fit, error))
            return false;
        trial_problem_weigh(problem);
        fit->held_out =
            statistics_agreement(fit->held_out_s, problem->measured_s, problem->n);
    }
    fit->expected = problem->expected;
    find_covariance(problem, fit);
    fit->fitted = statistics_agreement(fit->predicted_s, problem->measured_s, problem->n);
    return true;
}

bool trial_fit(TrialPlan *plan, uint32_t n, const TrialFitOptions *options, TrialFit *fit,
               GError **error)
{
    *fit = (TrialFit){.costs = fitted_costs_with(NULL, COSTS, plan, n),
                      .n = n,
                      .predicted_s = g_new0(double, n + 1),
                      .held_out = statistics_agreement(NULL, NULL, 0)};
    g_autofree double *measured_s = g_new(double, n + 1), *weight = g_new0(double, n + 1);
    g_autofree uint32_t *first = g_new(uint32_t, n + 1);
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    TrialProblem problem = {.plan = plan,
                            .n = n,
                            .threads = options->threads,
                            .first = first,
                            .costs = &fit->costs,
                            .time_s = fit->predicted_s,
                            .slope = g_new0(double, (size_t)n * fit->costs.n + 1),
                            .measured_s = measured_s,
                            .weight = weight,
                            .expected = TRIAL_EXPECTED_ERROR};
    for (uint32_t i = 0; i < n; i++) {
        measured_s[i] = plan[i].trial->measured_s;
        if (!g_hash_table_contains(seen, plan[i].plan))
            g_hash_table_insert(seen, plan[i].plan, GUINT_TO_POINTER(i));
        first[i] = GPOINTER_TO_UINT(g_hash_table_lookup(seen, plan[i].plan));
    }
    const bool good = fit_problem(&problem, options, fit, error);
    g_free(problem.slope);
    return good;
}

bool trial_fit_slopes(const TrialFit *fit, TrialPlan *plan, double *row, GError **error)
{
    double time_s;
    TrialProblem problem = {.plan = plan,
                            .n = 1,
                            .threads = 1,
                            .costs = &fit->costs,
                            .time_s = &time_s,
                            .slope = row};
    problem.slopes = true;
    return trial_problem_evaluate_one(&problem, 0, error);
}
