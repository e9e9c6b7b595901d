/* Readers of launches: shell scripts, JSON, YAML, TOML and torchtitan's recipes, flattened to
 * names with texts. */
#include <jansson.h>
#include <string.h>

#include "data/base/error.h"
#include "data/base/text.h"
#include "data/base/yaml_json.h"
#include "data/formats/launch/launch.h"
#include "data/formats/launch/names.h"
#include "data/formats/launch/shell.h"

enum { LAUNCH_MOST_BYTES = 1 << 22, MOST_UNKNOWN = 1000 };

typedef struct {
    const char *file;
    Launch *launch;
    bool titan;        /* lines of torchtitan, whose table has whole sections */
    uint32_t taken[4]; /* names of each table */
} Reading;

static const struct {
    const char *framework;
    const LaunchName *names;
} TABLE[] = {{"torchtitan", TITAN_NAMES},
             {"DeepSpeed", DEEPSPEED_NAMES},
             {"accelerate", ACCELERATE_NAMES},
             {"Megatron-LM", MEGATRON_NAMES}};

static void add_unknown(Reading *r, const char *name, const char *text)
{
    if (r->launch->unknown->len < MOST_UNKNOWN)
        g_ptr_array_add(r->launch->unknown,
                        text && *text ? g_strdup_printf("%.80s %.40s", name, text)
                                      : g_strdup_printf("%.80s", name));
}

/* Takes a name with its text from the first table that has it; the last part of a path may be a
 * flag written with '_'. */
static void take_path(Reading *r, const char *name, const char *text)
{
    const char *last = strrchr(name, '.');
    g_autofree char *flag = g_strdelimit(g_strdup(last ? last + 1 : name), "_", '-');
    if (g_strcmp0(text, "auto") == 0)
        return; /* whoever launches fills it in */
    for (uint32_t t = 0; t < G_N_ELEMENTS(TABLE); t++) {
        const bool flags = TABLE[t].names == MEGATRON_NAMES;
        if (r->titan != (TABLE[t].names == TITAN_NAMES))
            continue;
        const char *switched = flags && g_strcmp0(text, "true") == 0 ? NULL : text;
        if (flags && g_strcmp0(text, "false") == 0)
            return;
        if (launch_take(TABLE[t].names, flags ? flag : name, switched,
                        r->launch->value)) {
            r->taken[t]++;
            return;
        }
    }
    add_unknown(r, name, text);
}

/* --- JSON and YAML --- */

static char *scalar_text(const json_t *value)
{
    return json_is_string(value) ? g_strdup(json_string_value(value))
           : json_is_integer(value)
               ? g_strdup_printf("%" JSON_INTEGER_FORMAT, json_integer_value(value))
           : json_is_real(value)    ? g_strdup_printf("%g", json_real_value(value))
           : json_is_boolean(value) ? g_strdup(json_is_true(value) ? "true" : "false")
                                    : NULL;
}

/* "2 4 4 2"; NULL if items are no texts or numbers. */
static char *list_text(const json_t *list)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (size_t i = 0; i < json_array_size(list); i++) {
        g_autofree char *item = scalar_text(json_array_get(list, i));
        if (!item)
            return NULL;
        g_string_append_printf(text, "%s%s", i ? " " : "", item);
    }
    return g_strdup(text->str);
}

static void flatten(Reading *r, const char *path, const json_t *value)
{
    const char *key;
    json_t *member;
    if (json_is_object(value)) {
        json_object_foreach ((json_t *)value, key, member) {
            g_autofree char *inner =
                *path ? g_strdup_printf("%s.%s", path, key) : g_strdup(key);
            flatten(r, inner, member);
        }
        return;
    }
    g_autofree char *text = json_is_array(value) ? list_text(value) : scalar_text(value);
    if (!json_is_null(value))
        take_path(r, path, text);
}

static bool read_tree(Reading *r, const char *text, size_t length, bool json,
                      GError **error)
{
    json_error_t wrong;
    json_t *root = json ? json_loadb(text, length, 0, &wrong)
                        : yaml_to_json(r->file, text, length, error);
    if (!root)
        return json && kilter_fail(error, KILTER_ERROR_INPUT, "%s:%d: %s", r->file,
                                   wrong.line, wrong.text);
    flatten(r, "", root);
    json_decref(root);
    return true;
}

/* --- TOML, and lines `config.SECTION.KEY = VALUE` of a recipe --- */

/* A value without quotes; comments end it. */
static char *plain_value(const char *text)
{
    const char quote = *text == '"' || *text == '\'' ? *text : '\0';
    const char *end = quote ? strchr(text + 1, quote) : strchr(text, '#');
    char *value = !quote ? g_strndup(text, end ? (gsize)(end - text) : strlen(text))
                  : end ? g_strndup(text + 1, (gsize)(end - text - 1))
                         : g_strdup(text + 1);
    return g_strstrip(value);
}

static bool read_assignments(Reading *r, const char *text, GError **error)
{
    static const char config[] = "config.";
    g_auto(GStrv) line = g_strsplit(text, "\n", -1);
    g_autofree char *section = g_strdup("");
    for (uint32_t i = 0; line[i]; i++) {
        char *at = g_strstrip(line[i]), *equal = strchr(at, '=');
        const bool toml = *at == '[' && strchr(at, ']') && !equal;
        if (toml) {
            g_free(section);
            section = g_strndup(at + 1, strcspn(at + 1, "]"));
        }
        const bool recipe = g_str_has_prefix(at, config);
        if (!equal || *at == '#' || (!recipe && !*section))
            continue;
        g_autofree char *key = g_strndup(at, (gsize)(equal - at)),
                        *value = plain_value(g_strchug(equal + 1));
        g_strstrip(key);
        if (!*key || (toml && !*section))
            return kilter_fail(error, KILTER_ERROR_INPUT, "%s:%u: expected KEY = VALUE",
                               r->file, i + 1);
        g_autofree char *path = recipe ? g_strdup(key + strlen(config))
                                       : g_strdup_printf("%s.%s", section, key);
        take_path(r, path, value);
    }
    return true;
}

/* --- all --- */

static void take_flag(void *data, const char *name, const char *text)
{
    Reading *r = data;
    g_autofree char *flag = g_strdelimit(g_strdup(name), "_", '-');
    if (launch_take(MEGATRON_NAMES, flag, text, r->launch->value)) {
        r->taken[3]++;
        return;
    }
    g_autofree char *option = g_strconcat("--", name, NULL);
    add_unknown(r, option, text);
}

static bool has_line(const char *text, const char *pattern)
{
    return g_regex_match_simple(pattern, text, G_REGEX_MULTILINE | G_REGEX_RAW, 0);
}

Launch *launch_parse(const char *file, const char *text, size_t length, GError **error)
{
    g_autoptr(Launch) launch = g_new0(Launch, 1);
    launch->value = g_new0(char *, WORDS + 1);
    launch->unknown = g_ptr_array_new_with_free_func(g_free);
    Reading r = {.file = file, .launch = launch};
    g_autofree char *copy = g_strndup(text, length);
    const char *begin = copy + strspn(copy, " \t\r\n");
    if (length > LAUNCH_MOST_BYTES || memchr(text, 0, length) ||
        !g_utf8_validate(text, (gssize)length, NULL)) {
        kilter_fail(error, KILTER_ERROR_INPUT, "%s: expected a text of at most %d bytes",
                    file, LAUNCH_MOST_BYTES);
        return NULL;
    }
    const bool lines = has_line(copy, "^[ \t]*config\\.[a-z_.]+ *=") ||
                       has_line(copy, "^\\[[a-z_.]+\\][ \t\r]*$");
    r.titan = lines && *begin != '{';
    const bool good = *begin == '{' ? read_tree(&r, text, length, true, error)
                      : lines       ? read_assignments(&r, copy, error)
                      : has_line(copy, "(^|[ \t\"'(=])--[a-z]")
                          ? shell_options(file, copy, take_flag, &r, error)
                          : read_tree(&r, text, length, false, error);
    uint32_t best = 0;
    for (uint32_t t = 1; t < G_N_ELEMENTS(TABLE); t++)
        best = r.taken[t] > r.taken[best] ? t : best;
    if (good && r.taken[best] == 0)
        kilter_fail(error, KILTER_ERROR_INPUT,
                    "%s: expected a launch of Megatron-LM, DeepSpeed, torchtitan, "
                    "accelerate or Hugging Face, and no name in it is known",
                    file);
    launch->framework = TABLE[best].framework;
    return good && r.taken[best] > 0 ? g_steal_pointer(&launch) : NULL;
}

Launch *launch_read(const char *file, GError **error)
{
    gsize length;
    g_autofree char *text = file_read(file, LAUNCH_MOST_BYTES, &length, error);
    return text ? launch_parse(file, text, length, error) : NULL;
}

void launch_free(Launch *launch)
{
    if (!launch)
        return;
    for (uint32_t i = 0; i < WORDS; i++)
        g_free(launch->value[i]);
    g_free(launch->value);
    g_ptr_array_unref(launch->unknown);
    g_free(launch);
}
