/* kilter reproduce scorecard. */
#include "experiments/cli/scorecard.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/base/json.h"
#include "data/base/version.h"
#include "data/store/store.h"
#include "experiments/scorecard/record.h"
#include "experiments/scorecard/starts.h"

/* More trials would add little, and every step of a fit simulates all of them. */
enum { MAX_FITTED = 48 };

/* clang-format off */
static const char HEADER[] =
    "data set          calibration  held out    test      MAPE       p95      bias   Pearson  Spearman    regret    "
    "memory   failed found, false alarms\n";
static const char TEXT[] =
    "{data_set:-16}  {fitted:11}  [=8:[{held_out.mape:%}|-]]  {test.trials:6}  {test.mape:8%}  {test.p95:8%}  {test.bias:8%}  "
    "{test.pearson:8.3f}  {test.spearman:8.3f}  {regret:8%}  [=8:[{?memory.trials}{memory.mape:%}|-]]   "
    "[{?fits.failed}{fits.found} of {fits.failed}|none failed], {fits.false_alarms} of {fits.fit}"
    "[{?not_expressed}; {not_expressed} not expressed]\n"
    "[*starts:  from other start {start:2}:  calibration {calibration:6%}  MAPE {mape:6%}  Spearman {spearman:6.3f}  "
    "regret {regret:6%}\n]"
    "[{?verbose}  {description}\n"
    "  [{?fitted}calibration: MAPE {calibration.mape:%}; costs as factors on where they start, with 95 % intervals|not fitted]\n"
    "[*costs:    {cost:-30}  [=-26:[{?of}{of}|common to all]]  x {factor:5.2f}  ({low:.2f} to {high:.2f})  {trials} trials\n]"
    "[{?coverage.inside}  intervals: of {coverage.inside} trials like those fitted {coverage.in_50} in 50 % and {coverage.in_90} in 90 %; "
    "{coverage.outside} outside of what was fitted; {coverage.missed_flagged} of {coverage.missed} beyond their 90 % are of these\n]"
    "[*baselines:  {baseline:-18}  MAPE {mape:6%}  Spearman {spearman:6.3f}  regret {regret:6%}\n]"
    "  memory of the runtime {runtime_bytes:bytes}\n"
    "[*reasons:    {trials:4} not expressed: {reason}\n]"
    "[*trials:[{!strategy}{?predicted_s}"
    "[{!#}  planner         time  measured      comm  measured    hidden  measured\n]"
    "  {planner:-10}  {predicted_s:8ms}  {measured_s:8ms}  {comm_s:8ms}  {measured_comm_s:8ms}  "
    "{hidden_s:8ms}  {measured_hidden_s:8ms}\n]]]";
/* clang-format on */

static json_t *scorecard_agreement_json(const Agreement *a)
{
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "trials", (int)a->n, "mape",
                     json_number(a->mape), "p95", json_number(a->p95), "worst",
                     json_number(a->worst), "bias", json_number(a->bias), "pearson",
                     json_number(a->pearson), "spearman", json_number(a->spearman));
}

/* Trials that cannot be expressed or made, by reason. */
static uint32_t count_unable(const TrialSet *set, const Score *score)
{
    uint32_t n = set->n_unable;
    for (uint32_t i = 0; i < score->n; i++)
        n += score->reason[i] != NULL;
    return n;
}

/* The reasons, sorted; `count` gets the number of trials for each. */
static GList *reasons_of(const TrialSet *set, const Score *score, GHashTable *count)
{
    GHashTableIter iter;
    gpointer reason, n;
    g_hash_table_iter_init(&iter, set->unable);
    while (g_hash_table_iter_next(&iter, &reason, &n))
        g_hash_table_insert(count, reason, n);
    for (uint32_t i = 0; i < score->n; i++)
        if (score->reason[i]) {
            const guint k =
                GPOINTER_TO_UINT(g_hash_table_lookup(count, score->reason[i]));
            g_hash_table_insert(count, score->reason[i], GUINT_TO_POINTER(k + 1));
        }
    return g_list_sort(g_hash_table_get_keys(count), (GCompareFunc)strcmp);
}

static json_t *reasons_json(const TrialSet *set, const Score *score)
{
    g_autoptr(GHashTable) count = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GList) reasons = reasons_of(set, score, count);
    json_t *list = json_array();
    for (const GList *r = reasons; r; r = r->next)
        json_array_append_new(
            list, json_pack("{s:i, s:s}", "trials",
                            GPOINTER_TO_INT(g_hash_table_lookup(count, r->data)),
                            "reason", (const char *)r->data));
    return list;
}

static json_t *scorecard_costs_json(const FittedCosts *costs)
{
    json_t *list = json_array();
    for (uint32_t p = 0; p < costs->n; p++) {
        const FittedCost *cost = &costs->cost[p];
        json_array_append_new(list, json_pack("{s:s, s:s, s:f, s:f, s:f, s:i}", "cost",
                                              cost_info(cost->cost)->name, "of",
                                              cost->key, "factor", exp(cost->log), "low",
                                              exp(cost->low), "high", exp(cost->high),
                                              "trials", (int)cost->n_trials));
    }
    return list;
}

static json_t *scorecard_trial_json(const Trial *trial, const Score *score, uint32_t i)
{
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:b, s:b, s:s*}",
        "model", trial->model, "planner", trial->planner, "options", trial->options,
        "contest", trial->contest, "device", trial->cluster->type[0].name, "split",
        trial_split_name(trial->split), "gpus", (int)trial_gpus(trial), "measured_s",
        json_number(trial->measured_s), "predicted_s", json_number(score->predicted_s[i]),
        "measured_bytes", json_number(trial->measured_bytes), "peak_bytes",
        json_number(score->detail[i].peak_bytes), "measured_comm_s",
        json_number(trial->measured_comm_s), "comm_s",
        json_number(score->detail[i].comm_s), "measured_hidden_s",
        json_number(trial->measured_hidden_s), "hidden_s",
        json_number(score->detail[i].hidden_s), "failed", (int)trial->failed, "strategy",
        strcmp(trial->planner, "manual") == 0, "reason", score->reason[i]);
}

static json_t *coverage_json(const Coverage *c)
{
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "inside", (int)c->inside, "in_50",
                     (int)c->in_50, "in_90", (int)c->in_90, "outside", (int)c->outside,
                     "missed", (int)c->missed, "missed_flagged", (int)c->missed_flagged);
}

/* The baselines of a set that was fitted. */
static json_t *baselines_json(const Score *score)
{
    json_t *list = json_array();
    for (Baseline b = 0; b < BASELINES && score->baseline[b].n > 0; b++) {
        json_t *object = scorecard_agreement_json(&score->baseline[b]);
        json_object_set_new(object, "baseline", json_string(baseline_name(b)));
        json_object_set_new(object, "regret", json_number(score->baseline_regret[b]));
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *starts_json(const StartScore *start, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < n; k++)
        json_array_append_new(
            list, json_pack("{s:i, s:o, s:o, s:o, s:o}", "start", (int)k + 1,
                            "calibration", json_number(start[k].calibration.mape), "mape",
                            json_number(start[k].test.mape), "spearman",
                            json_number(start[k].test.spearman), "regret",
                            json_number(start[k].regret)));
    return list;
}

static json_t *score_json(const TrialSet *set, const Score *score, bool sealed)
{
    json_t *trials = json_array();
    for (uint32_t i = 0; i < set->trial->len; i++) {
        const Trial *trial = &g_array_index(set->trial, Trial, i);
        if (sealed || trial->split != SPLIT_SEALED)
            json_array_append_new(trials, scorecard_trial_json(trial, score, i));
    }
    const MemoryVerdict *v = &score->verdict;
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:i, s:o, s:{s:i, s:i, s:i, s:i}, "
        "s:f, s:i, s:o, s:o, s:o, s:i, s:o, s:o}",
        "data_set", set->name, "description", set->description, "test_split",
        trial_split_name(sealed ? SPLIT_SEALED : SPLIT_DEVELOPMENT), "calibration",
        scorecard_agreement_json(&score->calibration), "held_out",
        scorecard_agreement_json(&score->held_out), "test",
        scorecard_agreement_json(&score->test), "regret", json_number(score->regret),
        "contests", (int)score->contests, "memory",
        scorecard_agreement_json(&score->memory), "fits", "failed", (int)v->failed,
        "found", (int)v->hits, "fit", (int)v->fit, "false_alarms", (int)v->false_alarms,
        "runtime_bytes", score->runtime_bytes, "not_expressed",
        (int)count_unable(set, score), "costs", scorecard_costs_json(&score->costs),
        "trials", trials, "reasons", reasons_json(set, score), "fitted",
        (int)score->n_fitted, "coverage", coverage_json(&score->coverage), "baselines",
        baselines_json(score));
}

static bool score_one(TrialSet *set, const ScorecardRun *run,
                      const CommandOptions *options, Store *store, json_t *list,
                      GError **error)
{
    const ScoreOptions how = {.max_fitted = MAX_FITTED,
                              .threads = run->threads,
                              .sealed = run->sealed,
                              .unfitted = run->unfitted};
    g_auto(Score) score = {0};
    g_autofree StartScore *start = g_new0(StartScore, run->starts + 1);
    if (!score_trials(set, &how, &score, error) ||
        !score_record(set, &score, store, error) ||
        !starts_score(set, &how, run->starts, options->planner.seed, start, error)) {
        g_prefix_error(error, "data set %s: ", set->name);
        return false;
    }
    json_t *object = score_json(set, &score, run->sealed);
    json_object_set_new(object, "starts", starts_json(start, run->starts));
    if (options->json)
        json_array_append_new(list, object);
    else
        command_report(options, object, TEXT, NULL);
    fflush(stdout);
    return true;
}

/* Reads all sets first, so that nothing is written if one cannot be read. */
static GPtrArray *read_sets(const ScorecardRun *run, const CommandOptions *options,
                            GError **error)
{
    g_auto(GStrv) names = run->sets ? g_strsplit(run->sets, ",", -1) : trials_names();
    g_autoptr(GPtrArray) sets =
        g_ptr_array_new_with_free_func((GDestroyNotify)trials_free);
    for (char **name = names; *name; name++) {
        TrialSet *set = run->plain
                            ? trials_read_plain(*name, run->measured, options->set, error)
                            : trials_read(*name, run->measured, error);
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
    if (run->plain && run->starts > 0)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "--starts: expected no --plain, whose costs have no start");
    g_autoptr(GPtrArray) sets = read_sets(run, options, error);
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
