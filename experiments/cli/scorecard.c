/* kilter scorecard. */
#include "experiments/cli/scorecard.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiments/scorecard/record.h"

/* More say little that these do not, and every step of a fit simulates all of them. */
enum { MAX_FITTED = 48 };

static void print_number(double value, double factor, const char *unit)
{
    g_autofree char *text =
        isfinite(value) ? g_strdup_printf("%.*f%s", *unit ? 1 : 3, factor * value, unit)
                        : g_strdup("-");
    printf("  %8s", text);
}

static void print_header(void)
{
    printf("%-16s  %11s  %6s  %8s  %8s  %8s  %8s  %8s  %8s  %8s  %13s\n", "data set",
           "calibration", "test", "MAPE", "p95", "bias", "Pearson", "Spearman", "regret",
           "memory", "memory right");
}

static void print_score(const TrialSet *set, const Score *score)
{
    g_autofree char *memory =
        g_strdup_printf("%u of %u", score->n_memory_right, score->n_memory);
    printf("%-16s  %11u  %6u", set->name, score->n_fitted, score->test.n);
    print_number(score->test.mape, 100, " %");
    print_number(score->test.p95, 100, " %");
    print_number(score->test.bias, 100, " %");
    print_number(score->test.pearson, 1, "");
    print_number(score->test.spearman, 1, "");
    print_number(score->regret, 100, " %");
    print_number(score->memory.n ? score->memory.mape : NAN, 100, " %");
    printf("  %13s\n", memory);
    fflush(stdout);
}

static void print_parameters(const TrialSet *set, const Score *score)
{
    printf("  %s\n", set->description);
    if (score->n_fitted)
        printf("  calibration: MAPE %.1f %%;", 100 * score->calibration.mape);
    else
        printf("  not fitted:");
    for (uint32_t p = 0; p < SCORE_N_PARAMETERS; p++)
        printf("%s %s %.3g %s", p ? "," : "", score_parameter((ScoreParameter)p)->text,
               score->parameter[p], score_parameter((ScoreParameter)p)->unit);
    g_autofree char *runtime = units_format(score->runtime_bytes, QUANTITY_BYTES);
    printf(", memory of the runtime %s\n", runtime);
}

/* Plans by planners, beside what was measured of them. */
static void print_trials(const TrialSet *set, const Score *score)
{
    bool first = true;
    for (uint32_t i = 0; i < set->trial->len; i++) {
        const Trial *trial = &g_array_index(set->trial, Trial, i);
        if (!*trial->planner || !isfinite(score->predicted_s[i]))
            continue;
        if (first)
            printf("  %-10s  %8s  %8s  %8s  %8s  %8s  %8s\n", "planner", "time",
                   "measured", "comm", "measured", "hidden", "measured");
        first = false;
        printf("  %-10s", trial->planner);
        const double time_s[] = {score->predicted_s[i],     trial->measured_s,
                                 score->detail[i].comm_s,   trial->measured_comm_s,
                                 score->detail[i].hidden_s, trial->measured_hidden_s};
        for (uint32_t k = 0; k < G_N_ELEMENTS(time_s); k++)
            print_number(time_s[k], 1e3, " ms");
        puts("");
    }
}

/* NAN is null. */
static json_t *real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *agreement_json(const Agreement *a)
{
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "trials", (int)a->n, "mape",
                     real_or_null(a->mape), "p95", real_or_null(a->p95), "worst",
                     real_or_null(a->worst), "bias", real_or_null(a->bias), "pearson",
                     real_or_null(a->pearson), "spearman", real_or_null(a->spearman));
}

static json_t *score_json(const TrialSet *set, const Score *score)
{
    json_t *parameters = json_object(), *trials = json_array();
    for (uint32_t p = 0; p < SCORE_N_PARAMETERS; p++)
        json_object_set_new(parameters, score_parameter((ScoreParameter)p)->text,
                            json_real(score->parameter[p]));
    for (uint32_t i = 0; i < set->trial->len; i++) {
        const Trial *trial = &g_array_index(set->trial, Trial, i);
        json_array_append_new(
            trials,
            json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o}",
                      "model", trial->model, "planner", trial->planner, "split",
                      trial->calibration ? "calibration" : "test", "pp", (int)trial->pp,
                      "dp", (int)trial->dp, "tmp", (int)trial->tmp, "mbs",
                      (int)trial->mbs, "measured_s", real_or_null(trial->measured_s),
                      "predicted_s", real_or_null(score->predicted_s[i]),
                      "measured_comm_s", real_or_null(trial->measured_comm_s), "comm_s",
                      real_or_null(score->detail[i].comm_s), "measured_hidden_s",
                      real_or_null(trial->measured_hidden_s), "hidden_s",
                      real_or_null(score->detail[i].hidden_s)));
    }
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:i, s:i, s:f, s:o, s:o}",
                     "data_set", set->name, "description", set->description,
                     "calibration", agreement_json(&score->calibration), "test",
                     agreement_json(&score->test), "regret", real_or_null(score->regret),
                     "memory", agreement_json(&score->memory), "memory_trials",
                     (int)score->n_memory, "memory_right", (int)score->n_memory_right,
                     "runtime_bytes", score->runtime_bytes, "parameters", parameters,
                     "trials", trials);
}

static bool score_one(const TrialSet *set, const ScorecardRun *run,
                      const CommandOptions *options, Store *store, json_t *list,
                      GError **error)
{
    const ScoreOptions how = {.max_fitted = MAX_FITTED, .threads = run->threads};
    g_auto(Score) score = {0};
    if (!score_trials(set, &how, &score, error) ||
        !score_record(set, &score, store, error)) {
        g_prefix_error(error, "data set %s: ", set->name);
        return false;
    }
    if (options->json) {
        json_array_append_new(list, score_json(set, &score));
    } else if (!options->quiet) {
        print_score(set, &score);
        if (options->verbose) {
            print_parameters(set, &score);
            print_trials(set, &score);
        }
    }
    return true;
}

/* All of them, so that nothing is written if one cannot be read. */
static GPtrArray *read_sets(const ScorecardRun *run, GError **error)
{
    g_auto(GStrv) names = run->sets ? g_strsplit(run->sets, ",", -1) : trials_names();
    g_autoptr(GPtrArray) sets =
        g_ptr_array_new_with_free_func((GDestroyNotify)trials_free);
    for (char **name = names; *name; name++) {
        TrialSet *set = trials_read(*name, run->measured, error);
        if (!set) {
            g_prefix_error(error, "data set %s: ", *name);
            return NULL;
        }
        g_ptr_array_add(sets, set);
    }
    return g_steal_pointer(&sets);
}

static Store *begin_store(const ScorecardRun *run, GError **error)
{
    g_autofree char *folder = g_path_get_dirname(run->database);
    if (g_mkdir_with_parents(folder, 0777) != 0) {
        kilter_fail(error, KILTER_ERROR_INPUT, "cannot make the folder %s: %s", folder,
                    g_strerror(errno));
        return NULL;
    }
    g_autoptr(Store) store = store_open(run->database, error);
    return store && store_begin_run(store, run->line, command_revision(), error)
               ? g_steal_pointer(&store)
               : NULL;
}

bool scorecard_run(const ScorecardRun *run, const CommandOptions *options, GError **error)
{
    if (!run->measured)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "the scorecard needs measured data, which Kilter does not "
                           "have: give its folder by --measured DIR");
    g_autoptr(GPtrArray) sets = read_sets(run, error);
    g_autoptr(Store) store = sets ? begin_store(run, error) : NULL;
    json_t *list = json_array();
    bool good = store != NULL;
    if (good && !options->json && !options->quiet)
        print_header();
    for (uint32_t i = 0; good && i < sets->len; i++)
        good = score_one(sets->pdata[i], run, options, store, list, error);
    json_t *object = json_pack("{s:o, s:s, s:s}", "scorecard", list, "database",
                               run->database, "version", KILTER_VERSION);
    if (good && options->json)
        command_print_json(object);
    else
        json_decref(object);
    if (good && !options->json && !options->quiet)
        printf("trials: %s\n", run->database);
    return good;
}
