/* kilter compare: plans side by side. */
#include <stdio.h>
#include <string.h>

#include "data/base/units.h"
#include "data/plan/fidelity.h"
#include "experiments/answers/compare.h"
#include "experiments/cli/command.h"

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

static void print_all(const json_t *answer)
{
    const json_t *plans = json_object_get(answer, "plans");
    const json_t *differs = json_object_get(answer, "differs");
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
    printf("\n%s\nDifferent: ", json_string_value(json_object_get(answer, "verdict")));
    json_array_foreach ((json_t *)differs, i, value)
        printf("%s%s", i ? ", " : "", json_string_value(value));
    puts(json_array_size(differs) ? "" : "nothing but the cost");
}

bool cmd_compare(int argc, char **argv, GError **error)
{
    g_autofree char *fidelity = NULL;
    g_auto(CommandOptions) options = {0};
    const GOptionEntry entries[] = {
        {"fidelity", 'f', 0, G_OPTION_ARG_STRING, &fidelity, NULL, NULL},
        G_OPTION_ENTRY_NULL};
    if (!command_parse(entries, &argc, argv, &options, error))
        return false;
    const CommandPlanning how = {0};
    Evaluation all[COMMAND_COMPARES] = {0};
    bool good = true;
    for (int i = 1; good && i < argc; i++) {
        char *argument[] = {NULL, argv[i], NULL};
        good = command_evaluate(&how, 2, argument,
                                fidelity ? fidelity : fidelity_name(FIDELITY_DEFAULT),
                                &options, &all[i - 1], error);
    }
    json_t *answer = good ? compare_json(argv + 1, all, (uint32_t)argc - 1) : NULL;
    for (int i = 0; i < COMMAND_COMPARES; i++)
        evaluation_clear(&all[i]);
    if (!good)
        return false;
    if (options.json) {
        command_print_json(answer);
        return true;
    }
    if (!command_is_silent(&options))
        print_all(answer);
    json_decref(answer);
    return true;
}
