/* Reading YAML by a schema, with errors that name file, line and key. */
#include "data/base/yaml.h"

#include "data/base/each.h"
#include "data/base/error.h"
#include "data/base/libyaml.h"
#include "data/base/names.h"
#include "data/base/number_gap.h"
#include "data/base/text.h"
#include "data/base/yaml_lines.h"

#include <cyaml/cyaml.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>
#include <yaml.h>

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
};

/* --- libcyaml's messages about failures --- */

/* libcyaml logs one message, then where it was, innermost first:
 *
 *     Load: Unexpected key: gpsu
 *     Load: Backtrace:
 *       in mapping (line: 5, column: 11)
 *       in sequence entry '2' (line: 5, column: 5)
 *       in mapping field 'machines' (line: 3, column: 3)
 *
 * Its line numbers are those of the event before, and its names are not paths, so only the names
 * are used. */
typedef struct {
    char *message; /* after "Load: " */
    /* "name" or "[1]", innermost first; "" for a mapping between two fields */
    GPtrArray *trail;
} Log;

static void log_line(cyaml_log_t level, void *context, const char *format, va_list args)
{
    (void)level;
    Log *log = context;
    g_autofree char *line = g_strdup_vprintf(format, args);
    g_strchomp(line);
    const char *quote = strchr(line, '\'');
    if (g_str_has_prefix(line, "Load: ")) {
        if (!log->message && strcmp(line, "Load: Backtrace:") != 0)
            log->message = g_strdup(line + strlen("Load: "));
    } else if (g_str_has_prefix(line, "  in mapping field '")) {
        const char *end = strchr(quote + 1, '\'');
        g_ptr_array_add(log->trail, g_strndup(quote + 1, end ? end - quote - 1 : 0));
    } else if (g_str_has_prefix(line, "  in sequence entry '")) {
        /* counted from 1; 0: none yet */
        guint64 entry = g_ascii_strtoull(quote + 1, NULL, 10);
        g_ptr_array_add(log->trail, entry ? g_strdup_printf("[%u]", (unsigned)(entry - 1))
                                          : g_strdup(""));
    } else {
        g_ptr_array_add(log->trail, g_strdup(""));
    }
}

/* The path of the trail without its innermost `skip` steps. */
static char *trail_path(const Log *log, uint32_t skip)
{
    GString *path = g_string_new(NULL);
    for (uint32_t i = log->trail->len; i-- > skip;) {
        const char *step = log->trail->pdata[i];
        if (path->len && step[0] && step[0] != '[')
            g_string_append_c(path, '.');
        g_string_append(path, step);
    }
    return g_string_free(path, FALSE);
}

/* The schema at that place; NULL if the trail does not match the schema. */
static const cyaml_schema_value_t *trail_schema(const Log *log, uint32_t skip,
                                                const cyaml_schema_value_t *schema)
{
    for (uint32_t i = log->trail->len; schema && i-- > skip;) {
        const char *step = log->trail->pdata[i];
        if (step[0] == '[' && schema->type == CYAML_SEQUENCE) {
            schema = schema->sequence.entry;
        } else if (step[0] && schema->type == CYAML_MAPPING) {
            schema = yaml_schema_of(schema, step);
        }
    }
    return schema;
}

/* The keys of a mapping. Free with g_strfreev. */
static char **keys_of(const cyaml_schema_value_t *schema)
{
    g_autoptr(GStrvBuilder) keys = g_strv_builder_new();
    if (schema && schema->type == CYAML_MAPPING)
        for (const cyaml_schema_field_t *field = schema->mapping.fields; field->key;
             field++)
            g_strv_builder_add(keys, field->key);
    return g_strv_builder_end(keys);
}

/* The path of a key in a mapping below a schema, as "machines[].nic", that of the nearest mapping
 * `deep` below; false: there is none. */
static bool yaml_elsewhere(const cyaml_schema_value_t *schema, const char *key,
                           uint32_t deep, GString *path)
{
    for (; schema->type == CYAML_SEQUENCE; schema = schema->sequence.entry)
        g_string_append(path, "[]");
    g_string_append_c(path, '.');
    const gsize here = path->len;
    if (schema->type == CYAML_MAPPING)
        for (const cyaml_schema_field_t *f = schema->mapping.fields; f->key; f++) {
            g_string_append(path, f->key);
            if (deep ? yaml_elsewhere(&f->value, key, deep - 1, path)
                     : strcmp(f->key, key) == 0)
                return true;
            g_string_truncate(path, here);
        }
    return false;
}

/* The end of a message about an unknown key of a mapping; caller frees. */
static char *yaml_expected(const Yaml *yaml, const char *name,
                           const cyaml_schema_value_t *of)
{
    g_auto(GStrv) known = keys_of(of);
    g_autofree char *near = names_hint(name, (const char *const *)known);
    g_autoptr(GString) path = g_string_new(NULL);
    const char *other = names_synonym(name);
    for (uint32_t deep = 0; !*near && deep < 4; deep++, g_string_truncate(path, 0))
        if (yaml_elsewhere(yaml->schema, other, deep, path))
            return g_strdup_printf("did you mean '%s'?", path->str + 1);
    return names_expected(name, (const char *const *)known);
}

static const char *in_words(const char *name)
{
    static const struct {
        const char *name, *words;
    } KIND[] = {
        {"MAPPING", "a mapping"},
        {"SEQUENCE", "a list"},
        {"STRING", "a text"},
        {"SCALAR", "a text"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(KIND); i++)
        if (g_str_has_prefix(name, KIND[i].name))
            return KIND[i].words;
    return name;
}

/* The name that libcyaml gives after "what: ". */
static const char *after_colon(const char *message)
{
    const char *colon = strstr(message, ": ");
    return colon ? colon + 2 : message;
}

static bool fail_loading(const Yaml *yaml, cyaml_err_t code, const Log *log,
                         GError **error)
{
    const char *message = log->message ? log->message : cyaml_strerror(code);
    const char *name = after_colon(message);
    g_autofree char *place = trail_path(log, 0);
    if (code == CYAML_ERR_INVALID_KEY || code == CYAML_ERR_MAPPING_FIELD_MISSING) {
        /* The innermost field of the trail is the field before, in the same mapping, if there is
         * one. */
        const char *innermost = log->trail->len ? log->trail->pdata[0] : "[";
        uint32_t skip = innermost[0] && innermost[0] != '[';
        g_autofree char *around = trail_path(log, skip);
        g_autofree char *key = g_strconcat(around, *around ? "." : "", name, NULL);
        if (code == CYAML_ERR_MAPPING_FIELD_MISSING)
            return yaml_fail(yaml, error, key, "missing; expected this key");
        g_autofree char *expected =
            yaml_expected(yaml, name, trail_schema(log, skip, yaml->schema));
        return yaml_fail(yaml, error, key, "unknown key; %s", expected);
    }
    if (code == CYAML_ERR_INVALID_VALUE && g_str_has_prefix(message, "Expecting ")) {
        const char *wanted = message + strlen("Expecting ");
        return yaml_fail(yaml, error, place, "expected %s, got %s", in_words(wanted),
                         in_words(name));
    }
    if (code == CYAML_ERR_STRING_LENGTH_MIN)
        return yaml_fail(yaml, error, place, "expected a text, got nothing");
    if (code == CYAML_ERR_STRING_LENGTH_MAX)
        return yaml_fail(yaml, error, place, "expected a shorter text");
    if (code == CYAML_ERR_SEQUENCE_ENTRIES_MIN)
        return yaml_fail(yaml, error, place, "expected at least one entry");
    return yaml_fail(yaml, error, place, "%s", message);
}

/* --- keys --- */

/* The collected messages about wrong keys. */
typedef struct {
    const Yaml *yaml;
    yaml_document_t *document;
    uint32_t n;
    GString *messages;
    char *meant; /* the nearest known key to the last unknown key, as a path */
} Faults;

/* A key that the schema does not have, or a required one (`missing`) that the text lacks. */
static void add_fault(Faults *faults, const char *key, bool missing,
                      const cyaml_schema_value_t *schema)
{
    g_autoptr(GError) error = NULL;
    const char *name = strrchr(key, '.') ? strrchr(key, '.') + 1 : key;
    if (missing && g_strcmp0(faults->meant, key) == 0)
        return; /* it is there under a misspelt name */
    if (missing) {
        yaml_fail(faults->yaml, &error, key, "missing; expected this key");
    } else {
        g_autofree char *expected = yaml_expected(faults->yaml, name, schema);
        const char *quote = strchr(expected, '\'');
        put_block(faults->meant,
                  quote ? g_strdup_printf("%.*s%.*s", (int)(name - key), key,
                                          (int)strcspn(quote + 1, "'"), quote + 1)
                        : NULL);
        yaml_fail(faults->yaml, &error, key, "unknown key; %s", expected);
    }
    g_string_append_printf(faults->messages, "%s%s", faults->n++ ? "; " : "",
                           error->message);
}

static bool yaml_has_key(const Faults *faults, const yaml_node_t *node, const char *key)
{
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *found = yaml_document_get_node(faults->document, pair->key);
        if (found && found->type == YAML_SCALAR_NODE &&
            strcmp((const char *)found->data.scalar.value, key) == 0)
            return true;
    }
    return false;
}

static void check(Faults *faults, int id, const cyaml_schema_value_t *schema,
                  const char *path);

static void check_mapping(Faults *faults, const yaml_node_t *node,
                          const cyaml_schema_value_t *schema, const char *path)
{
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(faults->document, pair->key);
        if (!key || key->type != YAML_SCALAR_NODE)
            continue;
        const char *name = (const char *)key->data.scalar.value;
        const cyaml_schema_value_t *value = yaml_schema_of(schema, name);
        g_autofree char *below = yaml_key(path, name);
        if (value)
            check(faults, pair->value, value, below);
        else
            add_fault(faults, below, false, schema);
    }
    for (const cyaml_schema_field_t *f = schema->mapping.fields; f->key; f++) {
        g_autofree char *below = yaml_key(path, f->key);
        if (!(f->value.flags & CYAML_FLAG_OPTIONAL) &&
            !yaml_has_key(faults, node, f->key))
            add_fault(faults, below, true, schema);
    }
}

static void check(Faults *faults, int id, const cyaml_schema_value_t *schema,
                  const char *path)
{
    const yaml_node_t *node = yaml_document_get_node(faults->document, id);
    if (node && node->type == YAML_MAPPING_NODE && schema->type == CYAML_MAPPING) {
        check_mapping(faults, node, schema, path);
    } else if (node && node->type == YAML_SEQUENCE_NODE &&
               schema->type == CYAML_SEQUENCE) {
        uint32_t i = 0;
        for (const yaml_node_item_t *item = node->data.sequence.items.start;
             item < node->data.sequence.items.top; item++) {
            g_autofree char *entry = g_strdup_printf("%s[%u]", path, i++);
            check(faults, *item, schema->sequence.entry, entry);
        }
    }
}

/* Fails with all wrong keys, mapping by mapping, where libcyaml stopped at the first. */
static bool fail_keys(const Yaml *yaml, const char *text, size_t length, GError **error)
{
    g_autoptr(GString) messages = g_string_new(NULL);
    yaml_document_t document;
    Faults faults = {yaml, &document, 0, messages, NULL};
    if (libyaml_read(text, length, &document)) {
        if (yaml_document_get_root_node(&document))
            check(&faults, 1, yaml->schema, ""); /* the root is the first node */
        yaml_document_delete(&document);
    }
    g_free(faults.meant);
    if (faults.n > 1)
        refuse(error, "%s", messages->str);
    return faults.n > 1;
}

/* --- reading --- */

static cyaml_config_t configuration(Log *log)
{
    return (cyaml_config_t){
        .log_fn = log ? log_line : NULL,
        .log_ctx = log,
        .mem_fn = libyaml_allocate,
        .log_level = CYAML_LOG_ERROR,
        .flags = CYAML_CFG_NO_ALIAS,
    };
}

static bool load(Yaml *yaml, const char *text, size_t length, GError **error)
{
    yaml->lines = yaml_lines_read(yaml->file, text, length, yaml->schema, error);
    if (!yaml->lines)
        return false;
    Log log = {.trail = g_ptr_array_new_with_free_func(g_free)};
    cyaml_config_t config = configuration(&log);
    g_autofree char *whole = yaml_expand(text, &length, yaml->lines);
    text = whole ? whole : text;
    cyaml_err_t code = cyaml_load_data((const uint8_t *)text, length, &config,
                                       yaml->schema, &yaml->data, NULL);
    /* libyaml has read the lines of the text, but short forms of tags without a value are none */
    const bool unread =
        code == CYAML_ERR_LIBYAML_PARSER_INIT || code == CYAML_ERR_LIBYAML_PARSER;
    if (unread && (!whole || yaml_is_sound(yaml->file, text, length, error)))
        libyaml_no_memory();
    bool done = code == CYAML_OK && yaml->data;
    if (code != CYAML_OK && !unread && !fail_keys(yaml, text, length, error))
        fail_loading(yaml, code, &log, error);
    else if (code == CYAML_OK && !done)
        yaml_fail(yaml, error, "", "expected a mapping, got nothing");
    g_free(log.message);
    g_ptr_array_unref(log.trail);
    return done;
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
    cyaml_config_t config = configuration(NULL);
    cyaml_free(&config, yaml->schema, yaml->data, 0);
    yaml_lines_free(yaml->lines);
    g_string_chunk_free(yaml->keys);
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

bool yaml_fail(const Yaml *yaml, GError **error, const char *key, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(text, format);
    return refuse(error, "%s:%u: %.200s%s%s", yaml->file, yaml_lines_at(yaml->lines, key),
                  key, *key ? ": " : "", text);
}

const char *yaml_at(const Yaml *yaml, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(key, format);
    return g_string_chunk_insert(yaml->keys, key);
}

bool yaml_quantity(const Yaml *yaml, const char *key, const char *text, YamlRange range,
                   double *value, GError **error)
{
    g_assert(range.low <= range.high);
    g_autoptr(GError) failure = NULL;
    if (!units_parse(text, range.quantity, value, &failure))
        return yaml_fail(yaml, error, key, "%s", failure->message);
    if (*value >= range.low && *value <= range.high)
        return true;
    g_autofree char *from = units_format(range.low, range.quantity);
    g_autofree char *to = units_format(range.high, range.quantity);
    return yaml_fail(yaml, error, key, "expected %s to %s, got '%.60s'", from, to, text);
}

bool yaml_uint(const Yaml *yaml, const char *key, const char *text, uint32_t low,
               uint32_t high, uint32_t *value, GError **error)
{
    g_assert(low <= high);
    guint64 number;
    if (!g_ascii_string_to_unsigned(text, 10, low, high, &number, NULL))
        return yaml_fail(yaml, error, key,
                         "expected a whole number from %u to %u, got '%.60s'", low, high,
                         text);
    *value = (uint32_t)number;
    return true;
}

bool yaml_number(const Yaml *yaml, const char *key, const char *text, double low,
                 double high, double *value, GError **error)
{
    return number_read(text, low, high, value) ||
           yaml_fail(yaml, error, key, "expected a number from %g to %g%s, got '%.60s'",
                     low, high, number_gap(text), text);
}
