/* The rows of data/families.yaml. */
#include "data/base/error.h"
#include "data/base/path.h"
#include "data/base/text.h"
#include "data/base/yaml_json.h"
#include "data/formats/huggingface/family.h"

#include <string.h>

enum { MOST_BYTES = 1 << 22 };

struct Families {
    json_t *root;
};

Families *families_read(GError **error)
{
    g_autofree char *path = path_find("families.yaml");
    gsize length;
    g_autofree char *text = path ? file_read(path, MOST_BYTES, &length, error) : NULL;
    if (!path)
        kilter_fail(error, KILTER_ERROR_INPUT, "data/families.yaml is not there");
    json_t *root = text ? yaml_to_json(path, text, length, error) : NULL;
    if (!root)
        return NULL;
    Families *families = g_new(Families, 1);
    families->root = root;
    return families;
}

void families_free(Families *families)
{
    json_decref(families->root);
    g_free(families);
}

bool families_has(const Families *families, const char *name)
{
    return strcmp(name, "ignored") != 0 &&
           json_is_object(json_object_get(families->root, name));
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
    const char *stop = NULL, *key;
    json_t *row;
    for (uint32_t i = 0; i < G_N_ELEMENTS(end); i++) {
        const char *at = strstr(name + (*name != 0), end[i]);
        stop = at && (!stop || at < stop) ? at : stop;
    }
    g_autofree char *plain = plain_name(name, stop ? (size_t)(stop - name) : 0);
    json_object_foreach (families->root, key, row) {
        g_autofree char *other = plain_name(key, strlen(key));
        if (*plain && strcmp(plain, other) == 0 && families_has(families, key))
            return key;
    }
    return NULL;
}

bool families_ignore(const Families *families, const char *key)
{
    const json_t *list = json_object_get(families->root, "ignored");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *pattern = json_string_value(json_array_get(list, i));
        if (pattern && g_pattern_match_simple(pattern, key))
            return true;
    }
    return false;
}

json_t *families_rows(const Families *families)
{
    return families->root;
}

const json_t *families_row(const Families *families, const char *name)
{
    return json_object_get(families->root, name);
}

/* Keys of the object, beside the text's, whose value says something and that nothing was read
 * from. */
void families_unread(const Families *families, const json_t *object, GHashTable *read,
                     GString *text)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)object, key, value) {
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
