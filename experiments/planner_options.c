#include "experiments/planner_options.h"

#include <string.h>

#include "experiments/planners/segments.h"

/* Adds pins to those that are there. */
static bool read_pins(const char *text, const char **kept, GError **error)
{
    g_autofree char *pins = synth_pins_text(text, error);
    if (!pins)
        return false;
    g_autofree char *all = *kept ? g_strconcat(*kept, "; ", pins, NULL) : g_strdup(pins);
    if (*pins)
        *kept = g_intern_string(all);
    return true;
}

static bool read_pins_file(const char *file, const char **kept, GError **error)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) bad = NULL;
    if (!g_file_get_contents(file, &text, NULL, &bad))
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "option 'pins': expected a file of pins: %s", bad->message);
    if (read_pins(text, kept, error))
        return true;
    g_prefix_error(error, "%s: ", file);
    return false;
}

static const Option planner_row[] = {
#define X(...) OPTION_ROW(PlannerOptions, __VA_ARGS__)
    PLANNER_OPTION_TABLE(X)};
static const Option special_row[] = {SPECIAL_OPTION_TABLE(X)
#undef X
};

static const OptionTable planner_table = {planner_row, G_N_ELEMENTS(planner_row)};
static const OptionTable special_table = {special_row, G_N_ELEMENTS(special_row)};

void planner_options_init(PlannerOptions *options)
{
    *options = (PlannerOptions){.seed = 1};
    options_init(&planner_table, options);
    options_init(&special_table, options);
    amp_options_init(&options->amp);
    sim_options_init(&options->sim);
}

static bool refuse_key(const char *key, GError **error)
{
    g_autoptr(GString) known = g_string_new("pins");
    options_keys(&planner_table, known);
    options_keys(&special_table, known);
    for (uint32_t i = 0; i < amp_option_count(); i++)
        g_string_append_printf(known, ", %s", amp_option_key(i));
    options_keys(&sim_option_table, known);
    return kilter_fail(error, KILTER_ERROR_INPUT,
                       "unknown option '%s', expected one of %s", key, known->str);
}

bool planner_options_set(PlannerOptions *options, const char *key, const char *value,
                         GError **error)
{
    if (strcmp(key, "pins") == 0)
        return read_pins_file(value, &options->pins, error);
    if (amp_options_has(key))
        return amp_options_set(&options->amp, key, value, error);
    const struct {
        const OptionTable *table;
        void *options;
    } part[] = {{&planner_table, options},
                {&special_table, options},
                {&sim_option_table, &options->sim}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(part); i++) {
        const Option *option = options_find(part[i].table, key);
        if (option)
            return option_set(option, part[i].options, value, error);
    }
    return refuse_key(key, error);
}

static void add_pairs(const OptionTable *table, const void *options, bool all,
                      GStrvBuilder *list)
{
    for (uint32_t i = 0; i < table->n; i++) {
        const Option *option = &table->row[i];
        g_autofree char *value = option_get(option, options);
        if (all || !option_is_default(option, options))
            g_strv_builder_add_many(list, option->key, value, NULL);
    }
}

char **planner_options_list(const PlannerOptions *options)
{
    g_autoptr(GStrvBuilder) list = g_strv_builder_new();
    add_pairs(&planner_table, options, true, list);
    add_pairs(&special_table, options, false, list);
    amp_options_list(&options->amp, list);
    add_pairs(&sim_option_table, &options->sim, false, list);
    return g_strv_builder_end(list);
}

void planner_options_help(GString *text)
{
    options_help(&planner_table, text);
    options_help(&special_table, text);
}
