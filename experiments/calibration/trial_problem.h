/* The least squares of a fit to trials (trial_fit.h): times and slopes at a point, and Gauss-Newton
 * steps from it. */
#pragma once

#include <gsl/gsl_matrix.h>
#include <gsl/gsl_vector.h>

#include "experiments/calibration/trial_fit.h"

/* A cost that changes a trial's time by less than this part of its own change is taken to have no
 * effect. */
#define TRIAL_UNFELT 2e-3

typedef struct {
    TrialPlan *plan;
    uint32_t n, threads;
    const uint32_t *first;       /* [n] the first trial with the same plan: predicted for all */
    const FittedCosts *costs;    /* their logs are the current point */
    bool slopes;                 /* compute slopes, too */
    bool known;                  /* slopes are known already: costs without one stay so */
    double *time_s;              /* [n] */
    double *slope;               /* [n * costs->n] of log(time) */
    double *measured_s, *weight; /* [n] */
    double expected;             /* error of a prediction: the smaller, the more trials count beside starting values */
} TrialProblem;

/* Times at the current point and, if asked for, slopes. */
bool trial_problem_evaluate(TrialProblem *problem, bool slopes, GError **error);
/* The same of trial i alone; data: the problem, whose `slopes` says what is computed. */
bool trial_problem_evaluate_one(void *data, uint32_t i, GError **error);

/* log(predicted / measured) of a trial. */
double trial_problem_residual(const TrialProblem *problem, uint32_t i);
/* Huber's loss of the residuals, plus the distance of costs from their starting values. */
double trial_problem_objective(const TrialProblem *problem);

/* Gives outliers less weight in the following. */
void trial_problem_weigh(TrialProblem *problem);
/* The curvature and gradient of the objective at the current point; that of trial i is added
 * `times` times. */
void trial_problem_add_all(const TrialProblem *problem, gsl_matrix *curvature,
                           gsl_vector *gradient);
void trial_problem_add(const TrialProblem *problem, uint32_t i, double times,
                       gsl_matrix *curvature, gsl_vector *gradient);
/* step = -(curvature + damping diag(curvature))^-1 gradient, no longer than the longest. */
void trial_problem_solve(const gsl_matrix *curvature, const gsl_vector *gradient,
                         double damping, gsl_vector *step);

/* The point's logarithms [costs->n], which the caller frees; sets the point to `from` + step (NULL:
 * 0). */
double *trial_problem_logs(const FittedCosts *costs);
void trial_problem_move(const FittedCosts *costs, const double *from,
                        const gsl_vector *step);

/* Minimises from the current point; ends with the times at the minimum. */
bool trial_problem_minimise(TrialProblem *problem, GError **error);
