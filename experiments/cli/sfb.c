/* kilter sfb: finds the ops that sufficient factor broadcasting duplicates. */
#include "data/models/model.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"
#include "synth/answer/ratios.h"
#include "synth/tag/sfb_file.h"

static const char *const PRICES[] = {
    [SFB_KILTER] = "kilter", [SFB_PAPER] = "paper", [SFB_RING] = "ring", NULL};

/* --- cases of a file --- */

static json_t *solution_json(const SfbCase *sfb, SfbPrices prices)
{
    g_autofree bool *duplicated = g_new(bool, sfb->n_ops + 1);
    const double objective = sfb_case_solve(sfb, prices, duplicated);
    json_t *ops = json_array(), *names = json_array();
    for (uint32_t i = 0; i < sfb->n_ops; i++)
        if (duplicated[i]) {
            json_array_append_new(ops, json_integer(i));
            json_array_append_new(names, json_string(sfb->op[i]));
        }
    return json_pack("{s:f, s:o, s:o}", "objective_us", objective, "duplicated", ops,
                     "names", names);
}

static bool solve_file(const char *file, const CommandOptions *options, GError **error)
{
    g_autoptr(GPtrArray) cases = sfb_file_read(file, error);
    if (!cases)
        return false;
    json_t *list = json_array();
    pointers_each (const SfbCase, sfb, cases)
        json_array_append_new(list, json_pack("{s:I, s:o, s:o}", "case",
                                              (json_int_t)sfb->number, "paper",
                                              solution_json(sfb, SFB_PAPER), "ring",
                                              solution_json(sfb, SFB_RING)));
    command_report(options, list, ANSWER_SFB_CASES, NULL);
    return true;
}

/* --- a model on a cluster --- */

/* NULL on errors. */
static json_t *solve_model(const char *model, const CommandSetting *setting,
                           SfbPrices prices, GError **error)
{
    g_autoptr(ClusterView) view = cluster_view(setting->cluster, setting->granularity);
    g_autoptr(Graph) graph =
        model_build(model, cluster_gpus(setting->cluster), NULL, error);
    g_autoptr(BatchForms) batch = graph && cluster_view_check_times(view, graph, error)
                                      ? batch_forms_new(graph, error)
                                      : NULL;
    if (!batch)
        return NULL;
    g_autofree double *share = ratios_even(view);
    g_autoptr(SfbCosts) costs = synth_sfb_costs(graph, batch, view, share, prices);
    g_autofree bool *duplicated = g_new(bool, graph_n_ops(graph) + 1);
    const gint64 start = g_get_monotonic_time();
    const double saved_s = synth_sfb_graph(graph, batch, costs, duplicated);
    const double search_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    int n = 0, gradients = 0, all = 0, of_kind[OP_KINDS] = {0};
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const bool makes = costs->saved_s[id] > 0;
        n += duplicated[id];
        all += makes;
        gradients += makes && duplicated[id];
        of_kind[graph_get_op(graph, id)->kind] += duplicated[id];
    }
    json_t *kinds = json_object();
    for (uint32_t k = 0; k < OP_KINDS; k++)
        if (of_kind[k])
            json_object_set_new(kinds, op_kind_name((OpKind)k), json_integer(of_kind[k]));
    return json_pack("{s:f, s:i, s:i, s:i, s:o, s:f}", "saved_s", saved_s, "duplicated",
                     n, "gradients", gradients, "gradients_in_all", all, "kinds", kinds,
                     "search_time_s", search_s);
}

/* clang-format off */
#define SFB_OPTIONS(X)           \
    X(TEXT, prices, "prices", 0) \
    X(GRANULARITY, how)          \
    X(CHANGED, how)
/* clang-format on */
COMMAND_OPTIONS(Own, sfb_options, SFB_OPTIONS)

COMMAND(sfb, Own, SFB_OPTIONS, 0)
{
    if (own->prices && !command_check_choice("--prices", own->prices, PRICES, error))
        return false;
    if (argc == 2)
        return (!own->prices && !own->how.granularity && !command_changes(&own->how))
                   ? solve_file(argv[1], options, error)
                   : refuse(error, "--prices, --granularity and what changes a cluster "
                                   "are for MODEL CLUSTER");
    g_auto(CommandSetting) setting = {0};
    json_t *solved = NULL;
    SfbPrices by = SFB_KILTER;
    while (own->prices && !g_str_equal(PRICES[by], own->prices))
        by++;
    if (!command_setting(&own->how, argv[2], &setting, error) ||
        !(solved = solve_model(argv[1], &setting, by, error)))
        return false;
    command_report(options, solved, ANSWER_SFB_MODEL, NULL);
    return true;
}
