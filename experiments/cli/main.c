/* kilter: finds the command, prints its error, turns it into the exit status (0 done, 1 the work
 * failed, 2 bad usage or input, 3 no feasible plan). */
#include <locale.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <string.h>

#include "data/base/path.h"
#include "data/base/version.h"
#include "experiments/cli/describe.h"
#include "experiments/cli/exec_launch.h"
#include "experiments/cli/help.h"
#include "experiments/cli/limits.h"
#include "experiments/cli/manual.h"
#include "experiments/cli/screen.h"
#include "experiments/figures/reproduce.h"
#include "synth/planners/planner.h"

#define COMMAND_FULL_ROW(name, group, help, ...) \
    {#name, help, cmd_##name, COMMAND_##group},
static const Command commands[] = {COMMAND_TABLE(COMMAND_FULL_ROW)};

/* The commands as they are given: run-trace, where the function is cmd_run_trace. Caller frees. */
static Command *commands_as_given(void)
{
    Command *given = g_memdup2(commands, sizeof commands);
    for (guint i = 0; i < G_N_ELEMENTS(commands); i++) {
        g_autofree char *name = g_strdelimit(g_strdup(commands[i].name), "_", '-');
        given[i].name = g_intern_string(name);
    }
    return given;
}

/* "did you mean 'kilter devices h100-sxm'?" of a word that another command takes, else NULL. */
static char *command_of(const char *word)
{
    static const char *const TAKES[][2] = {
        {"reproduce", "experiments"}, {"devices", "devices"}, {"clusters", "clusters"}};
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) figures = reproduce_names(word, NULL);
    if (figures)
        return g_strdup_printf("did you mean 'kilter reproduce %s'?", word);
    for (guint i = 0; i < G_N_ELEMENTS(TAKES); i++) {
        g_auto(GStrv) names = path_list(TAKES[i][1], ".yaml");
        for (char **name = names; *name; name++)
            g_ptr_array_add(all, g_strdup_printf("kilter %s %s", TAKES[i][0], *name));
    }
    g_ptr_array_add(all, NULL);
    return names_meant(word, (const char *const *)all->pdata, NULL);
}

static bool run_command(const Command *list, int argc, char **argv, GError **error)
{
    const char *known[G_N_ELEMENTS(commands) + 1] = {NULL};
    for (guint i = 0; i < G_N_ELEMENTS(commands); i++)
        known[i] = list[i].name;
    uint32_t index;
    g_autofree char *hint =
        g_strv_contains(known, argv[0]) ? NULL : names_hint(argv[0], known);
    g_autofree char *other = hint && !*hint ? command_of(argv[0]) : NULL;
    if (other)
        return refuse(error, "unknown command '%.60s'; %s", argv[0], other);
    return names_find("command", argv[0], known, &index, error) &&
           commands[index].run(argc, argv, error);
}

static bool main_run(int argc, char **argv, GError **error)
{
    static const char *const help[] = {"help", "--help", "-h", NULL};
    static const char *const version[] = {"version", "--version", "-V", NULL};
    g_autofree Command *list = commands_as_given();
    if (argc == 4 && g_strv_contains(help, argv[1]) && strcmp(argv[2], "--write") == 0)
        return manual_write(list, G_N_ELEMENTS(commands), argv[3], error);
    if (argc == 3 && g_strv_contains(help, argv[1]) && strcmp(argv[2], "--all") == 0) {
        help_all(list, G_N_ELEMENTS(commands));
        return true;
    }
    if (argc > 2 && g_strv_contains(help, argv[1]))
        return run_command(list, 2, (char *[]){argv[2], (char *)"--help", NULL}, error);
    if (argc < 2 || g_strv_contains(help, argv[1]))
        help_greet(list, G_N_ELEMENTS(commands));
    else if (g_strv_contains(version, argv[1]))
        puts("kilter " KILTER_VERSION);
    else
        return run_command(list, argc - 1, argv + 1, error);
    return true;
}

/* At most three lines of a terminal, unless -v asks for the whole. */
static void print_error(const char *message, char **argv)
{
    enum { LINES = 3, INDENT = 4 };
    const char *const *words = (const char *const *)argv;
    const uint32_t width = screen_width(stderr);
    const bool whole =
        g_strv_contains(words, "-v") || g_strv_contains(words, "--verbose");
    g_autofree char *line = g_strconcat("kilter: ", message, NULL);
    g_autofree char *text =
        width ? screen_paragraph(line, width, INDENT, whole ? G_MAXUINT32 : LINES)
              : g_strdup(line);
    fprintf(stderr, "%s\n", text);
}

/* Says that a search may take long or much, whether or not the command is quiet; of many searches,
 * those that may take longer than all before. */
static void hear(double seconds, const char *words)
{
    static GMutex lock;
    static double most_s;
    g_mutex_lock(&lock);
    if (seconds > most_s)
        limits_note("%s", words);
    most_s = MAX(most_s, seconds);
    g_mutex_unlock(&lock);
}

int main(int argc, char **argv)
{
#ifdef __GLIBC__ /* arrays that searches free and make again are not fetched anew page by page */
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
    /* Looked up before options are taken out of argv. A rank of exec prints plain text, which the
     * program that started it reports. */
    const bool json = !exec_is_rank() && argc > 1 &&
                      g_strv_contains((const char *const *)argv, "--json");
    if (!exec_is_rank())
        limits_begin(json ? argv[1] : NULL);
    else
        limits_lift();
    planner_tell(hear);
    /* Only the character type: numbers are written with a point in every locale. */
    setlocale(LC_CTYPE, "");
    g_autoptr(GError) error = NULL;
    if (main_run(argc, argv, &error))
        return 0;
    if (error->domain == COMMAND_DESCRIPTION) {
        puts(error->message);
        return 0;
    }
    /* One line, even if a library put several into the message. */
    g_strdelimit(error->message, "\r\n", ' ');
    const int status = error->domain == KILTER_ERROR ? error->code : KILTER_ERROR_FAILED;
    if (json)
        command_print_error(error, status);
    else
        print_error(error->message, argv);
    return status;
}
