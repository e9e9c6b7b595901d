/* Every command that README.md and the help texts show, run in the order of reading, in one folder:
 * each must succeed. Commands that need measurements of others (DIR, ...) are left out, and those
 * that run ranks where the build has none. */
#include "exec/exec.h"
#include "tests/support/program.h"

static const char *const LEFT_OUT[] = {"--measured", "all_reduce.json"};
static const char *const NEEDS_RANKS[] = {
    "kilter exec", "kilter profile", "kilter calibrate", "kilter validate", "mine.yaml"};

static bool has_any(const char *line, const char *const *words, guint n)
{
    for (guint i = 0; i < n; i++)
        if (strstr(line, words[i]))
            return true;
    return false;
}

/* The command of a line that starts with `prefix`, up to the remark behind two blanks; NULL: none.
 * Caller frees. */
static char *command_of(const char *line, const char *prefix)
{
    if (!g_str_has_prefix(line, prefix))
        return NULL;
    const char *rest = line + strlen(prefix), *remark = strstr(rest, "  ");
    g_autofree char *words =
        remark ? g_strndup(rest, (gsize)(remark - rest)) : g_strdup(rest);
    return g_strconcat("kilter ", words, NULL);
}

static void add_commands(GPtrArray *commands, const char *text, const char *prefix)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i]; i++) {
        char *command = command_of(lines[i], prefix);
        if (command)
            g_ptr_array_add(commands, command);
    }
}

static void add_readme(GPtrArray *commands)
{
    g_autofree char *path = g_build_filename(KILTER_HOME, "README.md", NULL);
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    guint before = commands->len;
    add_commands(commands, text, "    build/kilter ");
    assert_true(commands->len > before + 10);
}

/* The examples of every command that `kilter --help` lists. */
static void add_help(const Sandbox *box, GPtrArray *commands)
{
    g_auto(Ran) help = program_run_good(box, "--help");
    const char *list = strstr(help.out, "Commands:\n");
    assert_non_null(list);
    g_auto(GStrv) lines = g_strsplit(list, "\n", -1);
    guint n = 0;
    for (guint i = 1; lines[i] && *lines[i]; i++, n++) {
        g_auto(GStrv) words = g_strsplit(g_strstrip(lines[i]), " ", 2);
        g_autofree char *line = g_strconcat(words[0], " --help", NULL);
        g_auto(Ran) ran = program_run_good(box, line);
        const char *examples = strstr(ran.out, "Example:\n");
        if (!examples)
            TEST_FAIL_AT(__FILE__, __LINE__, "kilter %s shows no example", line);
        add_commands(commands, examples, "  kilter ");
    }
    assert_true(n > 10);
}

/* Runs a line of the shell in which `kilter` is the program. */
static void run_command(const Sandbox *box, const char *command)
{
    g_autofree char *folder = g_path_get_dirname(g_getenv("KILTER_BIN"));
    g_autofree char *path = g_strconcat(folder, ":", g_getenv("PATH"), NULL);
    g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(
        G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_MERGE);
    g_subprocess_launcher_set_cwd(launcher, box->folder);
    g_subprocess_launcher_setenv(launcher, "PATH", path, TRUE);
    g_autoptr(GError) error = NULL;
    g_autoptr(GSubprocess) process =
        g_subprocess_launcher_spawn(launcher, &error, "sh", "-c", command, NULL);
    assert_no_error(error);
    g_autofree char *out = NULL;
    assert_true(g_subprocess_communicate_utf8(process, NULL, NULL, &out, NULL, NULL));
    bool good =
        g_subprocess_get_if_exited(process) && g_subprocess_get_exit_status(process) == 0;
    print_message("%s: %s\n", good ? "runs" : "fails", command);
    if (!good)
        TEST_FAIL_AT(__FILE__, __LINE__, "%s\n%s", command, out);
}

/* README's commands are given in the project's folder: what they read there. */
static void bring(const Sandbox *box, const char *file)
{
    g_autofree char *from = g_build_filename(KILTER_HOME, file, NULL);
    g_autofree char *to = g_build_filename(box->folder, file, NULL);
    g_autofree char *folder = g_path_get_dirname(to);
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(from, &text, NULL, NULL));
    assert_int_equal(g_mkdir_with_parents(folder, 0700), 0);
    sandbox_write(box, file, text);
}

static void test_every_command(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    bring(box, "experiments/hap-fig13.yaml");
    g_autoptr(GPtrArray) commands = g_ptr_array_new_with_free_func(g_free);
    add_readme(commands);
    add_help(box, commands);
    bool ranks = exec_mpi_built();
    for (guint i = 0; i < commands->len; i++) {
        const char *command = commands->pdata[i];
        if (!has_any(command, LEFT_OUT, G_N_ELEMENTS(LEFT_OUT)) &&
            (ranks || !has_any(command, NEEDS_RANKS, G_N_ELEMENTS(NEEDS_RANKS))))
            run_command(box, command);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_command)};
    return cmocka_run_group_tests_name("documentation", tests, NULL, NULL);
}
