/* kilter validate: predicted against measured times of plans. */
#include "experiments/answers/validate.h"
#include "experiments/cli/command.h"

/* clang-format off */
#define VALIDATE_OPTIONS(X)                                                              \
    X(TEXT, cluster, "cluster", 'c',                                                     \
      "Evaluate the plans on this cluster, in place of predicted_s", "CLUSTER")          \
    X(FILE, plot, "plot", 0,                                                             \
      "Draw predicted against measured times: FOLDER/hap-fig18.png and .svg", "FOLDER")
/* clang-format on */
COMMAND_OPTIONS(Own, validate_options, VALIDATE_OPTIONS)

/* clang-format off */
static const char TEXT[] =
    "   predicted     measured    error   plan\n"
    "[*rows:[{^group}{group}\n]{predicted_s:12time} {measured_s:12time} {error:+8.1%}   {plan}"
    "[{?interval_90_s}, 90 %: {interval_90_s.0:time} to {interval_90_s.1:time}]"
    "[{?unmeasured} ({unmeasured} instructions outside of the calibrated sizes)]\n]"
    "[{?groups}\nplans   regret Spearman   group\n"
    "[*groups:{plans:5} {regret:8%} {spearman:8.2f}   {group}: chose {chosen}"
    "[{?regret}, fastest was {fastest}]\n]]"
    "\n{plans} plans: MAPE {mape:%}, p95 {p95:%}, worst {worst:%}, bias {bias:+%}, Pearson "
    "{pearson:.3f}, Spearman {spearman:.3f}\n"
    "[{?groups}{groups:count} groups: the plan predicted fastest is at most 5 % slower than the "
    "fastest in {within_5_percent:.0%}; regret {regret_mean:%} on average, {regret_worst:%} at worst\n]"
    "[*left_out:left out: {.}\n]";
/* clang-format on */

bool cmd_validate(int argc, char **argv, GError **error)
{
    g_auto(Own) own = {0};
    const GOptionEntry entries[] = {VALIDATE_OPTIONS(COMMAND_ENTRY) G_OPTION_ENTRY_NULL};
    g_auto(CommandOptions) options = {0};
    if (!command_parse(entries, &argc, argv, &options, error))
        return false;
    const bool stored = validate_is_store(argv[1]);
    if (stored && own.cluster)
        return refuse(error, "--cluster is for a CSV with plan files; %s is a store",
                      argv[1]);
    g_autoptr(Validation) v = stored ? validate_store(argv[1], error)
                                     : validate_csv(argv[1], own.cluster, error);
    if (!v || (own.plot && !validate_draw(v, own.plot, error)))
        return false;
    command_report(&options, validate_json(v), TEXT, NULL);
    return v->left->len == 0 ||
           kilter_fail(error, KILTER_ERROR_FAILED, "%u of %u plans were left out",
                       v->left->len, v->left->len + v->row->len);
}
