/* kilter advise: which machines to train on, with which planner, and what mixing them buys. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "experiments/cli/command.h"
#include "experiments/planners/portfolio.h"

enum { SECONDS_AN_HOUR = 3600 };

typedef struct {
    char **price; /* DEVICE=DOLLARS a GPU and hour */
    char *target;
    gboolean all;
} Own;

static void own_clear(Own *own)
{
    g_strfreev(own->price);
    g_free(own->target);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Own, own_clear)

/* --- what a choice costs --- */

/* The price of a device type, or NaN. */
static bool price_of(char **prices, const char *type, double *price, GError **error)
{
    *price = NAN;
    for (; prices && *prices; prices++) {
        const char *equals = strrchr(*prices, '=');
        char *end = NULL;
        const double value = equals ? g_ascii_strtod(equals + 1, &end) : -1;
        if (!equals || end == equals + 1 || *end || !(value >= 0 && value <= 1e6))
            return kilter_fail(error, KILTER_ERROR_INPUT,
                               "--price: expected DEVICE=DOLLARS for a GPU and hour, "
                               "such as h100=2.5, got '%s'",
                               *prices);
        g_autofree char *pattern = g_strndup(*prices, (gsize)(equals - *prices));
        if (g_pattern_match_simple(pattern, type))
            *price = value;
    }
    return true;
}

/* Dollars an hour of the choice's GPUs, NaN if one has no price. */
static bool hourly(const Own *own, const Cluster *cluster, double *dollars,
                   GError **error)
{
    *dollars = 0;
    for (uint32_t i = 0; i < cluster->n_machines; i++) {
        const Machine *machine = &cluster->machine[i];
        double price;
        if (!price_of(own->price, cluster->type[machine->type].name, &price, error))
            return false;
        *dollars += machine->gpus * price;
    }
    return true;
}

typedef struct {
    const PortfolioChoice *choice;
    double iteration_s, samples_per_s, tokens_per_s, dollars_an_hour;
    double dollars_per_million; /* tokens, or samples of models without a sequence */
    bool
        front; /* no other choice is both faster and cheaper (in dollars, else in GPUs) */
} Row;

static double cost_of(const Row *row)
{
    return isnan(row->dollars_an_hour) ? row->choice->gpus
                                       : row->dollars_an_hour * row->iteration_s;
}

static bool fill_rows(const Own *own, const Portfolio *portfolio, Row *row,
                      GError **error)
{
    for (uint32_t i = 0; i < portfolio->choices->len; i++) {
        Row *r = &row[i];
        *r = (Row){.choice = g_ptr_array_index(portfolio->choices, i),
                   .iteration_s = INFINITY};
        if (!hourly(own, r->choice->cluster, &r->dollars_an_hour, error))
            return false;
        if (!r->choice->report)
            continue;
        const SimWorkload work =
            sim_workload(r->choice->plan, r->choice->graph, r->choice->view);
        r->iteration_s = r->choice->report->iteration_time_s;
        r->samples_per_s = work.samples / r->iteration_s;
        r->tokens_per_s = work.tokens / r->iteration_s;
        const double rate = work.tokens > 0 ? r->tokens_per_s : r->samples_per_s;
        r->dollars_per_million = r->dollars_an_hour / SECONDS_AN_HOUR / rate * 1e6;
    }
    for (uint32_t i = 0; i < portfolio->choices->len; i++) {
        row[i].front = isfinite(row[i].iteration_s);
        for (uint32_t k = 0; k < portfolio->choices->len; k++)
            if (k != i && row[k].iteration_s <= row[i].iteration_s &&
                cost_of(&row[k]) <= cost_of(&row[i]) &&
                (row[k].iteration_s < row[i].iteration_s ||
                 cost_of(&row[k]) < cost_of(&row[i]) || k < i))
                row[i].front = false;
    }
    return true;
}

/* --- in words --- */

static const Row *whole(const Row *row, uint32_t n)
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

/* What more GPUs buy over fewer, in percent of the throughput. */
static void say_gain(GString *text, const Row *more, const Row *fewer)
{
    const double faster = 100 * (fewer->iteration_s / more->iteration_s - 1);
    const int gpus = (int)more->choice->gpus - (int)fewer->choice->gpus;
    g_autofree char *time = seconds(fewer->iteration_s);
    g_string_append_printf(text, "%s alone: %s. ", fewer->choice->machines, time);
    if (faster > 0 && gpus > 0)
        g_string_append_printf(
            text, "The %d GPUs more buy %.1f %% of throughput for %.0f %% more %s. ",
            gpus, faster,
            isnan(more->dollars_an_hour + fewer->dollars_an_hour)
                ? 100.0 * gpus / fewer->choice->gpus
                : 100 * (more->dollars_an_hour / fewer->dollars_an_hour - 1),
            isnan(more->dollars_an_hour + fewer->dollars_an_hour) ? "GPUs" : "dollars");
}

static char *advice(const Row *row, uint32_t n)
{
    g_autoptr(GString) text = g_string_new("");
    const Row *best = &row[0], *all = whole(row, n), *alone = fastest_alone(row, n);
    g_autofree char *time = seconds(best->iteration_s);
    g_string_append_printf(text, "Fastest: %s by %s (%s), %s an iteration. ",
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
            text, "Computation alone takes all machines together %s, whatever the plan.",
            bound);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* The fewest GPUs, or the cheapest where prices are given, within the target. */
static const Row *within(const Row *row, uint32_t n, double target_s)
{
    const Row *best = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (row[i].iteration_s <= target_s && (!best || cost_of(&row[i]) < cost_of(best)))
            best = &row[i];
    return best;
}

/* --- output --- */

static char *command_of(const Portfolio *portfolio, const PortfolioChoice *choice,
                        const char *cluster)
{
    g_autofree char *only =
        choice->only ? g_strdup_printf(" --only %s", choice->only) : g_strdup("");
    g_autofree char *file = g_shell_quote(cluster);
    return g_strdup_printf("kilter plan '%s' %s%s --planner %s --granularity %s",
                           portfolio->model, file, only, choice->best->planner->name,
                           granularity_name(choice->best->granularity));
}

static uint64_t most_memory(const PortfolioChoice *choice)
{
    uint64_t most = 0;
    for (uint32_t j = 0; j < choice->report->n_devices; j++)
        most = MAX(most, choice->report->memory_bytes[j]);
    return most;
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

static json_t *row_json(const Portfolio *portfolio, const Row *row, const char *cluster)
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
    if (choice->best) {
        g_autofree char *command = command_of(portfolio, choice, cluster);
        json_object_set_new(object, "planner", json_string(choice->best->planner->name));
        json_object_set_new(object, "granularity",
                            json_string(granularity_name(choice->best->granularity)));
        json_object_set_new(object, "memory_bytes",
                            json_integer((json_int_t)most_memory(choice)));
        json_object_set_new(object, "command", json_string(command));
    }
    json_object_set_new(object, "tries", tries_json(choice));
    return object;
}

/* clang-format off */
static const char TEXT[] =
    "{model} on {cluster}\n\n"
    "  machines                      GPUs   iteration   not below  samples/s      memory  planner\n"
    "[*choices:[{?planner}[{?pareto}*| ] {machines:-28} {gpus:5} {iteration_time_s:11time} "
    "{lower_bound_s:11time} {samples_per_s:10} {memory_bytes:11bytes}  {planner} ({granularity})"
    "[  ${dollars_per_million}]"
    "|  {machines:-28} {gpus:5}  [{?skipped}cannot be faster than the best, by its bound|no plan fits]]\n"
    "[{?all}[*tries:      {planner:-16} {granularity:-8} {iteration_time_s:11time}  [{reason}]\n]]]"
    "\n* no other choice is faster for no more [{?priced}dollars an iteration|GPUs]\n{advice}\n"
    "  {choices.0.command}\n"
    "[Within the target: {within_target}, {within_gpus} GPUs.\n]";
/* clang-format on */

static bool report(const Portfolio *portfolio, const Own *own, double target_s,
                   const char *cluster, const CommandOptions *options, GError **error)
{
    const uint32_t n = portfolio->choices->len;
    g_autofree Row *row = g_new0(Row, n);
    if (!fill_rows(own, portfolio, row, error))
        return false;
    const Row *enough = target_s > 0 ? within(row, n, target_s) : NULL;
    if (target_s > 0 && !enough)
        return kilter_fail(error, KILTER_ERROR_INFEASIBLE,
                           "no choice of machines takes at most %g s; the fastest takes "
                           "%g s",
                           target_s, row[0].iteration_s);
    json_t *choices = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(choices, row_json(portfolio, &row[i], cluster));
    g_autofree char *words = advice(row, n);
    json_t *answer = json_pack("{s:s, s:s, s:s, s:s?, s:o, s:f, s:b, s:b}", "model",
                               portfolio->model, "cluster", cluster, "advice", words,
                               "within_target", enough ? enough->choice->machines : NULL,
                               "choices", choices, "elapsed_s", portfolio->elapsed_s,
                               "priced", own->price != NULL, "all", (int)own->all);
    if (enough)
        json_object_set_new(answer, "within_gpus", json_integer(enough->choice->gpus));
    command_report(options, answer, TEXT, NULL);
    return true;
}

static void show_progress(void *context, uint32_t done, uint32_t total, const char *what)
{
    (void)context;
    fprintf(stderr, "\r\033[K%u/%u %s", done, total, what);
    fflush(stderr);
}

static bool run(const char *model, const char *name, const Own *own,
                const CommandOptions *options, const Cluster *cluster, GError **error)
{
    static const double LIMIT_S = 2; /* of each search: most end in a tenth of it */
    double target_s = 0;
    if (own->target && !units_parse(own->target, QUANTITY_TIME, &target_s, error)) {
        g_prefix_error(error, "--target: ");
        return false;
    }
    const bool shows = !options->quiet && isatty(STDERR_FILENO);
    const PortfolioOptions how = {.limit_s = LIMIT_S,
                                  .progress = shows ? show_progress : NULL};
    double price;
    if (!price_of(own->price, "", &price, error))
        return false;
    g_autoptr(Portfolio) portfolio =
        portfolio_new(model, cluster, &options->planner, &how, error);
    if (shows)
        fputs("\r\033[K", stderr);
    return portfolio && report(portfolio, own, target_s, name, options, error);
}

bool cmd_advise(int argc, char **argv, GError **error)
{
    g_auto(Own) own = {0};
    g_auto(CommandOptions) options = {0};
    g_auto(CommandPlanning) how = {0};
    const GOptionEntry entries[] = {
        COMMAND_CHANGE_ENTRIES(how),
        {"price", 0, 0, G_OPTION_ARG_STRING_ARRAY, &own.price,
         "Price of a GPU and hour, as in h100=2.5; may be repeated", "DEVICE=DOLLARS"},
        {"target", 0, 0, G_OPTION_ARG_STRING, &own.target,
         "Name the fewest GPUs, or the cheapest, that take at most so long an iteration",
         "TIME"},
        {"all", 'a', 0, G_OPTION_ARG_NONE, &own.all, "Show every planner's time", NULL},
        G_OPTION_ENTRY_NULL};
    const CommandSyntax syntax = {
        .name = "advise",
        .arguments = "MODEL CLUSTER",
        .min_arguments = 2,
        .max_arguments = 2,
        .summary =
            "Plans a model by every planner on every set of a cluster's device types, "
            "and "
            "on single machines, with the\nglobal batch of the whole cluster, and says "
            "which machines to use and what mixing them buys. \"not below\" is\nwhat "
            "computation alone takes on them, a bound on every plan.",
        .example = "kilter advise vgg19 hap-16 --price v100=2 --price p100=0.8",
        .entries = entries,
    };
    g_auto(CommandSetting) setting = {0};
    return command_parse(&syntax, &argc, argv, &options, error) &&
           command_setting(&how, argv[2], &setting, error) &&
           run(argv[1], argv[2], &own, &options, setting.cluster, error);
}
