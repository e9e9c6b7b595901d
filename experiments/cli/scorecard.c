/* kilter scorecard. */
#include "experiments/cli/scorecard.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiments/scorecard/record.h"

/* More say little that these do not, and every step of a fit simulates all of them. */
enum { MAX_FITTED = 48 };

/* clang-format off */
static const char HEADER[] =
    "data set          calibration    test      MAPE       p95      bias   Pearson  Spearman    regret    "
    "memory   memory right\n";
static const char TEXT[] =
    "{data_set:-16}  {fitted:11}  {test.trials:6}  {test.mape:8%}  {test.p95:8%}  {test.bias:8%}  "
    "{test.pearson:8.3f}  {test.spearman:8.3f}  {regret:8%}  [=8:[{?memory.trials}{memory.mape:%}|-]]  "
    "[=13:{memory_right} of {memory_trials}]\n"
    "[{?verbose}  {description}\n"
    "  [{?fitted}calibration: MAPE {calibration.mape:%};|not fitted:]"
    "[*parameter_list/,: {name} {value:.3} {unit}], memory of the runtime {runtime_bytes:bytes}\n"
    "[*trials:[{?planner}{?predicted_s}"
    "[{!#}  planner         time  measured      comm  measured    hidden  measured\n]"
    "  {planner:-10}  {predicted_s:8ms}  {measured_s:8ms}  {comm_s:8ms}  {measured_comm_s:8ms}  "
    "{hidden_s:8ms}  {measured_hidden_s:8ms}\n]]]";
/* clang-format on */

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
    json_t *parameters = json_object(), *list = json_array(), *trials = json_array();
    for (uint32_t p = 0; p < SCORE_N_PARAMETERS; p++) {
        const char *name = score_parameter((ScoreParameter)p)->text;
        json_object_set_new(parameters, name, json_real(score->parameter[p]));
        json_array_append_new(list, json_pack("{s:s, s:f, s:s}", "name", name, "value",
                                              score->parameter[p], "unit",
                                              score_parameter((ScoreParameter)p)->unit));
    }
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
    return json_pack(
        "{s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:i, s:i, s:f, s:o, s:o, s:o}", "data_set",
        set->name, "description", set->description, "fitted", (int)score->n_fitted,
        "calibration", agreement_json(&score->calibration), "test",
        agreement_json(&score->test), "regret", real_or_null(score->regret), "memory",
        agreement_json(&score->memory), "memory_trials", (int)score->n_memory,
        "memory_right", (int)score->n_memory_right, "runtime_bytes", score->runtime_bytes,
        "parameters", parameters, "parameter_list", list, "trials", trials);
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
    if (options->json)
        json_array_append_new(list, score_json(set, &score));
    else
        command_report(options, score_json(set, &score), TEXT, NULL);
    fflush(stdout);
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
        fputs(HEADER, stdout);
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
