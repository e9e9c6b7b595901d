/* kilter fit: a cluster file from measured iterations. */
#include <math.h>
#include <string.h>

#include "data/base/json.h"
#include "data/base/output.h"
#include "data/base/units.h"
#include "experiments/answers.h"
#include "experiments/calibration/trial_cluster.h"
#include "experiments/calibration/trial_file.h"
#include "experiments/calibration/trial_suggest.h"
#include "experiments/cli/command.h"
#include "synth/planners/planner.h"

enum { MOST_SUGGESTED = 1000 };

/* clang-format off */
#define FIT_OPTIONS(X)                                 \
    X(TEXT, cluster, "cluster", 0)                     \
    X(FILE, output, "output", 'o')                     \
    X(COUNT, suggest, "suggest", 0, 0, MOST_SUGGESTED) \
    X(COUNT, jobs, "jobs", 'j', 0, G_MAXINT)
/* clang-format on */
COMMAND_OPTIONS(Own, fit_options, FIT_OPTIONS)

static char *fit_value_text(double value, const char *unit)
{
    if (!isfinite(value))
        return g_strdup("-");
    if (*unit == '\0' || strcmp(unit, "terms") == 0)
        return g_strdup_printf("%.3g%s%s", value, *unit ? " " : "", unit);
    const Quantity quantity = strcmp(unit, "s") == 0        ? QUANTITY_TIME
                              : strcmp(unit, "FLOP/s") == 0 ? QUANTITY_RATE
                                                            : QUANTITY_BANDWIDTH;
    return units_format(value, quantity);
}

/* The costs that the cluster has, including the common part, as values. */
static json_t *fit_costs_json(const TrialCluster *fitted)
{
    json_t *list = json_array();
    items_each (const FittedCost, cost, fitted->fit.costs.cost, fitted->fit.costs.n) {
        const CostInfo *info = cost_info(cost->cost);
        const double log[] = {cost->log, cost->low, cost->high};
        double value[3];
        g_auto(GStrv) text = g_new0(char *, 3 + 1);
        for (uint32_t k = 0; k < 3; k++) {
            value[k] = trial_cluster_value(fitted, cost->cost, cost->key, log[k]);
            text[k] = fit_value_text(value[k], info->unit);
        }
        if (!(value[0] > 0) && *cost->key)
            continue;
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:s, s:s, s:s, s:f, s:i}", "cost",
                      info->name, "of", *cost->key ? cost->key : "common to all", "unit",
                      info->unit, "value", json_number(value[0]), "low",
                      json_number(value[1]), "high", json_number(value[2]), "text",
                      text[0], "low_text", text[1], "high_text", text[2], "factor",
                      exp(cost->log), "trials", (int)cost->n_trials));
    }
    return list;
}

static json_t *trials_json(const TrialCluster *fitted, const GArray *list)
{
    json_t *trials = json_array();
    for (uint32_t k = 0; k < fitted->measured->len; k++) {
        const Trial *trial =
            &g_array_index(list, Trial, g_array_index(fitted->measured, uint32_t, k));
        json_array_append_new(
            trials, json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "name", trial->name,
                              "model", trial->model, "options", trial->options, "group",
                              trial->group, "measured_s", json_number(trial->measured_s),
                              "predicted_s", json_number(fitted->fit.predicted_s[k]),
                              "held_out_s", json_number(fitted->fit.held_out_s[k])));
    }
    return trials;
}

/* "h100-sxm=2 a100-80g=1, 12 GPUs": machines as a trial's column has them. Caller frees. */
static char *fit_machines_of(const Trial *trial)
{
    const Cluster *cluster = trial->cluster;
    g_autoptr(GString) text = g_string_new(NULL);
    for (uint32_t t = 0; t < cluster->n_types; t++) {
        const uint32_t n =
            sum_over(uint32_t, i, cluster->n_machines, cluster->machine[i].type == t);
        if (n > 0)
            g_string_append_printf(text, "%s%s=%u", text->len ? " " : "",
                                   cluster->type[t].name, n);
    }
    return g_strdup_printf("%s, %u GPUs", text->str, trial_gpus(trial));
}

static json_t *suggestions_json(const GArray *suggestions)
{
    json_t *list = json_array();
    for (uint32_t i = 0; suggestions && i < suggestions->len; i++) {
        const Suggestion *s = &g_array_index(suggestions, Suggestion, i);
        g_autofree char *cluster = fit_machines_of(&s->trial);
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:s, s:s}", "model", s->trial.model,
                      "planner", s->trial.planner, "options", s->trial.options, "cluster",
                      cluster, "predicted_s", s->predicted_s, "information",
                      s->information, "cost", cost_info(s->cost)->name, "of",
                      *s->key ? s->key : "common to all"));
    }
    return list;
}

static uint32_t count_groups(const TrialCluster *fitted, const GArray *list)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (uint32_t k = 0; k < fitted->measured->len; k++)
        g_hash_table_add(
            seen, g_array_index(list, Trial, g_array_index(fitted->measured, uint32_t, k))
                      .group);
    return g_hash_table_size(seen);
}

static json_t *fit_answer(const TrialCluster *fitted, const GArray *list,
                          const GArray *suggestions, const char *output)
{
    const MemoryVerdict *memory = &fitted->memory;
    json_t *runtime = json_array();
    for (uint32_t t = 0; t < fitted->base->n_types; t++)
        json_array_append_new(runtime,
                              json_pack("{s:s, s:f, s:i}", "of", fitted->runtime[t].type,
                                        "bytes", fitted->runtime[t].bytes, "trials",
                                        (int)fitted->runtime[t].n));
    return json_pack(
        "{s:s, s:s*, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:{s:i, s:i, s:i, "
        "s:i}, s:o, s:o}",
        "cluster", fitted->base->name, "output", output, "trials", (int)fitted->fit.n,
        "groups", (int)count_groups(fitted, list), "fitted",
        statistics_json(&fitted->fit.fitted, "trials"), "held_out",
        statistics_json(&fitted->fit.held_out, "trials"), "costs", fit_costs_json(fitted),
        "runtime", runtime, "memory", statistics_json(&fitted->peaks, "trials"), "fits",
        "failed", (int)memory->failed, "found", (int)memory->hits, "fit",
        (int)memory->fit, "false_alarms", (int)memory->false_alarms, "trial_list",
        trials_json(fitted, list), "suggestions", suggestions_json(suggestions));
}

/* Says first that a fit takes long: half a second each, as measured of small models. */
static void fit_say_size(const GArray *list)
{
    g_autofree uint32_t *first = g_new(uint32_t, list->len + 1);
    const uint32_t n = trial_list_alike(list, first);
    g_autofree char *what = g_strdup_printf("a fit to %u different iterations", n);
    planner_say(what, 0.5 * n, 0);
}

static bool fit_run(const char *file, const Own *own, const CommandOptions *options,
                    GError **error)
{
    g_autoptr(Cluster) base = cluster_load(own->cluster, error);
    g_autoptr(GArray) list = base ? trial_file_read(file, base, error) : NULL;
    g_autoptr(GArray) suggestions = NULL;
    g_auto(TrialCluster) fitted = {0};
    const uint32_t threads = (uint32_t)own->jobs;
    if (list)
        fit_say_size(list);
    if (!list || !trial_cluster_fit(base, list, threads, &fitted, error))
        return false;
    if (own->suggest > 0 &&
        !(suggestions =
              trial_suggest(&fitted.fit, list, (uint32_t)own->suggest, threads, error)))
        return false;
    if (own->output && !output_take(own->output, cluster_write(fitted.cluster), error))
        return false;
    command_report(options, fit_answer(&fitted, list, suggestions, own->output),
                   ANSWER_FIT, NULL);
    return true;
}

COMMAND(fit, Own, FIT_OPTIONS, 0)
{
    if (own->output && !output_check(own->output, error))
        return false;
    if (!own->cluster)
        return refuse(error,
                      "expected --cluster with the cluster that the iterations ran on");
    return fit_run(argv[1], own, options, error);
}
