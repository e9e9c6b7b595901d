/* The arguments and options of a command as JSON, from which manual pages and completions are made.
 * The JSON comes from the table that --help prints. It leaves the command as a special error, since
 * the table exists only where the options are parsed. */
#include "experiments/cli/describe.h"

#include <stdlib.h>
#include <string.h>

#include "data/base/path.h"
#include "data/base/text.h"

G_DEFINE_QUARK(command - description - quark, command_description)

/* The lines of a file of data/commands below a title, up to the next empty line; "" without it. The
 * text ends before the title. */
static const char *lines_below(char *text, const char *title)
{
    char *at = strstr(text, title);
    if (!at)
        return "";
    *at = '\0';
    at += strlen(title);
    char *end = strstr(at, "\n\n");
    if (end)
        *end = '\0';
    return at;
}

/* The content of commands/NAME.txt, or what is wrong with the file. Caller frees. */
static char *command_file(const char *name)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *relative = g_strdup_printf("commands/%s.txt", name);
    g_autofree char *file = path_bundled(relative, &error);
    char *text = file ? text_read(file, &error) : NULL;
    return text ? text : g_strdup(error->message);
}

char *command_having(const char *option)
{
    g_auto(GStrv) names = path_list("commands", ".txt");
    g_autofree char *line = g_strdup_printf("\n  --%s=", option);
    g_autoptr(GString) having = g_string_new(NULL);
    for (char **name = names; *name; name++) {
        g_autofree char *text = command_file(*name);
        if (strstr(text, line) && strcmp(*name, "options") != 0)
            g_string_append_printf(having, "%s%s", having->len ? ", " : "", *name);
    }
    return having->len ? g_strdup_printf("; it is an option of kilter %s.", having->str)
                       : g_strdup("");
}

/* Sets the option's help, and what stands for its value, from the line "  --NAME=VALUE  HELP" or
 * "  --NAME  HELP"; false if there is none. */
static bool set_words(json_t *option, const char *name, const char *lines)
{
    g_autofree char *pattern = g_strdup_printf("^  --%s(?:=(.*?))?  (.*)$", name);
    g_autoptr(GRegex) line = g_regex_new(pattern, G_REGEX_MULTILINE, 0, NULL);
    g_autoptr(GMatchInfo) found = NULL;
    if (!g_regex_match(line, lines, 0, &found))
        return false;
    g_autofree char *value = g_match_info_fetch(found, 1);
    g_autofree char *help = g_match_info_fetch(found, 2);
    json_object_set_new(option, "help", json_string(help));
    if (*value)
        json_object_set_new(option, "argument", json_string(value));
    return true;
}

static void add_options(json_t *list, const GOptionEntry *entry, const char *own,
                        const char *shared)
{
    for (; entry && entry->long_name; entry++) {
        const char letter[] = {entry->short_name, '\0'};
        const bool file = entry->arg == G_OPTION_ARG_FILENAME ||
                          entry->arg == G_OPTION_ARG_FILENAME_ARRAY;
        if (entry->flags & G_OPTION_FLAG_HIDDEN)
            continue;
        json_t *option =
            json_pack("{s:s, s:s, s:b, s:s*, s:s*}", "name", entry->long_name, "help", "",
                      "file", (int)file, "letter", *letter ? letter : NULL, "argument",
                      entry->arg != G_OPTION_ARG_NONE ? "VALUE" : NULL);
        if (!set_words(option, entry->long_name, own))
            set_words(option, entry->long_name, shared);
        json_array_append_new(list, option);
    }
}

json_t *command_about(const CommandSyntax *syntax, const GOptionEntry *common,
                      size_t *n_own)
{
    g_autofree char *text = command_file(syntax->name);
    g_autofree char *others = command_file("options");
    g_autofree char *example = g_strdup(lines_below(text, "\n\nExample:\n"));
    const char *own = lines_below(text, "\n\nOptions:\n"),
               *shared = lines_below(others, "\n\nOptions:\n");
    g_autofree char *summary = g_strjoin("\n\n", text, syntax->tables, NULL);
    json_t *options = json_array();
    add_options(options, syntax->entries, own, shared);
    *n_own = json_array_size(options);
    add_options(options, common, own, shared);
    return json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", syntax->name, "arguments",
                     syntax->arguments, "summary", summary, "example",
                     g_strstrip(example), "options", options);
}

bool command_describe(const CommandSyntax *syntax, const GOptionEntry *common,
                      GError **error)
{
    size_t n_own;
    json_auto_t *about = command_about(syntax, common, &n_own);
    char *text = json_dumps(about, JSON_INDENT(2));
    g_set_error_literal(error, COMMAND_DESCRIPTION, 0, text);
    free(text);
    return false;
}

json_t *command_description(const char *name, CommandRun run)
{
    g_autoptr(GError) error = NULL;
    char *argv[] = {(char *)name, (char *)COMMAND_DESCRIBE, NULL};
    const bool done = run(2, argv, &error);
    g_assert(!done && error && error->domain == COMMAND_DESCRIPTION);
    json_t *object = json_loads(error->message, 0, NULL);
    g_assert(object);
    return object;
}
