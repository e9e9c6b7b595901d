/* The line of every key of a YAML document. */
#include "data/base/yaml_lines.h"

#include "data/base/error.h"
#include "data/base/libyaml.h"

#include <cyaml/cyaml.h>
#include <string.h>
#include <yaml.h>

/* Bounds that no file written by a person exceeds; they keep the paths short. */
enum { MAX_DEPTH = 16, MAX_KEY_BYTES = 64 };

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
    const char *file;                   /* while reading */
    GHashTable *line;                   /* path -> line */
    GArray *shorts;                     /* of YamlShort */
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

/* Reads a key of the innermost mapping, which names the value that follows. */
static bool read_key(YamlLines *lines, const char *name, uint32_t line, GError **error)
{
    Level *level = &lines->level[lines->depth - 1];
    if (!*name || strlen(name) > MAX_KEY_BYTES)
        return fail_at(lines, line, error, "expected a plain key");
    level->key =
        *level->path ? g_strdup_printf("%s.%s", level->path, name) : g_strdup(name);
    uint32_t first = GPOINTER_TO_UINT(g_hash_table_lookup(lines->line, level->key));
    if (first)
        return refuse(error, "%s:%u: %.200s: given twice; the first is in line %u",
                      lines->file, line, level->key, first);
    g_hash_table_insert(lines->line, g_strdup(level->key), GUINT_TO_POINTER(line));
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

const cyaml_schema_value_t *yaml_schema_of(const cyaml_schema_value_t *schema,
                                           const char *key)
{
    const cyaml_schema_field_t *field = schema->mapping.fields;
    while (field->key && strcmp(field->key, key) != 0)
        field++;
    return field->key ? &field->value : NULL;
}

/* The schema of the value with that path, which begins here. */
static const cyaml_schema_value_t *value_schema(const YamlLines *lines, const char *path)
{
    if (lines->depth == 0)
        return lines->schema;
    const Level *level = &lines->level[lines->depth - 1];
    const cyaml_schema_value_t *schema = level->schema;
    if (!schema || schema->type != (level->mapping ? CYAML_MAPPING : CYAML_SEQUENCE))
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
    lines->level[lines->depth++] =
        (Level){.mapping = mapping, .path = path, .schema = schema};
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
    const YamlShort edit = {event->start_mark.index, event->end_mark.index};
    if (edit.to > edit.from && has_short_form(value_schema(lines, path)))
        g_array_append_val(lines->shorts, edit);
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
    if (!read_events(lines, text, length, error))
        return NULL;
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
