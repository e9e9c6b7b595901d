/* kilter: finds the command, prints its error, turns it into the exit status (0 done, 1 the work
 * failed, 2 bad usage or input, 3 no feasible plan). */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "experiments/cli/command.h"

static const struct {
    const char *name, *help;
    CommandRun run;
} commands[] = {
#define X(name, help) {#name, help, cmd_##name},
    COMMAND_TABLE(X)
#undef X
};

static void print_help(void)
{
    puts("Usage:\n  kilter COMMAND [OPTION…] [ARGUMENT…]\n\n"
         "Plans how the training of a deep network is sharded over unequal GPUs, says "
         "what an\n"
         "iteration costs, and reproduces published comparisons.\n\nCommands:");
    for (guint i = 0; i < G_N_ELEMENTS(commands); i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].help);
    puts("\nOptions:\n"
         "  --help     this text; kilter COMMAND --help says more, with an example\n"
         "  --version  the version\n\n"
         "Example:\n  kilter plan vgg19 hap-32 --planner hap");
}

static bool run(int argc, char **argv, GError **error)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_help();
        return true;
    }
    if (strcmp(name, "--version") == 0) {
        puts("kilter " KILTER_VERSION);
        return true;
    }
    g_autoptr(GString) known = g_string_new(NULL);
    for (guint i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1, error);
        g_string_append_printf(known, "%s%s", i ? ", " : "", commands[i].name);
    }
    return kilter_fail(
        error, KILTER_ERROR_INPUT, "%s%s%s, expected one of %s; see kilter --help",
        *name ? "unknown command '" : "no command", name, *name ? "'" : "", known->str);
}

int main(int argc, char **argv)
{
    /* Only characters: numbers are written with a point everywhere. */
    setlocale(LC_CTYPE, "");
    g_autoptr(GError) error = NULL;
    bool good = run(argc, argv, &error);
    if (good && fflush(stdout) != 0) {
        kilter_fail(&error, KILTER_ERROR_FAILED, "cannot write to standard output");
        good = false;
    }
    if (good)
        return 0;
    /* One line, whatever a library put into the message. */
    g_strdelimit(error->message, "\r\n", ' ');
    fprintf(stderr, "kilter: %s\n", error->message);
    return error->domain == KILTER_ERROR ? error->code : KILTER_ERROR_FAILED;
}
