/* Reading keys of a configuration file, with errors that name the key. */
#include "data/models/config.h"

#include "data/base/error.h"

#include <string.h>

bool config_good(const Config *config)
{
    return !config->failed;
}

bool config_wrong(Config *config, const char *key, const char *format, ...)
{
    if (config->failed)
        return false;
    va_list args;
    va_start(args, format);
    g_autofree char *reason = g_strdup_vprintf(format, args);
    va_end(args);
    config->failed = true;
    return kilter_fail(config->error, KILTER_ERROR_INPUT, "%s: %s%s%s: %s", config->file,
                       config->nested ? config->nested : "", config->nested ? "." : "",
                       key, reason);
}

/* Fails with the value of a key, and the value that was expected. */
static void unexpected(Config *config, const char *key, const char *what,
                       const json_t *value)
{
    enum { SHOWN = 60, DIGITS = 6 };
    char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(DIGITS));
    config_wrong(config, key, "expected %s, got %.*s%s", what, SHOWN, dump ? dump : "?",
                 dump && strlen(dump) > SHOWN ? "..." : "");
    free(dump);
}

/* The value of the first key of "a|b|c" that has one; *key gets its name, or the first name. The
 * caller frees *key. */
static const json_t *find(const Config *config, const char *keys, char **key)
{
    g_auto(GStrv) spelling = g_strsplit(keys, "|", -1);
    for (uint32_t i = 0; spelling[i]; i++) {
        const json_t *value = json_object_get(config->root, spelling[i]);
        if (value && !json_is_null(value)) {
            *key = g_strdup(spelling[i]);
            return value;
        }
    }
    *key = g_strdup(spelling[0]);
    return NULL;
}

const json_t *config_value(const Config *config, const char *keys)
{
    g_autofree char *key = NULL;
    return find(config, keys, &key);
}

uint32_t config_size(Config *config, const char *keys, uint32_t least, uint32_t otherwise)
{
    g_autofree char *key = NULL;
    const json_t *value = find(config, keys, &key);
    if (!value || config->failed)
        return otherwise;
    const json_int_t size = json_is_integer(value) ? json_integer_value(value) : -1;
    if (size >= least && size <= CONFIG_MOST_SIZE)
        return (uint32_t)size;
    g_autofree char *what =
        g_strdup_printf("an integer from %u to %d", least, CONFIG_MOST_SIZE);
    unexpected(config, key, what, value);
    return otherwise;
}

uint32_t config_size_or_none(Config *config, const char *key, uint32_t least,
                             uint32_t otherwise)
{
    const json_t *value = json_object_get(config->root, key);
    return value && json_is_null(value) ? 0 : config_size(config, key, least, otherwise);
}

double config_number(Config *config, const char *keys, double most, double otherwise)
{
    g_autofree char *key = NULL;
    const json_t *value = find(config, keys, &key);
    if (!value || config->failed)
        return otherwise;
    const double number = json_is_number(value) ? json_number_value(value) : -1;
    if (number >= 0 && number <= most)
        return number;
    g_autofree char *what = g_strdup_printf("a number from 0 to %g", most);
    unexpected(config, key, what, value);
    return otherwise;
}

bool config_flag(Config *config, const char *keys, bool otherwise)
{
    g_autofree char *key = NULL;
    const json_t *value = find(config, keys, &key);
    if (!value || config->failed)
        return otherwise;
    if (!json_is_boolean(value))
        unexpected(config, key, "true or false", value);
    return json_is_true(value);
}

const char *config_text(Config *config, const char *keys)
{
    g_autofree char *key = NULL;
    const json_t *value = find(config, keys, &key);
    if (value && !json_is_string(value))
        unexpected(config, key, "a string", value);
    return json_string_value(value);
}
