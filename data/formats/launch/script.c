/* Scripts are not run: strings, brackets and names are told apart, no more. */
#include "data/formats/launch/script.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "data/formats/huggingface/expression.h"

enum { MOST_DEPTH = 16, MOST_SETTINGS = 10000 };

static const char WORD[] = G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_.";
/* Calls that configure a run. */
#define CALL                                                                           \
    "(?:TrainingArguments|(?:SFT|DPO|GRPO|KTO|Reward)Config|Accelerator|"              \
    "FullyShardedDataParallelPlugin|ParallelismConfig|MegatronStrategy|ModelProvider|" \
    "LoraConfig|get_peft_model|BitsAndBytesConfig|FastLanguageModel|ConfigContainer|"  \
    "(?:pretrain|finetune)_recipe|pretrain_config|"                                    \
    "\\b(?:run\\.(?:Config|Partial)|Trainer\\.Config))"
#define RECIPE "^[ \t]*(?:config|cfg|recipe)\\.[a-z_.]+"
/* Parts without settings: long texts, comments, lines' ends, names of functions; strings stay. */
static const char
    BESIDE[] = "(?s:\"\"\".*?\"\"\"|\'\'\'.*?\'\'\')|#[^\n]*|\\\\\n|"
               "\\b(?:def|class)[ ]+\\w+|"
               "(\"(?:[^\"\\\\\n]|\\\\.)*+\"|'(?:[^'\\\\\n]|\\\\.)*+')",
    LITERAL[] = "^(?i:true|false|none|-?(?:[0-9]+|[0-9_]+\\.[0-9_]*)(?:e[-+]?[0-9]+)?)$|"
                "^(?:torch|[A-Z]\\w*)(?:\\.\\w+)+(?:\\(\\))?$|"
                "^[\\[(](?:[][(),\\s0-9._-]|\"[^\"\n]*+\"|'[^'\n]*+')*+$";

typedef struct {
    GHashTable *variable; /* name -> text */
    char *section;        /* of TOML, with a dot; NULL: Python */
    uint32_t left,
        depth; /* settings and calls that are still read; calls in one another */
    ScriptTake take;
    void *data;
} Script;

char *launch_arithmetic(const char *text, GHashTable *variable)
{
    g_autoptr(GString) plain = g_string_new(NULL);
    while (*text && plain->len < 1000) {
        const size_t n = *text == '.' ? 0 : strspn(text, WORD);
        g_autofree char *name = g_strndup(text, n);
        const char *known = n ? g_hash_table_lookup(variable, name) : NULL;
        for (const char *p = known ? known : name; *p; p++) /* 1_000_000 */
            if (*p != '_' || !g_ascii_isdigit(*name))
                g_string_append_c(plain, *p);
        text += n;
        if (n == 0 && !(text[0] == '/' && text[1] == '/')) /* Python's whole quotient */
            g_string_append_c(plain, *text);
        text += n == 0;
    }
    Value value;
    Scope scope = {0}; /* no words are left */
    g_autofree char *wrong = NULL;
    const bool good = !plain->str[strspn(plain->str, G_CSET_DIGITS "()+-*/% .\n")] &&
                      !*text && expression_value(&scope, plain->str, &value, &wrong) &&
                      value.kind == VALUE_NUMBER && value.number == floor(value.number) &&
                      fabs(value.number) < 1e15;
    return good ? g_strdup_printf("%.0f", value.number) : NULL;
}

/* Where an expression ends: at one of `stops` or at a bracket that it did not open. */
static const char *script_end(const char *p, const char *stops)
{
    char quote = '\0';
    for (uint32_t open = 0; *p && (quote || open > 0 || !strchr(stops, *p)); p++)
        if (quote || *p == '"' || *p == '\'') {
            const bool escaped = quote && *p == '\\' && p[1];
            quote = !quote ? *p : *p == quote ? '\0' : quote;
            p += escaped;
        } else if (strchr("([{", *p))
            open++;
        else if (strchr(")]}", *p) && open-- == 0)
            return p;
    return p;
}

/* The text of a literal, or of a name that stands for one; NULL: it is none. */
static char *script_literal(const Script *s, const char *text)
{
    const char *known = g_hash_table_lookup(s->variable, text);
    const size_t n = strlen(text);
    if (n > 1 && (*text == '"' || *text == '\'') &&
        strchr(text + 1, *text) == text + n - 1)
        return g_strndup(text + 1, n - 2);
    return known || g_regex_match_simple(LITERAL, text, 0, 0)
               ? g_strdup(known ? known : text)
               : launch_arithmetic(text, s->variable);
}

/* The section in which YAML has the arguments of a call; NULL: it configures no run. */
static const char *script_section(Script *s, const char *call)
{
    s->left -= s->left > 0;
    return s->left == 0 || !g_regex_match_simple(CALL, call, 0, 0) ? NULL
           : strstr(call, "ParallelPlugin")                        ? "fsdp_config."
           : strstr(call, "ParallelismConfig")                     ? "parallelism_config."
           : strstr(call, "LoraConfig") || strstr(call, "peft")    ? "lora."
                                                                   : "";
}

static void script_scan(Script *s, const char *text);
static void script_value(Script *s, const char *name, const char *text);

/* Arguments of a call, or members of a dict: a setting each, or calls within. */
static void script_items(Script *s, const char *section, const char *at)
{
    if (s->depth == MOST_DEPTH)
        return;
    s->depth++;
    for (const char *end; *at; at = *end == ',' ? end + 1 : "") {
        end = script_end(at, ",");
        g_autofree char *item = g_strndup(at, (gsize)(end - at));
        char *key = item + strspn(item, " \t\r\n\"'"), *value = key + strspn(key, WORD);
        const char *name_end = value;
        value += strspn(value, " \t\"'");
        if (name_end > key && (*value == ':' || (*value == '=' && value[1] != '='))) {
            g_autofree char *name =
                g_strdup_printf("%s%.*s", section, (int)(name_end - key), key);
            script_value(s, name, g_strstrip(value + 1));
        } else
            script_scan(s, item);
    }
    s->depth--;
}

/* A setting of a name; dicts and calls have some each. */
static void script_value(Script *s, const char *name, const char *text)
{
    const size_t n = strspn(text, WORD);
    g_autofree char *call = g_strndup(text, n), *within = g_strconcat(name, ".", NULL),
                    *literal = script_literal(s, text);
    const char *section = script_section(s, call), *last = strrchr(call, '.');
    const bool made =
        section || g_ascii_isupper(last ? last[1] : *call) || strcmp(call, "dict") == 0;
    if (s->left == 0)
        return;
    if (*text == '{')
        script_items(s, within, text + 1);
    else if (!literal && made && text[n] == '(' &&
             strcmp(script_end(text + n + 1, ""), ")") == 0)
        script_items(s, section && *section == 'f' ? section : within, text + n + 1);
    else
        s->take(s->data, name, literal ? literal : text, literal != NULL);
}

/* KEY = VALUE of TOML, NAME.KEY = VALUE of a configuration, or a variable. */
static void script_assign(Script *s, const char *name, const char *text)
{
    g_autofree char *call = g_strndup(text, strspn(text, WORD)),
                    *path = g_strconcat(s->section ? s->section : "", name, NULL);
    const char *key = strchr(name, '.');
    if (s->section || g_regex_match_simple(RECIPE, name, 0, 0)) {
        script_value(s, s->section ? path : key + 1, text);
        return;
    }
    char *literal = key                       ? NULL
                    : script_section(s, call) ? g_strdup("None") /* read where it is */
                                              : script_literal(s, text);
    if (literal)
        g_hash_table_replace(s->variable, g_strdup(name), literal);
    s->depth++;
    script_scan(s, text);
    s->depth--;
}

/* Calls anywhere, and assignments outside of brackets. */
static void script_scan(Script *s, const char *text)
{
    uint32_t open = 0;
    for (const char *at = text; *at && s->depth < MOST_DEPTH;) {
        const size_t n = strspn(at, WORD);
        g_autofree char *name = g_strndup(at, n);
        const char *next = at + n + strspn(at + n, " "), *end = next,
                   *section = *next == '(' ? script_section(s, name) : NULL;
        if (section) {
            if (!g_str_has_prefix(name, "run.") &&
                !g_hash_table_insert(s->variable, g_strconcat(name, "(", NULL),
                                     g_strdup("")))
                s->take(s->data, name, "once more", false);
            script_items(s, section, next + 1);
            end = script_end(next + 1, "");
        } else if (n > 0 && open == 0 && *next == '=' && next[1] != '=') {
            end = script_end(next + 1, "\n;");
            g_autofree char *value = g_strndup(next + 1, (gsize)(end - next - 1));
            script_assign(s, name, g_strstrip(value));
        } else if (s->section && *at == '[' && (at == text || at[-1] == '\n')) {
            end = script_end(at + 1, "\n");
            g_free(s->section);
            s->section = g_strdup_printf("%.*s.", (int)(end - at - 1), at + 1);
        } else if (n == 0) {
            if (*at == '"' || *at == '\'')
                end = script_end(at, " \n,:;.+-*%=()[]{}");
            open += strchr("([{", *at) != NULL;
            open -= open > 0 && strchr(")]}", *at);
        }
        at = MAX(end, at + MAX(n, 1));
    }
}

bool script_has_settings(const char *text)
{
    return g_regex_match_simple(RECIPE " *=[^=]|" CALL "\\w*\\(", text,
                                G_REGEX_MULTILINE | G_REGEX_RAW, 0);
}

void script_read(const char *text, bool toml, ScriptTake take, void *data)
{
    g_autoptr(GRegex) beside = g_regex_new(BESIDE, 0, 0, NULL);
    g_autoptr(GHashTable) variable =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autofree char *plain = g_regex_replace(beside, text, -1, 0, "\\1", 0, NULL);
    Script s = {variable, toml ? g_strdup("") : NULL, MOST_SETTINGS, 0, take, data};
    script_scan(&s, plain ? plain : text);
    g_free(s.section);
}
