/* kilter reproduce. */
#include <stdio.h>
#include <string.h>

#include "data/base/json.h"
#include "experiments/answers/command_line.h"
#include "experiments/cli/limits.h"
#include "experiments/cli/scorecard.h"
#include "experiments/cli/screen.h"
#include "experiments/figures/reproduce.h"

/* clang-format off */
#define REPRODUCE_OPTIONS(X)                                                                \
    X(COUNT, threads, "jobs", 'j',                                                          \
      "Threads (default: one per core)", "N", G_MININT, G_MAXINT)                           \
    X(FILE, database, "db", 0,                                                              \
      "Database of the results (default DIR/NAME.db)", "FILE")                              \
    X(FILE, folder, "output", 'o',                                                          \
      "Folder for pictures and databases (default out)", "DIR")                             \
    X(TEXT, granularity, "granularity", 0,                                                  \
      "Instead of the experiment's: machine or gpu", "LEVEL")                               \
    X(FILE, measured, "measured", 0,                                                        \
      "For scorecard: folder of the measured data (default $KILTER_MEASURED)", "DIR")       \
    X(FLAG, sealed, "sealed", 0,                                                            \
      "For scorecard: test on the sealed trials, which development leaves alone", NULL)     \
    X(FLAG, unfitted, "unfitted", 0,                                                        \
      "For scorecard: fit nothing, take the costs from data sheets", NULL)                  \
    X(FLAG, plain, "plain", 0,                                                              \
      "For scorecard: fit nothing, predict as kilter simulate does, with the options of --set", NULL) \
    X(COUNT, starts, "starts", 0,                                                           \
      "For scorecard: score from N other starting values of the costs, too", "N", 0, 1000)
/* clang-format on */
COMMAND_OPTIONS(Own, reproduce_options, REPRODUCE_OPTIONS)
COMMAND_RANGES(Own, reproduce_options, REPRODUCE_OPTIONS)

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
static void print_claims(const Claims *claims)
{
    enum { OTHERS = 43, LEAST = 16 }; /* the columns of paper, ours and verdict */
    uint32_t width = (uint32_t)strlen("claim"), where = (uint32_t)strlen("where");
    const uint32_t room = screen_width(stdout);
    g_autoptr(GString) out = g_string_new("\n");
    for (uint32_t i = 0; i < claims->n; i++) {
        width = MAX(width, (uint32_t)g_utf8_strlen(claims->claim[i].text, -1));
        where = MAX(where, (uint32_t)g_utf8_strlen(claims->claim[i].where, -1));
    }
    if (room)
        width = MIN(width, MAX(LEAST, room - MIN(room, OTHERS + where)));
    g_string_append_printf(out, "%-*s  %16s  %6s  %-13s  %s\n", (int)width, "claim",
                           "paper", "ours", "verdict", "where");
    for (uint32_t i = 0; i < claims->n; i++) {
        const Claim *claim = &claims->claim[i];
        g_autofree char *ours = claims_value_text(claim, claim->ours);
        g_autofree char *value = claims_value_text(claim, claim->value);
        g_autofree char *tolerance = claims_value_text(claim, claim->allowed);
        g_autofree char *paper = claims_is_yes(claim)
                                     ? g_strdup(value)
                                     : g_strdup_printf("%s +- %s", value, tolerance);
        g_autofree char *text = screen_paragraph(claim->text, width, 2, G_MAXUINT32);
        g_auto(GStrv) line = g_strsplit(text, "\n", -1);
        const char *verdict = claims_verdict(claim);
        const char *mark = claim->holds ? SCREEN_GOOD : SCREEN_BAD;
        g_string_append_printf(out, "%s%*s  %16s  %6s  %s%s%s%*s  %s\n", line[0],
                               (int)(width - (uint32_t)g_utf8_strlen(line[0], -1)), "",
                               paper, ours, mark, verdict, SCREEN_END,
                               13 - (int)strlen(verdict), "", claim->where);
        for (char **more = line + 1; *more; more++)
            g_string_append_printf(out, "%s\n", *more);
        g_autofree char *columns = claims_columns_text(claims, claim, NULL);
        if (*columns)
            add_wrapped(out, "", columns);
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
        json_object_set_new(columns, claims->column[k],
                            json_pack("{s:o, s:b, s:b}", "ours",
                                      json_number(claim->column[k].ours), "holds",
                                      claim->column[k].holds, "by_ratio",
                                      claim->column[k].by_ratio));
    return columns;
}

static json_t *claims_json(const Claims *claims)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < claims->n; i++) {
        const Claim *claim = &claims->claim[i];
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
    }
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
    printf("%s: %s\n", experiment_name(experiment), experiment_description(experiment));
    print_claims(reproduction->claims);
    g_autofree char *held = claims_count_text(&count);
    printf("\n%s\n%u configurations (%u evaluated now) in %s\nfigure: %s and %s\n", held,
           p->total, p->done, reproduction->database, reproduction->png,
           reproduction->svg);
}

static bool reproduce_all(GPtrArray *experiments, const char *line, const Own *own,
                          const CommandOptions *options, json_t *list, GError **error)
{
    ClaimsCount count = {0};
    for (guint i = 0; i < experiments->len; i++) {
        Terminal *terminal = terminal_begin(options->quiet || options->json);
        ReproduceOptions reproduce_options = {
            .database = own->database,
            .folder = own->folder ? own->folder : "out",
            .command = line,
            .revision = command_revision(),
            .change = {.granularity = own->granularity,
                       .seed = options->seed_given ? &options->planner.seed : NULL,
                       .set = options->set},
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
    }
    g_autofree char *held = claims_count_text(&count);
    if (experiments->len > 1 && !options->json && !options->quiet)
        printf("\n%s; %u where columns called calibrated have a value\n", held,
               count.calibrated);
    return true;
}

/* All files are read and checked before the first is evaluated. */
static GPtrArray *reproduce_load_all(const char *what, const Own *own,
                                     const CommandOptions *options, GError **error)
{
    if (own->threads < 0) {
        kilter_fail(error, KILTER_ERROR_INPUT, "-j: expected a number of threads, got %d",
                    own->threads);
        return NULL;
    }
    g_auto(GStrv) names = reproduce_names(what, error);
    ExperimentChange change = {.granularity = own->granularity,
                               .seed =
                                   options->seed_given ? &options->planner.seed : NULL,
                               .set = options->set};
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

/* "scorecard", or some of its data sets. */
static bool is_scorecard(const char *what)
{
    return strcmp(what, "scorecard") == 0 || g_str_has_prefix(what, "scorecard:");
}

static bool run_scorecard(const char *what, const char *line, const Own *own,
                          const CommandOptions *options, GError **error)
{
    const char *sets = strchr(what, ':');
    g_autofree char *database =
        own->database
            ? g_strdup(own->database)
            : g_build_filename(own->folder ? own->folder : "out", "scorecard.db", NULL);
    const ScorecardRun run = {
        .sets = sets ? sets + 1 : NULL,
        .measured = own->measured ? own->measured : g_getenv("KILTER_MEASURED"),
        .database = database,
        .line = line,
        .threads = (uint32_t)MAX(own->threads, 0),
        .sealed = own->sealed,
        .unfitted = own->unfitted || own->plain,
        .plain = own->plain,
        .starts = (uint32_t)own->starts,
    };
    return scorecard_run(&run, options, error);
}

bool cmd_reproduce(int argc, char **argv, GError **error)
{
    g_auto(Own) own = {0};
    const GOptionEntry entries[] = {REPRODUCE_OPTIONS(COMMAND_ENTRY) G_OPTION_ENTRY_NULL};
    const CommandSyntax syntax = {
        .name = "reproduce",
        .arguments = "[NAME|PAPER|all|scorecard[:SET,...]]",
        .min_arguments = 0,
        .max_arguments = 1,
        .summary = "Runs a published experiment, draws its figure, and prints the "
                   "paper's claims beside our\n"
                   "results; without a name, lists the experiments. fig13 is enough for "
                   "hap-fig13.\n"
                   "It resumes, and reuses the results in the database. "
                   "`scorecard` compares the\n"
                   "simulator with iterations that others measured, and prints one row "
                   "per data set.",
        .example = "kilter reproduce hap-fig13\n  kilter reproduce scorecard:vtrain "
                   "--measured data-of-others",
        .entries = entries,
    };
    g_autofree char *line = command_line(argc, argv);
    g_auto(CommandOptions) options = {0};
    if (!command_parse(&syntax, &argc, argv, &options, error))
        return false;
    if (!reproduce_options_in_range(&own, error))
        return false;
    if (argc < 2)
        return reproduce_list(&options, error);
    if (is_scorecard(argv[1]))
        return run_scorecard(argv[1], line, &own, &options, error);
    g_autoptr(GPtrArray) experiments = reproduce_load_all(argv[1], &own, &options, error);
    if (!experiments)
        return false;
    json_t *list = json_array();
    bool good = reproduce_all(experiments, line, &own, &options, list, error);
    json_t *object = json_pack("{s:o}", "reproduced", list);
    if (good && options.json)
        command_print_json(object);
    else
        json_decref(object);
    return good;
}
