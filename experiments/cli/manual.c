/* Manual pages in roff's man macros: one for the program and one for each command. */
#include "experiments/cli/manual.h"

#include <errno.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "data/base/json.h"
#include "data/base/output.h"
#include "data/base/version.h"
#include "data/plan/fidelity.h"
#include "experiments/cli/describe.h"
#include "experiments/cli/screen.h"

/* --- completion scripts --- */

/* Scripts that complete commands, options, and the values of options and arguments. They ask the
 * program for the names of models, clusters and planners, so that a user's own clusters are
 * included. */

/* The values of an option: words, or the command whose lines begin with them; NULL: files. */
typedef struct {
    const char *option, *words, *list;
} Values;

static const Values VALUES[] = {{"planner", NULL, "planners"},
                                {"granularity", "machine gpu", NULL},
                                {"fidelity", FIDELITY_WORDS, NULL},
                                {"cluster", NULL, "clusters"},
                                {"base", NULL, "clusters"},
                                {"gpu", NULL, "devices"},
                                {"nic", NULL, "links"}};

static const Values *completion_values_of(const char *option)
{
    for (guint i = 0; i < G_N_ELEMENTS(VALUES); i++)
        if (strcmp(VALUES[i].option, option) == 0)
            return &VALUES[i];
    return NULL;
}

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

/* "--name -n ..." of a command. */
static char *option_words(const json_t *command)
{
    GString *words = g_string_new("--help");
    size_t i;
    json_t *option;
    json_array_foreach (json_object_get(command, "options"), i, option) {
        g_string_append_printf(words, " --%s", json_word(option, "name"));
        if (*json_word(option, "letter"))
            g_string_append_printf(words, " -%s", json_word(option, "letter"));
    }
    return g_string_free(words, FALSE);
}

/* The names in a list that a command prints as JSON, where prose cannot pass for one. */
#define NAME_LINES                                            \
    "sed -n -e 's/^      \"name\": \"\\([^\"]*\\)\".*/\\1/p'" \
    " -e 's/^      \"experiment\": \"\\([^\"]*\\)\".*/\\1/p'"

/* --- bash --- */

static void add_bash_values(GString *text)
{
    g_string_append(text, "    case $previous in\n");
    for (guint i = 0; i < G_N_ELEMENTS(VALUES); i++) {
        const Values *values = &VALUES[i];
        g_string_append_printf(text, "    --%s%s) ", values->option,
                               strcmp(values->option, "planner") == 0 ? "|-p" : "");
        if (values->list)
            g_string_append_printf(text, "words=$(_kilter_names %s) ;;\n", values->list);
        else
            g_string_append_printf(text, "words='%s' ;;\n", values->words);
    }
    g_string_append(text, "    --help|--*-) ;;\n    esac\n");
}

/* Callers free. */
static char *completion_bash(const json_t *commands)
{
    GString *text =
        g_string_new("# Completion of kilter for bash; made by kilter help --write.\n"
                     "_kilter_names() { for list; do kilter \"$list\" --json "
                     "2>/dev/null; done | " NAME_LINES "; }\n"
                     "_kilter() {\n"
                     "    local current=${COMP_WORDS[COMP_CWORD]} "
                     "previous=${COMP_WORDS[COMP_CWORD-1]}\n"
                     "    local command=${COMP_WORDS[1]} words=\n");
    g_autoptr(GString) names = g_string_new("help");
    size_t i;
    json_t *command;
    json_array_foreach ((json_t *)commands, i, command)
        g_string_append_printf(names, " %s", json_word(command, "name"));
    g_string_append_printf(text,
                           "    if [ \"$COMP_CWORD\" -eq 1 ] || { [ \"$command\" = help "
                           "] && [ \"$COMP_CWORD\" -eq 2 ]; }; then\n"
                           "        COMPREPLY=($(compgen -W '%s' -- \"$current\"))\n     "
                           "   return\n    fi\n",
                           names->str);
    add_bash_values(text);
    g_string_append(text, "    if [ -z \"$words\" ]; then\n        case $command in\n");
    json_array_foreach ((json_t *)commands, i, command) {
        g_autofree char *options = option_words(command);
        g_string_append_printf(text, "        %s) words='%s'", json_word(command, "name"),
                               options);
        if (completion_lists(command))
            g_string_append_printf(text,
                                   "; [[ $current == -* ]] || words=$(_kilter_names %s)",
                                   completion_lists(command));
        g_string_append(text, " ;;\n");
    }
    g_string_append(text, "        esac\n    fi\n"
                          "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
                          "}\n"
                          "complete -o default -F _kilter kilter\n");
    return g_string_free(text, FALSE);
}

/* --- zsh --- */

/* An option for _arguments: '(-p --planner)'{-p,--planner}'[help]:NAME:action'. */
static void add_zsh_option(GString *text, const json_t *option)
{
    const char *name = json_word(option, "name"), *letter = json_word(option, "letter"),
               *argument = json_word(option, "argument");
    const Values *values = completion_values_of(name);
    g_auto(GStrv) part = g_strsplit_set(json_word(option, "help"), "[]:", -1);
    g_autofree char *help = g_strjoinv(" ", part);
    g_autofree char *action =
        values && values->list
            ? g_strdup_printf("{compadd $(_kilter_names %s)}", values->list)
        : values
            ? g_strdup_printf("(%s)", values->words)
            : g_strdup(json_is_true(json_object_get(option, "file")) ? "_files" : " ");
    g_autofree char *rest = *argument
                                ? g_strdup_printf("[%s]:%s:%s", help, argument, action)
                                : g_strdup_printf("[%s]", help);
    g_autofree char *tail = g_shell_quote(rest);
    if (*letter)
        g_string_append_printf(text, " \\\n            {-%s,--%s}%s", letter, name, tail);
    else
        g_string_append_printf(text, " \\\n            --%s%s", name, tail);
}

static char *completion_zsh(const json_t *commands)
{
    GString *text = g_string_new(
        "#compdef kilter\n# Completion of kilter for zsh; made by kilter help --write.\n"
        "_kilter_names() { for list; do kilter $list --json 2>/dev/null; done "
        "| " NAME_LINES " }\n"
        "_kilter() {\n    local -a commands\n    commands=(\n");
    size_t i, j;
    json_t *command, *option;
    json_array_foreach ((json_t *)commands, i, command) {
        g_autofree char *line = g_strdup_printf("%s:%s", json_word(command, "name"),
                                                json_word(command, "help"));
        g_autofree char *word = g_shell_quote(line);
        g_string_append_printf(text, "        %s\n", word);
    }
    g_string_append(text,
                    "    )\n    if (( CURRENT == 2 )); then\n"
                    "        _describe command commands\n        return\n    fi\n"
                    "    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n"
                    "    case $command in\n");
    json_array_foreach ((json_t *)commands, i, command) {
        g_string_append_printf(text, "    %s)\n        _arguments",
                               json_word(command, "name"));
        json_array_foreach (json_object_get(command, "options"), j, option)
            add_zsh_option(text, option);
        const char *lists = completion_lists(command);
        g_string_append_printf(text, " \\\n            '*:file:{%s%s%s_files}' ;;\n",
                               lists ? "compadd $(_kilter_names " : "",
                               lists ? lists : "", lists ? "); " : "");
    }
    g_string_append(text, "    esac\n}\n_kilter \"$@\"\n");
    return g_string_free(text, FALSE);
}

/* --- fish --- */

static void add_fish_option(GString *text, const char *command, const json_t *option)
{
    const char *name = json_word(option, "name"), *letter = json_word(option, "letter");
    const Values *values = completion_values_of(name);
    g_autofree char *help = g_shell_quote(json_word(option, "help"));
    g_string_append_printf(text,
                           "complete -c kilter -n '__fish_seen_subcommand_from %s' -l %s",
                           command, name);
    if (*letter)
        g_string_append_printf(text, " -s %s", letter);
    if (*json_word(option, "argument"))
        g_string_append(text, " -r");
    if (values && values->list)
        g_string_append_printf(text, " -f -a '(__kilter_names %s)'", values->list);
    else if (values)
        g_string_append_printf(text, " -f -a '%s'", values->words);
    g_string_append_printf(text, " -d %s\n", help);
}

static char *completion_fish(const json_t *commands)
{
    GString *text = g_string_new(
        "# Completion of kilter for fish; made by kilter help --write.\n"
        "function __kilter_names\n"
        "    for list in $argv; kilter $list --json 2>/dev/null; end | " NAME_LINES
        "\nend\n");
    size_t i, j;
    json_t *command, *option;
    json_array_foreach ((json_t *)commands, i, command) {
        const char *name = json_word(command, "name");
        g_autofree char *help = g_shell_quote(json_word(command, "help"));
        g_string_append_printf(
            text, "complete -c kilter -n __fish_use_subcommand -f -a %s -d %s\n", name,
            help);
        json_array_foreach (json_object_get(command, "options"), j, option)
            add_fish_option(text, name, option);
        if (completion_lists(command))
            g_string_append_printf(
                text,
                "complete -c kilter -n '__fish_seen_subcommand_from %s' -a "
                "'(__kilter_names %s)'\n",
                name, completion_lists(command));
    }
    return g_string_free(text, FALSE);
}

/* --- roff --- */

/* Adds text, escaped so that roff sees no request, no escape and no hyphen that it may turn into a
 * dash. */
static void add_text(GString *page, const char *text)
{
    bool begins = true;
    for (const char *c = text; *c; c++) {
        if (begins && (*c == '.' || *c == '\''))
            g_string_append(page, "\\&");
        if (*c == '\\')
            g_string_append(page, "\\e");
        else if (*c == '-')
            g_string_append(page, "\\-");
        else
            g_string_append_c(page, *c);
        begins = *c == '\n';
    }
}

static void add_section(GString *page, const char *title, const char *text)
{
    g_string_append_printf(page, ".SH %s\n", title);
    add_text(page, text);
    g_string_append_c(page, '\n');
}

static void add_term(GString *page, const char *term, const char *text)
{
    g_string_append(page, ".TP\n.B ");
    add_text(page, term);
    g_string_append_c(page, '\n');
    add_text(page, text);
    g_string_append_c(page, '\n');
}

/* Adds paragraphs; terms with their explanations stay a list. */
static void add_paragraphs(GString *page, const char *title, const char *text)
{
    g_auto(GStrv) paragraph = screen_paragraphs(text);
    g_string_append_printf(page, ".SH %s\n", title);
    for (char **at = paragraph; *at; at++) {
        g_autofree char *term = NULL;
        const char *rest;
        if (screen_split_term(*at, &term, &rest)) {
            add_term(page, term, rest);
            continue;
        }
        g_string_append(page, at > paragraph ? **at == ' ' ? ".br\n" : ".PP\n" : "");
        add_text(page, *at);
        g_string_append(page, **at ? "\n" : "");
    }
}

/* Adds lines unchanged. */
static void add_lines(GString *page, const char *title, const char *lines)
{
    g_string_append_printf(page, ".SH %s\n.nf\n", title);
    add_text(page, lines);
    g_string_append(page, "\n.fi\n");
}

static GString *manual_page_new(const char *name, const char *help)
{
    GString *page = g_string_new(NULL);
    g_autofree char *title = g_ascii_strup(name, -1);
    g_string_append_printf(page, ".TH %s 1 \"\" \"kilter " KILTER_VERSION "\"\n", title);
    g_autofree char *line = g_strdup_printf("%s - %s", name, help);
    add_section(page, "NAME", line);
    return page;
}

static const char EXIT_STATUS[] =
    "0 when done, 1 when the work failed, 2 for bad usage or input, 3 when no "
    "plan of the planner fits the memory. After a failure nothing has been written.";

/* --- pages --- */

static void add_option(GString *page, const json_t *option)
{
    const char *letter = json_word(option, "letter"),
               *argument = json_word(option, "argument");
    g_autofree char *term =
        g_strdup_printf("%s%s%s--%s%s%s", *letter ? "-" : "", letter, *letter ? ", " : "",
                        json_word(option, "name"), *argument ? "=" : "", argument);
    add_term(page, term, json_word(option, "help"));
}

static char *command_page(const Command *command)
{
    json_auto_t *about = command_description(command->name, command->run);
    g_autofree char *name = g_strconcat("kilter-", command->name, NULL);
    GString *page = manual_page_new(name, command->help);
    g_autofree char *synopsis = g_strdup_printf("kilter %s [OPTION...] %s", command->name,
                                                json_word(about, "arguments"));
    g_autofree char *example = g_strconcat("  ", json_word(about, "example"), NULL);
    size_t i;
    json_t *option;
    add_section(page, "SYNOPSIS", synopsis);
    add_paragraphs(page, "DESCRIPTION", json_word(about, "summary"));
    g_string_append(page, ".SH OPTIONS\n");
    json_array_foreach (json_object_get(about, "options"), i, option)
        add_option(page, option);
    add_lines(page, "EXAMPLES", example);
    add_section(page, "EXIT STATUS", EXIT_STATUS);
    g_string_append(page, ".SH SEE ALSO\n.BR kilter (1)\n");
    return g_string_free(page, FALSE);
}

static char *program_page(const Command *command, uint32_t n)
{
    GString *page =
        manual_page_new("kilter", "plans training of deep networks on uneven GPUs");
    add_section(page, "SYNOPSIS", "kilter COMMAND [OPTION...] [ARGUMENT...]");
    add_section(
        page, "DESCRIPTION",
        "Plans how the training of a deep network is sharded over unequal GPUs, says "
        "what an iteration costs, simulates and replays it, and reproduces published "
        "comparisons.");
    g_string_append(page, ".SH COMMANDS\n");
    for (uint32_t i = 0; i < n; i++)
        add_term(page, command[i].name, command[i].help);
    g_string_append(page, ".SH ENVIRONMENT\n");
#define X(name, meaning) add_term(page, name, meaning);
    COMMAND_ENVIRONMENT(X)
#undef X
    add_section(page, "EXIT STATUS", EXIT_STATUS);
    g_string_append(page, ".SH SEE ALSO\n");
    for (uint32_t i = 0; i < n; i++)
        g_string_append_printf(page, ".BR kilter\\-%s (1)%s\n", command[i].name,
                               i + 1 < n ? "," : "");
    return g_string_free(page, FALSE);
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
    static const struct {
        const char *file;
        char *(*make)(const json_t *commands);
    } shell[] = {{"bash-completion/completions/kilter", completion_bash},
                 {"zsh/site-functions/_kilter", completion_zsh},
                 {"fish/vendor_completions.d/kilter.fish", completion_fish}};
    json_t *commands = json_array();
    for (uint32_t i = 0; i < n; i++) {
        json_t *about = command_description(command[i].name, command[i].run);
        json_object_set_new(about, "help", json_string(command[i].help));
        json_array_append_new(commands, about);
    }
    bool good = true;
    for (guint i = 0; good && i < G_N_ELEMENTS(shell); i++) {
        g_autofree char *text = shell[i].make(commands);
        good = manual_write_file(folder, shell[i].file, text, error);
    }
    json_decref(commands);
    return good;
}

bool manual_write(const Command *command, uint32_t n, const char *folder, GError **error)
{
    g_autofree char *whole = program_page(command, n);
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
