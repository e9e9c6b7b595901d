/* kilter compare: plans side by side. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiments/calibration/prediction.h"
#include "experiments/cli/plan_stages.h"
#include "experiments/cli/plan_words.h"

enum { MOST_PLANS = 16 };

/* --- one plan --- */

/* The mean of seconds over the GPUs. */
static double mean(const Evaluation *evaluation, const double *seconds)
{
    const ClusterView *view = evaluation->view;
    double sum = 0, gpus = 0;
    for (uint32_t j = 0; j < view->n_devices; j++) {
        sum += seconds[j] * view->device[j].gpus;
        gpus += view->device[j].gpus;
    }
    return sum / gpus;
}

static uint32_t busiest(const SimReport *report)
{
    uint32_t most = 0;
    for (uint32_t j = 1; j < report->n_devices; j++)
        if (report->busy_s[j] > report->busy_s[most])
            most = j;
    return most;
}

static char *machines_text(const Cluster *cluster)
{
    g_autoptr(GString) text = g_string_new("");
    for (uint32_t t = 0; t < cluster->n_types; t++) {
        uint32_t gpus = 0;
        for (uint32_t i = 0; i < cluster->n_machines; i++)
            gpus += machine_gpus_of(&cluster->machine[i], t);
        g_string_append_printf(text, "%s%u %s", text->len ? ", " : "", gpus,
                               cluster->type[t].name);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static json_t *compare_plan_json(const char *file, const Evaluation *evaluation)
{
    const Plan *plan = evaluation->plan;
    const SimReport *report = evaluation->report;
    const Device *slowest = &evaluation->view->device[busiest(report)];
    g_autofree char *machines = machines_text(evaluation->view->cluster);
    uint64_t most = 0;
    for (uint32_t j = 0; j < report->n_devices; j++)
        most = MAX(most, report->memory_bytes[j]);
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:s?, s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:s, "
        "s:o, s:I, s:b}",
        "file", file, "model", plan->model, "machines", machines, "planner",
        plan->planner, "made_by", plan->maker, "granularity",
        granularity_name(plan->granularity), "fidelity", report->fidelity, "gpus",
        (int)cluster_gpus(evaluation->view->cluster), "microbatches",
        (int)plan->program->n_microbatches, "iteration_time_s",
        json_number(report->iteration_time_s), "computation_s",
        json_number(mean(evaluation, report->busy_s)), "exposed_communication_s",
        json_number(mean(evaluation, report->comm_busy_s)), "hidden_communication_s",
        json_number(mean(evaluation, report->hidden_s)), "idle_s",
        json_number(mean(evaluation, report->idle_s)), "busiest", slowest->type_name,
        "busiest_s", json_number(report->busy_s[busiest(report)]), "memory_bytes",
        (json_int_t)most, "feasible", (int)report->feasible);
    plan_words_pace_json(evaluation, object);
    json_object_set_new(object, "pipeline", plan_stages_json(evaluation));
    return object;
}

/* --- side by side --- */

static const struct {
    const char *key, *name;
    enum { WORDS, COUNT, SECONDS, BYTES, NUMBER } kind;
} ROW[] = {
    {"machines", "machines", WORDS},
    {"planner", "planner", WORDS},
    {"made_by", "made by", WORDS},
    {"granularity", "granularity", WORDS},
    {"microbatches", "microbatches", COUNT},
    {"iteration_time_s", "iteration", SECONDS},
    {"faster_than_first", "P(faster than first)", NUMBER},
    {"computation_s", "  computation", SECONDS},
    {"exposed_communication_s", "  communication", SECONDS},
    {"idle_s", "  idle", SECONDS},
    {"hidden_communication_s", "hidden communication", SECONDS},
    {"busiest", "busiest device", WORDS},
    {"busiest_s", "  computes", SECONDS},
    {"samples_per_s", "samples/s", NUMBER},
    {"tokens_per_s", "tokens/s", NUMBER},
    {"mfu", "MFU", NUMBER},
    {"memory_bytes", "memory per GPU", BYTES},
};

static char *compare_value_text(const json_t *value, uint32_t kind)
{
    if (json_is_null(value) || !value)
        return g_strdup("-");
    switch (kind) {
    case SECONDS:
        return units_format(json_number_value(value), QUANTITY_TIME);
    case BYTES:
        return units_format(json_number_value(value), QUANTITY_BYTES);
    case COUNT:
        return g_strdup_printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    case NUMBER:
        return g_strdup_printf("%.4g", json_number_value(value));
    default:
        return g_strdup(json_string_value(value));
    }
}

/* The width of the column for a plan's values. */
static int compare_width_of(const json_t *plan)
{
    g_autofree char *name =
        g_path_get_basename(json_string_value(json_object_get(plan, "file")));
    size_t width = strlen(name);
    for (uint32_t r = 0; r < G_N_ELEMENTS(ROW); r++) {
        g_autofree char *text =
            compare_value_text(json_object_get(plan, ROW[r].key), ROW[r].kind);
        width = MAX(width, strlen(text));
    }
    return (int)width + 2;
}

static void print_row(const json_t *plans, uint32_t r)
{
    size_t i;
    json_t *plan;
    printf("  %-22s", ROW[r].name);
    json_array_foreach ((json_t *)plans, i, plan) {
        g_autofree char *text =
            compare_value_text(json_object_get(plan, ROW[r].key), ROW[r].kind);
        printf("%*s", compare_width_of(plan), text);
    }
    putchar('\n');
}

static void print_stages(const json_t *plan)
{
    const json_t *stages = json_object_get(plan, "pipeline");
    printf("\n%s: %s\n", json_string_value(json_object_get(plan, "file")),
           json_is_array(stages) ? "stages" : "one program for all devices");
    size_t i;
    json_t *stage;
    json_array_foreach ((json_t *)stages, i, stage) {
        g_autofree char *busy = units_format(
            json_number_value(json_object_get(stage, "busy_s")), QUANTITY_TIME);
        printf("  %2zu  %3d layers on %-20s dp %2d, tp %d, busy %s\n", i,
               (int)json_integer_value(json_object_get(stage, "layers")),
               json_string_value(json_object_get(stage, "devices")),
               (int)json_integer_value(json_object_get(stage, "replicas")),
               (int)json_integer_value(json_object_get(stage, "tensor_parallel")), busy);
    }
}

/* The keys of the plans' settings (not their costs) that differ between plans. */
static json_t *differences(const json_t *plans)
{
    static const char *const key[] = {"model",       "machines",     "planner",
                                      "granularity", "microbatches", "pipeline"};
    json_t *list = json_array();
    for (uint32_t k = 0; k < G_N_ELEMENTS(key); k++) {
        bool same = true;
        for (size_t i = 1; i < json_array_size(plans); i++)
            same &= json_equal(json_object_get(json_array_get(plans, i), key[k]),
                               json_object_get(json_array_get(plans, 0), key[k]));
        if (!same)
            json_array_append_new(list, json_string(key[k]));
    }
    return list;
}

static double compare_time_at(const json_t *plans, size_t i)
{
    return json_number_value(
        json_object_get(json_array_get(plans, i), "iteration_time_s"));
}

/* Says how much faster the fastest plan is than the slowest, and where it gains. Caller frees. */
static char *compare_verdict(const json_t *plans)
{
    static const char *const part[] = {"computation_s", "exposed_communication_s",
                                       "idle_s"};
    static const char *const name[] = {"computation", "communication", "idle time"};
    size_t fast = 0, slow = 0;
    uint32_t most = 0;
    double gain[G_N_ELEMENTS(part)];
    for (size_t i = 1; i < json_array_size(plans); i++) {
        fast = compare_time_at(plans, i) < compare_time_at(plans, fast) ? i : fast;
        slow = compare_time_at(plans, i) > compare_time_at(plans, slow) ? i : slow;
    }
    const json_t *a = json_array_get(plans, fast), *b = json_array_get(plans, slow);
    if (compare_time_at(plans, fast) == compare_time_at(plans, slow))
        return g_strdup("All take the same time.");
    for (uint32_t k = 0; k < G_N_ELEMENTS(part); k++) {
        gain[k] = json_number_value(json_object_get(b, part[k])) -
                  json_number_value(json_object_get(a, part[k]));
        most = gain[k] > gain[most] ? k : most;
    }
    g_autofree char *saved = units_format(gain[most], QUANTITY_TIME);
    return g_strdup_printf(
        "%s is %.1f %% faster than %s; most of it, %s of an average GPU, is %s.",
        json_string_value(json_object_get(a, "file")),
        100 * (compare_time_at(plans, slow) / compare_time_at(plans, fast) - 1),
        json_string_value(json_object_get(b, "file")), saved, name[most]);
}

static void print_all(const json_t *plans, const json_t *differs)
{
    size_t i;
    json_t *value;
    printf("  %-22s", "");
    json_array_foreach ((json_t *)plans, i, value) {
        g_autofree char *name =
            g_path_get_basename(json_string_value(json_object_get(value, "file")));
        printf("%*s", compare_width_of(value), name);
    }
    putchar('\n');
    for (uint32_t r = 0; r < G_N_ELEMENTS(ROW); r++)
        print_row(plans, r);
    json_array_foreach ((json_t *)plans, i, value)
        print_stages(value);
    g_autofree char *words = compare_verdict(plans);
    printf("\n%s\nDifferent: ", words);
    json_array_foreach ((json_t *)differs, i, value)
        printf("%s%s", i ? ", " : "", json_string_value(value));
    puts(json_array_size(differs) ? "" : "nothing but the cost");
}

/* The probability that the plan is faster than the first one, both on the same fitted cluster. */
static json_t *compare_faster_json(const Evaluation *evaluation, const Evaluation *first)
{
    return evaluation == first
               ? json_null()
               : prediction_faster_json(evaluation->view,
                                        evaluation->report->iteration_time_s, first->view,
                                        first->report->iteration_time_s);
}

/* *evaluation gets the plan's evaluation, which the caller clears. */
static bool add_plan(json_t *plans, char *file, const char *fidelity,
                     const CommandOptions *options, const Evaluation *first,
                     Evaluation *evaluation, GError **error)
{
    const CommandPlanning how = {0};
    char *argument[] = {NULL, file, NULL};
    if (!command_evaluate(&how, 2, argument, fidelity, options, evaluation, error))
        return false;
    json_t *plan = compare_plan_json(file, evaluation);
    json_object_set_new(plan, "faster_than_first",
                        compare_faster_json(evaluation, first));
    json_array_append_new(plans, plan);
    return true;
}

bool cmd_compare(int argc, char **argv, GError **error)
{
    g_autofree char *fidelity = NULL;
    g_auto(CommandOptions) options = {0};
    const GOptionEntry entries[] = {
        {"fidelity", 'f', 0, G_OPTION_ARG_STRING, &fidelity,
         "Fidelity for all plans: stage (default), flow or analytic", "NAME"},
        G_OPTION_ENTRY_NULL};
    const CommandSyntax syntax = {
        .name = "compare",
        .arguments = "PLAN.json PLAN.json...",
        .min_arguments = 2,
        .max_arguments = MOST_PLANS,
        .summary = "Shows plans side by side: their settings, where the time of an "
                   "average GPU goes, their stages,\n"
                   "their differences, and how much faster the fastest one is than the "
                   "slowest. On a cluster of\n"
                   "kilter fit it also gives the probability that each plan is faster "
                   "than the first one, from the\n"
                   "errors on held-out trials.",
        .example =
            "kilter plan vgg19 hap-8 -q -o a.json\n  kilter plan vgg19 hap-8 --planner "
            "dp-ev -q -o b.json\n  kilter compare a.json b.json",
        .entries = entries,
    };
    if (!command_parse(&syntax, &argc, argv, &options, error))
        return false;
    json_t *plans = json_array();
    bool good = true;
    Evaluation all[MOST_PLANS + 1] = {0};
    for (int i = 1; good && i < argc; i++)
        good = add_plan(plans, argv[i], fidelity ? fidelity : "stage", &options, &all[0],
                        &all[i - 1], error);
    for (int i = 0; i < MOST_PLANS; i++)
        evaluation_clear(&all[i]);
    if (good) {
        json_t *differs = differences(plans);
        g_autofree char *words = compare_verdict(plans);
        if (!options.json && !command_is_silent(&options))
            print_all(plans, differs);
        json_t *answer = json_pack("{s:O, s:o, s:s}", "plans", plans, "differs", differs,
                                   "verdict", words);
        if (options.json)
            command_print_json(answer);
        else
            json_decref(answer);
    }
    json_decref(plans);
    return good;
}
