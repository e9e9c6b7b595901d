#include "experiments/planners/amp_options.h"

#include <string.h>

#include "data/data.h"

typedef enum { COUNT, CHOICE, TEXT } Type;

typedef struct {
    Type type;
    size_t offset;
    const char *key, *value, *help;
} Entry;

static const Entry entry[] = {
#define X(type, member, key, value, help) \
    {type, offsetof(AmpPlanOptions, member), key, value, help},
    AMP_OPTION_TABLE(X)
#undef X
};

static const uint32_t MAX_COUNT = 1000000;

uint32_t amp_option_count(void)
{
    return G_N_ELEMENTS(entry);
}

const char *amp_option_key(uint32_t index)
{
    return entry[index].key;
}

char *amp_option_text(uint32_t index)
{
    const Entry *option = &entry[index];
    return g_strdup_printf("%s=%s: %s", option->key, option->value, option->help);
}

static const Entry *find(const char *key)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(entry); i++)
        if (strcmp(entry[i].key, key) == 0)
            return &entry[i];
    return NULL;
}

bool amp_options_has(const char *key)
{
    return find(key) != NULL;
}

static char **choices_of(const Entry *option)
{
    g_autofree char *list = g_strndup(option->help, strcspn(option->help, ":"));
    return g_strsplit(list, "|", -1);
}

static bool set_choice(const Entry *option, const char *value, uint32_t *choice,
                       GError **error)
{
    g_auto(GStrv) name = choices_of(option);
    for (uint32_t i = 0; name[i]; i++)
        if (strcmp(name[i], value) == 0) {
            *choice = i;
            return true;
        }
    g_autofree char *known = g_strjoinv(", ", name);
    return kilter_fail(error, KILTER_ERROR_INPUT,
                       "option '%s': expected one of %s, got '%s'", option->key, known,
                       value);
}

static bool set_count(const Entry *option, const char *value, uint32_t *count,
                      GError **error)
{
    guint64 number;
    if (!g_ascii_string_to_unsigned(value, 10, 0, MAX_COUNT, &number, NULL))
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "option '%s': expected an integer from 0 to %u, got '%s'",
                           option->key, MAX_COUNT, value);
    *count = (uint32_t)number;
    return true;
}

bool amp_options_set(AmpPlanOptions *options, const char *key, const char *value,
                     GError **error)
{
    const Entry *option = find(key);
    void *member = (char *)options + option->offset;
    if (option->type == CHOICE)
        return set_choice(option, value, member, error);
    if (option->type == COUNT)
        return set_count(option, value, member, error);
    *(const char **)member = g_intern_string(value);
    return true;
}

void amp_options_init(AmpPlanOptions *options)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(entry); i++)
        amp_options_set(options, entry[i].key, entry[i].value, NULL);
}

void amp_options_list(const AmpPlanOptions *options, GStrvBuilder *list)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(entry); i++) {
        const void *member = (const char *)options + entry[i].offset;
        g_auto(GStrv) name = entry[i].type == CHOICE ? choices_of(&entry[i]) : NULL;
        g_autofree char *value =
            entry[i].type == TEXT    ? g_strdup(*(const char *const *)member)
            : entry[i].type == COUNT ? g_strdup_printf("%u", *(const uint32_t *)member)
                                     : g_strdup(name[*(const uint32_t *)member]);
        if (strcmp(value, entry[i].value) != 0)
            g_strv_builder_add_many(list, entry[i].key, value, NULL);
    }
}
