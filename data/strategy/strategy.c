/* The table of a strategy's keys: their texts, and files. */
#include "data/strategy/strategy.h"

#include <jansson.h>
#include <string.h>
#include <yaml.h>

#include "data/base/assert.h"
#include "data/base/error.h"
#include "data/base/libyaml.h"
#include "data/base/names.h"
#include "data/base/text.h"
#include "data/base/units.h"
#include "data/base/yaml_lines.h"

#define X(...) OPTION_ROW(Strategy, __VA_ARGS__)
static const Option row[] = {STRATEGY_TABLE(X)};
#undef X
const OptionTable strategy_table = {row, G_N_ELEMENTS(row)};

/* Limits on one value of a file: its length, and its number of items. */
enum { TEXT_MOST_BYTES = 1 << 20, MOST_ITEMS = 65536 };

/* --- texts --- */

/* Calls `read` for each item between spaces and commas; returns the items joined by spaces, or NULL
 * with an error. */
static char *each_item(const char *text, bool (*read)(const char *item, GError **error),
                       GError **error)
{
    if (strlen(text) > TEXT_MOST_BYTES)
        return refused(error, "expected at most %d bytes", TEXT_MOST_BYTES);
    g_auto(GStrv) item = g_strsplit_set(text, ", \t\n[]", -1);
    g_autoptr(GString) joined = g_string_new("");
    for (uint32_t i = 0, n = 0; item[i]; i++) {
        if (!*item[i])
            continue;
        if (n++ == MOST_ITEMS)
            return refused(error, "expected at most %d items", MOST_ITEMS);
        if (!read(item[i], error))
            return NULL;
        g_string_append_printf(joined, "%s%s", joined->len ? " " : "", item[i]);
    }
    return g_string_free(g_steal_pointer(&joined), FALSE);
}

static bool read_items(const char *text, const char **kept,
                       bool (*read)(const char *item, GError **error), GError **error)
{
    g_autofree char *joined = each_item(text, read, error);
    if (joined)
        *kept = *joined ? g_intern_string(joined) : NULL;
    return joined != NULL;
}

static bool is_count(const char *item, GError **error)
{
    return g_ascii_string_to_unsigned(item, 10, 0, UINT16_MAX, NULL, NULL) ||
           refuse(error, "expected integers from 0 to %d, got '%s'", UINT16_MAX, item);
}

bool strategy_list(const char *text, const char **kept, GError **error)
{
    return read_items(text, kept, is_count, error);
}

/* The same of lists of items, between `;`. */
static bool read_lists(const char *text, const char **kept,
                       bool (*read)(const char *item, GError **error), GError **error)
{
    g_auto(GStrv) list = g_strsplit(text, ";", MOST_ITEMS);
    g_autoptr(GString) joined = g_string_new("");
    for (uint32_t i = 0; list[i]; i++) {
        g_autofree char *one = each_item(list[i], read, error);
        if (!one)
            return false;
        g_string_append_printf(joined, "%s%s", i ? "; " : "", one);
    }
    *kept = joined->len ? g_intern_string(joined->str) : NULL;
    return true;
}

bool strategy_lists(const char *text, const char **kept, GError **error)
{
    return read_lists(text, kept, is_count, error);
}

static bool is_tokens(const char *item, GError **error)
{
    const double most = 1e15;
    double tokens;
    return number_read(item, 0, most, &tokens) ||
           refuse(error, "expected numbers of tokens from 0 to %g, got '%s'", most, item);
}

bool strategy_tokens(const char *text, const char **kept, GError **error)
{
    g_autofree char *file = *text == '@' ? text_read(text + 1, error) : NULL;
    if (*text == '@' && !file)
        return false;
    if (file)
        g_strdelimit(g_strchomp(file), "\n", ';');
    if (!read_lists(file ? file : text, kept, is_tokens, error))
        return false;
    g_auto(GStrv) list = g_strsplit(*kept ? *kept : "1", "; ", -1);
    for (uint32_t i = 0; list[i]; i++)
        if (strspn(list[i], " 0.") == strlen(list[i]))
            return refuse(error, "list %u: expected some tokens, got '%s'", i, list[i]);
    return true;
}

static bool is_share(const char *item, GError **error)
{
    const double least = 1e-9, most = 1e9;
    double share;
    return number_read(item, least, most, &share) ||
           refuse(error, "expected numbers from %g to %g, got '%s'", least, most, item);
}

bool strategy_shares(const char *text, const char **kept, GError **error)
{
    return read_items(text, kept, is_share, error);
}

static bool is_mode(const char *item, GError **error)
{
    g_autofree char *mode = g_strndup(item, strcspn(item, "@"));
    const char *at = strchr(item, '@');
    bool good = recompute_read(mode) != RECOMPUTE_UNKNOWN || strcmp(item, "auto") == 0;
    if (good && at) {
        g_auto(GStrv) range = g_strsplit(at + 1, "-", 2);
        for (uint32_t i = 0; range[i]; i++)
            good &= is_count(range[i], NULL);
        good &= range[0] != NULL;
    }
    if (good)
        return true;
    g_autofree char *names = recompute_names();
    return refuse(error,
                  "expected auto, or one of %s, each as it is or with layers as in "
                  "full@1-14, and classes together as in core_attn+mlp, got '%s'",
                  names, item);
}

bool strategy_recompute(const char *text, const char **kept, GError **error)
{
    if (!read_items(text, kept, is_mode, error))
        return false;
    if (g_strcmp0(*kept, "none") == 0)
        *kept = NULL;
    if (*kept && strstr(*kept, "auto") && strcmp(*kept, "auto") != 0)
        return refuse(error, "expected auto by itself, got '%s'", *kept);
    return true;
}

static bool is_switch(const char *item, GError **error)
{
    return strcmp(item, "on") == 0 || strcmp(item, "off") == 0 ||
           refuse(error, "expected on or off, got '%s'", item);
}

bool strategy_switches(const char *text, const char **kept, GError **error)
{
    if (!read_items(text, kept, is_switch, error))
        return false;
    if (g_strcmp0(*kept, "off") == 0)
        *kept = NULL;
    return true;
}

bool strategy_offload(const char *text, const char **kept, GError **error)
{
    static const char *const TEXT[] = {
        "optimizer",   "optimizer+parameters",  "optimizer+parameters+activations",
        "activations", "optimizer+activations", NULL};
    *kept = strcmp(text, "none") == 0 ? NULL : g_intern_string(text);
    return !*kept || g_strv_contains(TEXT, text) ||
           refuse(
               error,
               "expected none, or optimizer, optimizer+parameters, activations, joined "
               "by + in this order: '%s'",
               text);
}

bool strategy_offloads(const Strategy *strategy, Offload part)
{
    static const char *const WORD[] = {"optimizer", "parameters", "activations"};
    return strategy->offload && strstr(strategy->offload, WORD[part]);
}

/* --- the whole --- */

#define X(Y, id, name, chunks, least, most, v, splits, successive) \
    {name, chunks, least, most, v, splits, successive},
static const ScheduleRow SCHEDULE[SCHEDULES] = {SCHEDULE_TABLE(X, )};
#undef X

const ScheduleRow *schedule_row(Schedule schedule)
{
    g_assert(schedule < SCHEDULES);
    return &SCHEDULE[schedule];
}

const char *schedule_name(Schedule schedule)
{
    return schedule_row(schedule)->name;
}

bool schedule_splits(Schedule schedule)
{
    return schedule_row(schedule)->splits;
}

uint32_t schedule_group(Schedule schedule, uint32_t stage, uint32_t n_groups)
{
    const uint32_t at = stage % n_groups;
    return schedule_row(schedule)->v && stage >= n_groups ? n_groups - 1 - at : at;
}

uint32_t schedule_stage(Schedule schedule, uint32_t chunk, uint32_t group,
                        uint32_t n_groups)
{
    KILTER_ASSERT(group < n_groups);
    return chunk * n_groups +
           (schedule_row(schedule)->v && chunk > 0 ? n_groups - 1 - group : group);
}

uint32_t schedule_lag(Schedule schedule, uint32_t before)
{
    return schedule == SCHEDULE_ZB_H1   ? before
           : schedule == SCHEDULE_ZB_H2 ? 2 * before
                                        : 0;
}

void strategy_init(Strategy *strategy)
{
    *strategy = (Strategy){0};
    options_init(&strategy_table, strategy);
}

bool strategy_is_default(const Strategy *strategy)
{
    return all_of(i, strategy_table.n,
                  option_is_default(&strategy_table.row[i], strategy));
}

bool strategy_lays_out(const Strategy *strategy)
{
    return strategy_beside(strategy, "offload") != NULL;
}

const char *strategy_beside(const Strategy *strategy, const char *keys)
{
    g_auto(GStrv) known = g_strsplit(keys, ", ", -1);
    items_each (const Option, option, strategy_table.row, strategy_table.n)
        if (!option_is_default(option, strategy) &&
            !g_strv_contains((const char *const *)known, option->key))
            return option->key;
    return NULL;
}

/* --- files --- */

/* Reads the values of the top mapping one after the other. */
typedef struct {
    const char *file;
    const YamlLines *lines;
    Strategy *strategy;
    yaml_document_t document;
    GError **error;
} Reading;

static bool fail_key(const Reading *r, const char *key, const char *message)
{
    return refuse(r->error, "%s:%u: %.60s: %s", r->file, yaml_lines_at(r->lines, key),
                  key, message);
}

/* Writes a value as text in the form of --set. */
static bool node_text(Reading *r, const char *key, int id, uint32_t depth, GString *text)
{
    const yaml_node_t *node = yaml_document_get_node(&r->document, id);
    if (node->type == YAML_SCALAR_NODE) {
        g_string_append(text, (const char *)node->data.scalar.value);
        return true;
    }
    if (node->type != YAML_SEQUENCE_NODE || depth > 1)
        return fail_key(r, key, "expected a value, a list or a list of lists");
    for (const yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        const bool lists =
            yaml_document_get_node(&r->document, *item)->type == YAML_SEQUENCE_NODE;
        if (item > node->data.sequence.items.start)
            g_string_append(text, lists ? "; " : " ");
        if (!node_text(r, key, *item, depth + 1, text))
            return false;
    }
    return true;
}

static bool read_pair(Reading *r, const yaml_node_pair_t *pair)
{
    const yaml_node_t *name = yaml_document_get_node(&r->document, pair->key);
    const char *key = (const char *)name->data.scalar.value;
    const Option *option = options_find(&strategy_table, key);
    g_autoptr(GString) text = g_string_new("");
    g_autoptr(GError) wrong = NULL;
    if (!option) {
        g_autoptr(GString) keys = g_string_new("");
        options_keys(&strategy_table, keys);
        g_auto(GStrv) known = g_strsplit(keys->str, ", ", -1);
        g_autofree char *expected = names_expected(key, (const char *const *)known);
        g_autofree char *message = g_strconcat("unknown key; ", expected, NULL);
        return fail_key(r, key, message);
    }
    if (!node_text(r, key, pair->value, 0, text))
        return false;
    return option_set(option, r->strategy, text->str, &wrong) ||
           fail_key(r, key, wrong->message);
}

static bool read_document(Reading *r)
{
    const yaml_node_t *root = yaml_document_get_root_node(&r->document);
    if (!root || root->type != YAML_MAPPING_NODE)
        return refuse(r->error, "%s:1: expected keys of a strategy, such as pp: 4",
                      r->file);
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         pair < root->data.mapping.pairs.top; pair++)
        if (!read_pair(r, pair))
            return false;
    return true;
}

bool strategy_parse(const char *file, const char *text, size_t length, Strategy *strategy,
                    GError **error)
{
    g_autoptr(YamlLines) lines = yaml_lines_read(file, text, length, NULL, error);
    if (!lines)
        return false;
    Strategy read = *strategy;
    Reading r = {.file = file, .lines = lines, .strategy = &read, .error = error};
    bool good = libyaml_read(text, length, &r.document);
    if (good) {
        good = read_document(&r);
        yaml_document_delete(&r.document);
    } else {
        refuse(error, "%s: not valid YAML", file);
    }
    if (good)
        *strategy = read;
    return good;
}

bool strategy_read(const char *file, Strategy *strategy, GError **error)
{
    gsize length;
    g_autofree char *text = file_read(file, TEXT_MOST_BYTES, &length, error);
    return text && strategy_parse(file, text, length, strategy, error);
}

json_t *strategy_json(const Strategy *strategy)
{
    json_t *object = json_object();
    items_each (const Option, option, strategy_table.row, strategy_table.n) {
        if (option_is_default(option, strategy))
            continue;
        g_autofree char *text = option_get(option, strategy);
        json_object_set_new(object, option->key,
                            option->type == OPTION_COUNT
                                ? json_integer(g_ascii_strtoll(text, NULL, 10))
                                : json_string(text));
    }
    return object;
}
