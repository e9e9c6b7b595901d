/* Fitting costs to trials. */
#include "experiments/calibration/trial_fit.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <string.h>

/* Beyond this a residual counts less: Huber's bound, in log(predicted / measured). */
static const double HUBER_BOUND = 0.1;
/* The step of slopes. Simulated times are exact but a maximum over paths, so differences of a few
 * percent say more than tiny ones. */
static const double DIFFERENCE = 0.03;
/* No step changes a cost by more than this, as a logarithm. */
static const double LONGEST_STEP = 1.0;
/* A cost that changes a trial's time by less than this part of its own change is taken to have no
 * effect. */
static const double UNFELT = 2e-3;
enum { STEPS = 10 };
static const uint32_t NO_COST = UINT32_MAX;

static uint32_t index_of(const FittedCosts *costs, Cost cost, const char *key)
{
    const FittedCost *found = fitted_costs_find(costs, cost, key);
    return found ? (uint32_t)(found - costs->cost) : NO_COST;
}

/* --- the problem --- */

typedef struct {
    TrialPlan *plan;
    uint32_t n, threads;
    const FittedCosts *costs;    /* their logs are the current point */
    bool slopes;                 /* compute slopes, too */
    bool known;                  /* slopes are known already: costs without one stay so */
    double *time_s;              /* [n] */
    double *slope;               /* [n * costs->n] of log(time) */
    double *measured_s, *weight; /* [n] */
} Problem;

/* Whether a cost without an effect on a trial has none at other costs either; not so for a launch,
 * which may be hidden only at present. */
static bool can_rest(Cost cost)
{
    return cost != COST_LAUNCH && cost != COST_HANDOVER && cost != COST_OVERHEAD;
}

/* Finds the slopes by own costs and adds them to those of common costs. */
static bool find_slopes(Problem *problem, uint32_t i, double *log, GError **error)
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
        if ((own == NO_COST && common == NO_COST) ||
            (problem->known && own != NO_COST && fabs(before[own]) < UNFELT &&
             can_rest(cost)))
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

static bool evaluate_one(void *data, uint32_t i, GError **error)
{
    Problem *problem = data;
    TrialPlan *plan = &problem->plan[i];
    g_autofree double *log = g_new(double, trial_slots(plan->trial));
    fitted_costs_at(problem->costs, plan->trial, log);
    return trial_plan_predict(plan, log, &problem->time_s[i], NULL, error) &&
           (!problem->slopes || find_slopes(problem, i, log, error));
}

static bool evaluate(Problem *problem, bool slopes, GError **error)
{
    problem->slopes = slopes;
    return parallel_each(problem->n, problem->threads, evaluate_one, problem, error);
}

static double residual(const Problem *problem, uint32_t i)
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
static double objective(const Problem *problem)
{
    double sum = 0;
    for (uint32_t i = 0; i < problem->n; i++) {
        const double off = fabs(residual(problem, i));
        sum += (off <= HUBER_BOUND ? off * off : HUBER_BOUND * (2 * off - HUBER_BOUND)) /
               (TRIAL_EXPECTED_ERROR * TRIAL_EXPECTED_ERROR);
    }
    for (uint32_t p = 0; p < problem->costs->n; p++)
        sum += pow(problem->costs->cost[p].log, 2) * prior_precision(problem->costs, p);
    return sum;
}

/* Gives outliers less weight. */
static void weigh(Problem *problem)
{
    for (uint32_t i = 0; i < problem->n; i++) {
        const double off = fabs(residual(problem, i));
        problem->weight[i] = off > HUBER_BOUND ? HUBER_BOUND / off : 1;
    }
}

/* curvature += w J^T J, gradient += w J^T r of trial i. */
static void add_trial(const Problem *problem, uint32_t i, double times,
                      gsl_matrix *curvature, gsl_vector *gradient)
{
    const uint32_t n = problem->costs->n;
    const gsl_vector_const_view row =
        gsl_vector_const_view_array(problem->slope + (size_t)i * n, n);
    const double weight =
        times * problem->weight[i] / (TRIAL_EXPECTED_ERROR * TRIAL_EXPECTED_ERROR);
    gsl_blas_dsyr(CblasLower, weight, &row.vector, curvature);
    gsl_blas_daxpy(weight * residual(problem, i), &row.vector, gradient);
}

static void add_all(const Problem *problem, gsl_matrix *curvature, gsl_vector *gradient)
{
    gsl_matrix_set_zero(curvature);
    gsl_vector_set_zero(gradient);
    for (uint32_t p = 0; p < problem->costs->n; p++) {
        const double precision = prior_precision(problem->costs, p);
        gsl_matrix_set(curvature, p, p, precision);
        gsl_vector_set(gradient, p, precision * problem->costs->cost[p].log);
    }
    for (uint32_t i = 0; i < problem->n; i++)
        add_trial(problem, i, 1, curvature, gradient);
}

/* step = -(curvature + damping diag(curvature))^-1 gradient, no longer than the longest. */
static void solve(const gsl_matrix *curvature, const gsl_vector *gradient, double damping,
                  gsl_vector *step)
{
    gsl_matrix *factor = gsl_matrix_alloc(curvature->size1, curvature->size2);
    gsl_matrix_memcpy(factor, curvature);
    gsl_vector_view diagonal = gsl_matrix_diagonal(factor);
    gsl_vector_scale(&diagonal.vector, 1 + damping);
    gsl_linalg_cholesky_decomp1(factor); /* priors make it definite */
    gsl_linalg_cholesky_solve(factor, gradient, step);
    gsl_vector_scale(step, -1);
    for (size_t p = 0; p < step->size; p++)
        gsl_vector_set(step, p,
                       CLAMP(gsl_vector_get(step, p), -LONGEST_STEP, LONGEST_STEP));
    gsl_matrix_free(factor);
}

/* --- minimisation --- */

static void move(const FittedCosts *costs, const double *from, const gsl_vector *step)
{
    for (uint32_t p = 0; p < costs->n; p++)
        costs->cost[p].log = from[p] + (step ? gsl_vector_get(step, p) : 0);
}

static double *logs_of(const FittedCosts *costs)
{
    double *log = g_new(double, costs->n);
    for (uint32_t p = 0; p < costs->n; p++)
        log[p] = costs->cost[p].log;
    return log;
}

/* Takes a step that lowers the objective, with more and more damping until one does. *done: no step
 * does. */
static bool step_once(Problem *problem, double *damping, double *least,
                      gsl_matrix *curvature, gsl_vector *gradient, bool *done,
                      GError **error)
{
    enum { TRIES = 5 };
    static const double MORE = 10, ENOUGH = 1e-3;
    g_autofree double *from = logs_of(problem->costs);
    gsl_vector *step = gsl_vector_alloc(problem->costs->n);
    bool good = evaluate(problem, true, error);
    *done = true;
    problem->known = true;
    weigh(problem);
    add_all(problem, curvature, gradient);
    for (uint32_t k = 0; good && k < TRIES; k++, *damping *= MORE) {
        solve(curvature, gradient, *damping, step);
        move(problem->costs, from, step);
        good = evaluate(problem, false, error);
        const double now = good ? objective(problem) : INFINITY;
        if (now < *least) {
            *done = *least - now < ENOUGH * *least;
            *least = now;
            *damping /= MORE;
            gsl_vector_free(step);
            return good;
        }
    }
    gsl_vector_free(step);
    move(problem->costs, from, NULL);
    return good && evaluate(problem, false, error);
}

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

/* Minimises from the starting point; ends with the times at the minimum. */
static bool minimise(Problem *problem, const Start *start, GError **error)
{
    const FittedCosts *costs = problem->costs;
    for (uint32_t p = 0; p < costs->n; p++)
        costs->cost[p].log =
            *costs->cost[p].key ? log(start_of(start, costs->cost[p].cost)) : 0;
    gsl_matrix *curvature = gsl_matrix_alloc(costs->n, costs->n);
    gsl_vector *gradient = gsl_vector_alloc(costs->n);
    double damping = 1e-3;
    bool done = false, good = evaluate(problem, false, error);
    double least = good ? objective(problem) : 0;
    for (uint32_t k = 0; good && !done && k < STEPS; k++)
        good = step_once(problem, &damping, &least, curvature, gradient, &done, error);
    gsl_matrix_free(curvature);
    gsl_vector_free(gradient);
    return good;
}

static bool minimise_all(Problem *problem, bool one_start, GError **error)
{
    g_autofree double *best = NULL;
    double least = INFINITY;
    for (uint32_t s = 0; s < (one_start ? 1 : G_N_ELEMENTS(STARTS)); s++) {
        problem->known = false;
        if (!minimise(problem, &STARTS[s], error))
            return false;
        const Agreement now =
            statistics_agreement(problem->time_s, problem->measured_s, problem->n);
        if (best && !(now.mape < least))
            continue;
        least = now.mape;
        g_free(best);
        best = logs_of(problem->costs);
    }
    move(problem->costs, best, NULL);
    return evaluate(problem, true, error);
}

/* --- what the fit is worth --- */

/* The covariance of the logarithms: the inverse of the curvature, widened if trials are predicted
 * worse than expected. */
static void find_covariance(const Problem *problem, TrialFit *fit)
{
    /* 95 % of a normal distribution lie within this many deviations. */
    static const double DEVIATIONS = 1.96;
    const uint32_t n = problem->costs->n;
    fit->covariance = g_new(double, (size_t)n *n);
    gsl_matrix_view inverse = gsl_matrix_view_array(fit->covariance, n, n);
    gsl_vector *gradient = gsl_vector_alloc(n);
    add_all(problem, &inverse.matrix, gradient);
    gsl_linalg_cholesky_decomp1(&inverse.matrix);
    gsl_linalg_cholesky_invert(&inverse.matrix);
    const double wider = fmax(1, sqrt(objective(problem) / MAX(problem->n, 1)));
    for (uint32_t p = 0; p < n; p++) {
        FittedCost *cost = &fit->costs.cost[p];
        const double far =
            DEVIATIONS * wider * sqrt(gsl_matrix_get(&inverse.matrix, p, p));
        cost->low = cost->log - far;
        cost->high = cost->log + far;
    }
    gsl_vector_free(gradient);
}

/* Simulates the trials of a group with the costs after a step without the group. */
typedef struct {
    Problem *problem;
    double *held_out_s;
    const FittedCosts *costs;
    const GArray *index; /* uint32_t: trials of the group */
} HeldOut;

static bool hold_out_one(void *data, uint32_t k, GError **error)
{
    HeldOut *held = data;
    const uint32_t i = g_array_index(held->index, uint32_t, k);
    TrialPlan *plan = &held->problem->plan[i];
    g_autofree double *log = g_new(double, trial_slots(plan->trial));
    fitted_costs_at(held->costs, plan->trial, log);
    return trial_plan_predict(plan, log, &held->held_out_s[i], NULL, error);
}

static bool hold_out_group(Problem *problem, const GArray *index, double *held_out_s,
                           GError **error)
{
    const uint32_t n = problem->costs->n;
    gsl_matrix *curvature = gsl_matrix_alloc(n, n);
    gsl_vector *gradient = gsl_vector_alloc(n), *step = gsl_vector_alloc(n);
    add_all(problem, curvature, gradient);
    for (uint32_t k = 0; k < index->len; k++)
        add_trial(problem, g_array_index(index, uint32_t, k), -1, curvature, gradient);
    solve(curvature, gradient, 1e-9, step);
    FittedCosts costs = {n, g_memdup2(problem->costs->cost, n * sizeof(FittedCost))};
    for (uint32_t p = 0; p < n; p++)
        costs.cost[p].log += gsl_vector_get(step, p);
    HeldOut held = {problem, held_out_s, &costs, index};
    const bool good =
        parallel_each(index->len, problem->threads, hold_out_one, &held, error);
    g_free(costs.cost);
    gsl_vector_free(step);
    gsl_vector_free(gradient);
    gsl_matrix_free(curvature);
    return good;
}

static bool hold_out(Problem *problem, TrialFit *fit, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    fit->held_out_s = g_new0(double, problem->n);
    for (uint32_t i = 0; i < problem->n; i++) {
        const char *group = problem->plan[i].trial->group;
        if (!g_hash_table_add(seen, (gpointer)group))
            continue;
        g_autoptr(GArray) index = g_array_new(false, false, sizeof(uint32_t));
        for (uint32_t k = i; k < problem->n; k++)
            if (strcmp(problem->plan[k].trial->group, group) == 0)
                g_array_append_val(index, k);
        if (!hold_out_group(problem, index, fit->held_out_s, error))
            return false;
    }
    fit->held_out =
        statistics_agreement(fit->held_out_s, problem->measured_s, problem->n);
    return true;
}

/* --- all of it --- */

void trial_fit_clear(TrialFit *fit)
{
    g_free(fit->costs.cost);
    g_free(fit->predicted_s);
    g_free(fit->held_out_s);
    g_free(fit->covariance);
    *fit = (TrialFit){0};
}

bool trial_fit(TrialPlan *plan, uint32_t n, const TrialFitOptions *options, TrialFit *fit,
               GError **error)
{
    *fit = (TrialFit){
        .costs = fitted_costs_new(plan, n), .n = n, .predicted_s = g_new0(double, n + 1)};
    g_autofree double *measured_s = g_new(double, n + 1), *weight = g_new0(double, n + 1),
                      *slope = g_new0(double, (size_t)n * fit->costs.n + 1);
    Problem problem = {.plan = plan,
                       .n = n,
                       .threads = options->threads,
                       .costs = &fit->costs,
                       .time_s = fit->predicted_s,
                       .slope = slope,
                       .measured_s = measured_s,
                       .weight = weight};
    for (uint32_t i = 0; i < n; i++)
        measured_s[i] = plan[i].trial->measured_s;
    if (!minimise_all(&problem, options->one_start, error))
        return false;
    weigh(&problem);
    find_covariance(&problem, fit);
    fit->fitted = statistics_agreement(fit->predicted_s, measured_s, n);
    fit->held_out = statistics_agreement(NULL, NULL, 0);
    return !options->hold_out || hold_out(&problem, fit, error);
}

bool trial_fit_slopes(const TrialFit *fit, TrialPlan *plan, double *row, GError **error)
{
    double time_s;
    Problem problem = {.plan = plan,
                       .n = 1,
                       .threads = 1,
                       .costs = &fit->costs,
                       .time_s = &time_s,
                       .slope = row};
    problem.slopes = true;
    return evaluate_one(&problem, 0, error);
}
