/* A checker of JSON Schemas, as far as data/schemas/ needs one (tests/support/schema.h). */
#include "tests/support/schema.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct Schemas {
    char *folder;
    GHashTable *file; /* name -> json_t */
};

static void drop(gpointer value)
{
    json_decref(value);
}

Schemas *schemas_new(const char *folder)
{
    Schemas *schemas = g_new(Schemas, 1);
    schemas->folder = g_strdup(folder);
    schemas->file = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, drop);
    return schemas;
}

void schemas_free(Schemas *schemas)
{
    if (!schemas)
        return;
    g_free(schemas->folder);
    g_hash_table_unref(schemas->file);
    g_free(schemas);
}

const json_t *schemas_get(Schemas *schemas, const char *file)
{
    json_t *schema = g_hash_table_lookup(schemas->file, file);
    if (schema)
        return schema;
    g_autofree char *name = g_strconcat(file, ".json", NULL);
    g_autofree char *path = g_build_filename(schemas->folder, name, NULL);
    schema = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    if (schema)
        g_hash_table_insert(schemas->file, g_strdup(file), schema);
    return schema;
}

/* The place of a check: the value's path, and the file to which `#/...` refers. */
typedef struct {
    Schemas *schemas;
    const char *file;
    GString *path;
    char *wrong; /* NULL: nothing so far */
} Check;

static bool fail(Check *check, const char *format, ...) G_GNUC_PRINTF(2, 3);
static bool fail(Check *check, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *reason = g_strdup_vprintf(format, args);
    va_end(args);
    g_free(check->wrong);
    check->wrong = g_strdup_printf(
        "%s: %s", *check->path->str ? check->path->str : "the value", reason);
    return false;
}

static bool matches(Check *check, const json_t *schema, const json_t *value);

static const char *type_of(const json_t *value)
{
    static const char *const NAME[] = {
        [JSON_OBJECT] = "object",   [JSON_ARRAY] = "array", [JSON_STRING] = "string",
        [JSON_INTEGER] = "integer", [JSON_REAL] = "number", [JSON_TRUE] = "boolean",
        [JSON_FALSE] = "boolean",   [JSON_NULL] = "null"};
    return NAME[json_typeof(value)];
}

static bool is_of(const char *type, const json_t *value)
{
    return strcmp(type, type_of(value)) == 0 ||
           (strcmp(type, "number") == 0 && json_is_number(value));
}

static bool check_type(Check *check, const json_t *type, const json_t *value)
{
    const json_t *one;
    size_t i;
    if (json_is_string(type) && is_of(json_string_value(type), value))
        return true;
    json_array_foreach (type, i, one)
        if (is_of(json_string_value(one), value))
            return true;
    g_autofree char *want = json_dumps(type, JSON_ENCODE_ANY);
    return fail(check, "expected %s, got %s", want, type_of(value));
}

static bool check_required(Check *check, const json_t *keys, const json_t *value)
{
    const json_t *key;
    size_t i;
    json_array_foreach (keys, i, key)
        if (json_is_object(value) && !json_object_get(value, json_string_value(key)))
            return fail(check, "'%s' is missing", json_string_value(key));
    return true;
}

static bool check_member(Check *check, const json_t *schema, const char *key,
                         const json_t *value)
{
    const gsize length = check->path->len;
    g_string_append_printf(check->path, "%s%s", length ? "." : "", key);
    const bool good = matches(check, schema, value);
    if (good)
        g_string_truncate(check->path, length);
    return good;
}

/* The schema of the first pattern that the key matches; NULL: none. */
static const json_t *pattern_of(const json_t *patterns, const char *key)
{
    const char *pattern;
    json_t *schema;
    json_object_foreach ((json_t *)patterns, pattern, schema)
        if (g_regex_match_simple(pattern, key, 0, 0))
            return schema;
    return NULL;
}

/* properties, patternProperties and additionalProperties. */
static bool check_members(Check *check, const json_t *schema, const json_t *value)
{
    const json_t *known = json_object_get(schema, "properties");
    const json_t *other = json_object_get(schema, "additionalProperties");
    const char *key;
    json_t *member;
    if (!json_is_object(value))
        return true;
    json_object_foreach ((json_t *)value, key, member) {
        const json_t *of = json_object_get(known, key);
        if (!of)
            of = pattern_of(json_object_get(schema, "patternProperties"), key);
        if (!of && json_is_false(other))
            return fail(check, "'%s' is not in the schema", key);
        if (!of)
            of = other;
        if (json_is_object(of) && !check_member(check, of, key, member))
            return false;
    }
    return true;
}

static bool check_items(Check *check, const json_t *schema, const json_t *value)
{
    const json_t *item;
    size_t i;
    json_array_foreach (value, i, item) {
        const gsize length = check->path->len;
        g_string_append_printf(check->path, "[%zu]", i);
        if (!matches(check, schema, item))
            return false;
        g_string_truncate(check->path, length);
    }
    return true;
}

static bool check_any(Check *check, const json_t *schemas, const json_t *value)
{
    const json_t *schema;
    const gsize length = check->path->len;
    size_t i;
    g_autoptr(GString) why = g_string_new("none of anyOf");
    json_array_foreach (schemas, i, schema) {
        if (matches(check, schema, value))
            return true;
        g_string_append_printf(why, "; %zu: %s", i, check->wrong);
        g_string_truncate(check->path, length);
    }
    return fail(check, "%s", why->str);
}

static bool check_enum(Check *check, const json_t *values, const json_t *value)
{
    const json_t *one;
    size_t i;
    json_array_foreach (values, i, one)
        if (json_equal(one, value))
            return true;
    g_autofree char *want = json_dumps(values, JSON_ENCODE_ANY);
    return fail(check, "expected one of %s", want);
}

/* FILE.json#/$defs/NAME, or #/$defs/NAME of the same file. */
static bool check_ref(Check *check, const json_t *ref, const json_t *value)
{
    static const char middle[] = "#/$defs/";
    const char *text = json_string_value(ref), *at = strstr(text, middle);
    const char *before = check->file;
    g_autofree char *file = at > text
                                ? g_strndup(text, (gsize)(at - text) - strlen(".json"))
                                : g_strdup(before);
    const json_t *all = at ? schemas_get(check->schemas, file) : NULL;
    const json_t *schema =
        json_object_get(json_object_get(all, "$defs"), at ? at + strlen(middle) : "");
    if (!schema)
        return fail(check, "no schema %s", text);
    check->file = file;
    const bool good = matches(check, schema, value);
    check->file = before;
    return good;
}

static bool check_const(Check *check, const json_t *want, const json_t *value)
{
    return json_equal(want, value) || fail(check, "expected another constant");
}

static bool check_minimum(Check *check, const json_t *least, const json_t *value)
{
    return !json_is_number(value) ||
           json_number_value(value) >= json_number_value(least) ||
           fail(check, "expected at least %g, got %g", json_number_value(least),
                json_number_value(value));
}

static bool check_nothing(Check *check, const json_t *keyword, const json_t *value)
{
    (void)check;
    (void)keyword;
    (void)value;
    return true;
}

static bool matches(Check *check, const json_t *schema, const json_t *value)
{
    static const struct {
        const char *name;
        bool (*holds)(Check *check, const json_t *keyword, const json_t *value);
    } KEYWORD[] = {{"type", check_type},
                   {"required", check_required},
                   {"items", check_items},
                   {"anyOf", check_any},
                   {"enum", check_enum},
                   {"const", check_const},
                   {"minimum", check_minimum},
                   {"$ref", check_ref},
                   {"properties", check_nothing}, /* check_members */
                   {"patternProperties", check_nothing},
                   {"additionalProperties", check_nothing},
                   {"$defs", check_nothing},
                   {"$schema", check_nothing},
                   {"title", check_nothing},
                   {"description", check_nothing}};
    const char *key;
    json_t *keyword;
    json_object_foreach ((json_t *)schema, key, keyword) {
        uint32_t i = 0;
        while (i < G_N_ELEMENTS(KEYWORD) && strcmp(KEYWORD[i].name, key) != 0)
            i++;
        if (i == G_N_ELEMENTS(KEYWORD))
            return fail(check, "the schema's keyword '%s' is not checked", key);
        if (!KEYWORD[i].holds(check, keyword, value))
            return false;
    }
    return check_members(check, schema, value);
}

char *schemas_check(Schemas *schemas, const char *file, const json_t *value)
{
    const json_t *schema = schemas_get(schemas, file);
    if (!schema)
        return g_strdup_printf("no schema '%s'", file);
    Check check = {schemas, file, g_string_new(NULL), NULL};
    const bool good = matches(&check, schema, value);
    g_string_free(check.path, TRUE);
    if (!good)
        return check.wrong;
    g_free(check.wrong);
    return NULL;
}
