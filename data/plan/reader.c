/* Members of a plan file, with errors that name the key. */
#include "data/plan/reader.h"

#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/text.h"
#include "data/base/units.h"

#include <math.h>

bool reader_fail(const Reader *r, const char *key, size_t i, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(reason, format);
    g_autofree char *item =
        i == READER_WHOLE ? g_strdup("") : g_strdup_printf("[%zu]", i);
    return refuse(r->error, "%s: %s%s: %s", r->file, key, item, reason);
}

bool reader_expected(const Reader *r, const char *key, size_t i, const char *what,
                     const json_t *value)
{
    g_autofree char *shown = json_shown(value);
    return reader_fail(r, key, i, "expected %s, got %s", what, shown);
}

/* --- scalars --- */

bool reader_integer_value(const json_t *value, uint64_t max, uint64_t *result)
{
    if (json_is_integer(value)) {
        *result = (uint64_t)json_integer_value(value);
        return json_integer_value(value) >= 0 && *result <= max;
    }
    /* Numbers above 2^63 - 1, and only these, are strings. */
    return max > INT64_MAX && json_is_string(value) &&
           g_ascii_string_to_unsigned(json_string_value(value), 10,
                                      (uint64_t)INT64_MAX + 1, max, result, NULL);
}

bool reader_integer(const Reader *r, const char *key, uint64_t max, uint64_t *result)
{
    const json_t *value = json_object_get(r->root, key);
    if (reader_integer_value(value, max, result))
        return true;
    g_autofree char *what =
        g_strdup_printf("an integer from 0 to %" G_GUINT64_FORMAT, max);
    return reader_expected(r, key, READER_WHOLE, what, value);
}

bool reader_seconds(const Reader *r, const char *key, bool may_be_infinite,
                    double *result)
{
    const json_t *value = json_object_get(r->root, key);
    *result = json_is_null(value) ? INFINITY : json_number_value(value);
    if (json_is_number(value) ? number_in(*result, 0, 1 / NUMBER_LEAST)
                              : json_is_null(value) && may_be_infinite)
        return true;
    return reader_expected(r, key, READER_WHOLE,
                           may_be_infinite ? "seconds, or null for infinity" : "seconds",
                           value);
}

bool reader_bool(const Reader *r, const char *key, bool *result)
{
    const json_t *value = json_object_get(r->root, key);
    *result = json_is_true(value);
    return json_is_boolean(value) ||
           reader_expected(r, key, READER_WHOLE, "true or false", value);
}

bool reader_text(const Reader *r, const char *key, char **result)
{
    const json_t *value = json_object_get(r->root, key);
    *result = g_strdup(json_string_value(value));
    return *result || reader_expected(r, key, READER_WHOLE, "a string", value);
}

bool reader_array(const Reader *r, const char *key, json_t **array)
{
    *array = json_object_get(r->root, key);
    return json_is_array(*array) ||
           reader_expected(r, key, READER_WHOLE, "an array", *array);
}
