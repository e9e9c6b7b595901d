/* The program's commands, as its help lists them. */
#ifndef KILTER_TESTS_SUPPORT_PROGRAM_COMMANDS_H
#define KILTER_TESTS_SUPPORT_PROGRAM_COMMANDS_H

#include "tests/support/program.h"

/* The names of all commands. Free with g_strfreev. */
static inline char **program_commands(const Sandbox *box)
{
    g_auto(Ran) help = program_run_good(box, "help --all");
    const char *list = strstr(help.out, "Commands:\n"),
               *end = strstr(help.out, "\nOptions:");
    assert_true(list && end && list < end);
    g_autofree char *text = g_strndup(list, (gsize)(end - list));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();
    for (char **line = lines; *line; line++)
        if (g_str_has_prefix(*line, "  ")) {
            g_auto(GStrv) words = g_strsplit(*line + 2, " ", 2);
            g_strv_builder_add(names, words[0]);
        }
    return g_strv_builder_end(names);
}

#endif
