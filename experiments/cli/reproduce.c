/* kilter reproduce. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/base/json.h"
#include "data/base/version.h"
#include "data/store/store.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"
#include "experiments/cli/limits.h"
#include "experiments/cli/screen.h"
#include "experiments/figures/reproduce.h"
#include "experiments/scorecard/record.h"
#include "experiments/scorecard/scorecard.h"

/* clang-format off */
#define REPRODUCE_OPTIONS(X)                           \
    X(COUNT, threads, "jobs", 'j', G_MININT, G_MAXINT) \
    X(FILE, database, "db", 0)                         \
    X(FILE, folder, "output", 'o')                     \
    X(TEXT, granularity, "granularity", 0)             \
    X(FILE, measured, "measured", 0)                   \
    X(FLAG, sealed, "sealed", 0)                       \
    X(FLAG, unfitted, "unfitted", 0)                   \
    X(FLAG, plain, "plain", 0)                         \
    X(COUNT, starts, "starts", 0, 0, 1000)
/* clang-format on */
COMMAND_OPTIONS(Own, reproduce_options, REPRODUCE_OPTIONS)

/* --- scorecards --- */

/* More trials would add little, and every step of a fit simulates all of them. */
enum { MAX_FITTED = 48 };

/* clang-format off */
static const char HEADER[] =
    "data set          calibration  held out    test      MAPE       p95      bias   Pearson  Spearman    regret    "
    "memory   failed found, false alarms\n";
/* clang-format on */

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
    table_each (reason, n, set->unable)
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
    items_each (const FittedCost, cost, costs->cost, costs->n)
        json_array_append_new(list, json_pack("{s:s, s:s, s:f, s:f, s:f, s:i}", "cost",
                                              cost_info(cost->cost)->name, "of",
                                              cost->key, "factor", exp(cost->log), "low",
                                              exp(cost->low), "high", exp(cost->high),
                                              "trials", (int)cost->n_trials));
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
        json_t *object = statistics_json(&score->baseline[b], "trials");
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
    array_at (const Trial, trial, i, set->trial) {
        if (sealed || trial->split != SPLIT_SEALED)
            json_array_append_new(trials, scorecard_trial_json(trial, score, i));
    }
    const MemoryVerdict *v = &score->verdict;
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:i, s:o, s:{s:i, s:i, s:i, s:i}, "
        "s:f, s:i, s:o, s:o, s:o, s:i, s:o, s:o}",
        "data_set", set->name, "description", set->description, "test_split",
        trial_split_name(sealed ? SPLIT_SEALED : SPLIT_DEVELOPMENT), "calibration",
        statistics_json(&score->calibration, "trials"), "held_out",
        statistics_json(&score->held_out, "trials"), "test",
        statistics_json(&score->test, "trials"), "regret", json_number(score->regret),
        "contests", (int)score->contests, "memory",
        statistics_json(&score->memory, "trials"), "fits", "failed", (int)v->failed,
        "found", (int)v->hits, "fit", (int)v->fit, "false_alarms", (int)v->false_alarms,
        "runtime_bytes", score->runtime_bytes, "not_expressed",
        (int)count_unable(set, score), "costs", scorecard_costs_json(&score->costs),
        "trials", trials, "reasons", reasons_json(set, score), "fitted",
        (int)score->n_fitted, "coverage", coverage_json(&score->coverage), "baselines",
        baselines_json(score));
}

static bool score_one(TrialSet *set, const Own *own, const CommandOptions *options,
                      Store *store, json_t *list, GError **error)
{
    const ScoreOptions how = {.max_fitted = MAX_FITTED,
                              .threads = (uint32_t)MAX(own->threads, 0),
                              .sealed = own->sealed,
                              .unfitted = own->unfitted || own->plain};
    g_auto(Score) score = {0};
    g_autofree StartScore *start = g_new0(StartScore, own->starts + 1);
    if (!score_trials(set, &how, &score, error) ||
        !score_record(set, &score, store, error) ||
        !starts_score(set, &how, (uint32_t)own->starts, options->planner.seed, start,
                      error))
        return kilter_prefix(error, "data set %s: ", set->name);
    json_t *object = score_json(set, &score, own->sealed);
    json_object_set_new(object, "starts", starts_json(start, (uint32_t)own->starts));
    if (options->json)
        json_array_append_new(list, object);
    else
        command_report(options, object, ANSWER_SCORECARD, NULL);
    fflush(stdout);
    return true;
}

/* Reads all sets first, so that nothing is written if one cannot be read. */
static GPtrArray *read_sets(const char *some, const Own *own,
                            const CommandOptions *options, GError **error)
{
    g_auto(GStrv) names = some ? g_strsplit(some, ",", -1) : trials_names();
    g_autoptr(GPtrArray) sets =
        g_ptr_array_new_with_free_func((GDestroyNotify)trials_free);
    for (char **name = names; *name; name++) {
        TrialSet *set = own->plain
                            ? trials_read_plain(*name, own->measured, options->set, error)
                            : trials_read(*name, own->measured, error);
        if (!set) {
            g_prefix_error(error, "data set %s: ", *name);
            return NULL;
        }
        g_ptr_array_add(sets, set);
    }
    return g_steal_pointer(&sets);
}

static Store *begin_store(const char *database, const char *line, GError **error)
{
    g_autofree char *folder = g_path_get_dirname(database);
    if (g_mkdir_with_parents(folder, 0777) != 0)
        return refused(error, "cannot make the folder %s: %s", folder, g_strerror(errno));
    g_autoptr(Store) store = store_open(database, error);
    return store && store_begin_run(store, line, command_revision(), error)
               ? g_steal_pointer(&store)
               : NULL;
}

/* "scorecard", or some of its data sets. */
static bool is_scorecard(const char *what)
{
    return strcmp(what, "scorecard") == 0 || g_str_has_prefix(what, "scorecard:");
}

/* Scores the data sets, stores their trials, prints the table. */
static bool run_scorecard(const char *what, Own *own, const CommandOptions *options,
                          GError **error)
{
    const char *some = strchr(what, ':');
    if (!own->measured)
        own->measured = g_strdup(g_getenv("KILTER_MEASURED"));
    if (!own->database)
        own->database =
            g_build_filename(own->folder ? own->folder : "out", "scorecard.db", NULL);
    if (!own->measured)
        return refuse(error, "the scorecard needs measured data, which Kilter does not "
                             "have: give its folder by --measured DIR");
    if (own->plain && own->starts > 0)
        return refuse(error, "--starts: expected no --plain, whose costs have no start");
    g_autoptr(GPtrArray) sets = read_sets(some ? some + 1 : NULL, own, options, error);
    g_autoptr(Store) store =
        sets ? begin_store(own->database, options->line, error) : NULL;
    json_auto_t *list = json_array();
    bool good = store != NULL;
    if (good && !options->json && !options->quiet)
        fputs(HEADER, stdout);
    for (uint32_t i = 0; good && i < sets->len; i++)
        good = score_one(sets->pdata[i], own, options, store, list, error);
    if (good && options->json)
        command_print_json(json_pack("{s:O, s:s, s:s}", "scorecard", list, "database",
                                     own->database, "version", KILTER_VERSION));
    if (good && !options->json && !options->quiet)
        printf("trials: %s\n", own->database);
    return good;
}

/* --- the table of claims --- */

/* Adds text in lines of bounded width, all indented. */
static void add_wrapped(GString *out, const char *label, const char *text)
{
    enum { INDENT = 4, WIDTH = 100 };
    const uint32_t width = screen_width(stdout);
    g_autofree char *whole = g_strdup_printf("%*s%s%s", INDENT, "", label, text);
    g_autofree char *folded =
        screen_paragraph(whole, width ? MIN(width, WIDTH) : WIDTH, INDENT, G_MAXUINT32);
    g_string_append_printf(out, "%s\n", folded);
}

/* The claim's text goes over several lines where the table would be wider than the terminal. */
static void print_claims(const Claims *claims, const char *experiment)
{
    enum { OTHERS = 43, LEAST = 16 }; /* the columns of paper, ours and verdict */
    uint32_t width = (uint32_t)strlen("claim"), where = (uint32_t)strlen("where");
    const uint32_t room = screen_width(stdout);
    g_autofree char *test = g_strdup_printf("kilter sweep %s@COLUMN: ", experiment);
    g_autoptr(GString) out = g_string_new("\n");
    for (uint32_t i = 0; i < claims->n; i++) {
        width = MAX(width, (uint32_t)g_utf8_strlen(claims->claim[i].text, -1));
        where = MAX(where, (uint32_t)g_utf8_strlen(claims->claim[i].where, -1));
    }
    if (room)
        width = MIN(width, MAX(LEAST, room - MIN(room, OTHERS + where)));
    g_string_append_printf(out, "%-*s  %16s  %6s  %-13s  %s\n", (int)width, "claim",
                           "paper", "ours", "verdict", "where");
    items_each (const Claim, claim, claims->claim, claims->n) {
        g_autofree char *ours = claims_value_text(claim, claim->ours);
        g_autofree char *value = claims_value_text(claim, claim->value);
        g_autofree char *tolerance = claims_value_text(claim, claim->allowed);
        g_autofree char *paper = claims_is_yes(claim)
                                     ? g_strdup(value)
                                     : g_strdup_printf("%s +- %s", value, tolerance);
        g_autofree char *words = claims_words(claim),
                        *text = screen_paragraph(words, width, 2, G_MAXUINT32);
        g_auto(GStrv) line = g_strsplit(text, "\n", -1);
        const char *verdict = claims_verdict(claim);
        g_string_append_printf(out, "%s%*s  %16s  %6s  %s%s%s%*s  %s\n", line[0],
                               (int)(width - (uint32_t)g_utf8_strlen(line[0], -1)), "",
                               paper, ours, claim->holds ? SCREEN_GOOD : SCREEN_BAD,
                               verdict, SCREEN_END, 13 - (int)strlen(verdict), "",
                               claim->where);
        for (char **more = line + 1; *more; more++)
            g_string_append_printf(out, "%s\n", *more);
        g_autofree char *columns = claims_columns_text(claims, claim, NULL);
        if (*columns)
            add_wrapped(out, claim->holds ? "" : test, columns);
        if (*claim->note)
            add_wrapped(out, "", claim->note);
        if (*claim->reason)
            add_wrapped(out, "why: ", claim->reason);
    }
    screen_put(out->str, stdout);
}

/* The results of the experiment's columns. */
static json_t *columns_json(const Claims *claims, const Claim *claim)
{
    json_t *columns = json_object();
    for (uint32_t k = 0; k < claims->n_columns; k++)
        json_object_set_new(
            columns, claims->column[k],
            json_pack("{s:o, s:b, s:b, s:b}", "ours", json_number(claim->column[k].ours),
                      "holds", claim->column[k].holds, "by_ratio",
                      claim->column[k].by_ratio, "tests", claim->column[k].tests));
    return columns;
}

static json_t *claims_json(const Claims *claims)
{
    json_t *list = json_array();
    items_each (const Claim, claim, claims->claim, claims->n)
        json_array_append_new(
            list,
            json_pack(
                "{s:s, s:s, s:s, s:f, s:f, s:o, s:f, s:o, s:s, s:b, s:b, s:s, s:s, s:o}",
                "claim", claim->claim, "text", claim->text, "where", claim->where,
                "paper", claim->value, "tolerance", claim->tolerance, "none",
                json_number(claim->none), "allowed", claim->allowed, "ours",
                json_number(claim->ours), "verdict", claims_verdict(claim), "holds",
                claim->holds, "by_ratio", claim->by_ratio, "note", claim->note, "reason",
                claim->reason, "columns", columns_json(claims, claim)));
    return list;
}

/* --- the command --- */

static void reproduce_report(const Experiment *experiment,
                             const Reproduction *reproduction,
                             const CommandOptions *options, json_t *list)
{
    const SweepProgress *p = &reproduction->progress;
    ClaimsCount count = {0};
    claims_count(reproduction->claims, &count);
    json_array_append_new(
        list,
        json_pack("{s:s, s:s, s:[s, s], s:i, s:i, s:i, s:o}", "experiment",
                  experiment_name(experiment), "database", reproduction->database,
                  "figure", reproduction->png, reproduction->svg, "configurations",
                  (int)p->total, "held", (int)count.held, "held_by_ratio",
                  (int)count.by_ratio, "claims", claims_json(reproduction->claims)));
    if (options->json || options->quiet)
        return;
    screen_print(stdout, "%s: %s\n", experiment_name(experiment),
                 experiment_description(experiment));
    print_claims(reproduction->claims, experiment_name(experiment));
    g_autofree char *held = claims_count_text(&count);
    screen_print(stdout,
                 "\n%s\n%u configurations (%u evaluated now) in %s\nfigure: %s and %s\n",
                 held, p->total, p->done, reproduction->database, reproduction->png,
                 reproduction->svg);
}

static bool reproduce_all(GPtrArray *experiments, const Own *own,
                          const CommandOptions *options, json_t *list, GError **error)
{
    ClaimsCount count = {0};
    g_autofree char *known = NULL; /* a paper's figures ask many of the same questions */
    for (guint i = 0; i < experiments->len; i++) {
        const char *name = experiment_name(experiments->pdata[i]);
        if (i > 0 && strncmp(name, experiment_name(experiments->pdata[i - 1]),
                             strcspn(name, "-") + 1) != 0)
            g_clear_pointer(&known, g_free);
        Terminal *terminal = terminal_begin(options->quiet || options->json);
        ReproduceOptions reproduce_options = {
            .database = own->database,
            .folder = own->folder ? own->folder : "out",
            .known = own->database ? NULL : known,
            .command = options->line,
            .revision = command_revision(),
            .change = command_experiment_change(options, own->granularity),
            .sweep = {.threads = (uint32_t)own->threads,
                      .watch = terminal_watch,
                      .faults = limits_mark_faults,
                      .data = terminal},
        };
        g_auto(Reproduction) reproduction = {0};
        bool good = reproduce_run(experiments->pdata[i], &reproduce_options,
                                  &reproduction, error);
        terminal_end(terminal);
        if (!good)
            return false;
        if (i > 0 && !options->json && !options->quiet)
            puts("");
        reproduce_report(experiments->pdata[i], &reproduction, options, list);
        claims_count(reproduction.claims, &count);
        put_block(known, g_steal_pointer(&reproduction.database));
    }
    g_autofree char *held = claims_count_text(&count);
    if (experiments->len > 1 && !options->json && !options->quiet)
        printf("\n%s; %u where columns called calibrated have a value; of the %u others "
               "columns test the causes of %u, %u of which hold there\n",
               held, count.calibrated, count.n - count.held - count.open, count.tested,
               count.explained);
    return true;
}

/* All files are read and checked before the first is evaluated. */
static GPtrArray *reproduce_load_all(const char *what, const Own *own,
                                     const CommandOptions *options, GError **error)
{
    if (own->threads < 0)
        return refused(error, "-j: expected a number of threads, got %d", own->threads);
    g_auto(GStrv) names = reproduce_names(what, error);
    const ExperimentChange change = command_experiment_change(options, own->granularity);
    g_autoptr(GPtrArray) list =
        g_ptr_array_new_with_free_func((GDestroyNotify)experiment_free);
    for (char **name = names; name && *name; name++) {
        Experiment *experiment = experiment_load(*name, &change, error);
        if (!experiment)
            return NULL;
        g_ptr_array_add(list, experiment);
    }
    return names ? g_steal_pointer(&list) : NULL;
}

/* All experiments, one line each. */
static bool reproduce_list(const CommandOptions *options, GError **error)
{
    g_auto(GStrv) names = reproduce_names("all", error);
    json_auto_t *list = json_array();
    if (!names)
        return false;
    for (char **name = names; *name; name++) {
        g_autoptr(Experiment) experiment = experiment_load(*name, NULL, error);
        if (!experiment)
            return false;
        json_array_append_new(list,
                              json_pack("{s:s, s:s}", "experiment", *name, "description",
                                        experiment_description(experiment)));
    }
    command_report(options, json_pack("{s:O}", "experiments", list),
                   "[*experiments:{experiment:-13} {description}\n]", NULL);
    return true;
}

COMMAND(reproduce, Own, REPRODUCE_OPTIONS, 0)
{
    if (argc < 2)
        return reproduce_list(options, error);
    if (is_scorecard(argv[1]))
        return run_scorecard(argv[1], own, options, error);
    g_autoptr(GPtrArray) experiments = reproduce_load_all(argv[1], own, options, error);
    if (!experiments)
        return false;
    json_auto_t *list = json_array();
    const bool good = reproduce_all(experiments, own, options, list, error);
    if (good && options->json)
        command_print_json(json_pack("{s:O}", "reproduced", list));
    return good;
}
