/* Values and files of JSON. */
#include "data/base/json.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "data/base/error.h"
#include "data/base/text.h"

/* Ten times the largest plan of thousands of GPUs. */
enum { MOST_BYTES = 1 << 29 };

json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_unsigned(uint64_t value)
{
    if (value <= INT64_MAX)
        return json_integer((json_int_t)value);
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, value);
    return json_string(text);
}

json_t *json_text(const char *text)
{
    g_assert(text);
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    return json_string(valid);
}

char *json_canonical(json_t *value)
{
    char *text = json_dumps(value, JSON_SORT_KEYS | JSON_COMPACT);
    g_assert(text); /* only NULL has no text */
    char *copy = g_strdup(text);
    free(text);
    json_decref(value);
    return copy;
}

json_t *json_read_file(const char *file, const char *what, GError **error)
{
    g_assert(file && what);
    gsize size;
    g_autofree char *text = file_read(file, MOST_BYTES, &size, error);
    json_error_t wrong;
    if (!text)
        return NULL;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &wrong);
    if (!root) {
        g_autofree char *valid = g_utf8_make_valid(wrong.text, -1);
        kilter_fail(error, KILTER_ERROR_INPUT, "%s:%d: expected a %s in JSON: %s", file,
                    wrong.line, what, valid);
    }
    return root;
}
