/* Scripts that complete commands, options, and the values of options and arguments. They ask the
 * program for the names of models, clusters and planners, so that a user's own clusters are
 * included. */
#include "experiments/cli/completion.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "data/plan/fidelity.h"

static const char *completion_text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

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

/* The text in single quotes for a shell. */
static char *quoted(const char *text)
{
    g_auto(GStrv) part = g_strsplit(text, "'", -1);
    g_autofree char *inner = g_strjoinv("'\\''", part);
    return g_strdup_printf("'%s'", inner);
}

/* Whether the command takes a model and then a cluster. */
static bool takes_model(const json_t *command)
{
    return g_str_has_prefix(completion_text_of(command, "arguments"), "MODEL");
}

/* "--name -n ..." of a command. */
static char *option_words(const json_t *command)
{
    GString *words = g_string_new("--help");
    size_t i;
    json_t *option;
    json_array_foreach (json_object_get(command, "options"), i, option) {
        g_string_append_printf(words, " --%s", completion_text_of(option, "name"));
        if (*completion_text_of(option, "letter"))
            g_string_append_printf(words, " -%s", completion_text_of(option, "letter"));
    }
    return g_string_free(words, FALSE);
}

/* The names in a list that a command prints as JSON, where prose cannot pass for one. */
#define NAME_LINES "sed -n 's/^      \"name\": \"\\([^\"]*\\)\".*/\\1/p'"

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

char *completion_bash(const json_t *commands)
{
    GString *text = g_string_new(
        "# Completion of kilter for bash; made by kilter help --write.\n"
        "_kilter_names() { kilter \"$1\" --json 2>/dev/null | " NAME_LINES "; }\n"
        "_kilter() {\n"
        "    local current=${COMP_WORDS[COMP_CWORD]} "
        "previous=${COMP_WORDS[COMP_CWORD-1]}\n"
        "    local command=${COMP_WORDS[1]} words=\n");
    g_autoptr(GString) names = g_string_new("help");
    size_t i;
    json_t *command;
    json_array_foreach ((json_t *)commands, i, command)
        g_string_append_printf(names, " %s", completion_text_of(command, "name"));
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
        g_string_append_printf(text, "        %s) words='%s'",
                               completion_text_of(command, "name"), options);
        if (takes_model(command))
            g_string_append(text,
                            "; [[ $current == -* ]] || words=$(_kilter_names models; "
                            "_kilter_names clusters)");
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
    const char *name = completion_text_of(option, "name"),
               *letter = completion_text_of(option, "letter"),
               *argument = completion_text_of(option, "argument");
    const Values *values = completion_values_of(name);
    g_auto(GStrv) part = g_strsplit_set(completion_text_of(option, "help"), "[]:", -1);
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
    g_autofree char *tail = quoted(rest);
    if (*letter)
        g_string_append_printf(text, " \\\n            {-%s,--%s}%s", letter, name, tail);
    else
        g_string_append_printf(text, " \\\n            --%s%s", name, tail);
}

char *completion_zsh(const json_t *commands)
{
    GString *text = g_string_new(
        "#compdef kilter\n# Completion of kilter for zsh; made by kilter help --write.\n"
        "_kilter_names() { kilter $1 --json 2>/dev/null | " NAME_LINES " }\n"
        "_kilter() {\n    local -a commands\n    commands=(\n");
    size_t i, j;
    json_t *command, *option;
    json_array_foreach ((json_t *)commands, i, command) {
        g_autofree char *line =
            g_strdup_printf("%s:%s", completion_text_of(command, "name"),
                            completion_text_of(command, "help"));
        g_autofree char *word = quoted(line);
        g_string_append_printf(text, "        %s\n", word);
    }
    g_string_append(text,
                    "    )\n    if (( CURRENT == 2 )); then\n"
                    "        _describe command commands\n        return\n    fi\n"
                    "    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n"
                    "    case $command in\n");
    json_array_foreach ((json_t *)commands, i, command) {
        g_string_append_printf(text, "    %s)\n        _arguments",
                               completion_text_of(command, "name"));
        json_array_foreach (json_object_get(command, "options"), j, option)
            add_zsh_option(text, option);
        if (takes_model(command))
            g_string_append(
                text,
                " \\\n            '1:MODEL:{compadd $(_kilter_names models); _files}'"
                " \\\n            '2:CLUSTER:{compadd $(_kilter_names clusters); "
                "_files}'");
        g_string_append(text, " \\\n            '*:file:_files' ;;\n");
    }
    g_string_append(text, "    esac\n}\n_kilter \"$@\"\n");
    return g_string_free(text, FALSE);
}

/* --- fish --- */

static void add_fish_option(GString *text, const char *command, const json_t *option)
{
    const char *name = completion_text_of(option, "name"),
               *letter = completion_text_of(option, "letter");
    const Values *values = completion_values_of(name);
    g_autofree char *help = quoted(completion_text_of(option, "help"));
    g_string_append_printf(text,
                           "complete -c kilter -n '__fish_seen_subcommand_from %s' -l %s",
                           command, name);
    if (*letter)
        g_string_append_printf(text, " -s %s", letter);
    if (*completion_text_of(option, "argument"))
        g_string_append(text, " -r");
    if (values && values->list)
        g_string_append_printf(text, " -f -a '(__kilter_names %s)'", values->list);
    else if (values)
        g_string_append_printf(text, " -f -a '%s'", values->words);
    g_string_append_printf(text, " -d %s\n", help);
}

char *completion_fish(const json_t *commands)
{
    GString *text =
        g_string_new("# Completion of kilter for fish; made by kilter help --write.\n"
                     "function __kilter_names\n"
                     "    kilter $argv[1] --json 2>/dev/null | " NAME_LINES "\nend\n");
    size_t i, j;
    json_t *command, *option;
    json_array_foreach ((json_t *)commands, i, command) {
        const char *name = completion_text_of(command, "name");
        g_autofree char *help = quoted(completion_text_of(command, "help"));
        g_string_append_printf(
            text, "complete -c kilter -n __fish_use_subcommand -f -a %s -d %s\n", name,
            help);
        json_array_foreach (json_object_get(command, "options"), j, option)
            add_fish_option(text, name, option);
        if (takes_model(command))
            g_string_append_printf(
                text,
                "complete -c kilter -n '__fish_seen_subcommand_from %s' -a "
                "'(__kilter_names models) (__kilter_names clusters)'\n",
                name);
    }
    return g_string_free(text, FALSE);
}
