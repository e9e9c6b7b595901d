/* The line of every key of a YAML document, and all that a schema does not have. */
#include "data/base/yaml_lines.h"

#include "data/base/error.h"
#include "data/base/libyaml.h"
#include "data/base/names.h"
#include "data/base/yaml.h"

#include <cyaml/cyaml.h>
#include <string.h>
#include <yaml.h>

/* Bounds that no file written by a person exceeds; they keep the paths and messages short. */
enum { MAX_DEPTH = 16, MAX_KEY_BYTES = 64, MAX_FAULTS_BYTES = 1 << 16 };

/* A mapping or list that is open. */
typedef struct {
    bool mapping;
    char *path; /* owned */
    /* in a mapping the path whose value comes next, NULL if a key comes next; owned */
    char *key;
    uint32_t entries;                   /* in a list the number of entries so far */
    const cyaml_schema_value_t *schema; /* NULL: not known */
} Level;

struct YamlLines {
    const char *file; /* while reading */
    GHashTable *line; /* path -> line */
    GArray *shorts;   /* of YamlShort */
    GString *faults;  /* messages about what the schema does not have */
    char *meant;      /* the known key nearest to the last unknown one, as a path */
    const cyaml_schema_value_t *schema; /* of the document */
    uint32_t documents, depth;
    Level level[MAX_DEPTH];
};

static uint32_t yaml_line_of(yaml_mark_t mark)
{
    return (uint32_t)mark.line + 1;
}

static bool fail_at(const YamlLines *lines, uint32_t line, GError **error,
                    const char *what)
{
    return refuse(error, "%s:%u: %s", lines->file, line, what);
}

/* The schema of a key of a mapping; NULL: it has no such key. */
static const cyaml_schema_value_t *yaml_schema_of(const cyaml_schema_value_t *schema,
                                                  const char *key)
{
    const cyaml_schema_field_t *field = schema->mapping.fields;
    while (field->key && strcmp(field->key, key) != 0)
        field++;
    return field->key ? &field->value : NULL;
}

/* --- faults --- */

static void fault_add(YamlLines *lines, const char *key, const char *what)
{
    if (lines->faults->len < MAX_FAULTS_BYTES)
        g_string_append_printf(lines->faults, "%s%s:%u: %.200s%s%s",
                               lines->faults->len ? "; " : "", lines->file,
                               yaml_lines_at(lines, key), key, *key ? ": " : "", what);
}

/* The keys of a mapping. Free with g_strfreev. */
static char **keys_of(const cyaml_schema_value_t *schema)
{
    g_autoptr(GStrvBuilder) keys = g_strv_builder_new();
    for (const cyaml_schema_field_t *f = schema->mapping.fields; f->key; f++)
        g_strv_builder_add(keys, f->key);
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
static char *yaml_expected(const YamlLines *lines, const char *name,
                           const cyaml_schema_value_t *of)
{
    g_auto(GStrv) known = keys_of(of);
    g_autofree char *near = names_hint(name, (const char *const *)known);
    g_autoptr(GString) path = g_string_new(NULL);
    const char *other = names_synonym(name);
    for (uint32_t deep = 0; !*near && deep < 4; deep++, g_string_truncate(path, 0))
        if (yaml_elsewhere(lines->schema, other, deep, path))
            return g_strdup_printf("did you mean '%s'?", path->str + 1);
    return names_expected(name, (const char *const *)known);
}

static void fault_unknown(YamlLines *lines, const Level *level, const char *name)
{
    g_autofree char *expected = yaml_expected(lines, name, level->schema),
                    *what = g_strconcat("unknown key; ", expected, NULL);
    const char *quote = strchr(expected, '\'');
    const int around = (int)(strlen(level->key) - strlen(name));
    put_block(lines->meant, quote
                                ? g_strdup_printf("%.*s%.*s", around, level->key,
                                                  (int)strcspn(quote + 1, "'"), quote + 1)
                                : NULL);
    fault_add(lines, level->key, what);
}

/* Adds the required keys that a mapping lacks, but one that is there under a misspelt name. */
static void fault_missing(YamlLines *lines, const char *path,
                          const cyaml_schema_value_t *schema)
{
    for (const cyaml_schema_field_t *f = schema->mapping.fields; f->key; f++) {
        g_autofree char *key = yaml_key(path, f->key);
        if (!(f->value.flags & CYAML_FLAG_OPTIONAL) &&
            !g_hash_table_contains(lines->line, key) && g_strcmp0(lines->meant, key) != 0)
            fault_add(lines, key, "missing; expected this key");
    }
}

/* Whether a value is of the schema's kind. */
static bool is_of_kind(YamlLines *lines, const char *path,
                       const cyaml_schema_value_t *schema, cyaml_type_e kind)
{
    static const char *const WORDS[] = {[CYAML_MAPPING] = "a mapping",
                                        [CYAML_SEQUENCE] = "a list",
                                        [CYAML_STRING] = "a text"};
    if (!schema || schema->type == kind)
        return schema != NULL;
    g_autofree char *what =
        g_strdup_printf("expected %s, got %s", WORDS[schema->type], WORDS[kind]);
    fault_add(lines, path, what);
    return false;
}

static void check_text(YamlLines *lines, const char *path,
                       const cyaml_schema_value_t *schema, const char *text)
{
    if (!is_of_kind(lines, path, schema, CYAML_STRING))
        return;
    const size_t length = strlen(text);
    if (length < schema->string.min)
        fault_add(lines, path, "expected a text, got nothing");
    else if (length > schema->string.max)
        fault_add(lines, path, "expected a shorter text");
}

/* Checks a mapping or list at its end. */
static void check_level(YamlLines *lines, const Level *level)
{
    const cyaml_schema_value_t *schema = level->schema;
    if (schema && level->mapping)
        fault_missing(lines, level->path, schema);
    else if (schema && level->entries < schema->sequence.min)
        fault_add(lines, level->path, "expected at least one entry");
    else if (schema && level->entries > schema->sequence.max) {
        g_autofree char *what =
            g_strdup_printf("expected at most %u entries", schema->sequence.max);
        fault_add(lines, level->path, what);
    }
}

/* --- events --- */

/* Reads a key of the innermost mapping, which names the value that follows. */
static bool read_key(YamlLines *lines, const char *name, uint32_t line, GError **error)
{
    Level *level = &lines->level[lines->depth - 1];
    if (!*name || strlen(name) > MAX_KEY_BYTES)
        return fail_at(lines, line, error, "expected a plain key");
    level->key = yaml_key(level->path, name);
    uint32_t first = GPOINTER_TO_UINT(g_hash_table_lookup(lines->line, level->key));
    if (first)
        return refuse(error, "%s:%u: %.200s: given twice; the first is in line %u",
                      lines->file, line, level->key, first);
    g_hash_table_insert(lines->line, g_strdup(level->key), GUINT_TO_POINTER(line));
    if (level->schema && !yaml_schema_of(level->schema, name))
        fault_unknown(lines, level, name);
    return true;
}

/* The path of the value that begins here. The caller frees it. */
static char *value_path(YamlLines *lines, uint32_t line)
{
    if (lines->depth == 0) {
        g_hash_table_insert(lines->line, g_strdup(""), GUINT_TO_POINTER(line));
        return g_strdup("");
    }
    Level *level = &lines->level[lines->depth - 1];
    if (level->mapping)
        return g_steal_pointer(&level->key);
    char *path = g_strdup_printf("%s[%u]", level->path, level->entries++);
    g_hash_table_insert(lines->line, g_strdup(path), GUINT_TO_POINTER(line));
    return path;
}

/* The schema of the value with that path, which begins here. */
static const cyaml_schema_value_t *value_schema(const YamlLines *lines, const char *path)
{
    if (lines->depth == 0)
        return lines->schema;
    const Level *level = &lines->level[lines->depth - 1];
    const cyaml_schema_value_t *schema = level->schema;
    if (!schema)
        return NULL;
    const size_t around = strlen(level->path);
    return level->mapping ? yaml_schema_of(schema, path + around + (around > 0))
                          : schema->sequence.entry;
}

static bool has_short_form(const cyaml_schema_value_t *schema)
{
    return schema && schema->type == CYAML_MAPPING && schema->mapping.fields[0].key &&
           strcmp(schema->mapping.fields[0].key, "link") == 0;
}

/* Whether the innermost mapping expects a key, not a value. */
static bool awaits_key(const YamlLines *lines)
{
    if (lines->depth == 0)
        return false;
    const Level *level = &lines->level[lines->depth - 1];
    return level->mapping && !level->key;
}

static bool open_level(YamlLines *lines, bool mapping, uint32_t line, GError **error)
{
    if (awaits_key(lines))
        return fail_at(lines, line, error, "expected a plain key");
    if (lines->depth == MAX_DEPTH)
        return fail_at(lines, line, error, "nested too deeply");
    char *path = value_path(lines, line);
    const cyaml_schema_value_t *schema = value_schema(lines, path);
    const bool known =
        is_of_kind(lines, path, schema, mapping ? CYAML_MAPPING : CYAML_SEQUENCE);
    lines->level[lines->depth++] =
        (Level){.mapping = mapping, .path = path, .schema = known ? schema : NULL};
    return true;
}

static void close_level(YamlLines *lines)
{
    g_assert(lines->depth > 0);
    Level *level = &lines->level[--lines->depth];
    g_free(level->path);
    g_free(level->key);
}

static bool read_scalar(YamlLines *lines, const yaml_event_t *event, GError **error)
{
    uint32_t line = yaml_line_of(event->start_mark);
    const char *text = (const char *)event->data.scalar.value;
    if (strlen(text) != event->data.scalar.length)
        return fail_at(lines, line, error, "expected a text without NUL bytes");
    if (awaits_key(lines))
        return read_key(lines, text, line, error);
    g_autofree char *path = value_path(lines, line);
    const cyaml_schema_value_t *schema = value_schema(lines, path);
    const YamlShort edit = {event->start_mark.index, event->end_mark.index};
    if (edit.to > edit.from && has_short_form(schema)) {
        g_autofree char *link = yaml_key(path, "link");
        g_hash_table_insert(lines->line, g_strdup(link), GUINT_TO_POINTER(line));
        g_array_append_val(lines->shorts, edit);
        check_text(lines, link, &schema->mapping.fields->value, text);
        fault_missing(lines, path, schema);
    } else
        check_text(lines, path, schema, text);
    return true;
}

static bool read_event(YamlLines *lines, const yaml_event_t *event, GError **error)
{
    uint32_t line = yaml_line_of(event->start_mark);
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (lines->documents++ > 0)
            return fail_at(lines, line, error, "expected one document, got another");
        return true;
    case YAML_ALIAS_EVENT:
        return fail_at(lines, line, error, "aliases (*name) are not supported");
    case YAML_SCALAR_EVENT:
        return read_scalar(lines, event, error);
    case YAML_MAPPING_START_EVENT:
        return open_level(lines, true, line, error);
    case YAML_SEQUENCE_START_EVENT:
        return open_level(lines, false, line, error);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        check_level(lines, &lines->level[lines->depth - 1]);
        close_level(lines);
        return true;
    default:
        return true;
    }
}

/* A failure of libyaml: "FILE:LINE: problem". */
static bool fail_parsing(const YamlLines *lines, const yaml_parser_t *parser,
                         GError **error)
{
    g_autofree char *what =
        g_strdup_printf("not valid YAML: %s", parser->problem ? parser->problem : "?");
    return fail_at(lines, yaml_line_of(parser->problem_mark), error, what);
}

static bool read_events(YamlLines *lines, const char *text, size_t length, GError **error)
{
    yaml_parser_t parser;
    libyaml_begin(&parser, text, length);
    bool good = true, end = false;
    while (good && !end) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            libyaml_failed(&parser);
            good = fail_parsing(lines, &parser, error);
            break;
        }
        good = read_event(lines, &event, error);
        end = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return good;
}

YamlLines *yaml_lines_read(const char *file, const char *text, size_t length,
                           const cyaml_schema_value_t *schema, GError **error)
{
    g_autoptr(YamlLines) lines = g_new0(YamlLines, 1);
    lines->file = file;
    lines->schema = schema;
    lines->shorts = g_array_new(FALSE, FALSE, sizeof(YamlShort));
    lines->line = text_table(NULL);
    lines->faults = g_string_new(NULL);
    if (!read_events(lines, text, length, error))
        return NULL;
    if (schema && lines->documents == 0)
        fault_add(lines, "", "expected a mapping, got nothing");
    if (lines->faults->len > 0)
        return refused(error, "%s", lines->faults->str);
    lines->file = NULL;
    return g_steal_pointer(&lines);
}

void yaml_lines_free(YamlLines *lines)
{
    if (!lines)
        return;
    while (lines->depth > 0)
        close_level(lines);
    g_hash_table_unref(lines->line);
    g_array_unref(lines->shorts);
    g_string_free(lines->faults, TRUE);
    g_free(lines->meant);
    g_free(lines);
}

const GArray *yaml_lines_short(const YamlLines *lines)
{
    return lines->shorts;
}

uint32_t yaml_lines_at(const YamlLines *lines, const char *key)
{
    g_autofree char *path = g_strdup(key);
    for (;;) {
        uint32_t line = GPOINTER_TO_UINT(g_hash_table_lookup(lines->line, path));
        if (line || !*path)
            return MAX(line, 1);
        size_t cut = strlen(path) - 1;
        while (cut > 0 && path[cut] != '.' && path[cut] != '[')
            cut--;
        path[cut] = '\0';
    }
}
