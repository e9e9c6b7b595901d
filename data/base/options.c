/* Option tables: defaults, parsing, help, and the text of a value. */
#include "data/base/options.h"

#include <string.h>

#include "data/base/each.h"
#include "data/base/error.h"
#include "data/base/names.h"
#include "data/base/number_gap.h"
#include "data/base/path.h"
#include "data/base/units.h"

/* A member of any option type. */
typedef union {
    uint32_t count;
    uint64_t bytes;
    double number;
    const char *text;
} Value;

const Option *options_find(const OptionTable *table, const char *key)
{
    g_assert(table->n > 0 && key);
    return NAME_ROW(table->row, table->n, key, key);
}

bool options_obey(const OptionRule *rule, uint32_t n, const char *prefix,
                  const char *suffix, GError **error)
{
    items_each (const OptionRule, r, rule, n)
        if (r->wrong)
            return refuse(error, "%s%s%s: expected %s%s%s", prefix, r->option, suffix,
                          r->expected, r->because ? ", " : "",
                          r->because ? r->because : "");
    return true;
}

/* --- from text --- */

/* The words of a choice. Free with g_strfreev. */
static char **choices(const Option *option)
{
    return g_strsplit(option->words + 1, "|", -1);
}

static bool read_choice(const Option *option, const char *text, uint32_t *choice,
                        GError **error)
{
    g_auto(GStrv) known = choices(option);
    const uint32_t i = TEXT_PLACE(known, g_strv_length(known), text);
    if (known[i]) {
        *choice = i;
        return true;
    }
    g_autofree char *list = g_strjoinv(", ", known);
    g_autofree char *hint = names_hint(text, (const char *const *)known);
    return refuse(error, "expected one of %s, got '%s'%s", list, text, hint);
}

static bool options_read_count(const Option *option, const char *text, uint32_t *count,
                               GError **error)
{
    guint64 number;
    if (!g_ascii_string_to_unsigned(text, 10, (guint64)option->least,
                                    (guint64)option->most, &number, NULL))
        return refuse(error, "expected an integer from %.0f to %.0f, got '%s'",
                      option->least, option->most, text);
    *count = (uint32_t)number;
    return true;
}

static bool read_quantity(const char *text, Quantity quantity, double *value,
                          GError **error)
{
    double read = 0;
    if (strcmp(text, "0") != 0 && !units_parse(text, quantity, &read, error))
        return false;
    *value = read;
    return true;
}

static bool read_bytes(const char *text, uint64_t *bytes, GError **error)
{
    double value;
    if (!read_quantity(text, QUANTITY_BYTES, &value, error))
        return false;
    /* The largest number that JSON and a double hold exactly. */
    if (value > 0x1p53)
        return refuse(error, "expected at most 2^53 bytes, got '%s'", text);
    *bytes = (uint64_t)value;
    return true;
}

static bool options_read_text(const Option *option, const char *text, const char **kept,
                              GError **error)
{
    if (option->read)
        return option->read(text, kept, error);
    *kept = g_intern_string(text);
    return true;
}

/* Whether the file that the choice stands for, if any, can be read. */
static bool check_choice(const Option *option, uint32_t choice, GError **error)
{
    const char *kept = NULL;
    if (!option->read)
        return true;
    g_auto(GStrv) file = g_strsplit(option->files, "|", -1);
    g_autofree char *path = *file[choice] ? path_bundled(file[choice], error) : NULL;
    return !*file[choice] || (path && option->read(path, &kept, error));
}

static bool options_read_member(const Option *option, const char *text, void *member,
                                GError **error)
{
    switch (option->type) {
    case OPTION_CHOICE:
        return read_choice(option, text, member, error) &&
               check_choice(option, *(uint32_t *)member, error);
    case OPTION_COUNT:
        return options_read_count(option, text, member, error);
    case OPTION_NUMBER:
        return number_read(text, option->least, option->most, member) ||
               refuse(error, "expected a number from %.10g to %.10g%s, got '%s'",
                      option->least, option->most, number_gap(text), text);
    case OPTION_BYTES:
        return read_bytes(text, member, error);
    case OPTION_TIME:
        return read_quantity(text, QUANTITY_TIME, member, error);
    case OPTION_TEXT:
    case OPTION_DATA: {
        const bool absent = *text && !g_file_test(text, G_FILE_TEST_EXISTS);
        g_autofree char *bundled = absent ? path_find(text) : NULL;
        if (option->type == OPTION_DATA && absent && !bundled)
            return refuse(error, "%s: no such file", text);
        return options_read_text(option, bundled ? bundled : text, member, error);
    }
    }
    g_assert_not_reached();
}

bool option_set(const Option *option, void *options, const char *value, GError **error)
{
    g_assert(option && options && value);
    if (options_read_member(option, value, (char *)options + option->offset, error))
        return true;
    g_prefix_error(error, "option '%s': ", option->key);
    return false;
}

/* A default is no file, so that none is looked for: a table is filled for each plan. */
static void set_default(const Option *option, void *member)
{
    const bool is_text = option->type == OPTION_TEXT || option->type == OPTION_DATA;
    if (is_text)
        *(const char **)member = NULL;
    const bool good = is_text ? options_read_text(option, option->value, member, NULL)
                              : options_read_member(option, option->value, member, NULL);
    g_assert(good);
}

void options_init(const OptionTable *table, void *options)
{
    for (uint32_t i = 0; i < table->n; i++)
        set_default(&table->row[i], (char *)options + table->row[i].offset);
}

/* --- to text --- */

static char *quantity_text(double value, Quantity quantity)
{
    return value == 0 ? g_strdup("0") : units_exact(value, quantity);
}

static char *choice_text(const Option *option, uint32_t choice)
{
    g_assert(choice < G_MAXUINT32);
    g_auto(GStrv) known = choices(option);
    return g_strdup(known[choice]);
}

char *option_get(const Option *option, const void *options)
{
    const void *member = (const char *)options + option->offset;
    switch (option->type) {
    case OPTION_CHOICE:
        return choice_text(option, *(const uint32_t *)member);
    case OPTION_COUNT:
        return g_strdup_printf("%u", *(const uint32_t *)member);
    case OPTION_NUMBER:
        return number_exact(*(const double *)member);
    case OPTION_BYTES:
        return quantity_text((double)*(const uint64_t *)member, QUANTITY_BYTES);
    case OPTION_TIME:
        return quantity_text(*(const double *)member, QUANTITY_TIME);
    case OPTION_TEXT:
    case OPTION_DATA: {
        const char *text = *(const char *const *)member;
        return g_strdup(text ? text : option->value);
    }
    }
    g_assert_not_reached();
}

char *option_file(const Option *option, const void *options)
{
    g_autofree char *value = option->files ? option_get(option, options) : NULL;
    if (!value || !*value)
        return NULL;
    if (option->type != OPTION_CHOICE) {
        g_auto(GStrv) part = g_strsplit(option->files, "%s", 2);
        g_autofree char *name = g_strndup(value, strcspn(value, "/"));
        return g_strconcat(part[0], name, part[1], NULL);
    }
    const uint32_t choice = *(const uint32_t *)((const char *)options + option->offset);
    g_auto(GStrv) file = g_strsplit(option->files, "|", -1);
    g_assert(choice < g_strv_length(file));
    return *file[choice] ? g_strdup(file[choice]) : NULL;
}

bool option_is_default(const Option *option, const void *options)
{
    static const size_t size[] = {
        [OPTION_CHOICE] = sizeof(uint32_t),  [OPTION_COUNT] = sizeof(uint32_t),
        [OPTION_NUMBER] = sizeof(double),    [OPTION_BYTES] = sizeof(uint64_t),
        [OPTION_TIME] = sizeof(double),      [OPTION_TEXT] = sizeof(const char *),
        [OPTION_DATA] = sizeof(const char *)};
    Value usual = {0};
    set_default(option, &usual);
    return memcmp(&usual, (const char *)options + option->offset, size[option->type]) ==
           0;
}

void options_keys(const OptionTable *table, GString *text)
{
    for (uint32_t i = 0; i < table->n; i++)
        g_string_append_printf(text, "%s%s", text->len ? ", " : "", table->row[i].key);
}

char *option_help(const Option *option)
{
    return path_line("commands/keys.txt", option->key);
}

void options_help(const OptionTable *table, GString *text)
{
    items_each (const Option, option, table->row, table->n) {
        g_autofree char *help = option_help(option);
        g_string_append_printf(text, "\n  %-18s%-11s%s%s%s", option->key,
                               *option->value ? option->value : "-",
                               option->words ? option->words + 1 : "",
                               option->words ? ": " : "", help);
    }
}
