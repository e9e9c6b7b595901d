/* kilter validate: predicted against measured times of plans. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiments/calibration/validate.h"
#include "experiments/cli/command.h"
#include "experiments/figures/figure.h"
#include "experiments/json_values.h"

typedef struct {
    char *cluster, *plot;
} Own;

static void own_clear(Own *own)
{
    g_free(own->cluster);
    g_free(own->plot);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Own, own_clear)

static void print_rows(const Validation *v)
{
    const char *group = "";
    printf("%12s %12s %8s   %s\n", "predicted", "measured", "error", "plan");
    for (uint32_t i = 0; i < v->row->len; i++) {
        const ValidationRow *row = &g_array_index(v->row, ValidationRow, i);
        g_autofree char *predicted = units_format(row->predicted_s, QUANTITY_TIME);
        g_autofree char *measured = units_format(row->measured_s, QUANTITY_TIME);
        if (strcmp(group, row->group) != 0)
            printf("%s\n", row->group);
        group = row->group;
        printf("%12s %12s %+6.1f %%   %s", predicted, measured,
               100 * (row->predicted_s / row->measured_s - 1), row->plan);
        if (row->unmeasured > 0)
            printf(" (%u instructions outside of what was calibrated)", row->unmeasured);
        printf("\n");
    }
}

static void print_groups(const Validation *v)
{
    printf("\n%5s %8s %8s   %s\n", "plans", "regret", "Spearman", "group");
    for (uint32_t g = 0; g < v->group->len; g++) {
        const ValidationGroup *group = &g_array_index(v->group, ValidationGroup, g);
        printf("%5u %6.1f %% %8.2f   %s: chose %s", group->n, 100 * group->regret,
               group->spearman, group->name, group->chosen);
        if (group->regret > 0)
            printf(", fastest was %s", group->fastest);
        printf("\n");
    }
}

static void print_text(const Validation *v)
{
    const Agreement *a = &v->agreement;
    print_rows(v);
    if (v->group->len > 0)
        print_groups(v);
    printf("\n%u plans: MAPE %.1f %%, p95 %.1f %%, worst %.1f %%, bias %+.1f %%, Pearson "
           "%.3f, Spearman %.3f\n",
           a->n, 100 * a->mape, 100 * a->p95, 100 * a->worst, 100 * a->bias, a->pearson,
           a->spearman);
    if (v->group->len > 0)
        printf("%u groups: the plan predicted fastest is at most 5 %% slower than the "
               "fastest in %.0f %%; regret %.1f %% on average, %.1f %% at worst\n",
               v->group->len, 100 * v->within, 100 * v->mean_regret,
               100 * v->worst_regret);
}

static json_t *rows_json(const Validation *v)
{
    json_t *rows = json_array();
    for (uint32_t i = 0; i < v->row->len; i++) {
        const ValidationRow *row = &g_array_index(v->row, ValidationRow, i);
        json_array_append_new(
            rows, json_pack("{s:s, s:s, s:f, s:f, s:i}", "plan", row->plan, "group",
                            row->group, "predicted_s", row->predicted_s, "measured_s",
                            row->measured_s, "unmeasured", (int)row->unmeasured));
    }
    return rows;
}

static void print_json(const Validation *v)
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
    command_print_json(json_pack(
        "{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "plans",
        (int)a->n, "mape", json_number(a->mape), "p95", json_number(a->p95), "worst",
        json_number(a->worst), "bias", json_number(a->bias), "pearson",
        json_number(a->pearson), "spearman", json_number(a->spearman), "regret_mean",
        json_number(v->mean_regret), "regret_worst", json_number(v->worst_regret),
        "within_5_percent", json_number(v->within), "rows", rows_json(v), "groups",
        groups, "version", KILTER_VERSION));
}

/* Rows of the figure: measured, predicted. */
static bool draw(const Validation *v, const char *folder, GError **error)
{
    g_autoptr(GString) text = g_string_new("# measured_s\tpredicted_s\n");
    for (uint32_t i = 0; i < v->row->len; i++) {
        const ValidationRow *row = &g_array_index(v->row, ValidationRow, i);
        g_string_append_printf(text, "%.9g\t%.9g\n", row->measured_s, row->predicted_s);
    }
    return figure_draw_text("hap-fig18", text->str, folder, error);
}

bool cmd_validate(int argc, char **argv, GError **error)
{
    g_auto(Own) own = {0};
    const GOptionEntry entries[] = {
        {"cluster", 'c', 0, G_OPTION_ARG_STRING, &own.cluster,
         "Evaluate the plans on this cluster instead of taking predicted_s", "CLUSTER"},
        {"plot", 0, 0, G_OPTION_ARG_FILENAME, &own.plot,
         "Draw estimated against actual: FOLDER/hap-fig18.png and .svg", "FOLDER"},
        G_OPTION_ENTRY_NULL};
    const CommandSyntax syntax = {
        .name = "validate",
        .arguments = "FILE.csv | RESULTS.db",
        .min_arguments = 1,
        .max_arguments = 1,
        .summary =
            "Compares predicted with measured times of plans: a CSV with the columns "
            "plan, "
            "measured_s and, optional,\npredicted_s, group, slowdown; or the rows that "
            "kilter exec --db stored.",
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
    if (!v || (own.plot && !draw(v, own.plot, error)))
        return false;
    if (options.json)
        print_json(v);
    else if (!options.quiet)
        print_text(v);
    return true;
}
