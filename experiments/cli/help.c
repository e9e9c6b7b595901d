/* The help of commands, as wide as the terminal. */
#include "experiments/cli/help.h"

#include <stdio.h>
#include <string.h>

#include "data/base/json.h"
#include "experiments/cli/screen.h"
#include "experiments/render.h"

enum { WIDEST = 100, PLAIN = 80 };

static uint32_t help_width(void)
{
    const uint32_t width = screen_width(stdout);
    return width ? MIN(width, WIDEST) : PLAIN;
}

/* --- a command --- */

/* "  -p, --planner=NAME", the explanation behind it, or below where the name is long. */
static void help_option(const json_t *option, uint32_t width)
{
    enum { COLUMN = 28 };
    g_autofree char *name = render("  [-{letter}, ]--{name}[\\={argument}]", option);
    g_autofree char *text =
        g_strdup_printf("%*s%s", COLUMN, "", json_word(option, "help"));
    g_autofree char *folded = screen_paragraph(text, width, COLUMN, G_MAXUINT32);
    const bool fits = g_utf8_strlen(name, -1) + 2 <= COLUMN;
    if (fits)
        printf("%s%*s%s\n", name, COLUMN - (int)g_utf8_strlen(name, -1), "",
               folded + COLUMN);
    else
        printf("%s\n%s\n", name, folded);
}

void help_print(const CommandSyntax *syntax, const GOptionEntry *common)
{
    const uint32_t width = help_width();
    size_t n_own, i;
    json_auto_t *about = command_about(syntax, common, &n_own);
    g_autofree char *summary = screen_refill(json_word(about, "summary"), width);
    json_t *option;
    printf("Usage:\n  kilter %s [OPTION\u2026]%s%s\n\n%s\nOptions:\n", syntax->name,
           *syntax->arguments ? " " : "", syntax->arguments, summary);
    json_array_foreach (json_object_get(about, "options"), i, option) {
        fputs(i == n_own ? "\nOptions of all commands:\n" : "", stdout);
        help_option(option, width);
    }
    g_autofree char *example = g_strconcat("  ", json_word(about, "example"), "\n", NULL);
    fputs("\nExample:\n", stdout);
    screen_put(example, stdout);
}

/* --- all commands --- */

static void help_commands(const Command *list, uint32_t n, CommandGroup group)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i].group == group)
            printf("  %-12s%s\n", list[i].name, list[i].help);
}

void help_all(const Command *list, uint32_t n)
{
    puts("Usage:\n  kilter COMMAND [OPTION\u2026] [ARGUMENT\u2026]\n\nCommands:");
#define COMMAND_GROUP_TITLE(group, title) title,
    static const char *const TITLE[] = {COMMAND_GROUPS(COMMAND_GROUP_TITLE)};
    for (CommandGroup group = 0; group < G_N_ELEMENTS(TITLE); group++) {
        printf("%s%s\n", group ? "\n" : "", TITLE[group]);
        help_commands(list, n, group);
    }
    puts("\nOptions:\n"
         "  --help      this text; kilter help COMMAND explains a command, with an "
         "example;\n"
         "              kilter help --write DIR writes manual pages and completions\n"
         "  --version   the version");
}

void help_greet(const Command *list, uint32_t n)
{
    /* The commands that most people begin with, with lines to try. */
    static const struct {
        const char *name, *line;
    } FIRST[] = {
        {"advise", "kilter advise gpt2 hap-16"},
        {"plan", "kilter plan vgg19 hap-32 --explain"},
        {"reproduce", "kilter reproduce hap-fig13"},
        {"sweep", "kilter sweep hap-fig4 --db results.db"},
        {"doctor", "kilter doctor"},
    };
    puts("Kilter plans the training of deep networks on clusters of unlike GPUs.\n");
    for (uint32_t f = 0; f < G_N_ELEMENTS(FIRST); f++)
        for (uint32_t i = 0; i < n; i++)
            if (strcmp(list[i].name, FIRST[f].name) == 0)
                printf("  %-12s%s\n              %s\n", list[i].name, list[i].help,
                       FIRST[f].line);
    puts("\nkilter help --all     all commands\n"
         "kilter help COMMAND   one command, with its options and an example\n"
         "kilter --version      the version");
}
