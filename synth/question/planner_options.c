/* The tables of planners' options. */
#include "synth/question/planner_options.h"

#include <string.h>

#include "data/base/names.h"
#include "data/base/path.h"
#include "data/base/text.h"
#include "data/formats/measured/layer_profile.h"
#include "data/models/model.h"
#include "synth/question/segments.h"
#include "synth/spmd/spmd.h"

/* Adds pins to the earlier ones. */
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
    g_autofree char *text = text_read(file, error);
    if (!text)
        return kilter_prefix(error, "option 'pins': expected a file of pins: ");
    if (read_pins(text, kept, error))
        return true;
    kilter_prefix(error, "%s: ", file);
    return false;
}

#define X(...) OPTION_ROW(PlannerOptions, __VA_ARGS__)
static const Option planner_row[] = {PLANNER_OPTION_TABLE(X)};
static const Option special_row[] = {SPECIAL_OPTION_TABLE(X)};
#undef X
#define X(...) OPTION_ROW(AmpPlanOptions, __VA_ARGS__)
static const Option amp_row[] = {AMP_OPTION_TABLE(X)};
#undef X

#define X(...) OPTION_ROW(TagPlanOptions, __VA_ARGS__)
static const Option tag_row[] = {TAG_PLAN_OPTION_TABLE(X)};
#undef X

static const OptionTable planner_table = {planner_row, G_N_ELEMENTS(planner_row)};
static const OptionTable special_table = {special_row, G_N_ELEMENTS(special_row)};
static const OptionTable amp_table = {amp_row, G_N_ELEMENTS(amp_row)};
static const OptionTable tag_table = {tag_row, G_N_ELEMENTS(tag_row)};

/* The tables, and the place of each one's struct in PlannerOptions. */
static const struct {
    const OptionTable *table;
    size_t offset;
    bool listed; /* listed even at their defaults */
} part[] = {{&planner_table, 0, true},
            {&special_table, 0, false},
            {&strategy_table, offsetof(PlannerOptions, strategy), false},
            {&amp_table, offsetof(PlannerOptions, amp), false},
            {&tag_table, offsetof(PlannerOptions, tag), false},
            {&sim_option_table, offsetof(PlannerOptions, sim), false}};

void planner_options_init(PlannerOptions *options)
{
    *options = (PlannerOptions){.seed = 1};
    options_init(&planner_table, options);
    options_init(&special_table, options);
    strategy_init(&options->strategy);
    options_init(&amp_table, &options->amp);
    options_init(&tag_table, &options->tag);
    sim_options_init(&options->sim);
}

char **planner_options_keys(void)
{
    g_autoptr(GString) keys = g_string_new("pins");
    for (uint32_t i = 0; i < G_N_ELEMENTS(part); i++)
        options_keys(part[i].table, keys);
    return g_strsplit(keys->str, ", ", -1);
}

RatiosChoice planner_ratios(const PlannerOptions *options)
{
    return options->mix ? RATIOS_MIX : given_choice(options->ratios);
}

bool planner_ratios_are_fixed(const PlannerOptions *options)
{
    const RatiosChoice choice = planner_ratios(options);
    return choice != RATIOS_OWN && choice != RATIOS_BEST;
}

/* The option with this key, and the place of its struct in PlannerOptions; NULL: there is none. */
static const Option *find_option(const char *key, size_t *offset)
{
    const Option *option = NULL;
    for (uint32_t i = 0; i < G_N_ELEMENTS(part) && !option; i++) {
        option = options_find(part[i].table, key);
        *offset = part[i].offset;
    }
    return option;
}

bool planner_options_set(PlannerOptions *options, const char *key, const char *value,
                         GError **error)
{
    size_t offset;
    if (strcmp(key, "pins") == 0)
        return read_pins_file(value, &options->pins, error);
    if (strcmp(key, "strategy") == 0)
        return strategy_read(value, &options->strategy, error);
    const Option *option = find_option(key, &offset);
    if (option)
        return option_set(option, (char *)options + offset, value, error);
    if (model_has_key(key))
        return refuse(error, "'%s' is a key of the model, as in llama-3.1-8b:%s=%s", key,
                      key, value);
    g_auto(GStrv) known = planner_options_keys();
    uint32_t index;
    return names_find("option", key, (const char *const *)known, &index, error);
}

/* The option's text or, for a file, the SHA-256 of its contents. Caller frees. */
static char *value_of(const Option *option, const void *own, GError **error)
{
    g_autofree char *text = option_get(option, own), *content = NULL;
    g_autoptr(GError) bad = NULL;
    gsize length;
    if (option->type != OPTION_DATA || !*text)
        return g_steal_pointer(&text);
    if (!g_file_test(text, G_FILE_TEST_IS_REGULAR) ||
        !g_file_get_contents(text, &content, &length, &bad))
        return refused(error, "option '%s': expected a file, got '%s'%s%s", option->key,
                       text, bad ? ": " : "", bad ? bad->message : "");
    return g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)content,
                                       length);
}

char **planner_options_list(const PlannerOptions *options, GError **error)
{
    g_autoptr(GStrvBuilder) list = g_strv_builder_new();
    for (uint32_t i = 0; i < G_N_ELEMENTS(part); i++) {
        const void *own = (const char *)options + part[i].offset;
        items_each (const Option, option, part[i].table->row, part[i].table->n) {
            if (!part[i].listed && option_is_default(option, own))
                continue;
            g_autofree char *value = value_of(option, own, error);
            if (!value)
                return NULL;
            g_strv_builder_add_many(list, option->key, value, NULL);
        }
    }
    return g_strv_builder_end(list);
}

char **planner_options_files(const PlannerOptions *options)
{
    GStrvBuilder *list = g_strv_builder_new();
    for (uint32_t i = 0; i < G_N_ELEMENTS(part); i++)
        for (uint32_t j = 0; j < part[i].table->n; j++) {
            g_autofree char *file = option_file(&part[i].table->row[j],
                                                (const char *)options + part[i].offset);
            if (file)
                g_strv_builder_add(list, file);
        }
    char **files = g_strv_builder_end(list);
    g_strv_builder_unref(list);
    return files;
}

char *planner_options_path(const PlannerOptions *options, const char *key, GError **error)
{
    size_t offset;
    const Option *option = find_option(key, &offset);
    g_autofree char *file =
        option ? option_file(option, (const char *)options + offset) : NULL;
    g_assert(file);
    char *path = path_find(file);
    if (!path)
        refuse(error, "option '%s': expected %s among the bundled data", key, file);
    return path;
}

/* Whether an option of the table is not at its default. */
static bool any_set(const OptionTable *table, const void *own)
{
    return any_of(i, table->n, !option_is_default(&table->row[i], own));
}

const char *planner_options_unsearched(const PlannerOptions *options)
{
    static const char SEARCHED[] =
        "pp, dp, tp, micro_batch, schedule, recompute, zero, zero_ranks, "
        "sequence_parallel, virtual_stages, offload, pieces";
    return strategy_beside(&options->strategy, SEARCHED);
}

bool planner_options_of_pipelines(const PlannerOptions *options)
{
    return planner_options_of_amp(options) ||
           strategy_beside(
               &options->strategy, /* what needs no stages */
               "microbatches, recompute, zero, zero_ranks, pieces, offload") != NULL;
}

bool planner_options_of_amp(const PlannerOptions *options)
{
    return any_set(&amp_table, &options->amp);
}

bool planner_options_is_default(const PlannerOptions *options, const char *key)
{
    size_t offset;
    const Option *option = find_option(key, &offset);
    g_assert(option);
    return option_is_default(option, (const char *)options + offset);
}

bool planner_options_of_simulation(const PlannerOptions *options)
{
    return any_set(&sim_option_table, &options->sim);
}

bool planner_options_of_op_groups(const PlannerOptions *options)
{
    return any_set(&tag_table, &options->tag);
}

char *planner_options_help(void)
{
    GString *text = g_string_new("Options (--set KEY=VALUE) and their defaults:");
    options_help(&planner_table, text);
    options_help(&special_table, text);
    g_string_append(
        text,
        "\n\nOptions of the strategy, which are also the keys of --strategy FILE. Most "
        "planners take microbatches\nand recompute, data parallel planners also zero, "
        "planners of pipelines and auto also the degrees,\nmicro_batch, schedule, zero "
        "and sequence_parallel, manual all of them (docs/techniques.md has a table):");
    options_help(&strategy_table, text);
    g_string_append(text, "\n\nOptions of the planners that search for pipelines:");
    options_help(&amp_table, text);
    g_string_append(text, "\n\nOptions of the planners of op groups:");
    options_help(&tag_table, text);
    g_string_append(text, "\n\nOptions of the simulation: see kilter simulate --help");
    return g_string_free(text, FALSE);
}

const char *planner_options_target(const PlannerOptions *options)
{
#define X(id, word) word,
    static const char *const words[] = {TARGET_WORDS(X)};
#undef X
    return options->target ? words[options->target] : NULL;
}
