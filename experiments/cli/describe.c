/* The arguments and options of a command as JSON, from which manual pages and completions are made.
 * The JSON comes from the table that --help prints. It leaves the command as a special error, since
 * the table exists only where the options are parsed. */
#include "experiments/cli/describe.h"

#include <stdlib.h>
#include <string.h>

#include "data/base/path.h"
#include "data/base/text.h"

G_DEFINE_QUARK(command - description - quark, command_description)

static void add_options(json_t *list, const GOptionEntry *entry)
{
    for (; entry && entry->long_name; entry++) {
        const char letter[] = {entry->short_name, '\0'};
        const bool file = entry->arg == G_OPTION_ARG_FILENAME ||
                          entry->arg == G_OPTION_ARG_FILENAME_ARRAY;
        if (entry->flags & G_OPTION_FLAG_HIDDEN)
            continue;
        json_t *option = json_pack("{s:s, s:s, s:b}", "name", entry->long_name, "help",
                                   entry->description, "file", (int)file);
        if (entry->short_name)
            json_object_set_new(option, "letter", json_string(letter));
        if (entry->arg != G_OPTION_ARG_NONE)
            json_object_set_new(
                option, "argument",
                json_string(entry->arg_description ? entry->arg_description : "VALUE"));
        json_array_append_new(list, option);
    }
}

void command_text(const CommandSyntax *syntax, char **summary, char **example)
{
    static const char EXAMPLE[] = "\n\nExample:\n";
    g_autoptr(GError) error = NULL;
    g_autofree char *name = g_strdup_printf("commands/%s.txt", syntax->name);
    g_autofree char *file = path_bundled(name, &error);
    g_autofree char *text = file ? text_read(file, &error) : NULL;
    char *at = text ? strstr(text, EXAMPLE) : NULL;
    if (at)
        *at = '\0';
    *summary = g_strjoin("\n\n", text ? text : error->message, syntax->tables, NULL);
    *example = g_strstrip(g_strdup(at ? at + strlen(EXAMPLE) : ""));
}

bool command_describe(const CommandSyntax *syntax, const GOptionEntry *common,
                      GError **error)
{
    g_autofree char *summary = NULL, *example = NULL;
    command_text(syntax, &summary, &example);
    json_t *options = json_array();
    add_options(options, syntax->entries);
    add_options(options, common);
    json_auto_t *object = json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", syntax->name,
                                    "arguments", syntax->arguments, "summary", summary,
                                    "example", example, "options", options);
    char *text = json_dumps(object, JSON_INDENT(2));
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
