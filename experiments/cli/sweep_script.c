/* Scripts for schedulers and GNU parallel, from the texts of data/schedulers: every part is a
 * process with a database of its own. In a text, @WORD@ stands for a value of the sweep; a line
 * whose value was not given is left out. */
#include "experiments/cli/sweep_script.h"

#include <math.h>
#include <string.h>

#include "data/base/error.h"
#include "data/base/names.h"
#include "data/base/path.h"
#include "data/base/text.h"
#include "data/base/units.h"

typedef struct {
    const char *word, *value; /* value NULL: not given */
} Word;

/* A time as whole seconds, from "[[H:]M:]S" or with a unit; "" if it is neither. Caller frees. */
static char *sweep_script_seconds(const char *time)
{
    const double most = 1e9;
    g_auto(GStrv) part = g_strsplit(time, ":", 3);
    double total = 0, value;
    for (char **at = part; *at; at++)
        total = number_read(*at, 0, most, &value) ? 60 * total + value : -most;
    if (units_parse(time, QUANTITY_TIME, &value, NULL))
        total = value;
    return total >= 1 && total <= most ? number_rounded(ceil(total), "%.0f")
                                       : g_strdup("");
}

/* Adds a line with its words replaced, or nothing where one of them has no value. */
static bool add_line(GString *text, const char *line, const Word *words, const char *file,
                     GError **error)
{
    g_auto(GStrv) part = g_strsplit(line, "@", -1);
    const gsize begin = text->len;
    for (uint32_t i = 0; part[i]; i++) {
        const Word *at = words;
        while (i % 2 == 1 && at->word && strcmp(at->word, part[i]) != 0)
            at++;
        if (!at->word || (i % 2 == 1 && !part[i + 1]))
            return refuse(error, "%s: no value of a sweep is @%s@", file, part[i]);
        if (i % 2 == 1 && !at->value) {
            g_string_truncate(text, begin);
            return true;
        }
        if (i % 2 == 1 && !*at->value && strcmp(at->word, "seconds") == 0)
            return refuse(error, "--time: expected a time such as 1:30:00, 5400 or 1.5h");
        g_string_append(text, i % 2 == 1 ? at->value : part[i]);
    }
    g_string_append_c(text, '\n');
    return true;
}

/* The text of data/schedulers with the values in place of its words. Caller frees. */
static char *sweep_script_filled(const char *kind, const Word *words, GError **error)
{
    g_autofree char *name = g_strdup_printf("schedulers/%s.txt", kind);
    g_autofree char *file = path_bundled(name, error);
    g_autofree char *form = file ? text_read(file, error) : NULL;
    if (!form)
        return NULL;
    g_auto(GStrv) line = g_strsplit(g_strchomp(form), "\n", -1);
    g_autoptr(GString) text = g_string_new(NULL);
    for (char **at = line; *at; at++)
        if (!add_line(text, *at, words, file, error))
            return NULL;
    return g_strdup(text->str);
}

/* Requests of a part stand in lines of directives, where quoting is the scheduler's own. */
static bool are_words(const SweepScript *script, GError **error)
{
    const char *const asked[] = {script->processors, script->memory, script->time,
                                 script->queue};
    for (uint32_t i = 0; i < G_N_ELEMENTS(asked); i++)
        if (asked[i] && (!*asked[i] || strpbrk(asked[i], " \t\r\n\"'\\#{}$`;&|<>()*?~")))
            return refuse(error,
                          "--cpus-per-task, --mem, --time, --partition: expected a word "
                          "of the scheduler, got '%s'",
                          asked[i]);
    return true;
}

/* A label of DNS. Caller frees. */
static char *label_of(const char *name)
{
    char *label = g_ascii_strdown(name, -1);
    for (char *c = label; *c; c++)
        *c = g_ascii_isalnum(*c) ? *c : '-';
    return label;
}

char *sweep_script(const char *kind, const SweepScript *s, GError **error)
{
    enum { AT_ONCE = 32, TRIES = 3 };
    g_auto(GStrv) known = path_list("schedulers", ".txt");
    uint32_t index;
    if (!names_find("script", kind, (const char *const *)known, &index, error) ||
        !are_words(s, error))
        return NULL;
    const uint32_t numbers[] = {s->shards, s->shards - 1,
                                MIN((uint32_t)AT_ONCE, s->shards), TRIES * s->shards};
    char number[G_N_ELEMENTS(numbers)][16];
    for (guint i = 0; i < G_N_ELEMENTS(numbers); i++)
        g_snprintf(number[i], sizeof number[i], "%u", numbers[i]);
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *kilter = g_shell_quote(self ? self : "kilter");
    g_autofree char *results = g_shell_quote(s->database);
    g_autofree char *plain_folder = g_path_get_dirname(s->database);
    g_autofree char *folder = g_shell_quote(plain_folder);
    g_autofree char *label = label_of(s->name);
    g_autofree char *seconds = s->time ? sweep_script_seconds(s->time) : NULL;
    const Word words[] = {{"name", s->name},
                          {"label", label},
                          {"experiment", s->experiment},
                          {"kilter", kilter},
                          {"results", results},
                          {"folder", folder},
                          {"shards", number[0]},
                          {"last", number[1]},
                          {"at_once", number[2]},
                          {"tries", number[3]},
                          {"threads", s->threads},
                          {"threads_or_one", *s->threads ? s->threads : "-j 1 "},
                          {"processors", s->processors},
                          {"memory", s->memory},
                          {"time", s->time},
                          {"seconds", seconds},
                          {"queue", s->queue},
                          {NULL, NULL}};
    return sweep_script_filled(kind, words, error);
}
