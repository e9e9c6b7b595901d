/* Files of models: where they lie, and their content as JSON. */
#include "data/models/model_file.h"

#include "data/base/error.h"
#include "data/base/path.h"
#include "data/base/text.h"
#include "data/base/yaml_json.h"
#include "data/formats/huggingface/config.h"
#include "data/formats/onnx/model.h"
#include "data/formats/onnx/torch.h"
#include "data/models/model.h"
#include "data/models/profile.h"

#include <string.h>

enum { MOST_BYTES = 1 << 26 };

#define CONFIGS "configs"

char **model_configs(void)
{
    return path_list(CONFIGS, ".json");
}

/* "2507" and "0324", by which hubs tell later trainings apart. */
static bool is_month(const char *word)
{
    return strlen(word) == 4 && strspn(word, "0123456789") == 4;
}

char *model_name_plain(const char *name)
{
    static const char *const TRAINED[] = {"meta",     "instruct", "base", "chat", "it",
                                          "hf",       "pt",       "zero", "math", "coder",
                                          "thinking", "preview",  NULL};
    const char *slash = strrchr(name, '/');
    g_autofree char *lower = g_ascii_strdown(slash ? slash + 1 : name, -1);
    g_auto(GStrv) word = g_strsplit_set(lower, "-_", -1);
    g_autoptr(GString) plain = g_string_new(NULL);
    for (char **at = word; *at; at++)
        if (!g_strv_contains(TRAINED, *at) && !is_month(*at))
            g_string_append(plain, *at);
    return g_strdup(plain->str);
}

/* Whether the configuration has this plain name, or is its owner's on the hub by name or id. */
static bool is_meant(const char *stem, const char *file, const char *name,
                     const char *plain)
{
    g_autofree char *own = model_name_plain(stem);
    const char *slash = strchr(name, '/');
    if (!slash)
        return strcmp(own, plain) == 0;
    json_auto_t *root = model_file_load(file, NULL);
    const char *id = json_string_value(json_object_get(root, "_name_or_path"));
    g_autofree char *other = model_name_plain(id ? id : "");
    return id && g_ascii_strncasecmp(id, name, (gsize)(slash + 1 - name)) == 0 &&
           (strcmp(own, plain) == 0 || strcmp(other, plain) == 0);
}

char *model_file_named(const char *name)
{
    g_autofree char *lower = g_ascii_strdown(name, -1);
    g_autofree char *file = g_strdup_printf(CONFIGS "/%s.json", lower);
    char *found = *name && !strchr(name, '/') ? path_find(file) : NULL;
    if (found || g_file_test(name, G_FILE_TEST_EXISTS))
        return found;
    g_auto(GStrv) known = model_configs();
    g_autofree char *plain = model_name_plain(name);
    for (char **at = known; *at && *plain; at++) {
        g_autofree char *path = g_strdup_printf(CONFIGS "/%s.json", *at);
        g_autofree char *other = path_find(path);
        if (other && is_meant(*at, other, name, plain))
            return g_steal_pointer(&other);
    }
    return NULL;
}

/* A folder stands for the configuration in it; a path that does not exist is looked up among the
 * bundled files. The caller frees it. */
char *model_file_path(const char *path)
{
    if (hub_is_id(path))
        return hub_path(path);
    const bool is_there = g_file_test(path, G_FILE_TEST_EXISTS);
    if (!is_there && *path && !g_path_is_absolute(path)) {
        char *named = model_file_named(path);
        char *bundled = named ? named : path_find(path);
        if (bundled)
            return bundled;
    }
    return g_file_test(path, G_FILE_TEST_IS_DIR)
               ? g_build_filename(path, "config.json", NULL)
               : g_strdup(path);
}

/* Python writes NaN, Infinity and -Infinity, which JSON has not: the text with null in their
 * places, or NULL if it has none of them. Caller frees. */
static char *plain_numbers(const char *text, size_t length)
{
    static const char *const word[] = {"-Infinity", "Infinity", "NaN"};
    if (memchr(text, 0, length) || (!strstr(text, "Infinity") && !strstr(text, "NaN")))
        return NULL;
    GString *plain = g_string_sized_new(length);
    bool quoted = false;
    for (const char *at = text; *at;) {
        uint32_t w = 0;
        while (w < G_N_ELEMENTS(word) && (quoted || !g_str_has_prefix(at, word[w])))
            w++;
        if (w < G_N_ELEMENTS(word)) {
            g_string_append(plain, "null");
            at += strlen(word[w]);
            continue;
        }
        if (quoted && *at == '\\' && at[1])
            g_string_append_c(plain, *at++);
        else if (*at == '"')
            quoted = !quoted;
        g_string_append_c(plain, *at++);
    }
    return g_string_free(plain, FALSE);
}

/* Reads the file's object; the tables of a profile are read as the same object. */
json_t *model_file_load(const char *path, GError **error)
{
    if (profile_is_table(path))
        return profile_from_table(path, error);
    gsize length;
    json_error_t wrong;
    const bool exported = torch_is(path);
    if (onnx_is(path) && !exported)
        return onnx_load(path, error);
    g_autofree char *id = NULL;
    if (!g_file_test(path, G_FILE_TEST_EXISTS) && hub_id_of(path, &id))
        return refused(error,
                       "hf:%s: %s is not there; `hf download %s config.json` fetches it",
                       id, path, id);
    g_autofree char *text = exported ? torch_text(path, MOST_BYTES, &length, error)
                                     : file_read(path, MOST_BYTES, &length, error);
    if (!text)
        return NULL;
    g_autofree char *plain = plain_numbers(text, length);
    const bool yaml = path_is_yaml(path);
    json_auto_t *root = yaml ? yaml_to_json(path, text, length, error)
                        : plain
                            ? json_loads(plain, JSON_REJECT_DUPLICATES, &wrong)
                            : json_loadb(text, length, JSON_REJECT_DUPLICATES, &wrong);
    if (!root && !yaml)
        refuse(error, "%s:%d: %s", path, wrong.line, wrong.text);
    const bool is_plan = json_object_get(root, "kilter") != NULL;
    if (root && (is_plan || !json_is_object(root))) {
        refuse(error, "%s: expected %s", path,
               is_plan ? "a model, got a plan, which has its model and its cluster "
                         "and is given without them"
                       : "an object");
        g_clear_pointer(&root, json_decref);
    }
    return root && exported ? torch_model(path, root, error) : json_incref(root);
}

char *model_file_name(const char *path)
{
    g_autofree char *base = g_path_get_basename(path), *folder = g_path_get_dirname(path);
    if (strcmp(base, "config.json") == 0 && strcmp(folder, ".") != 0)
        return g_path_get_basename(folder);
    char *dot = strrchr(base, '.');
    if (dot && dot > base)
        *dot = 0;
    return g_steal_pointer(&base);
}
