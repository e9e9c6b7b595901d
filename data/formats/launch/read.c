/* Readers of launches: shell scripts, JSON, YAML, TOML and torchtitan's recipes, flattened to
 * names with texts. */
#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/json.h"
#include "data/base/text.h"
#include "data/base/yaml_json.h"
#include "data/formats/huggingface/config.h"
#include "data/formats/launch/launch.h"
#include "data/formats/launch/names.h"
#include "data/formats/launch/script.h"

/* --- words of a shell --- */

enum { MOST_WORDS = 100000, MOST_DEPTH = 16 };

typedef struct {
    const char *file;
    GHashTable *variable; /* name -> words, joined by '\n' */
    GPtrArray *word;      /* of the commands */
    uint32_t line;
    GError **error;
} Shell;

static bool is_name(char c)
{
    return g_ascii_isalnum(c) || c == '_';
}

static bool shell_fail(const Shell *s, const char *expected)
{
    return refuse(s->error, "%s:%u: expected %s", s->file, s->line, expected);
}

static bool shell_expand(const Shell *s, const char **at, uint32_t depth, GString *out);

/* Where brackets close that were opened before; the end, if they do not. */
static const char *shell_close(const char *p, char open, char close)
{
    for (uint32_t depth = 0; *p && (depth > 0 || *p != close); p++)
        depth += (*p == open) - (*p == close);
    return p;
}

/* A number by an expression, in which names need no '$'. */
static bool expand_number(const Shell *s, const char *text, uint32_t depth, GString *out)
{
    g_autoptr(GString) inner = g_string_new(NULL);
    for (const char *p = text; *p;)
        if (*p != '$')
            g_string_append_c(inner, *p++);
        else if (!shell_expand(s, &p, depth + 1, inner))
            return false;
    g_autofree char *number = launch_arithmetic(inner->str, s->variable);
    g_string_append(out, number ? number : inner->str);
    return true;
}

/* $((...)), and $(expr ...); the output of another command is not known. */
static bool expand_output(const Shell *s, const char **at, uint32_t depth, GString *out)
{
    const bool whole = (*at)[2] == '(';
    const char *begin = *at + 2 + whole, *end = shell_close(begin, '(', ')');
    g_autofree char *plain = g_strndup(begin, (gsize)(end - begin));
    const bool expr = g_str_has_prefix(g_strstrip(plain), "expr ");
    if (!g_str_has_prefix(end, whole ? "))" : ")"))
        return shell_fail(s, whole ? "))" : ")");
    *at = end + 1 + whole;
    if (expr)
        g_strdelimit(plain, "\\'\"", ' ');
    return (!whole && !expr) ||
           expand_number(s, plain + (expr ? strlen("expr ") : 0), depth, out);
}

/* Puts what '$' stands for at the end of `out`. */
static bool shell_expand(const Shell *s, const char **at, uint32_t depth, GString *out)
{
    const char *p = *at + 1;
    if (depth > MOST_DEPTH)
        return shell_fail(s, "fewer variables in one another");
    if (*p == '(')
        return expand_output(s, at, depth, out);
    const bool braced = *p == '{';
    p += braced;
    const char *begin = p;
    while (is_name(*p))
        p++;
    g_autofree char *name = g_strndup(begin, (gsize)(p - begin));
    const char *known = g_hash_table_lookup(s->variable, name);
    if (braced && *p == '[')
        p += strcspn(p, "]") + (strchr(p, ']') != NULL);
    if (braced && (*p == ':' || *p == '-' || *p == '=')) {
        p += *p == ':';
        const char *end = shell_close(p, '{', '}');
        if (*end && !known && (*p == '-' || *p == '='))
            for (const char *q = p + 1; q < end;) {
                if (*q == '"') /* of the default, ${NAME:-"DEFAULT"} */
                    q++;
                else if (*q != '$')
                    g_string_append_c(out, *q++);
                else if (!shell_expand(s, &q, depth + 1, out))
                    return false;
            }
        p = end;
    }
    if (braced && *p != '}')
        return shell_fail(s, "}");
    g_string_append(out, known ? known : "");
    if (p == begin && !braced) { /* '$' by itself, or of a number */
        p += *p != '\0' && *p != '"';
    }
    *at = p + braced;
    return true;
}

/* Where a word begins, behind blanks and the ends of lines that go on. */
static const char *shell_blanks(Shell *s, const char *p)
{
    for (;; s->line++, p += 2) {
        p += strspn(p, " \t\r");
        if (p[0] != '\\' || p[1] != '\n')
            return p;
    }
}

/* Reads a word: quotes are taken off, variables put in. A bare variable, or an array in quotes,
 * may be several words, which '\n' parts. False at its end of the command, *good false on
 * failure. */
static bool next_word(Shell *s, const char **at, GString *word, bool *good)
{
    const char *p = shell_blanks(s, *at);
    g_string_truncate(word, 0);
    char quote = '\0';
    bool any = false;
    for (; *p; any = true) {
        if (!quote && strchr(" \t\r\n;&|)", *p))
            break;
        if (!quote && *p == '#' && !any) {
            p += strcspn(p, "\n");
            break;
        }
        s->line += *p == '\n';
        if (*p == '\\' && quote != '\'') {
            if (p[1] == '\n') {
                s->line++;
                if (!quote) {
                    p += 2; /* the word ends */
                    break;
                }
            } else if (p[1])
                g_string_append_c(word, p[1]);
            p += p[1] ? 2 : 1;
        } else if ((*p == '"' || *p == '\'') && (!quote || quote == *p)) {
            quote = quote ? '\0' : *p;
            p++;
        } else if (*p == '$' && quote != '\'') {
            if (!shell_expand(s, &p, 0, word)) {
                *good = false;
                return false;
            }
        } else {
            g_string_append_c(word, *p++);
        }
    }
    *at = p;
    if (quote)
        *good = shell_fail(s, quote == '"' ? "\"" : "'");
    return *good && any;
}

/* Sets a variable, or adds to it. */
static void shell_assign(Shell *s, const char *name, const char *value, bool more)
{
    const char *old = more ? g_hash_table_lookup(s->variable, name) : NULL;
    g_hash_table_replace(s->variable, g_strdup(name),
                         old ? g_strconcat(old, "\n", value, NULL) : g_strdup(value));
}

/* NAME=( words ), over lines. */
static bool read_array(Shell *s, const char **at, const char *name, bool more)
{
    g_autoptr(GString) words = g_string_new(NULL), word = g_string_new(NULL);
    bool good = true;
    while (good && **at && **at != ')') {
        const char *before = *at;
        if (next_word(s, at, word, &good))
            g_string_append_printf(words, "%s%s", words->len ? "\n" : "", word->str);
        else if (good && **at != ')') {
            s->line += **at == '\n';
            *at += **at != '\0';
        }
        if (*at == before)
            break;
    }
    if (!good || **at != ')')
        return good && shell_fail(s, ")");
    (*at)++;
    shell_assign(s, name, words->str, more);
    return true;
}

/* The length of `NAME=` or `NAME+=` at the beginning of a command; 0: there is none. */
static size_t assignment_at(const char *at)
{
    size_t n = 0;
    while (is_name(at[n]))
        n++;
    if (n == 0 || g_ascii_isdigit(*at))
        return 0;
    return at[n] == '=' ? n + 1 : at[n] == '+' && at[n + 1] == '=' ? n + 2 : 0;
}

static bool read_command(Shell *s, const char **at)
{
    g_autoptr(GString) word = g_string_new(NULL);
    bool good = true;
    for (;;) {
        *at = shell_blanks(s, *at);
        if (g_str_has_prefix(*at, "export "))
            *at += strlen("export ");
        const size_t n = assignment_at(*at);
        if (n == 0)
            break;
        const bool more = (*at)[n - 2] == '+';
        g_autofree char *name = g_strndup(*at, n - (more ? 2 : 1));
        *at += n;
        if (**at == '(') {
            (*at)++;
            if (!read_array(s, at, name, more))
                return false;
            continue;
        }
        const bool empty = strchr(" \t\r\n;", **at) != NULL;
        if (!empty && !next_word(s, at, word, &good) && !good)
            return false;
        shell_assign(s, name, empty ? "" : word->str, more);
        g_string_truncate(word, 0);
    }
    while (next_word(s, at, word, &good)) {
        g_auto(GStrv) part = g_strsplit_set(word->str, " \n\t", -1);
        for (uint32_t i = 0; part[i] && s->word->len < MOST_WORDS; i++) {
            const bool quoted = part[i][0] == '\'' && g_str_has_suffix(part[i] + 1, "'");
            if (*part[i]) /* quotes in a text that is a command are its own */
                g_ptr_array_add(s->word, quoted
                                             ? g_strndup(part[i] + 1, strlen(part[i]) - 2)
                                             : g_strdup(part[i]));
        }
    }
    return good;
}

/* Sets the number of machines that comments for sbatch ask for. */
static void shell_allocation(Shell *s, const char *text)
{
    g_autoptr(GRegex) asked =
        g_regex_new("^#SBATCH +(?:--nodes[= ]|-N *)([0-9]+)", G_REGEX_MULTILINE, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    if (!g_regex_match(asked, text, 0, &match))
        return;
    g_autofree char *nodes = g_match_info_fetch(match, 1);
    shell_assign(s, "SLURM_NNODES", nodes, false);
    shell_assign(s, "SLURM_JOB_NUM_NODES", nodes, false);
}

/* Calls `option` with the name of each option --NAME of the script's commands and the words
 * behind it, joined by spaces (NULL: none), in their order. Variables and arrays that the script
 * sets are put in their places, with the defaults of ${NAME:-DEFAULT}, and products and
 * quotients of numbers are worked out; conditions are not, so the last value counts.
 * KILTER_ERROR_INPUT for a quote or bracket that does not end. */
static bool shell_options(const char *file, const char *text,
                          void (*option)(void *data, const char *name, const char *text),
                          void *data, GError **error)
{
    g_autoptr(GHashTable) variable = text_table(g_free);
    g_autoptr(GPtrArray) word = g_ptr_array_new_with_free_func(g_free);
    Shell s = {file, variable, word, 1, error};
    shell_allocation(&s, text);
    for (const char *at = text; *at;) {
        if (!read_command(&s, &at))
            return false;
        s.line += *at == '\n';
        at += *at != '\0';
        g_ptr_array_add(word,
                        g_strdup("\n")); /* an option's words end with the command */
    }
    for (uint32_t i = 0; i < word->len; i++) {
        const char *name = word->pdata[i], *equal = strchr(name, '=');
        if (i + 1 < word->len && (i == 0 || *(char *)word->pdata[i - 1] == '\n')) {
            g_autofree char *command =
                g_strdup_printf("$ %s %s", name, (char *)word->pdata[i + 1]);
            option(data, command, NULL);
        }
        if (equal && g_regex_match_simple("^\\+*[a-z_]+\\.[a-z_.]+=", name, 0, 0)) {
            /* an override of Hydra's */
            name += strspn(name, "+");
            g_autofree char *path = g_strndup(name, (gsize)(equal - name));
            option(data, path, equal + 1);
        }
        if (!g_str_has_prefix(name, "--") || !g_ascii_isalpha(name[2]))
            continue;
        g_autoptr(GString) value = g_string_new(equal ? equal + 1 : NULL);
        for (uint32_t k = i + 1; !equal && k < word->len; k++) {
            const char *next = word->pdata[k];
            if (g_str_has_prefix(next, "--") || *next == '\n' ||
                g_str_has_suffix(next, ".py")) /* the script that torchrun starts */
                break;
            g_string_append_printf(value, "%s%s", value->len ? " " : "", next);
        }
        g_autofree char *plain =
            equal ? g_strndup(name + 2, (gsize)(equal - name - 2)) : g_strdup(name + 2);
        option(data, plain, value->len ? value->str : NULL);
    }
    return true;
}

enum { LAUNCH_MOST_BYTES = 1 << 22, MOST_UNKNOWN = 1000 };

typedef struct {
    const char *file;
    Launch *launch;
    GArray *names;
    const json_t *root; /* of a tree */
    bool titan;         /* lines of torchtitan, whose table has whole sections */
    bool deepspeed;     /* its configuration is part of another one */
    uint32_t taken[11]; /* names of each framework */
} Reading;

/* In the order in which they are asked. */
static const struct {
    const char *framework, *names; /* names: as data/launches.csv says it */
    bool flags;                    /* or paths */
    const char *runtime;
    /* NULL: anywhere; or where names tell it from the next row, which has the same */
    const char *section;
} TABLE[] = {
    {"torchtitan", "torchtitan", false, "fsdp", NULL},
    {"DeepSpeed", "deepspeed", false, "deepspeed-2", NULL},
    {"DeepSpeed", "drivers", false, "deepspeed-2", NULL}, /* read only */
    {"verl", "verl", false, "", NULL},
    {"accelerate", "accelerate", false, "fsdp", NULL},
    {"FlagScale", "megatron", true, "flagscale", "(^|\\.)system\\."},
    {"Megatron-LM", "megatron", true, "", NULL},
    {"metaseq", "metaseq", true, "", NULL},
    {"nanotron", "nanotron", false, "", NULL},
    {"torchtune", "torchtune", false, "fsdp", NULL},
    {"LLM Foundry", "foundry", false, "llm-foundry", NULL},
};

static void add_unknown(Reading *r, const char *name, const char *text)
{
    GPtrArray *unknown = r->launch->unknown;
    g_autofree char *words =
        g_strdup_printf(text && *text ? "%.80s %.40s" : "%.80s", name, text);
    if (unknown->len < MOST_UNKNOWN &&
        !g_ptr_array_find_with_equal_func(unknown, words, g_str_equal, NULL))
        g_ptr_array_add(unknown, g_steal_pointer(&words));
}

/* Sections of paths without effect, as far as no table has their names. */
static bool is_beside(const char *name)
{
    static const char *const SECTION[] = {"logging",   "logger",   "checkpoint",
                                          "data",      "dataset",  "tokenizer",
                                          "optimizer", "scheduler"};
    g_auto(GStrv) part = g_strsplit(name, ".", -1);
    bool is = false;
    for (uint32_t i = 0; i < G_N_ELEMENTS(SECTION); i++)
        is |=
            part[0] && part[1] && g_strv_contains((const char *const *)part, SECTION[i]);
    return is;
}

/* Takes a name with its text from the first table that has it; the last part of a path may be a
 * flag written with '_'. False: none has it. */
static bool take_name(Reading *r, const char *name, const char *text)
{
    const char *last = strrchr(name, '.');
    g_autofree char *flag = g_strdelimit(g_strdup(last ? last + 1 : name), "_", '-');
    for (uint32_t t = 0; t < G_N_ELEMENTS(TABLE); t++) {
        const bool flags = TABLE[t].flags;
        const char *section = TABLE[t].section;
        if (r->titan != (t == 0) ||
            (section && !g_regex_match_simple(section, name, 0, 0)))
            continue;
        const char *switched = flags && g_strcmp0(text, "true") == 0 ? NULL : text;
        if (flags && (g_strcmp0(text, "false") == 0 || g_strcmp0(text, "None") == 0))
            return true;
        if (launch_take(r->names, TABLE[t].names, flags ? flag : name, switched,
                        r->launch->value)) {
            r->taken[t]++;
            if (section)
                r->taken[t + 1]++;
            return true;
        }
    }
    return false;
}

static void take_path(Reading *r, const char *name, const char *text)
{
    const bool deepspeed = g_str_has_prefix(name, "deepspeed."); /* its own, in place */
    r->deepspeed |= deepspeed;
    name += deepspeed ? strlen("deepspeed.") : 0;
    /* "auto": whoever launches fills it in */
    if (g_strcmp0(text, "auto") != 0 && !take_name(r, name, text) && !is_beside(name))
        add_unknown(r, name, text);
}

/* Words of a switch in Python. */
static const char *plain_switch(const char *text)
{
    return g_strcmp0(text, "True") == 0    ? "true"
           : g_strcmp0(text, "False") == 0 ? "false"
                                           : text;
}

/* --- JSON and YAML --- */

/* "['a', 'b']" as "a b". */
static void plain_items(char *list)
{
    char *to = list;
    for (const char *p = list; *p; p++) {
        const char c = strchr("[]\"',", *p) ? ' ' : *p;
        if (c != ' ' || (to > list && to[-1] != ' '))
            *to++ = c;
    }
    *to = '\0';
    g_strchomp(list);
}

/* The value that a text "${variables.max_seq_len}" stands for; itself, if it is none. */
static const json_t *plain_value(const Reading *r, const json_t *value)
{
    const char *text = json_string_value(value);
    const json_t *at = r->root;
    if (!text || !g_str_has_prefix(text, "${") || strcspn(text, "}") + 1 != strlen(text))
        return value;
    g_autofree char *path = g_strndup(text + 2, strlen(text) - 3);
    g_auto(GStrv) part = g_strsplit(path, ".", -1);
    for (uint32_t i = 0; part[i]; i++)
        at = json_object_get(at, part[i]);
    return at && !json_is_object(at) ? at : value;
}

static void flatten(Reading *r, const char *path, const json_t *value)
{
    value = plain_value(r, plain_value(r, value));
    if (json_is_object(value)) {
        members_each (key, member, value) {
            g_autofree char *inner =
                *path ? g_strdup_printf("%s.%s", path, key) : g_strdup(key);
            flatten(r, inner, member);
        }
        return;
    }
    char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    if (json_is_array(value))
        plain_items(dump);
    if (!json_is_null(value))
        take_path(r, path,
                  json_is_string(value) ? plain_switch(json_string_value(value)) : dump);
    free(dump);
}

static bool read_tree(Reading *r, const char *text, size_t length, bool json,
                      GError **error)
{
    json_error_t wrong;
    json_t *root = json ? json_loadb(text, length, 0, &wrong)
                        : yaml_to_json(r->file, text, length, error);
    if (!root && json) /* YAML in brackets, as GPT-NeoX has it */
        root = yaml_to_json(r->file, text, length, NULL);
    if (!root)
        return json && refuse(error, "%s:%d: %s", r->file, wrong.line, wrong.text);
    r->root = root;
    flatten(r, "", root);
    json_decref(root);
    return true;
}

/* --- TOML and Python --- */

/* Whether a name sets no word, whatever its value. */
static bool sets_nothing(const Reading *r, const char *name)
{
    char *said[WORDS + 1] = {NULL};
    Launch none = {.value = said};
    Reading apart = *r;
    apart.launch = &none;
    bool nothing = is_beside(name) || take_name(&apart, name, "?");
    for (uint32_t w = 0; w < WORDS; w++) {
        nothing &= !said[w];
        g_free(said[w]);
    }
    return nothing;
}

/* A setting; None is as if nothing were said, but to torchtitan. */
static void take_setting(void *data, const char *name, const char *text, bool known)
{
    Reading *r = data;
    g_autofree char *plain = g_strdup(text);
    if (!r->titan && strchr("[(", *plain))
        plain_items(plain);
    if (!known && !sets_nothing(r, name))
        add_unknown(r, name, g_strdelimit(plain, "\n", ' '));
    else if (known && (r->titan || strcmp(text, "None") != 0))
        take_path(r, name, r->titan ? plain : plain_switch(plain));
}

/* --- all --- */

static void take_flag(void *data, const char *name, const char *text)
{
    Reading *r = data;
    const bool path = strchr(name, '.') && !r->titan;
    g_autofree char *option = g_strconcat(path ? "" : "--", name, NULL);
    char **nodes = &r->launch->value[WORD_NODES];
    if (!text && strcmp(name, "nnodes") == 0) { /* of the scheduler */
        put_block(*nodes, g_strdup("?"));
    } else if (!take_name(r, name, plain_switch(text)) && *name != '$' &&
               !(path && is_beside(name)))
        add_unknown(r, option, text);
}

static bool has_line(const char *text, const char *pattern)
{
    return g_regex_match_simple(pattern, text, G_REGEX_MULTILINE | G_REGEX_RAW, 0);
}

/* Reads the table of ranks that exporters write. */
static void launch_take_ranks(const char *text, GPtrArray *rank)
{
    static const char HEAD[] = "rank,machine,gpu,type\n";
    const char *at = strstr(text, HEAD);
    g_auto(GStrv) line = g_strsplit(at ? at + strlen(HEAD) : "", "\n", -1);
    for (uint32_t i = 0; line[i]; i++) {
        g_auto(GStrv) cell = g_strsplit(line[i] + strspn(line[i], "# "), ",", -1);
        if (g_strv_length(cell) != 4 || g_ascii_strtoull(cell[0], NULL, 10) != i)
            return;
        g_ptr_array_add(rank, g_strconcat(cell[1], ":", cell[2], NULL));
    }
}

/* Files of steps are not opened: exporters say which schedule is in them. */
static void take_steps(const char *text, Launch *launch)
{
    const char *file = launch->value[WORD_STEPS_FILE], *at = strstr(text, LAUNCH_STEPS);
    char **schedule = &launch->value[WORD_SCHEDULE];
    if (!file || !*file)
        return;
    if (!at) {
        g_ptr_array_add(launch->unknown, g_strdup_printf("the steps in %s", file));
        return;
    }
    at += strlen(LAUNCH_STEPS);
    put_block(*schedule, g_strndup(at, strcspn(at, "\r\n")));
}

/* Modules with adapters, as words of the names of weights. */
static void take_target(Reading *r)
{
    char **target = &r->launch->value[WORD_TARGET], *words = NULL;
    g_autoptr(GError) error = NULL;
    if (*target && !(words = peft_target(*target, &error)))
        add_unknown(r, "modules", *target);
    put_block(*target, words);
}

/* Lines and calls of torchtitan's recipes. */
static const char TITAN[] =
    "\\bTrainer\\.Config\\(|^[ \t]*config\\.(parallelism|training|"
    "activation_checkpoint)(\\.[a-z_]+)? *=";

/* The framework with the most names, unless one of them says it. False: no name is known. */
static bool settle_framework(const Reading *r)
{
    Launch *launch = r->launch;
    char *const *said = launch->value;
    uint32_t best = r->deepspeed;
    for (uint32_t t = 1; !r->deepspeed && t < G_N_ELEMENTS(TABLE); t++)
        best = r->taken[t] > r->taken[best] ? t : best;
    if (r->taken[best] == 0)
        return false;
    for (uint32_t t = 0; said[WORD_FRAMEWORK] && t < G_N_ELEMENTS(TABLE); t++)
        best = strcmp(TABLE[t].framework, said[WORD_FRAMEWORK]) == 0 ? t : best;
    if (best > 0 && TABLE[best - 1].section && r->taken[best - 1] > 0)
        best--;
    const bool own = said[WORD_ZERO] || r->titan || TABLE[best].section;
    launch->framework = TABLE[best].framework;
    launch->flags = TABLE[best].flags ? TABLE[best].names : "";
    launch->runtime = said[WORD_LOSS_FUSION] && g_strcmp0(said[WORD_LOSS_IMPL], "te") == 0
                          ? "megatron-te-loss"
                      : own                ? TABLE[best].runtime
                      : said[WORD_TRAINER] ? "ddp"
                                           : "";
    return true;
}

Launch *launch_parse(const char *file, const char *text, size_t length, GError **error)
{
    g_autoptr(Launch) launch = g_new0(Launch, 1);
    launch->value = g_new0(char *, WORDS + 1);
    launch->unknown = g_ptr_array_new_with_free_func(g_free);
    launch->rank = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) names = launch_names_read(error);
    Reading r = {.file = file, .launch = launch, .names = names};
    g_autofree char *copy = g_strndup(text, length);
    const char *begin = copy + strspn(copy, " \t\r\n");
    if (!names)
        return NULL;
    if (length > LAUNCH_MOST_BYTES || memchr(text, 0, length) ||
        !g_utf8_validate(text, (gssize)length, NULL))
        return refused(error, "%s: expected a text of at most %d bytes", file,
                       LAUNCH_MOST_BYTES);
    launch_take_ranks(copy, launch->rank);
    const bool json = *begin == '{', python = !json && script_has_settings(copy),
               toml = !json && !python && has_line(copy, "^\\[[a-z_.]+\\][ \t\r]*$");
    r.titan = toml || (python && has_line(copy, TITAN)) ||
              has_line(copy, "--(parallelism|training|activation_checkpoint)\\.");
    if (python || toml)
        script_read(copy, toml, take_setting, &r);
    const bool good = python || toml ? true
                      : !json && has_line(copy, "^([^#\n]*[ \t\"'(=])?--[a-z]|^[ \t]*\\+*"
                                                "[a-z_]+\\.[a-z_.]+=[^ ]")
                          ? shell_options(file, copy, take_flag, &r, error)
                          : read_tree(&r, text, length, json, error);
    take_steps(copy, launch);
    take_target(&r);
    if (!launch->value[WORD_RECOMPUTE]) /* as the driver does unasked */
        launch->value[WORD_RECOMPUTE] =
            g_steal_pointer(&launch->value[WORD_USUAL_RECOMPUTE]);
    if (launch->value[WORD_PARAMETERS] && !launch->value[WORD_OFFLOAD])
        add_unknown(&r, "offloaded parameters without the optimizer", NULL);
    if (good && !settle_framework(&r))
        return refused(error,
                       "%s: expected a launch of Megatron-LM, DeepSpeed, torchtitan, "
                       "accelerate or Hugging Face, and no name in it is known",
                       file);
    return good ? g_steal_pointer(&launch) : NULL;
}

static Launch *launch_parse_file(const char *file, GError **error)
{
    gsize length;
    g_autofree char *text = file_read(file, LAUNCH_MOST_BYTES, &length, error);
    return text ? launch_parse(file, text, length, error) : NULL;
}

/* Adds the settings of the file that a launch names, which say less than its own; without one, of
 * those that exporters write beside accelerate's. */
static void launch_join(Launch *launch, const char *file)
{
    const char *name = launch->value[WORD_OTHER_FILE];
    g_autofree char *folder = g_path_get_dirname(file),
                    *base = name ? g_path_get_basename(name) : NULL;
    char *path[] = {name ? g_build_filename(folder, name, NULL)
                         : g_strconcat(file, LAUNCH_ARGUMENTS, NULL),
                    g_strdup(name), name ? g_build_filename(folder, base, NULL) : NULL};
    g_autoptr(Launch) other = NULL;
    for (uint32_t i = 0; i < G_N_ELEMENTS(path); i++) {
        other = other || !path[i] ? other : launch_parse_file(path[i], NULL);
        g_free(path[i]);
    }
    if (name && !other && strchr(name, '.')) /* first, as what says most */
        g_ptr_array_insert(launch->unknown, 0,
                           g_strdup_printf("the settings in %s", name));
    if (!other)
        return;
    for (uint32_t w = 0; w < WORDS; w++)
        if (!launch->value[w])
            launch->value[w] = g_steal_pointer(&other->value[w]);
    g_ptr_array_extend_and_steal(launch->unknown, g_ptr_array_ref(other->unknown));
    if (*other->runtime) {
        launch->framework = other->framework;
        launch->runtime = other->runtime;
    }
}

Launch *launch_read(const char *file, GError **error)
{
    Launch *launch = launch_parse_file(file, error);
    if (launch)
        launch_join(launch, file);
    return launch;
}

FREE_DEFINE(launch_free, Launch, launch, free_items(launch->value, WORDS),
            g_free(launch->value), g_ptr_array_unref(launch->unknown),
            g_ptr_array_unref(launch->rank));
