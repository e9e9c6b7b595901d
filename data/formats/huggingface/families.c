/* The rows of data/families.yaml. */
#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/json.h"
#include "data/base/path.h"
#include "data/base/text.h"
#include "data/base/yaml_json.h"
#include "data/formats/huggingface/family.h"

#include <string.h>

enum { MOST_BYTES = 1 << 22 };

/* Rows are parsed when they are asked for: a file needs a few of hundreds. */
struct Families {
    char *path, *text;
    GHashTable *line; /* name -> its line in `text` */
    json_t *root;     /* rows that were parsed */
};

/* A row begins with a line "NAME:" and ends before the next line that begins with a letter. */
static void index_rows(Families *families)
{
    for (char *line = families->text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const size_t length = strcspn(line, ":\n");
        if (g_ascii_isalpha(*line) && line[length] == ':')
            g_hash_table_insert(families->line, g_strndup(line, length), line);
    }
}

Families *families_read(GError **error)
{
    g_autofree char *path = path_find("families.yaml");
    gsize length;
    char *text = path ? file_read(path, MOST_BYTES, &length, error) : NULL;
    if (!path)
        refuse(error, "data/families.yaml is not there");
    if (!text)
        return NULL;
    Families *families = g_new(Families, 1);
    *families = (Families){g_steal_pointer(&path), text, text_table(NULL), json_object()};
    index_rows(families);
    return families;
}

FREE_DEFINE(families_free, Families, families, json_decref(families->root),
            g_hash_table_destroy(families->line),
            free_each(families->path, families->text));

const json_t *families_row(const Families *families, const char *name)
{
    const char *line = g_hash_table_lookup(families->line, name);
    json_t *row = json_object_get(families->root, name);
    if (row || !line)
        return row;
    const char *end = strchr(line, '\n');
    while (end && !g_ascii_isalpha(end[1]))
        end = strchr(end + 1, '\n');
    g_autofree char *place = g_strdup_printf("%s: %s", families->path, name);
    json_auto_t *one =
        yaml_to_json(place, line, end ? (gsize)(end - line) + 1 : strlen(line), NULL);
    json_object_update(families->root, one);
    return json_object_get(families->root, name);
}

json_t *families_rows(const Families *families, GError **error)
{
    return yaml_to_json(families->path, families->text, strlen(families->text), error);
}

bool families_has(const Families *families, const char *name)
{
    return name && strcmp(name, "ignored") != 0 &&
           g_hash_table_contains(families->line, name);
}

static char *plain_name(const char *name, size_t length)
{
    GString *plain = g_string_new("");
    for (size_t i = 0; i < length; i++)
        if (g_ascii_isalnum(name[i]))
            g_string_append_c(plain, g_ascii_tolower(name[i]));
    return g_string_free(plain, FALSE);
}

const char *families_of_class(const Families *families, const char *name)
{
    static const char *const end[] = {"For", "Model", "LMHead", "DoubleHeads"};
    const char *stop = NULL, *first = NULL, *found = NULL;
    for (uint32_t i = 0; i < G_N_ELEMENTS(end); i++) {
        const char *at = strstr(name + (*name != 0), end[i]);
        stop = at && (!stop || at < stop) ? at : stop;
    }
    g_autofree char *plain = plain_name(name, stop ? (size_t)(stop - name) : 0);
    table_each (key, line, families->line) {
        g_autofree char *other = plain_name(key, strlen(key));
        if (!*plain || strcmp(plain, other) != 0 || !families_has(families, key) ||
            (first && first < (const char *)line))
            continue;
        first = line;
        found = key;
    }
    return found;
}

/* Whether a key changes neither shapes nor work. */
static bool families_ignore(const Families *families, const char *key)
{
    const json_t *list = families_row(families, "ignored");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *pattern = json_string_value(json_array_get(list, i));
        if (pattern && g_pattern_match_simple(pattern, key))
            return true;
    }
    return false;
}

void families_unread(const Families *families, const json_t *object, GHashTable *read,
                     GString *text)
{
    members_each (key, value, object) {
        const bool empty = json_is_null(value) || json_is_false(value) ||
                           (json_is_number(value) && json_number_value(value) == 0) ||
                           (json_is_string(value) && !*json_string_value(value)) ||
                           (json_is_array(value) && json_array_size(value) == 0) ||
                           (json_is_object(value) && json_object_size(value) == 0);
        if (!empty && !g_hash_table_contains(read, key) &&
            !families_ignore(families, key))
            g_string_append_printf(text, "%s%s", text->len ? ", " : "", key);
    }
}
