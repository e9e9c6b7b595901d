/* Fitting constants to trials. */
#include "experiments/scorecard/fit.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <string.h>

/* Beyond this a residual counts less: Huber's bound, in log(predicted / measured). */
#define HUBER_BOUND 0.1
/* A trial is expected to be met within 10 %, so that few trials leave a parameter where it is. */
#define EXPECTED_ERROR 0.1

typedef struct {
    TrialWork *work;
    uint32_t threads;
    const double *measured_s;         /* [work->n] */
    double *weight;                   /* [work->n] */
    double start[SCORE_N_PARAMETERS]; /* logarithms */
    GError *error;
} Fit;

/* x: logarithms of the parameters. */
static int residuals(const gsl_vector *x, void *data, gsl_vector *f)
{
    Fit *fit = data;
    double parameter[SCORE_N_PARAMETERS];
    for (uint32_t p = 0; p < SCORE_N_PARAMETERS; p++)
        parameter[p] = exp(gsl_vector_get(x, p));
    fit->work->parameter = parameter;
    const bool good = !fit->error && trial_work_run(fit->work, fit->threads, &fit->error);
    fit->work->parameter = NULL;
    if (!good)
        return GSL_EFAILED;
    for (uint32_t i = 0; i < fit->work->n; i++)
        gsl_vector_set(
            f, i, sqrt(fit->weight[i]) * log(fit->work->time_s[i] / fit->measured_s[i]));
    for (uint32_t p = 0; p < SCORE_N_PARAMETERS; p++)
        gsl_vector_set(f, fit->work->n + p,
                       EXPECTED_ERROR / score_parameter((ScoreParameter)p)->width *
                           (gsl_vector_get(x, p) - fit->start[p]));
    return GSL_SUCCESS;
}

/* Down-weights what the last solution is far from. */
static void reweigh(Fit *fit)
{
    for (uint32_t i = 0; i < fit->work->n; i++) {
        const double off = fabs(log(fit->work->time_s[i] / fit->measured_s[i]));
        fit->weight[i] = off > HUBER_BOUND ? HUBER_BOUND / off : 1;
    }
}

/* Where fits begin: the launch is that many times what is expected. Hidden launches have no slope,
 * so that one begins high. */
static const double LAUNCH_STARTS[] = {0.3, 1, 3};

/* Minimizes from fit->start with another launch; `parameter` gets the minimum, fit->work->time_s
 * its times. */
static bool solve(Fit *fit, double launch, double *parameter, GError **error)
{
    enum { ROUNDS = 2, STEPS = 8 };
    gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters();
    /* Simulated times are exact, but a max over paths: differences of a percent say more than tiny
     * ones. */
    how.h_df = 1e-3;
    gsl_multifit_nlinear_workspace *solver =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &how,
                                   fit->work->n + SCORE_N_PARAMETERS, SCORE_N_PARAMETERS);
    gsl_multifit_nlinear_fdf problem = {.f = residuals,
                                        .n = fit->work->n + SCORE_N_PARAMETERS,
                                        .p = SCORE_N_PARAMETERS,
                                        .params = fit};
    gsl_vector *x = gsl_vector_alloc(SCORE_N_PARAMETERS);
    for (uint32_t p = 0; p < SCORE_N_PARAMETERS; p++)
        gsl_vector_set(x, p, fit->start[p] + (p == SCORE_LAUNCH ? log(launch) : 0));
    for (uint32_t i = 0; i < fit->work->n; i++)
        fit->weight[i] = 1;
    for (uint32_t round = 0; round < ROUNDS && !fit->error; round++) {
        int info;
        gsl_multifit_nlinear_init(x, &problem, solver);
        gsl_multifit_nlinear_driver(STEPS, 1e-3, 1e-3, 1e-4, NULL, NULL, &info, solver);
        gsl_vector_memcpy(x, gsl_multifit_nlinear_position(solver));
        residuals(x, fit, gsl_multifit_nlinear_residual(solver));
        reweigh(fit);
    }
    for (uint32_t p = 0; p < SCORE_N_PARAMETERS; p++)
        parameter[p] = exp(gsl_vector_get(x, p));
    gsl_vector_free(x);
    gsl_multifit_nlinear_free(solver);
    if (fit->error)
        g_propagate_error(error, g_steal_pointer(&fit->error));
    return !fit->error;
}

bool score_fit(TrialWork *work, uint32_t threads, const double *measured_s,
               double *parameter, Agreement *agreement, GError **error)
{
    g_autofree double *weight = g_new(double, work->n);
    Fit fit = {
        .work = work, .threads = threads, .measured_s = measured_s, .weight = weight};
    for (uint32_t p = 0; p < SCORE_N_PARAMETERS; p++)
        fit.start[p] = log(parameter[p]);
    for (uint32_t s = 0; s < G_N_ELEMENTS(LAUNCH_STARTS); s++) {
        double minimum[SCORE_N_PARAMETERS];
        if (!solve(&fit, LAUNCH_STARTS[s], minimum, error))
            return false;
        const Agreement now = statistics_agreement(work->time_s, measured_s, work->n);
        if (s > 0 && now.mape >= agreement->mape)
            continue;
        *agreement = now;
        memcpy(parameter, minimum, sizeof minimum);
    }
    return true;
}
