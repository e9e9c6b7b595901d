/* The scorecard: predictions of trials and their errors. */
#include "experiments/scorecard/scorecard.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

#include "experiments/scorecard/fit.h"

void score_clear(Score *score)
{
    g_clear_pointer(&score->predicted_s, g_free);
    g_clear_pointer(&score->detail, g_free);
}

/* Trials of a split that were measured, at most `most` of them, evenly chosen. */
static GArray *choose(const TrialSet *set, bool calibration, bool measured, uint32_t most)
{
    g_autoptr(GArray) all = g_array_new(false, false, sizeof(uint32_t));
    for (uint32_t i = 0; i < set->trial->len; i++) {
        const Trial *trial = &g_array_index(set->trial, Trial, i);
        if (trial->calibration == calibration &&
            (!measured || isfinite(trial->measured_s)))
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

static double *measured_times(const TrialSet *set, const GArray *index)
{
    double *time = g_new(double, index->len);
    for (uint32_t i = 0; i < index->len; i++)
        time[i] = g_array_index(set->trial, Trial, g_array_index(index, uint32_t, i))
                      .measured_s;
    return time;
}

/* The bytes that the runtime has of a device, by the trials of `index` that tell their memory. */
static double runtime_bytes(const TrialSet *set, const GArray *index,
                            const ScoreDetail *detail)
{
    g_autofree double *more = g_new(double, index->len);
    uint32_t n = 0;
    for (uint32_t i = 0; i < index->len; i++) {
        const uint32_t t = g_array_index(index, uint32_t, i);
        const double measured = g_array_index(set->trial, Trial, t).measured_bytes;
        if (isfinite(measured))
            more[n++] = measured - detail[i].peak_bytes;
    }
    return n == 0 ? 0 : fmax(0, gsl_stats_median(more, 1, n));
}

/* Makes the plans of these trials. Those made are cleared by the caller. */
static bool make_plans(const TrialSet *set, const GArray *index, const double *parameter,
                       TrialPlan *plan, GError **error)
{
    bool good = true;
    for (uint32_t i = 0; good && i < index->len; i++) {
        const uint32_t t = g_array_index(index, uint32_t, i);
        good = trial_plan_make(&g_array_index(set->trial, Trial, t), parameter, &plan[i],
                               error);
    }
    return good;
}

static bool calibrate_trials(const TrialSet *set, const ScoreOptions *options,
                             Score *score, GError **error)
{
    g_autoptr(GArray) index = choose(set, true, true, options->max_fitted);
    const uint32_t n = score->n_fitted = index->len;
    if (n == 0)
        return true;
    g_autofree double *measured = measured_times(set, index), *time_s = g_new0(double, n);
    g_autofree ScoreDetail *detail = g_new0(ScoreDetail, n);
    g_autofree TrialPlan *plan = g_new0(TrialPlan, n);
    TrialWork work = {.set = set, .n = n, .plan = plan, .time_s = time_s};
    bool good = make_plans(set, index, score->parameter, plan, error) &&
                score_fit(&work, options->threads, measured, score->parameter,
                          &score->calibration, error);
    work.parameter = score->parameter;
    work.detail = detail;
    good = good && trial_work_run(&work, options->threads, error);
    score->runtime_bytes = good ? runtime_bytes(set, index, detail) : 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t t = g_array_index(index, uint32_t, i);
        score->predicted_s[t] = time_s[i];
        score->detail[t] = detail[i];
        score->detail[t].peak_bytes += score->runtime_bytes;
        trial_plan_clear(&plan[i]);
    }
    return good;
}

/* --- the test --- */

/* Mean regret over the contests of measured test trials. */
static double mean_regret(const TrialSet *set, const GArray *index, const double *time_s)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    double sum = 0;
    uint32_t contests = 0;
    for (uint32_t i = 0; i < index->len; i++) {
        const char *contest =
            g_array_index(set->trial, Trial, g_array_index(index, uint32_t, i)).contest;
        if (!g_hash_table_add(seen, (gpointer)contest))
            continue;
        g_autoptr(GArray) predicted = g_array_new(false, false, sizeof(double)),
                          measured = g_array_new(false, false, sizeof(double));
        for (uint32_t k = i; k < index->len; k++) {
            const Trial *trial =
                &g_array_index(set->trial, Trial, g_array_index(index, uint32_t, k));
            if (strcmp(trial->contest, contest) != 0 || !isfinite(trial->measured_s))
                continue;
            g_array_append_val(predicted, time_s[k]);
            g_array_append_val(measured, trial->measured_s);
        }
        if (measured->len < 2)
            continue;
        sum += statistics_regret((double *)predicted->data, (double *)measured->data,
                                 measured->len);
        contests++;
    }
    return contests ? sum / contests : NAN;
}

/* Agreement of the peaks that were measured. */
static Agreement judge_memory(const TrialSet *set, const GArray *index,
                              const ScoreDetail *detail)
{
    g_autoptr(GArray) predicted = g_array_new(false, false, sizeof(double)),
                      measured = g_array_new(false, false, sizeof(double));
    for (uint32_t i = 0; i < index->len; i++) {
        const Trial *trial =
            &g_array_index(set->trial, Trial, g_array_index(index, uint32_t, i));
        if (!isfinite(trial->measured_bytes))
            continue;
        g_array_append_val(predicted, detail[i].peak_bytes);
        g_array_append_val(measured, trial->measured_bytes);
    }
    return statistics_agreement((double *)predicted->data, (double *)measured->data,
                                measured->len);
}

static void judge(const TrialSet *set, const GArray *index, const TrialWork *work,
                  Score *score)
{
    g_autoptr(GArray) predicted = g_array_new(false, false, sizeof(double)),
                      measured = g_array_new(false, false, sizeof(double));
    for (uint32_t i = 0; i < index->len; i++) {
        const uint32_t t = g_array_index(index, uint32_t, i);
        const Trial *trial = &g_array_index(set->trial, Trial, t);
        score->predicted_s[t] = work->time_s[i];
        score->n_memory++;
        score->detail[t] = work->detail[i];
        score->n_memory_right +=
            (work->detail[i].peak_bytes <= trial->memory_bytes) != trial->failed;
        if (!isfinite(trial->measured_s))
            continue;
        g_array_append_val(predicted, work->time_s[i]);
        g_array_append_val(measured, trial->measured_s);
    }
    score->test = statistics_agreement((double *)predicted->data,
                                       (double *)measured->data, measured->len);
    score->regret = mean_regret(set, index, work->time_s);
    score->memory = judge_memory(set, index, work->detail);
}

/* Predicts the trials of `index` with the score's parameters and judges them. */
static bool predict_trials(const TrialSet *set, const GArray *index,
                           const ScoreOptions *options, Score *score, GError **error)
{
    g_autofree double *time_s = g_new0(double, index->len + 1);
    g_autofree ScoreDetail *detail = g_new0(ScoreDetail, index->len + 1);
    TrialWork work = {.set = set,
                      .index = (const uint32_t *)(void *)index->data,
                      .n = index->len,
                      .parameter = score->parameter,
                      .time_s = time_s,
                      .detail = detail};
    if (!trial_work_run(&work, options->threads, error))
        return false;
    for (uint32_t i = 0; i < index->len; i++)
        detail[i].peak_bytes += score->runtime_bytes;
    judge(set, index, &work, score);
    return true;
}

static void score_start(const TrialSet *set, Score *score)
{
    *score = (Score){.predicted_s = g_new(double, set->trial->len + 1),
                     .detail = g_new0(ScoreDetail, set->trial->len + 1)};
    for (uint32_t i = 0; i < set->trial->len; i++)
        score->predicted_s[i] = NAN;
    memcpy(score->parameter, set->start, sizeof set->start);
}

bool score_evaluate(const TrialSet *set, const ScoreOptions *options, Score *score,
                    GError **error)
{
    g_autoptr(GArray) all = g_array_new(false, false, sizeof(uint32_t));
    for (uint32_t i = 0; i < set->trial->len; i++)
        g_array_append_val(all, i);
    score_start(set, score);
    return predict_trials(set, all, options, score, error);
}

bool score_trials(const TrialSet *set, const ScoreOptions *options, Score *score,
                  GError **error)
{
    g_autoptr(GArray) test = choose(set, false, false, 0);
    score_start(set, score);
    return calibrate_trials(set, options, score, error) &&
           predict_trials(set, test, options, score, error);
}
