/* Least squares of trials. */
#include "experiments/calibration/trial_problem.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <string.h>

#include "data/base/parallel.h"

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

/* Whether a cost without an effect on a trial has none at other costs either; not so for a launch,
 * which may be hidden only at present. */
static bool can_rest(Cost cost)
{
    return cost != COST_LAUNCH && cost != COST_HANDOVER && cost != COST_OVERHEAD;
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
        if ((own == NO_COST && common == NO_COST) ||
            (problem->known && own != NO_COST && fabs(before[own]) < TRIAL_UNFELT &&
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

bool trial_problem_evaluate_one(void *data, uint32_t i, GError **error)
{
    TrialProblem *problem = data;
    TrialPlan *plan = &problem->plan[i];
    g_autofree double *log = g_new(double, trial_slots(plan->trial));
    fitted_costs_at(problem->costs, plan->trial, log);
    return trial_plan_predict(plan, log, &problem->time_s[i], NULL, error) &&
           (!problem->slopes || find_slopes(problem, i, log, error));
}

static bool evaluate_first(void *data, uint32_t i, GError **error)
{
    return ((TrialProblem *)data)->first[i] != i ||
           trial_problem_evaluate_one(data, i, error);
}

bool trial_problem_evaluate(TrialProblem *problem, bool slopes, GError **error)
{
    const size_t n = problem->costs->n;
    problem->slopes = slopes;
    if (!parallel_each(problem->n, problem->threads, evaluate_first, problem, error))
        return false;
    for (uint32_t i = 0; i < problem->n; i++) {
        const uint32_t first = problem->first[i];
        problem->time_s[i] = problem->time_s[first];
        if (slopes && first != i)
            memcpy(problem->slope + i * n, problem->slope + first * n,
                   n * sizeof(double));
    }
    return true;
}

double trial_problem_residual(const TrialProblem *problem, uint32_t i)
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
double trial_problem_objective(const TrialProblem *problem)
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
void trial_problem_weigh(TrialProblem *problem)
{
    for (uint32_t i = 0; i < problem->n; i++) {
        const double off = fabs(trial_problem_residual(problem, i));
        problem->weight[i] = off > HUBER_BOUND ? HUBER_BOUND / off : 1;
    }
}

/* curvature += w J^T J, gradient += w J^T r of trial i. */
void trial_problem_add(const TrialProblem *problem, uint32_t i, double times,
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

void trial_problem_add_all(const TrialProblem *problem, gsl_matrix *curvature,
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
void trial_problem_solve(const gsl_matrix *curvature, const gsl_vector *gradient,
                         double damping, gsl_vector *step)
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

void trial_problem_move(const FittedCosts *costs, const double *from,
                        const gsl_vector *step)
{
    for (uint32_t p = 0; p < costs->n; p++)
        costs->cost[p].log = from[p] + (step ? gsl_vector_get(step, p) : 0);
}

double *trial_problem_logs(const FittedCosts *costs)
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
    gsl_vector *step = gsl_vector_alloc(problem->costs->n);
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
            gsl_vector_free(step);
            return good;
        }
    }
    gsl_vector_free(step);
    trial_problem_move(problem->costs, from, NULL);
    return good && trial_problem_evaluate(problem, false, error);
}

bool trial_problem_minimise(TrialProblem *problem, GError **error)
{
    const FittedCosts *costs = problem->costs;
    gsl_matrix *curvature = gsl_matrix_alloc(costs->n, costs->n);
    gsl_vector *gradient = gsl_vector_alloc(costs->n);
    double damping = 1e-3;
    bool done = false, good = trial_problem_evaluate(problem, false, error);
    double least = good ? trial_problem_objective(problem) : 0;
    problem->known = false;
    for (uint32_t k = 0; good && !done && k < STEPS; k++)
        good = step_once(problem, &damping, &least, curvature, gradient, &done, error);
    gsl_matrix_free(curvature);
    gsl_vector_free(gradient);
    return good;
}
