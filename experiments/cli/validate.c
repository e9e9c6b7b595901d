/* kilter validate: predicted against measured times of plans. */
#include <math.h>
#include <string.h>

#include "experiments/calibration/validate.h"
#include "experiments/cli/command.h"
#include "experiments/figures/figure.h"

/* clang-format off */
#define VALIDATE_OPTIONS(X)                                                              \
    X(TEXT, cluster, "cluster", 'c',                                                     \
      "Evaluate the plans on this cluster, in place of predicted_s", "CLUSTER")          \
    X(FILE, plot, "plot", 0,                                                             \
      "Draw predicted against measured times: FOLDER/hap-fig18.png and .svg", "FOLDER")
/* clang-format on */
COMMAND_OPTIONS(Own, validate_options, VALIDATE_OPTIONS)

static json_t *validate_rows_json(const Validation *v)
{
    json_t *rows = json_array();
    for (uint32_t i = 0; i < v->row->len; i++) {
        const ValidationRow *row = &g_array_index(v->row, ValidationRow, i);
        json_array_append_new(
            rows, json_pack("{s:s, s:s, s:f, s:f, s:o, s:i, s:o}", "plan", row->plan,
                            "group", row->group, "predicted_s", row->predicted_s,
                            "measured_s", row->measured_s, "error",
                            json_number(row->predicted_s / row->measured_s - 1),
                            "unmeasured", (int)row->unmeasured, "interval_90_s",
                            row->high_s > 0 ? json_pack("[f, f]", row->low_s, row->high_s)
                                            : json_null()));
    }
    return rows;
}

static json_t *answer_json(const Validation *v)
{
    const Agreement *a = &v->agreement;
    json_t *groups = json_array();
    for (uint32_t g = 0; g < v->group->len; g++) {
        const ValidationGroup *group = &g_array_index(v->group, ValidationGroup, g);
        json_array_append_new(
            groups, json_pack("{s:s, s:i, s:s, s:s, s:o, s:o}", "group", group->name,
                              "plans", (int)group->n, "chosen", group->chosen, "fastest",
                              group->fastest, "regret", json_number(group->regret),
                              "spearman", json_number(group->spearman)));
    }
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}",
                     "plans", (int)a->n, "mape", json_number(a->mape), "p95",
                     json_number(a->p95), "worst", json_number(a->worst), "bias",
                     json_number(a->bias), "pearson", json_number(a->pearson), "spearman",
                     json_number(a->spearman), "regret_mean", json_number(v->mean_regret),
                     "regret_worst", json_number(v->worst_regret), "within_5_percent",
                     json_number(v->within), "rows", validate_rows_json(v), "groups",
                     groups, "version", KILTER_VERSION);
}

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
    "fastest in {within_5_percent:.0%}; regret {regret_mean:%} on average, {regret_worst:%} at worst\n]";
/* clang-format on */

/* Rows of the figure: measured, predicted, and the ends of its 90 % interval, 0 where it is not
 * known. */
static bool validate_draw(const Validation *v, const char *folder, GError **error)
{
    g_autoptr(GString) text = g_string_new("# measured_s\tpredicted_s\tlow_s\thigh_s\n");
    for (uint32_t i = 0; i < v->row->len; i++) {
        const ValidationRow *row = &g_array_index(v->row, ValidationRow, i);
        g_string_append_printf(text, "%.9g\t%.9g\t%.9g\t%.9g\n", row->measured_s,
                               row->predicted_s, row->low_s, row->high_s);
    }
    return figure_draw_text("hap-fig18", text->str, folder, error);
}

bool cmd_validate(int argc, char **argv, GError **error)
{
    g_auto(Own) own = {0};
    const GOptionEntry entries[] = {VALIDATE_OPTIONS(COMMAND_ENTRY) G_OPTION_ENTRY_NULL};
    const CommandSyntax syntax = {
        .name = "validate",
        .arguments = "FILE.csv | RESULTS.db",
        .min_arguments = 1,
        .max_arguments = 1,
        .summary = "Compares predicted with measured times of plans: from a CSV file "
                   "with the columns plan,\n"
                   "measured_s and, optionally, predicted_s, group and slowdown; or from "
                   "the rows that kilter exec\n"
                   "--db stored.",
        .example = "kilter validate results.db --plot out",
        .entries = entries,
    };
    g_auto(CommandOptions) options = {0};
    if (!command_parse(&syntax, &argc, argv, &options, error))
        return false;
    const bool stored = validate_is_store(argv[1]);
    if (stored && own.cluster)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "--cluster is for a CSV with plan files; %s is a store",
                           argv[1]);
    g_autoptr(Validation) v = stored ? validate_store(argv[1], error)
                                     : validate_csv(argv[1], own.cluster, error);
    if (!v || (own.plot && !validate_draw(v, own.plot, error)))
        return false;
    command_report(&options, answer_json(v), TEXT, NULL);
    return true;
}
