/* kilter report: results or a plan as a page. */
#include <string.h>

#include "data/base/json.h"
#include "data/base/output.h"
#include "data/base/version.h"
#include "data/store/store.h"
#include "experiments/answers.h"
#include "experiments/answers/evaluation_report.h"
#include "experiments/cli/campaign.h"
#include "experiments/cli/limits.h"
#include "experiments/figures/reproduce.h"
#include "experiments/render.h"
#include "experiments/report/page.h"
#include "experiments/report/report.h"
#include "experiments/sweep/stored.h"

/* clang-format off */
#define REPORT_OPTIONS(X)                       \
    X(FILE, output, "output", 'o')              \
    X(FILE, database, "db", 0)                  \
    X(COUNT, threads, "jobs", 'j', 0, G_MAXINT) \
    X(TEXT, fidelity, "fidelity", 'f')          \
    X(FLAG, markdown, "markdown", 0)            \
    X(DAYS, campaign)                           \
    X(CAMPAIGN, campaign)
/* clang-format on */
COMMAND_OPTIONS(Own, report_options, REPORT_OPTIONS)

/* Runs the configurations of an experiment and of its columns that the database lacks. */
static bool report_run(const char *name, const char *database, const Own *own,
                       const CommandOptions *options, GError **error)
{
    ExperimentChange change = command_experiment_change(options, NULL);
    g_autoptr(Experiment) experiment = experiment_load(name, &change, error);
    g_autoptr(Store) store = experiment ? store_open(database, error) : NULL;
    if (!store || !store_begin_run(store, options->line, command_revision(), error))
        return false;
    Terminal *terminal = terminal_begin(options->quiet || options->json);
    SweepProgress progress;
    const SweepOptions sweep = {.threads = (uint32_t)own->threads,
                                .watch = terminal_watch,
                                .faults = limits_mark_faults,
                                .data = terminal};
    bool good = sweep_run(experiment, store, &sweep, &progress, error);
    for (uint32_t i = 0; good && i < experiment_n_columns(experiment); i++) {
        change.column = experiment_column(experiment, i);
        g_autoptr(Experiment) column = experiment_load(name, &change, error);
        good = column && sweep_run(column, store, &sweep, &progress, error);
    }
    terminal_end(terminal);
    return good;
}

static char *report_of(const char *database, const char *const *names, const Own *own,
                       GError **error)
{
    return own->markdown ? report_store_markdown(database, names, error)
                         : report_store(database, names, NULL, error);
}

static char *report_names(const char *what, const Own *own, const CommandOptions *options,
                          GError **error)
{
    g_auto(GStrv) names = reproduce_names(what, error);
    g_autofree char *database =
        own->database ? g_strdup(own->database) : g_strdup_printf("out/%s.db", what);
    g_autofree char *folder = g_path_get_dirname(database);
    if (names && g_mkdir_with_parents(folder, 0777) != 0)
        return refused(error, "cannot make the folder %s", folder);
    for (char **name = names; name && *name; name++)
        if (!report_run(*name, database, own, options, error))
            return NULL;
    return names ? report_of(database, (const char *const *)names, own, error) : NULL;
}

/* Adds days of training to the answer, and their picture. */
static bool add_days(const Own *own, char **argv, const CommandOptions *options,
                     const Evaluation *evaluation, json_t *answer, GError **error)
{
    const CommandPlanning how = {0};
    CommandCampaign days = own->campaign;
    g_autofree char *scratch = g_dir_make_tmp("kilter-XXXXXX", error);
    if (!scratch)
        return false;
    g_autofree char *drawn = g_build_filename(scratch, "days.svg", NULL);
    days.plot = scratch;
    days.jobs = own->threads;
    g_autofree char *text = NULL;
    g_autofree char *picture =
        command_campaign_add(&days, &how, argv, options, evaluation, answer, error) &&
                g_file_get_contents(drawn, &text, NULL, error)
            ? page_svg(text, true, error)
            : NULL;
    output_forget(scratch);
    return picture &&
           json_object_set_new(answer, "days_picture", json_text(picture)) == 0;
}

static char *report_file(const char *file, const Own *own, const CommandOptions *options,
                         GError **error)
{
    g_auto(Evaluation) evaluation = {0};
    const CommandPlanning how = {0};
    char *argv[] = {"report", (char *)file, NULL};
    char *text = NULL;
    if (!command_evaluate(&how, 2, argv, own->fidelity, options, &evaluation, error))
        return NULL;
    evaluation_record(&evaluation);
    json_auto_t *answer =
        evaluation_simulation_json(&evaluation, options->verbose, false);
    if ((!own->campaign.days ||
         add_days(own, argv, options, &evaluation, answer, error)) &&
        report_plan_add(answer, &evaluation, file, error)) {
        g_autofree char *plan = render(ANSWER_EVALUATION, answer);
        g_autofree char *days = render(ANSWER_CAMPAIGN, answer);
        g_autofree char *words = g_strconcat(plan, days, NULL);
        json_object_set_new(answer, "words", json_text(words));
        text = g_str_has_suffix(own->output, ".json") ? json_dumps(answer, JSON_INDENT(1))
                                                      : report_plan(answer, error);
    }
    return text;
}

/* Whether all options that are given have an effect on this kind of page. */
static bool report_check(const char *what, bool stored, bool named, const Own *own,
                         GError **error)
{
    const bool plan = !stored && !named;
    if (named && (g_str_has_suffix(what, ".json") || g_str_has_suffix(what, ".db")))
        return refuse(error, "%s: no such file", what);
    if (plan && g_str_has_suffix(what, ".yaml"))
        return refuse(error,
                      "%s is no plan; kilter sweep %s --db results.db, then kilter "
                      "report results.db, make a page of an experiment",
                      what, what);
    const char *const is = named    ? "is not a file"
                           : stored ? "is a database of results"
                                    : "is taken for a plan";
    const char *const wrong = own->campaign.days && !plan ? "--days is for plans"
                              : own->fidelity && !plan    ? "--fidelity is for plans"
                              : own->database && !named
                                  ? "--db is for names of experiments and papers"
                              : own->markdown && plan ? "--markdown is for results"
                                                      : NULL;
    return !wrong || refuse(error, "%s; %s %s", wrong, what, is);
}

static char *report_make(const char *what, const Own *own, const CommandOptions *options,
                         GError **error)
{
    const bool stored = stored_is_file(what);
    const bool named = !stored && !g_file_test(what, G_FILE_TEST_IS_REGULAR);
    if (!report_check(what, stored, named, own, error))
        return NULL;
    if (stored)
        return report_of(what, NULL, own, error);
    if (named)
        return report_names(what, own, options, error);
    return report_file(what, own, options, error);
}

COMMAND(report, Own, REPORT_OPTIONS, 0)
{
    if (!command_campaign_check(&own->campaign, error))
        return false;
    const bool given = own->output != NULL;
    if (!given)
        own->output = g_strdup(own->markdown ? "out/report.md" : "out/report.html");
    g_autofree char *text = !given || output_check(own->output, error)
                                ? report_make(argv[1], own, options, error)
                                : NULL;
    if (text && !given && g_mkdir_with_parents("out", 0777) != 0)
        return refuse(error, "cannot make the folder out");
    if (!text || !output_write(own->output, text, -1, error))
        return false;
    command_report(options,
                   json_pack("{s:s, s:s, s:I, s:s}", "of", argv[1], "output", own->output,
                             "bytes", (json_int_t)strlen(text), "version",
                             KILTER_VERSION),
                   "{output}: {bytes} bytes\n", NULL);
    return true;
}
