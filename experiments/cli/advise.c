/* kilter advise: which machines to train on, with which planner, and how much mixing them gains. */
#include <math.h>

#include "data/base/units.h"
#include "experiments/answers.h"
#include "experiments/answers/advise.h"
#include "experiments/answers/days.h"
#include "experiments/cli/command.h"

/* clang-format off */
#define ADVISE_OPTIONS(X)                \
    X(CHANGED, how)                      \
    X(LIST, price, "price", 0)           \
    X(TEXT, target, "target", 0)         \
    X(TEXT, tokens, "tokens-per-day", 0) \
    X(TEXT, training, "tokens", 0)       \
    X(LIST, power, "power", 0)           \
    X(FILE, plot, "plot", 0)             \
    X(TEXT, target_framework, "for", 0)  \
    X(TEXT, effort, "effort", 0)         \
    X(COUNT, top, "top", 0, 0, 1000)     \
    X(FLAG, all, "all", 'a')
/* clang-format on */
COMMAND_OPTIONS(AdviseOwn, advise_options, ADVISE_OPTIONS)

/* ANSWER_ADVISE with a column as wide as the longest choice of machines. Caller frees. */
static char *advise_text(const json_t *answer)
{
    const json_t *choices = json_object_get(answer, "choices");
    size_t width = 24;
    for (size_t i = 0; i < json_array_size(choices); i++)
        width = MAX(width, json_string_length(
                               json_object_get(json_array_get(choices, i), "machines")));
    g_autofree char *column = g_strdup_printf("-%zu", width);
    g_auto(GStrv) parts = g_strsplit(ANSWER_ADVISE, "-24", -1);
    return g_strjoinv(column, parts);
}

/* Reads --target and --tokens-per-day. */
static bool advise_read_targets(const AdviseOwn *own, AdviseAsked *asked, GError **error)
{
    enum { SECONDS_A_DAY = 86400 };
    asked->target_s = INFINITY;
    if (own->target && !units_parse(own->target, QUANTITY_TIME, &asked->target_s, error))
        return kilter_prefix(error, "--target: ");
    double tokens = 0;
    if (own->tokens && !(number_is(own->tokens, &tokens) && tokens > 0 && tokens <= 1e18))
        return refuse(error, "--tokens-per-day: expected a number such as 2e10, got '%s'",
                      own->tokens);
    asked->tokens_per_s = tokens / SECONDS_A_DAY;
    return true;
}

COMMAND(advise, AdviseOwn, ADVISE_OPTIONS, 0)
{
    g_auto(CommandSetting) setting = {0};
    if (!command_for(options, own->target_framework, error))
        return false;
    const char *usual = command_sets_work(options) ? NULL
                        : own->all                 ? "long"
                                                   : "normal",
               *effort = own->effort ? own->effort : usual;
    if (!command_ask(&own->how, argc, effort, false, options, error))
        return false;
    g_auto(AdvisePrices) prices = {NULL, NULL};
    AdviseAsked asked = {.prices = &prices,
                         .all = own->all,
                         .top = (uint32_t)own->top,
                         .plot = own->plot,
                         .cluster = argv[2],
                         .change = (char *const *const *)own->how.change,
                         .set = options->set,
                         .seed = options->seed_text,
                         .effort = effort,
                         .progress = pace_step};
    if (!advise_read_targets(own, &asked, error) ||
        (own->training && !days_read_tokens(own->training, &asked.tokens, error)) ||
        !command_setting(&own->how, argv[2], &setting, error) ||
        !advise_prices_read(own->price, own->power, setting.cluster, &prices, error))
        return false;
    asked.context = pace_begin("planning", options->quiet);
    json_t *answer = advise(argv[1], setting.cluster, &options->planner, &asked, error);
    pace_end(asked.context);
    if (!answer)
        return false;
    g_autofree char *text = advise_text(answer);
    command_report(options, answer, text, NULL);
    return true;
}
