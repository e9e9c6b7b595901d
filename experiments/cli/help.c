/* The help of commands, as wide as the terminal. */
#include "experiments/cli/help.h"

#include <stdio.h>

#include "data/base/json.h"
#include "experiments/answers.h"
#include "experiments/cli/screen.h"
#include "experiments/render.h"

enum { WIDEST = 100, PLAIN = 80 };

/* --- a command --- */

/* "  -p, --planner=NAME", the explanation behind it, or below where the name is long. */
static void help_option(const json_t *option, uint32_t width)
{
    enum { ROOM = 64 };
    const int column = width < ROOM ? 6 : 28;
    g_autofree char *name = render("  [-{letter}, ]--{name}[\\={argument}]", option);
    g_autofree char *text =
        g_strdup_printf("%*s%s", column, "", json_word(option, "help"));
    g_autofree char *folded =
        screen_paragraph(text, width, (uint32_t)column, G_MAXUINT32);
    if (g_utf8_strlen(name, -1) + 2 <= column)
        printf("%s%*s%s\n", name, column - (int)g_utf8_strlen(name, -1), "",
               folded + column);
    else
        printf("%s\n%s\n", name, folded);
}

void help_print(const CommandSyntax *syntax, const GOptionEntry *common)
{
    const uint32_t screen = screen_width(stdout),
                   width = screen ? MIN(screen, WIDEST) : PLAIN;
    size_t n_own;
    json_auto_t *about = command_about(syntax, common, &n_own);
    g_autofree char *summary = screen_refill(json_word(about, "summary"), width);
    screen_print(stdout, "Usage:\n  kilter %s [OPTION\u2026]%s%s\n\n", syntax->name,
                 *syntax->arguments ? " " : "", syntax->arguments);
    printf("%s\nOptions:\n", summary);
    elements_at (option, i, json_object_get(about, "options")) {
        fputs(i == n_own ? "\nOptions of all commands:\n" : "", stdout);
        help_option(option, width);
    }
    g_autofree char *example = g_strconcat("  ", json_word(about, "example"), "\n", NULL);
    fputs("\nExample:\n", stdout);
    screen_put(example, stdout);
}

/* --- all commands --- */

void help_all(const Command *list, uint32_t n)
{
#define COMMAND_GROUP_TITLE(group, title) title,
    static const char *const TITLE[] = {COMMAND_GROUPS(COMMAND_GROUP_TITLE)};
    json_t *groups = json_array();
    for (CommandGroup group = 0; group < G_N_ELEMENTS(TITLE); group++) {
        json_t *commands = json_array();
        for (uint32_t i = 0; i < n; i++)
            if (list[i].group == group)
                json_array_append_new(
                    commands,
                    json_pack("{s:s, s:s}", "name", list[i].name, "help", list[i].help));
        json_array_append_new(
            groups, json_pack("{s:s, s:o}", "title", TITLE[group], "commands", commands));
    }
    json_auto_t *help = json_pack("{s:o}", "groups", groups);
    g_autofree char *text = render(ANSWER_HELP, help);
    screen_put(text, stdout);
}

void help_greet(const Command *list, uint32_t n)
{
    json_auto_t *help = json_object();
    for (uint32_t i = 0; i < n; i++)
        json_object_set_new(help, list[i].name, json_string(list[i].help));
    g_autofree char *text = render(ANSWER_GREETING, help);
    screen_put(text, stdout);
}
