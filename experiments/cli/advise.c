/* kilter advise: which machines to train on, with which planner, and how much mixing them gains. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "experiments/calibration/prediction.h"
#include "experiments/cli/advise_cost.h"
#include "experiments/cli/command.h"
#include "experiments/figures/figure.h"

typedef AdviseRow Row;

typedef struct {
    AdvisePrices prices;
    char *target, *tokens, *folder;
    double target_s, tokens_per_s; /* the requested limits; INFINITY, 0: none */
    gboolean all;
} Own;

static void advise_own_clear(Own *own)
{
    g_strfreev(own->prices.price);
    g_strfreev(own->prices.power);
    g_free(own->target);
    g_free(own->tokens);
    g_free(own->folder);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Own, advise_own_clear)

/* --- in words --- */

static const Row *advise_whole(const Row *row, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!row[i].choice->only)
            return &row[i];
    g_assert_not_reached();
}

/* The fastest choice of one device type. */
static const Row *fastest_alone(const Row *row, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (isfinite(row[i].iteration_s) && row[i].choice->cluster->n_types == 1)
            return &row[i];
    return NULL;
}

static char *seconds(double value)
{
    return units_format(value, QUANTITY_TIME);
}

/* Says how much more GPUs gain over fewer, in percent of the throughput. */
static void say_gain(GString *text, const Row *more, const Row *fewer)
{
    const double faster = 100 * (fewer->iteration_s / more->iteration_s - 1);
    const int gpus = (int)more->choice->gpus - (int)fewer->choice->gpus;
    g_autofree char *time = seconds(fewer->iteration_s);
    g_string_append_printf(text, "%s alone: %s. ", fewer->choice->machines, time);
    if (faster > 0 && gpus > 0)
        g_string_append_printf(
            text,
            "The %d further GPUs give %.1f %% more throughput for %.0f %% more %s. ",
            gpus, faster,
            isnan(more->dollars_an_hour + fewer->dollars_an_hour)
                ? 100.0 * gpus / fewer->choice->gpus
                : 100 * (more->dollars_an_hour / fewer->dollars_an_hour - 1),
            isnan(more->dollars_an_hour + fewer->dollars_an_hour) ? "GPUs" : "dollars");
}

static char *advice(const Row *row, uint32_t n)
{
    g_autoptr(GString) text = g_string_new("");
    const Row *best = &row[0], *all = advise_whole(row, n),
              *alone = fastest_alone(row, n);
    g_autofree char *time = seconds(best->iteration_s);
    g_string_append_printf(text, "Fastest: %s by %s (%s), %s per iteration. ",
                           best->choice->machines, best->choice->best->planner->name,
                           granularity_name(best->choice->best->granularity), time);
    if (alone && alone != best)
        say_gain(text, best, alone);
    if (all != best && isfinite(all->iteration_s)) {
        g_autofree char *slower = seconds(all->iteration_s);
        g_string_append_printf(
            text, "All machines take %s, %.1f %% longer: mixing them does not pay. ",
            slower, 100 * (all->iteration_s / best->iteration_s - 1));
    } else if (all != best && !all->choice->skipped) {
        g_string_append(text, "No plan on all machines was found. ");
    }
    if (all->choice->bound_s > 0) {
        g_autofree char *bound = seconds(all->choice->bound_s);
        g_string_append_printf(
            text,
            "On all machines together, computation alone takes %s, whatever the plan.",
            bound);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* --- output --- */

/* The rest of the command line, beside the model. */
typedef struct {
    const char *cluster;
    const CommandOptions *options;
    const CommandPlanning *how;
} Asked;

static void advise_add_words(GStrvBuilder *words, const char *option, char *const *text)
{
    for (uint32_t i = 0; text && text[i]; i++)
        g_strv_builder_add_many(words, option, text[i], NULL);
}

/* The command that makes the choice's plan. */
static char *advise_command_of(const Portfolio *portfolio, const PortfolioChoice *choice,
                               const Asked *asked)
{
    g_autoptr(GStrvBuilder) words = g_strv_builder_new();
    g_strv_builder_add_many(words, "plan", portfolio->model, asked->cluster, NULL);
    for (ChangeKind kind = 0; kind < CHANGES; kind++) {
        const bool chooses = kind == CHANGE_ONLY || kind == CHANGE_WITHOUT;
        g_autofree char *option = g_strdup_printf("--%s", change_name(kind));
        if (!choice->only || !chooses)
            advise_add_words(words, option, asked->how->change[kind]);
        else if (kind == CHANGE_ONLY)
            g_strv_builder_add_many(words, option, choice->only, NULL);
    }
    g_strv_builder_add_many(words, "--planner", choice->best->planner->name,
                            "--granularity", granularity_name(choice->best->granularity),
                            NULL);
    advise_add_words(words, "--set", asked->options->set);
    if (asked->options->seed_given)
        g_strv_builder_add_many(words, "--seed", asked->options->seed_text, NULL);
    g_auto(GStrv) line = g_strv_builder_end(words);
    return command_line((int)g_strv_length(line), line);
}

static uint64_t most_memory(const PortfolioChoice *choice)
{
    uint64_t most = 0;
    for (uint32_t j = 0; j < choice->report->n_devices; j++)
        most = MAX(most, choice->report->memory_bytes[j]);
    return most;
}

/* The least memory that a GPU has left. */
static uint64_t advise_left(const PortfolioChoice *choice)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t j = 0; j < choice->report->n_devices; j++) {
        const uint64_t has = choice->view->device[j].capacity_bytes;
        least = MIN(least, has - MIN(has, choice->report->memory_bytes[j]));
    }
    return least;
}

static json_t *number_or_null(double value)
{
    return isfinite(value) && value > 0 ? json_real(value) : json_null();
}

static json_t *tries_json(const PortfolioChoice *choice)
{
    json_t *tries = json_array();
    for (uint32_t i = 0; i < choice->tries->len; i++) {
        const PortfolioTry *t = &g_array_index(choice->tries, PortfolioTry, i);
        if (!t->reason && !isfinite(t->iteration_s))
            continue;
        json_array_append_new(
            tries,
            json_pack("{s:s, s:s, s:o, s:s?}", "planner", t->planner->name, "granularity",
                      granularity_name(t->granularity), "iteration_time_s",
                      number_or_null(t->iteration_s), "reason", t->reason));
    }
    return tries;
}

/* The probability that the choice is faster than the first one, both on the same fitted cluster. */
static json_t *advise_faster_json(const Row *row, const Row *first)
{
    return row == first || !row->choice->best || !first->choice->best
               ? json_null()
               : prediction_faster_json(row->choice->view, row->iteration_s,
                                        first->choice->view, first->iteration_s);
}

/* first: the row of the fastest choice. */
static json_t *row_json(const Portfolio *portfolio, const Row *row, const Row *first,
                        const Asked *asked)
{
    const PortfolioChoice *choice = row->choice;
    json_t *object =
        json_pack("{s:s, s:s?, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b}", "machines",
                  choice->machines, "only", choice->only, "gpus", (int)choice->gpus,
                  "iteration_time_s", number_or_null(row->iteration_s), "samples_per_s",
                  number_or_null(row->samples_per_s), "tokens_per_s",
                  number_or_null(row->tokens_per_s), "dollars_per_hour",
                  number_or_null(row->dollars_an_hour), "dollars_per_million",
                  number_or_null(row->dollars_per_million), "lower_bound_s",
                  number_or_null(choice->bound_s), "pareto", (int)row->front, "skipped",
                  (int)choice->skipped);
    json_object_set_new(object, "faster_than_first", advise_faster_json(row, first));
    json_object_set_new(
        object, "interval_90_s",
        choice->best ? prediction_interval_json(choice->view, 0.9, row->iteration_s)
                     : json_null());
    json_object_set_new(object, "mfu", number_or_null(row->mfu));
    json_object_set_new(object, "power_w", number_or_null(row->power_w));
    json_object_set_new(object, "kwh_per_million", number_or_null(row->kwh_per_million));
    if (choice->best) {
        g_autofree char *binds = advise_binds(row);
        json_object_set_new(object, "binds",
                            json_pack("{s:s, s:s, s:f, s:f, s:f}", "what", binds,
                                      "device", row->busiest, "computes", row->computes,
                                      "communicates", row->communicates, "idles",
                                      row->idles));
        g_autofree char *command = advise_command_of(portfolio, choice, asked);
        json_object_set_new(object, "planner", json_string(choice->best->planner->name));
        json_object_set_new(object, "granularity",
                            json_string(granularity_name(choice->best->granularity)));
        json_object_set_new(object, "memory_bytes",
                            json_integer((json_int_t)most_memory(choice)));
        json_object_set_new(object, "memory_left",
                            json_integer((json_int_t)advise_left(choice)));
        json_object_set_new(object, "command", json_string(command));
    }
    json_object_set_new(object, "tries", tries_json(choice));
    return object;
}

/* clang-format off */
static const char TEXT[] =
    "{model} on {cluster}\n\n"
    "  machines                      GPUs   iteration   not below  samples/s   tokens/s    MFU      memory        left   kWh/M"
    "[{?priced}      $/M]  planner, limit\n"
    "[*choices:[{?planner}[{?pareto}*| ] {machines:-28} {gpus:5} {iteration_time_s:11time} "
    "{lower_bound_s:11time} {samples_per_s:10.1f} [=10:[{tokens_per_s:.0f}|-]] [=6:[{mfu:.1%}|-]] {memory_bytes:11bytes} {memory_left:11bytes} "
    "[=7:[{kwh_per_million:.3g}|-]][ {dollars_per_million:8}]  {planner} ({granularity}), {binds.what}"
    "[; 90 %: {interval_90_s.0:time} to {interval_90_s.1:time}]"
    "[; faster than the first: {faster_than_first:.0%}]"
    "|  {machines:-28} {gpus:5}  [{?skipped}left out: its bound is above the best time|no plan fits]]\n"
    "[{?all}[*tries:      {planner:-16} {granularity:-8} {iteration_time_s:11time}  [{reason}]\n]]]"
    "\n* no other choice is faster with no more [{?priced}dollars per iteration|GPUs]\n{advice}\n"
    "  {choices.0.command}\n"
    "[Within the target: {within_target}, {within_gpus} GPUs, {within_time_s:time} per iteration.\n  {within_command}\n]"
    "[No price of {unpriced}: dollars are left out, and choices are compared by their GPUs.\n]"
    "[{figure}\n]";
/* clang-format on */

/* The data file: cost and time of each choice, with the ends of its 90 % interval on a fitted cluster; the same of the choices that no other one beats, by
 * cost; the name of the cost. */
static bool advise_draw(const Row *row, uint32_t n, const char *folder, GError **error)
{
    g_autoptr(GString) text =
        g_string_new("# cost\tseconds\tfront\tmachines\tlow\thigh\n");
    const bool priced = !isnan(row[0].dollars_an_hour);
    for (uint32_t i = 0; i < n; i++) {
        double ends[2];
        if (!isfinite(row[i].iteration_s))
            continue;
        g_string_append_printf(text, "%.9g\t%.9g\t%d\t%s", advise_cost(&row[i]),
                               row[i].iteration_s, row[i].front, row[i].choice->machines);
        if (prediction_interval(row[i].choice->view, 0.9, row[i].iteration_s, ends))
            g_string_append_printf(text, "\t%.9g\t%.9g\n", ends[0], ends[1]);
        else
            g_string_append(text, "\tNaN\tNaN\n");
    }
    g_string_append(text, "\n\n# cost\tseconds\n");
    for (uint32_t i = 0; i < n; i++) /* from the fastest, which costs most */
        if (row[i].front)
            g_string_append_printf(text, "%.9g\t%.9g\n", advise_cost(&row[i]),
                                   row[i].iteration_s);
    g_string_append_printf(text, "\n\n# the name of the cost\n%s\n",
                           priced ? "dollars per iteration" : "GPUs");
    return figure_draw_text("advise", text->str, folder, error);
}

/* Whether some choice reaches the target time and throughput. */
static bool check_target(const Own *own, const Row *fastest, const Row *enough,
                         GError **error)
{
    const bool timed = isfinite(own->target_s);
    if ((!timed && own->tokens_per_s == 0) || enough)
        return true;
    if (own->tokens_per_s == 0)
        return kilter_fail(error, KILTER_ERROR_INFEASIBLE,
                           "no choice of machines takes at most %g s; the fastest takes "
                           "%g s",
                           own->target_s, fastest->iteration_s);
    if (fastest->tokens_per_s == 0)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "--tokens-per-day: the model's samples are no sequences of "
                           "tokens; --target limits the time of an iteration");
    return kilter_fail(error, KILTER_ERROR_INFEASIBLE,
                       "no choice of machines reaches %g tokens/s%s; the fastest "
                       "reaches %g",
                       own->tokens_per_s, timed ? " within the target time" : "",
                       fastest->tokens_per_s);
}

static void add_target(json_t *answer, const Portfolio *portfolio, const Row *enough,
                       const Asked *asked)
{
    g_autofree char *command = advise_command_of(portfolio, enough->choice, asked);
    json_object_set_new(answer, "within_gpus", json_integer(enough->choice->gpus));
    json_object_set_new(answer, "within_time_s", json_real(enough->iteration_s));
    json_object_set_new(answer, "within_command", json_string(command));
}

static bool advise_report(const Portfolio *portfolio, const Own *own,
                          const Asked *command, GError **error)
{
    const uint32_t n = portfolio->choices->len;
    g_autofree Row *row = advise_rows(&own->prices, portfolio);
    const bool asked = isfinite(own->target_s) || own->tokens_per_s > 0;
    const Row *enough =
        asked ? advise_within(row, n, own->target_s, own->tokens_per_s) : NULL;
    if (!check_target(own, row, enough, error) ||
        (own->folder && !advise_draw(row, n, own->folder, error)))
        return false;
    json_t *choices = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(choices, row_json(portfolio, &row[i], row, command));
    g_autofree char *words = advice(row, n);
    g_autofree char *unpriced =
        own->prices.price
            ? advise_unpriced(&own->prices, advise_whole(row, n)->choice->cluster)
            : NULL;
    json_t *answer =
        json_pack("{s:s, s:s, s:s, s:s?, s:o, s:f, s:b, s:b}", "model", portfolio->model,
                  "cluster", command->cluster, "advice", words, "within_target",
                  enough ? enough->choice->machines : NULL, "choices", choices,
                  "elapsed_s", portfolio->elapsed_s, "priced",
                  !isnan(row[0].dollars_an_hour), "all", (int)own->all);
    if (enough)
        add_target(answer, portfolio, enough, command);
    if (unpriced)
        json_object_set_new(answer, "unpriced", json_string(unpriced));
    if (own->folder)
        json_object_set_new(
            answer, "figure",
            json_sprintf("%s/advise.png %s/advise.svg", own->folder, own->folder));
    command_report(command->options, answer, TEXT, NULL);
    return true;
}

static void show_progress(void *context, uint32_t done, uint32_t total, const char *what)
{
    (void)context;
    fprintf(stderr, "\r\033[K%u/%u %s", done, total, what);
    fflush(stderr);
}

static bool advise_run(const char *model, const Own *own, const Asked *command,
                       const Cluster *cluster, GError **error)
{
    static const double LIMIT_S = 2; /* limit of each search: most end in a tenth of it */
    const CommandOptions *options = command->options;
    const bool shows = !options->quiet && isatty(STDERR_FILENO);
    static const double spare = 0.02; /* not worth a long search */
    const PortfolioOptions how = {.limit_s = LIMIT_S,
                                  .all = own->all,
                                  .spare = spare,
                                  .progress = shows ? show_progress : NULL};
    g_autoptr(Portfolio) portfolio =
        portfolio_new(model, cluster, &options->planner, &how, error);
    if (shows)
        fputs("\r\033[K", stderr);
    return portfolio && advise_report(portfolio, own, command, error);
}

/* Reads --target and --tokens-per-day. */
static bool read_targets(Own *own, GError **error)
{
    enum { SECONDS_A_DAY = 86400 };
    char *end = NULL;
    own->target_s = INFINITY;
    if (own->target && !units_parse(own->target, QUANTITY_TIME, &own->target_s, error)) {
        g_prefix_error(error, "--target: ");
        return false;
    }
    const double tokens = own->tokens ? g_ascii_strtod(own->tokens, &end) : 0;
    if (own->tokens && (end == own->tokens || *end || !(tokens > 0 && tokens <= 1e18)))
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "--tokens-per-day: expected a number such as 2e10, got '%s'",
                           own->tokens);
    own->tokens_per_s = tokens / SECONDS_A_DAY;
    return advise_prices_check(&own->prices, error);
}

bool cmd_advise(int argc, char **argv, GError **error)
{
    g_auto(Own) own = {0};
    g_auto(CommandOptions) options = {0};
    g_auto(CommandPlanning) how = {0};
    const GOptionEntry entries[] = {
        COMMAND_CHANGE_ENTRIES(how),
        {"price", 0, 0, G_OPTION_ARG_STRING_ARRAY, &own.prices.price,
         "Price per GPU and hour, such as h100=2.5,a100=1.5; may be repeated",
         "DEVICE=DOLLARS"},
        {"target", 0, 0, G_OPTION_ARG_STRING, &own.target,
         "Also name the fewest (with prices: cheapest) GPUs whose iteration takes at "
         "most TIME",
         "TIME"},
        {"tokens-per-day", 0, 0, G_OPTION_ARG_STRING, &own.tokens,
         "The same for at least N tokens per day, such as 2e10", "N"},
        {"power", 0, 0, G_OPTION_ARG_STRING_ARRAY, &own.prices.power,
         "Power per GPU (default: by its data sheet); may be repeated", "DEVICE=WATTS"},
        {"plot", 0, 0, G_OPTION_ARG_FILENAME, &own.folder,
         "Draw time against cost as DIR/advise.png and DIR/advise.svg", "DIR"},
        {"all", 'a', 0, G_OPTION_ARG_NONE, &own.all, "Show every planner's time", NULL},
        G_OPTION_ENTRY_NULL};
    const CommandSyntax syntax = {
        .name = "advise",
        .arguments = "MODEL CLUSTER",
        .min_arguments = 2,
        .max_arguments = 2,
        .summary =
            "Plans a model by every planner on every set of a cluster's device "
            "types and on single\n"
            "machines, with the global batch of the whole cluster, and says which "
            "machines to use and what\n"
            "mixing them gains. \"not below\" is the time of the computation "
            "alone on these machines, a bound\n"
            "on every plan; planners that search long are left out where they can "
            "gain at most 2 %.\n"
            "Energy and dollars are per million tokens (samples, of models without "
            "a sequence), energy\n"
            "with all GPUs at full power.",
        .example = "kilter advise vgg19 hap-16 --price v100=2 --price p100=0.8",
        .entries = entries,
    };
    g_auto(CommandSetting) setting = {0};
    if (!command_parse(&syntax, &argc, argv, &options, error) ||
        !read_targets(&own, error) || !command_setting(&how, argv[2], &setting, error))
        return false;
    const Asked command = {argv[2], &options, &how};
    return advise_run(argv[1], &own, &command, setting.cluster, error);
}
