#include "experiments/commands/scorecard.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiments/scorecard/scorecard.h"

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
    printf("%-16s  %11s  %6s  %8s  %8s  %8s  %8s  %8s  %8s  %13s\n", "data set",
           "calibration", "test", "MAPE", "p95", "bias", "Pearson", "Spearman", "regret",
           "memory right");
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
    printf("  %13s\n", memory);
    fflush(stdout);
}

static void print_parameters(const TrialSet *set, const Score *score)
{
    printf("  %s\n  calibration: MAPE %.1f %%;", set->description,
           100 * score->calibration.mape);
    for (uint32_t p = 0; p < SCORE_N_PARAMETERS; p++)
        printf("%s %s %.3g %s", p ? "," : "", score_parameter_text(p),
               score->parameter[p], score_parameter_unit(p));
    puts("");
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
        json_object_set_new(parameters, score_parameter_text(p),
                            json_real(score->parameter[p]));
    for (uint32_t i = 0; i < set->trial->len; i++) {
        const Trial *trial = &g_array_index(set->trial, Trial, i);
        json_array_append_new(
            trials,
            json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:o, s:o}", "model", trial->model,
                      "split", trial->calibration ? "calibration" : "test", "pp",
                      (int)trial->pp, "dp", (int)trial->dp, "tmp", (int)trial->tmp, "mbs",
                      (int)trial->mbs, "measured_s", real_or_null(trial->measured_s),
                      "predicted_s", real_or_null(score->predicted_s[i])));
    }
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:i, s:i, s:o, s:o}", "data_set",
                     set->name, "description", set->description, "calibration",
                     agreement_json(&score->calibration), "test",
                     agreement_json(&score->test), "regret", real_or_null(score->regret),
                     "memory_trials", (int)score->n_memory, "memory_right",
                     (int)score->n_memory_right, "parameters", parameters, "trials",
                     trials);
}

static bool score_one(const char *name, const char *folder, uint32_t threads,
                      const CommandOptions *options, json_t *list, GError **error)
{
    g_autoptr(TrialSet) set = trials_read(name, folder, error);
    const ScoreOptions how = {.max_fitted = MAX_FITTED, .threads = threads};
    g_auto(Score) score = {0};
    if (!set || !score_trials(set, &how, &score, error)) {
        g_prefix_error(error, "data set %s: ", name);
        return false;
    }
    if (options->json) {
        json_array_append_new(list, score_json(set, &score));
    } else if (!options->quiet) {
        print_score(set, &score);
        if (options->verbose)
            print_parameters(set, &score);
    }
    return true;
}

bool scorecard_run(const char *name, const char *folder, uint32_t threads,
                   const CommandOptions *options, GError **error)
{
    if (!folder)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "the scorecard needs measured data, which Kilter does not "
                           "have: give its folder by --measured DIR");
    g_auto(GStrv) names = name ? g_strsplit(name, ",", -1) : trials_names();
    json_t *list = json_array();
    bool good = true;
    if (!options->json && !options->quiet)
        print_header();
    for (char **next = names; good && *next; next++)
        good = score_one(*next, folder, threads, options, list, error);
    json_t *object =
        json_pack("{s:o, s:s}", "scorecard", list, "version", KILTER_VERSION);
    if (good && options->json)
        command_print_json(object);
    else
        json_decref(object);
    return good;
}
