/* Reading YAML by a schema, with errors that name file, line and key. */
#include "data/base/yaml.h"

#include "data/base/each.h"
#include "data/base/error.h"
#include "data/base/libyaml.h"
#include "data/base/number_gap.h"
#include "data/base/text.h"
#include "data/base/yaml_lines.h"

#include <cyaml/cyaml.h>
#include <glib.h>
#include <stdbool.h>

/* --- short forms --- */

/* Where the schema has a mapping whose first key is `link`, a text may stand in its place: `inner:
 * nvlink3` becomes `inner: {link: nvlink3}`, in the same line. Returns the expanded text, NULL if
 * nothing is short; *length becomes the result's length. The caller frees it. */
static char *yaml_expand(const char *text, gsize *length, const YamlLines *lines)
{
    const GArray *shorts = yaml_lines_short(lines);
    const bool marked =
        *length > 2 && (unsigned char)*text > 0x7f; /* a byte-order mark */
    if (marked || shorts->len == 0 || !g_utf8_validate(text, (gssize)*length, NULL))
        return NULL;
    GString *out = g_string_sized_new(*length + 16 * shorts->len);
    const char *at = text;
    size_t character = 0;
    array_each (const YamlShort, edit, shorts) {
        const char *from = g_utf8_offset_to_pointer(at, (glong)(edit->from - character));
        const char *to = g_utf8_offset_to_pointer(from, (glong)(edit->to - edit->from));
        g_string_append_len(out, at, from - at);
        g_string_append(out, "{link: ");
        g_string_append_len(out, from, to - from);
        g_string_append(out, "}");
        at = to;
        character = edit->to;
    }
    g_string_append_len(out, at, text + *length - at);
    *length = out->len;
    return g_string_free(out, FALSE);
}

/* The largest YAML file: larger than any file that a person writes. */
enum { FILE_MAX_BYTES = 1 << 20 };

struct Yaml {
    char *file;
    YamlLines *lines;
    const cyaml_schema_value_t *schema;
    cyaml_data_t *data;
    GStringChunk *keys;
    GString *wrong; /* messages of yaml_wrong */
};

/* --- reading --- */

static const cyaml_config_t CONFIGURATION = {.mem_fn = libyaml_allocate,
                                             .log_level = CYAML_LOG_ERROR,
                                             .flags = CYAML_CFG_NO_ALIAS};

static bool load(Yaml *yaml, const char *text, size_t length, GError **error)
{
    yaml->lines = yaml_lines_read(yaml->file, text, length, yaml->schema, error);
    if (!yaml->lines)
        return false;
    g_autofree char *whole = yaml_expand(text, &length, yaml->lines);
    text = whole ? whole : text;
    const cyaml_err_t code = cyaml_load_data(
        (const uint8_t *)text, length, &CONFIGURATION, yaml->schema, &yaml->data, NULL);
    /* libyaml has read the lines of the text, but short forms of tags without a value are none */
    const bool unread =
        code == CYAML_ERR_LIBYAML_PARSER_INIT || code == CYAML_ERR_LIBYAML_PARSER;
    if (unread && (!whole || yaml_is_sound(yaml->file, text, length, error)))
        libyaml_no_memory();
    return code == CYAML_OK ||
           (!unread && yaml_fail(yaml, error, "", "%s", cyaml_strerror(code)));
}

bool yaml_is_sound(const char *file, const char *text, size_t length, GError **error)
{
    g_autoptr(YamlLines) lines = yaml_lines_read(file, text, length, NULL, error);
    return lines != NULL;
}

Yaml *yaml_parse(const char *file, const char *text, size_t length,
                 const struct cyaml_schema_value *schema, GError **error)
{
    g_autoptr(Yaml) yaml = g_new0(Yaml, 1);
    yaml->file = g_strdup(file);
    yaml->schema = schema;
    yaml->keys = g_string_chunk_new(0);
    yaml->wrong = g_string_new(NULL);
    if (!load(yaml, length ? text : "", length, error)) /* libyaml takes no NULL */
        return NULL;
    return g_steal_pointer(&yaml);
}

Yaml *yaml_read(const char *file, const struct cyaml_schema_value *schema, GError **error)
{
    gsize length;
    g_autofree char *text = file_read(file, FILE_MAX_BYTES, &length, error);
    return text ? yaml_parse(file, text, length, schema, error) : NULL;
}

void yaml_close(Yaml *yaml)
{
    if (!yaml)
        return;
    cyaml_free(&CONFIGURATION, yaml->schema, yaml->data, 0);
    yaml_lines_free(yaml->lines);
    g_string_chunk_free(yaml->keys);
    g_string_free(yaml->wrong, TRUE);
    g_free(yaml->file);
    g_free(yaml);
}

const char *yaml_file(const Yaml *yaml)
{
    return yaml->file;
}

const void *yaml_data(const Yaml *yaml)
{
    return yaml->data;
}

/* --- failures and numbers for readers of the data --- */

/* "FILE:LINE: KEY: text". Caller frees. */
static char *yaml_message(const Yaml *yaml, const char *key, const char *text)
{
    return g_strdup_printf("%s:%u: %.200s%s%s", yaml->file,
                           yaml_lines_at(yaml->lines, key), key, *key ? ": " : "", text);
}

static bool yaml_keep(const Yaml *yaml, const char *message)
{
    g_string_append_printf(yaml->wrong, "%s%s", yaml->wrong->len ? "; " : "", message);
    return false;
}

bool yaml_fail(const Yaml *yaml, GError **error, const char *key, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(text, format);
    g_autofree char *message = yaml_message(yaml, key, text);
    return refuse(error, "%s", message);
}

bool yaml_wrong(const Yaml *yaml, const char *key, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(text, format);
    g_autofree char *message = yaml_message(yaml, key, text);
    return yaml_keep(yaml, message);
}

bool yaml_pass_on(const Yaml *yaml, const GError *failure)
{
    return yaml_keep(yaml, failure->message);
}

bool yaml_is_good(const Yaml *yaml, GError **error)
{
    return yaml->wrong->len == 0 || refuse(error, "%s", yaml->wrong->str);
}

const char *yaml_at(const Yaml *yaml, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(key, format);
    return g_string_chunk_insert(yaml->keys, key);
}

bool yaml_quantity(const Yaml *yaml, const char *key, const char *text, YamlRange range,
                   double *value)
{
    g_autoptr(GError) failure = NULL;
    return units_read(text, range.quantity, range.low, range.high, value, &failure) ||
           yaml_wrong(yaml, key, "%s", failure->message);
}

bool yaml_uint(const Yaml *yaml, const char *key, const char *text, uint32_t low,
               uint32_t high, uint32_t *value)
{
    g_autoptr(GError) failure = NULL;
    return count_read(text, low, high, value, &failure) ||
           yaml_wrong(yaml, key, "%s", failure->message);
}

bool yaml_number(const Yaml *yaml, const char *key, const char *text, double low,
                 double high, double *value)
{
    return number_read(text, low, high, value) ||
           yaml_wrong(yaml, key, "expected a number from %g to %g%s, got '%.60s'", low,
                      high, number_gap(text), text);
}
