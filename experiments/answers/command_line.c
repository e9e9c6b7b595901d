/* Commands as they are typed. */
#include "experiments/answers/command_line.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

char *command_line(int argc, char **argv)
{
    GString *line = g_string_new("kilter");
    for (int i = 0; i < argc; i++) {
        bool plain = argv[i][strspn(argv[i], G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS
                                    "-_=:.,/+@")] == '\0';
        g_autofree char *quoted = plain ? g_strdup(argv[i]) : g_shell_quote(argv[i]);
        g_string_append_printf(line, " %s", quoted);
    }
    return g_string_free(line, FALSE);
}
