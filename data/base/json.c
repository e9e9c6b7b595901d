/* Values and files of JSON. */
#include "data/base/json.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/base/each.h"
#include "data/base/error.h"
#include "data/base/names.h"
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

json_t *json_texts(const GPtrArray *texts)
{
    return json_list(places_before(i, texts->len), json_string(texts->pdata[i]));
}

json_t *json_strings(char *const *text)
{
    json_t *list = json_array();
    while (text && *text)
        json_array_append_new(list, json_string(*text++));
    return list;
}

json_t *json_integers(const uint32_t *number, uint32_t n)
{
    return json_list(places_before(i, n), json_integer(number[i]));
}

json_t *json_numbers(const double *number, uint32_t n)
{
    return json_list(places_before(i, n), json_number(number[i]));
}

const char *json_word(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

char *json_canonical(json_t *value)
{
    g_assert(value);
    GString *text = g_string_new("");
    json_append(text, value, true);
    json_decref(value);
    return g_string_free(text, FALSE);
}

json_t *json_read_file(const char *file, const char *what, GError **error)
{
    gsize size;
    g_autofree char *text = file_read(file, MOST_BYTES, &size, error);
    json_error_t wrong;
    if (!text)
        return NULL;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &wrong);
    if (!root) {
        g_autofree char *valid = g_utf8_make_valid(wrong.text, -1);
        refuse(error, "%s:%d: expected a %s in JSON: %s", file, wrong.line, what, valid);
    }
    return root;
}

/* The end of the string that begins before `at`. */
static const char *string_end(const char *at)
{
    while (*at && *at != '"')
        at += *at == '\\' && at[1] ? 2 : 1;
    return at;
}

bool json_file_has(const char *file, const char *key)
{
    gsize size;
    g_autofree char *text = file_read(file, MOST_BYTES, &size, NULL);
    const size_t length = strlen(key);
    const char *at = text ? text + strspn(text, " \t\r\n") : "";
    bool has = false;
    if (*at != '{')
        return false;
    for (uint32_t depth = 0; *at && !has; at++) {
        if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == '}' || *at == ']') {
            depth--;
        } else if (*at == '"') {
            const char *end = string_end(at + 1);
            if (!*end)
                break;
            const char *after = end + 1 + strspn(end + 1, " \t\r\n");
            has = depth == 1 && *after == ':' && (size_t)(end - at - 1) == length &&
                  strncmp(at + 1, key, length) == 0;
            at = end;
        }
    }
    return has;
}

char *json_shown(const json_t *value)
{
    enum { SHOWN = 60, DIGITS = 6 };
    char *dump =
        value ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(DIGITS)) : NULL;
    g_autofree char *start = g_strdup_printf("%.*s", SHOWN, dump ? dump : "nothing");
    g_autofree char *valid = g_utf8_make_valid(start, -1);
    char *text = g_strconcat(valid, dump && strlen(dump) > SHOWN ? "..." : "", NULL);
    free(dump);
    return text;
}

/* --- texts of large values --- */

static void append_scalar(GString *text, const json_t *value)
{
    char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(JSON_DIGITS));
    g_string_append(text, dump);
    free(dump);
}

/* Strings mostly need no escapes. */
static void append_string(GString *text, const char *string, size_t length)
{
    size_t plain = 0;
    while (plain < length && (unsigned char)string[plain] >= ' ' &&
           string[plain] != '"' && string[plain] != '\\')
        plain++;
    if (plain < length) {
        json_auto_t *value = json_stringn(string, length);
        append_scalar(text, value);
        return;
    }
    g_string_append_c(text, '"');
    g_string_append_len(text, string, (gssize)length);
    g_string_append_c(text, '"');
}

static void append_integer(GString *text, json_int_t value)
{
    char digits[24];
    char *at = digits + sizeof digits;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do
        *--at = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (value < 0)
        *--at = '-';
    g_string_append_len(text, at, digits + sizeof digits - at);
}

static void append_object(GString *text, const json_t *value, bool canonical)
{
    const size_t n = json_object_size(value);
    g_autofree const char **name = g_new(const char *, n + 1);
    size_t i = 0;
    keys_each (key, value)
        name[i++] = key;
    if (canonical)
        qsort(name, n, sizeof *name, names_compare);
    g_string_append_c(text, '{');
    for (i = 0; i < n; i++) {
        g_string_append(text, i == 0 ? "" : canonical ? "," : ", ");
        append_string(text, name[i], strlen(name[i]));
        g_string_append(text, canonical ? ":" : ": ");
        json_append(text, json_object_get(value, name[i]), canonical);
    }
    g_string_append_c(text, '}');
}

void json_append(GString *text, const json_t *value, bool canonical)
{
    if (json_is_object(value)) {
        append_object(text, value, canonical);
    } else if (json_is_array(value)) {
        g_string_append_c(text, '[');
        for (size_t i = 0; i < json_array_size(value); i++) {
            g_string_append(text, i == 0 ? "" : canonical ? "," : ", ");
            json_append(text, json_array_get(value, i), canonical);
        }
        g_string_append_c(text, ']');
    } else if (json_is_string(value)) {
        append_string(text, json_string_value(value), json_string_length(value));
    } else if (json_is_integer(value)) {
        append_integer(text, json_integer_value(value));
    } else {
        append_scalar(text, value);
    }
}

bool json_fail(const JsonPlace *at, const char *key, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(reason, format);
    g_autofree char *item =
        at->item ? g_strdup_printf("%s[%zu].", at->list, at->index) : g_strdup("");
    return refuse(at->error, "%s: %s%s: %s", at->file, item, key, reason);
}

bool json_known(const JsonPlace *at, const json_t *object, const char *const *known)
{
    keys_each (key, object)
        if (!g_strv_contains(known, key))
            return json_fail(at, key, "unknown key");
    return true;
}
