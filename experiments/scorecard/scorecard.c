/* The scorecard: predictions of trials and their errors. */
#include "experiments/scorecard/scorecard.h"

#include <gsl/gsl_rng.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/parallel.h"
#include "experiments/calibration/prediction.h"

static Trial *scorecard_trial_at(const TrialSet *set, uint32_t i)
{
    return &g_array_index(set->trial, Trial, i);
}

static uint32_t index_at(const GArray *index, uint32_t k)
{
    return g_array_index(index, uint32_t, k);
}

CLEAR_DEFINE(score_clear, Score, score, let_go(score->costs.cost, g_free),
             let_go(score->predicted_s, g_free), let_go(score->detail, g_free),
             let_go(score->point, g_free), let_go(score->base, g_free),
             let_go(score->fitted, fitted_free), free_items(score->reason, score->n),
             let_go(score->reason, g_free));

/* Trials of a split, at most `most` of them (0: all), evenly chosen; for SPLIT_FIT only measured
 * ones. */
static GArray *choose(const TrialSet *set, TrialSplit split, uint32_t most)
{
    g_autoptr(GArray) all = g_array_new(false, false, sizeof(uint32_t));
    for (uint32_t i = 0; i < set->trial->len; i++) {
        const Trial *trial = scorecard_trial_at(set, i);
        if (trial->split == split && (split != SPLIT_FIT || isfinite(trial->measured_s) ||
                                      isfinite(trial->tokens_per_s)))
            g_array_append_val(all, i);
    }
    if (most == 0 || all->len <= most)
        return g_steal_pointer(&all);
    GArray *some = g_array_new(false, false, sizeof(uint32_t));
    for (uint32_t i = 0; i < most; i++)
        g_array_append_val(some,
                           g_array_index(all, uint32_t, (guint64)i * all->len / most));
    return some;
}

/* --- plans --- */

typedef struct {
    TrialSet *set;
    const GArray *index; /* uint32_t: indices of the trials */
    TrialPlan *plan;     /* [index], kept; NULL: made and freed one by one */
    Score *score;
} Making;

/* Makes the plan of a trial, or records why there is none. */
static bool make_one(const Making *making, uint32_t i, TrialPlan *plan)
{
    Trial *trial = scorecard_trial_at(making->set, i);
    g_autofree double *log = fitted_costs_at(&making->score->costs, trial);
    g_autoptr(GError) failure = NULL;
    if (!trial_plan_make(trial, log, plan, &failure)) {
        trial_plan_clear(plan);
        put_block(making->score->reason[i], g_strdup(failure->message));
        return false;
    }
    trial->measured_s = trial_plan_measured_s(plan);
    making->score->base[i] = baseline_point(plan);
    return true;
}

static bool keep_one(void *data, uint32_t k, GError **error)
{
    const Making *making = data;
    (void)error;
    make_one(making, index_at(making->index, k), &making->plan[k]);
    return true;
}

static bool predict_one(void *data, uint32_t k, GError **error)
{
    const Making *making = data;
    const uint32_t i = index_at(making->index, k);
    Score *score = making->score;
    g_auto(TrialPlan) plan = {0};
    if (!make_one(making, i, &plan))
        return true;
    g_autofree double *log =
        fitted_costs_at(&score->costs, scorecard_trial_at(making->set, i));
    score->point[i] = prediction_point_of_trial(&plan);
    return trial_plan_predict(&plan, log, &score->predicted_s[i], &score->detail[i],
                              error);
}

/* --- calibration --- */

/* The bytes of a device that the runtime takes, by the trials of `index` with a measured peak. */
static double scorecard_runtime_bytes(const TrialSet *set, const GArray *index,
                                      const TrialDetail *detail)
{
    g_autofree double *more = g_new(double, index->len + 1);
    uint32_t n = 0;
    for (uint32_t k = 0; k < index->len; k++) {
        const uint32_t i = index_at(index, k);
        const double measured = scorecard_trial_at(set, i)->measured_bytes;
        if (isfinite(measured))
            more[n++] = measured - detail[i].peak_bytes;
    }
    return n == 0 ? 0 : fmax(0, gsl_stats_median(more, 1, n));
}

/* Whether the trials have several device types, so that launches can be found from one start. */
static bool has_types(const TrialPlan *plan, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (strcmp(plan[i].trial->cluster->type[0].name,
                   plan[0].trial->cluster->type[0].name) != 0)
            return true;
    return false;
}

/* Fits to plans[n] of the trials index[n]. */
static bool fit_plans(const TrialSet *set, const ScoreOptions *options, TrialPlan *plan,
                      const GArray *index, Score *score, GError **error)
{
    g_auto(TrialFit) fit = {0};
    const TrialFitOptions how = {.threads = options->threads,
                                 .one_start =
                                     options->one_start || has_types(plan, index->len),
                                 .hold_out = true};
    if (!trial_fit(plan, index->len, &how, &fit, error))
        return false;
    score->calibration = fit.fitted;
    score->held_out = fit.held_out;
    score->fitted = prediction_record(plan, fit.held_out_s, index->len);
    score->costs = fit.costs;
    fit.costs = (FittedCosts){0};
    for (uint32_t k = 0; k < index->len; k++) {
        const uint32_t i = index_at(index, k);
        g_autofree double *log =
            fitted_costs_at(&score->costs, scorecard_trial_at(set, i));
        if (!trial_plan_predict(&plan[k], log, &score->predicted_s[i], &score->detail[i],
                                error))
            return false;
    }
    score->runtime_bytes = scorecard_runtime_bytes(set, index, score->detail);
    for (uint32_t k = 0; k < index->len; k++)
        score->detail[index_at(index, k)].peak_bytes += score->runtime_bytes;
    return true;
}

static bool calibrate_trials(TrialSet *set, const ScoreOptions *options, Score *score,
                             GError **error)
{
    g_autoptr(GArray) index = choose(set, SPLIT_FIT, options->max_fitted),
                      made = g_array_new(false, false, sizeof(uint32_t));
    g_autofree TrialPlan *plan = g_new0(TrialPlan, index->len + 1);
    Making making = {set, index, plan, score};
    if (!parallel_each(index->len, options->threads, keep_one, &making, error))
        return false;
    for (uint32_t k = 0; k < index->len; k++)
        if (plan[k].plan) {
            const uint32_t i = index_at(index, k);
            plan[made->len] = plan[k];
            g_array_append_val(made, i);
        }
    score->n_fitted = made->len;
    const bool good = made->len == 0 || fit_plans(set, options, plan, made, score, error);
    clear_items(plan, made->len, trial_plan_clear);
    return good;
}

/* --- the test --- */

/* The regret in the contest of trial index[k]; false if it is no contest. */
static bool contest_regret(const TrialSet *set, const GArray *index, uint32_t k,
                           const double *time_s, double *regret)
{
    const char *contest = scorecard_trial_at(set, index_at(index, k))->contest;
    g_auto(Pairs) pairs = {0};
    for (; k < index->len; k++) {
        const uint32_t i = index_at(index, k);
        const Trial *trial = scorecard_trial_at(set, i);
        if (strcmp(trial->contest, contest) == 0)
            pairs_add(&pairs, time_s[i], trial->measured_s);
    }
    if (pairs.n < 2)
        return false;
    *regret = statistics_regret(pairs.predicted, pairs.measured, pairs.n);
    return true;
}

/* Mean regret of the times over the contests of measured test trials; *contests: their number. */
static double judge_contests(const TrialSet *set, const GArray *index,
                             const double *time_s, uint32_t *contests)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    double sum = 0, regret;
    for (uint32_t k = 0; k < index->len; k++) {
        const char *contest = scorecard_trial_at(set, index_at(index, k))->contest;
        if (!g_hash_table_add(seen, (gpointer)contest) ||
            !contest_regret(set, index, k, time_s, &regret))
            continue;
        sum += regret;
        ++*contests;
    }
    return *contests ? sum / *contests : NAN;
}

static void judge_interval(const Fitted *fitted, const FittedPoint *point,
                           double predicted_s, double measured_s, Coverage *coverage)
{
    double factor_50, factor_90;
    if (!isfinite(measured_s) ||
        !fitted_interval(fitted, point->types, 0.9, &factor_90) ||
        !fitted_interval(fitted, point->types, 0.5, &factor_50))
        return;
    g_autoptr(GPtrArray) reasons = fitted_outside(fitted, point);
    const double off = fabs(log(predicted_s / measured_s));
    const bool flagged = reasons->len > 0;
    coverage->inside += !flagged;
    coverage->outside += flagged;
    coverage->in_50 += !flagged && off <= log(factor_50);
    coverage->in_90 += !flagged && off <= log(factor_90);
    coverage->missed += off > log(factor_90);
    coverage->missed_flagged += flagged && off > log(factor_90);
}

/* Judges baselines on the test trials, fitted to the same trials as the costs. */
static void judge_baselines(const TrialSet *set, const GArray *index, Score *score)
{
    g_autoptr(GArray) point = g_array_new(false, false, sizeof(BaselinePoint)),
                      measured = g_array_new(false, false, sizeof(double));
    for (uint32_t i = 0; i < set->trial->len; i++) {
        const Trial *trial = scorecard_trial_at(set, i);
        if (trial->split != SPLIT_FIT || !isfinite(score->predicted_s[i]) ||
            !isfinite(trial->measured_s))
            continue;
        g_array_append_val(point, score->base[i]);
        g_array_append_val(measured, trial->measured_s);
    }
    if (score->n_fitted == 0 || point->len == 0)
        return;
    g_auto(BaselineFit) fit = {0};
    baseline_fit((BaselinePoint *)(void *)point->data, (double *)(void *)measured->data,
                 point->len, &fit);
    for (Baseline b = 0; b < BASELINES; b++) {
        g_autofree double *time_s = g_new(double, set->trial->len + 1);
        g_auto(Pairs) times = {0};
        uint32_t contests = 0;
        for (uint32_t i = 0; i < set->trial->len; i++)
            time_s[i] =
                score->base[i].kind ? baseline_predict(&fit, b, &score->base[i]) : NAN;
        for (uint32_t k = 0; k < index->len; k++)
            pairs_add(&times, time_s[index_at(index, k)],
                      scorecard_trial_at(set, index_at(index, k))->measured_s);
        score->baseline[b] = statistics_of_pairs(&times);
        score->baseline_regret[b] = judge_contests(set, index, time_s, &contests);
    }
}

static void judge(const TrialSet *set, const GArray *index, Score *score)
{
    g_auto(Pairs) times = {0}, peaks = {0};
    for (uint32_t k = 0; k < index->len; k++) {
        const uint32_t i = index_at(index, k);
        const Trial *trial = scorecard_trial_at(set, i);
        if (!isfinite(score->predicted_s[i]))
            continue;
        score->detail[i].peak_bytes += score->runtime_bytes;
        trial_judge_memory(trial, score->detail[i].peak_bytes, &score->verdict);
        if (score->fitted)
            judge_interval(score->fitted, &score->point[i], score->predicted_s[i],
                           trial->measured_s, &score->coverage);
        pairs_add(&times, score->predicted_s[i], trial->measured_s);
        pairs_add(&peaks, score->detail[i].peak_bytes, trial->measured_bytes);
    }
    score->test = statistics_of_pairs(&times);
    score->memory = statistics_of_pairs(&peaks);
    score->regret = judge_contests(set, index, score->predicted_s, &score->contests);
    judge_baselines(set, index, score);
}

/* Predicts the trials of `index` with the score's costs and judges them. */
static bool predict_trials(TrialSet *set, const GArray *index,
                           const ScoreOptions *options, Score *score, GError **error)
{
    Making making = {set, index, NULL, score};
    if (!parallel_each(index->len, options->threads, predict_one, &making, error))
        return false;
    judge(set, index, score);
    return true;
}

/* Fails with the first reason if no trial could be made. */
static bool check_some(const TrialSet *set, const Score *score, GError **error)
{
    const char *reason = NULL;
    for (uint32_t i = 0; i < set->trial->len; i++) {
        if (isfinite(score->predicted_s[i]))
            return true;
        reason = reason ? reason : score->reason[i];
    }
    return !reason || refuse(error, "%s", reason);
}

static void score_start(const TrialSet *set, Score *score)
{
    const uint32_t n = set->trial->len;
    *score = (Score){.n = n,
                     .predicted_s = g_new(double, n + 1),
                     .detail = g_new0(TrialDetail, n + 1),
                     .point = g_new0(FittedPoint, n + 1),
                     .base = g_new0(BaselinePoint, n + 1),
                     .reason = g_new0(char *, n + 1),
                     .calibration = statistics_agreement(NULL, NULL, 0),
                     .held_out = statistics_agreement(NULL, NULL, 0)};
    for (uint32_t i = 0; i < n; i++)
        score->predicted_s[i] = NAN;
}

bool score_trials(TrialSet *set, const ScoreOptions *options, Score *score,
                  GError **error)
{
    g_autoptr(GArray) test =
        choose(set, options->sealed ? SPLIT_SEALED : SPLIT_DEVELOPMENT, 0);
    score_start(set, score);
    return (options->unfitted || calibrate_trials(set, options, score, error)) &&
           predict_trials(set, test, options, score, error) &&
           check_some(set, score, error);
}

/* --- from other starting values --- */

static void shift_all(TrialSet *set, const double *shift, double sign)
{
    double own[COSTS];
    for (Cost cost = 0; cost < COSTS; cost++)
        own[cost] = sign * shift[cost];
    array_each (Trial, trial, set->trial)
        if (trial->cluster)
            costs_shift(own, trial->cluster, trial->start);
}

bool starts_score(TrialSet *set, const ScoreOptions *options, uint32_t n, uint64_t seed,
                  StartScore *of, GError **error)
{
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    bool good = true;
    gsl_rng_set(random, (unsigned long)seed + 1);
    for (uint32_t k = 0; good && k < n; k++) {
        double shift[COSTS];
        g_auto(Score) score = {0};
        for (Cost cost = 0; cost < COSTS; cost++)
            shift[cost] = cost_info(cost)->width * (2 * gsl_rng_uniform(random) - 1);
        shift_all(set, shift, 1);
        good = score_trials(set, options, &score, error);
        shift_all(set, shift, -1);
        of[k] = (StartScore){score.calibration, score.test, score.regret};
    }
    gsl_rng_free(random);
    return good;
}
