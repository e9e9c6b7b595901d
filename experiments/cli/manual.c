/* Manual pages in roff's man macros: one for the program and one for each command. */
#include "experiments/cli/manual.h"

#include <errno.h>
#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "data/base/json.h"
#include "data/base/names.h"
#include "data/base/output.h"
#include "data/base/version.h"
#include "data/formats/export/export.h"
#include "data/plan/fidelity.h"
#include "experiments/answers.h"
#include "experiments/cli/describe.h"
#include "experiments/cli/screen.h"
#include "experiments/render.h"

/* --- completion scripts --- */

/* Scripts that complete commands, options, and the values of options and arguments. They ask the
 * program for the names of models, clusters and planners, so that a user's own clusters are
 * included. */

/* The values of an option: words, or the command whose lines begin with them; NULL: files. */
typedef struct {
    const char *option, *letter, *words, *list;
} Values;

#define EXPORT_WORD(name, description) #name " "
static const Values VALUES[] = {{"planner", "p", NULL, "planners"},
                                {"granularity", NULL, "machine gpu", NULL},
                                {"fidelity", NULL, FIDELITY_WORDS, NULL},
                                {"cluster", NULL, NULL, "clusters"},
                                {"base", NULL, NULL, "clusters"},
                                {"gpu", NULL, NULL, "devices"},
                                {"nic", NULL, NULL, "links"},
                                {"to", NULL, EXPORT_TABLE(EXPORT_WORD), NULL},
                                {"for", NULL, EXPORT_TABLE(EXPORT_WORD), NULL},
                                {"emit", NULL, "slurm pbs k8s parallel", NULL}};

/* The lists whose names a command takes as arguments, by a word of its syntax; NULL: files. */
static const char *completion_lists(const json_t *command)
{
    static const char *const LIST[][2] = {
        {"MODEL", "models clusters"}, {"CLUSTER", "clusters"},
        {"NAME|FILE", "clusters"},    {"DEVICE", "devices"},
        {"NAME|", "reproduce"},       {"EXPERIMENT", "reproduce"},
        {"FILE.yaml", "reproduce"}};
    for (guint i = 0; i < G_N_ELEMENTS(LIST); i++)
        if (strstr(json_word(command, "arguments"), LIST[i][0]))
            return LIST[i][1];
    return NULL;
}

/* The text inside single quotes of a shell. Caller frees. */
static char *quoted(const char *text)
{
    g_auto(GStrv) part = g_strsplit(text, "'", -1);
    return g_strjoinv("'\\''", part);
}

/* Adds the values of an option, and its help for inside of quotes: in zsh, some letters end it. */
static void add_completion(json_t *option)
{
    const Values *values =
        NAME_ROW(VALUES, G_N_ELEMENTS(VALUES), option, json_word(option, "name"));
    g_autofree char *help = quoted(json_word(option, "help"));
    g_autofree char *plain = g_strdelimit(g_strdup(help), "[]:", ' ');
    json_object_set_new(option, "quoted", json_string(help));
    json_object_set_new(option, "plain", json_string(plain));
    if (values)
        json_object_set_new(option, values->list ? "list" : "words",
                            json_string(values->list ? values->list : values->words));
}

/* The description of a command, with what its completions need. */
static json_t *completion_of(const Command *command)
{
    json_t *about = command_description(command->name, command->run);
    const char *lists = completion_lists(about);
    g_autofree char *help = quoted(command->help);
    elements_each (option, json_object_get(about, "options"))
        add_completion(option);
    json_object_update_new(about, json_pack("{s:s, s:s, s:s*}", "command", command->name,
                                            "quoted", help, "lists", lists));
    return about;
}

/* --- manual pages --- */

/* Paragraphs; terms with their explanations stay a list: [{term, text} | {text, apart}], `apart`:
 * the request between it and the one before. */
static json_t *paragraphs_json(const char *text)
{
    json_t *list = json_array();
    g_auto(GStrv) paragraph = screen_paragraphs(text);
    for (char **at = paragraph; *at; at++) {
        g_autofree char *term = NULL;
        const char *rest;
        json_array_append_new(list,
                              screen_split_term(*at, &term, &rest)
                                  ? json_pack("{s:s, s:s}", "term", term, "text", rest)
                                  : json_pack("{s:s, s:s}", "text", *at, "apart",
                                              at == paragraph ? ""
                                              : **at == ' '   ? ".br"
                                                              : ".PP"));
    }
    return list;
}

/* A page of a name by its template. */
static char *manual_page_text(const char *name, const char *words, json_t *about)
{
    g_autofree char *title = g_ascii_strup(name, -1);
    json_object_set_new(about, "title", json_string(title));
    json_object_set_new(about, "version", json_string(KILTER_VERSION));
    return render_roff(words, about);
}

static char *command_page(const Command *command)
{
    json_auto_t *about = command_description(command->name, command->run);
    g_autofree char *name = g_strconcat("kilter-", command->name, NULL);
    json_object_set_new(about, "summary", paragraphs_json(json_word(about, "summary")));
    json_object_set_new(about, "help", json_string(command->help));
    return manual_page_text(name, ANSWER_MANUAL_COMMAND, about);
}

static char *program_page(const Command *command, uint32_t n)
{
    json_t *commands = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(commands, json_pack("{s:s, s:s}", "name", command[i].name,
                                                  "help", command[i].help));
    json_auto_t *about = json_pack("{s:o, s:o}", "commands", commands, "environment",
                                   command_environment());
    return manual_page_text("kilter", ANSWER_MANUAL_PROGRAM, about);
}

/* --- files --- */

static bool manual_write_file(const char *folder, const char *relative, const char *text,
                              GError **error)
{
    g_autofree char *file = g_build_filename(folder, relative, NULL);
    g_autofree char *parent = g_path_get_dirname(file);
    if (g_mkdir_with_parents(parent, 0777) != 0)
        return refuse(error, "cannot make the folder %s: %s", parent, g_strerror(errno));
    return output_write(file, text, -1, error);
}

static bool write_completions(const Command *command, uint32_t n, const char *folder,
                              GError **error)
{
    static const char *const shell[][2] = {
        {"bash-completion/completions/kilter", ANSWER_COMPLETION_BASH},
        {"zsh/site-functions/_kilter", ANSWER_COMPLETION_ZSH},
        {"fish/vendor_completions.d/kilter.fish", ANSWER_COMPLETION_FISH}};
    json_t *commands = json_array(), *values = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(commands, completion_of(&command[i]));
    for (guint i = 0; i < G_N_ELEMENTS(VALUES); i++)
        json_array_append_new(values, json_pack("{s:s, s:s?, s:s?, s:s?}", "option",
                                                VALUES[i].option, "letter",
                                                VALUES[i].letter, "words",
                                                VALUES[i].words, "list", VALUES[i].list));
    json_auto_t *about = json_pack("{s:o, s:o}", "commands", commands, "values", values);
    bool good = true;
    for (guint i = 0; good && i < G_N_ELEMENTS(shell); i++) {
        g_autofree char *text = render(shell[i][1], about);
        good = manual_write_file(folder, shell[i][0], text, error);
    }
    return good;
}

bool manual_write(const Command *command, uint32_t n, const char *folder, GError **error)
{
    g_autofree char *whole = program_page(command, n);
    if (!*folder)
        return refuse(error, "--write: expected a folder, got ''");
    if (!manual_write_file(folder, "man/man1/kilter.1", whole, error))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        g_autofree char *file = g_strdup_printf("man/man1/kilter-%s.1", command[i].name);
        g_autofree char *page = command_page(&command[i]);
        if (!manual_write_file(folder, file, page, error))
            return false;
    }
    return write_completions(command, n, folder, error);
}
