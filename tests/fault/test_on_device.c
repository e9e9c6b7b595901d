/* exec/on-device.sh, rehearsed on CPUs with the programs of this build, and, as a kit that is
 * packed and unpacked elsewhere, on an emulated GPU: every step ends well, the folder and its
 * archive have what the script's comment lists and commands read it, and a budget stops it and
 * lets it go on. */
#include <glib/gstdio.h>
#include <unistd.h>

#include "exec/exec.h"
#include "tests/support/program_json.h"

/* The exit status of a command, in the sandbox; *said gets its stdout. */
static int exit_of(const Sandbox *sandbox, char **environment, const char *line,
                   char **said)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) words = NULL;
    int status = 0;
    assert_true(g_shell_parse_argv(line, NULL, &words, NULL));
    g_spawn_sync(sandbox->folder, words, environment, G_SPAWN_SEARCH_PATH, NULL, NULL,
                 said, NULL, &status, &error);
    assert_no_error(error);
    return g_spawn_check_wait_status(status, &error) ? 0 : error->code;
}

/* The script's exit status with the given words before the folder "device" of the sandbox; *said
 * gets its stdout. */
static int rehearse(const Sandbox *sandbox, const char *words, char **said)
{
    g_autofree char *built = g_path_get_dirname(g_getenv("KILTER_BIN"));
    g_autofree char *line =
        g_strdup_printf("%s/exec/on-device.sh --rehearse --built '%s' %s '%s/device'",
                        KILTER_HOME, built, words, sandbox->folder);
    return exit_of(sandbox, NULL, line, said);
}

static char *text_of(const Sandbox *sandbox, const char *name)
{
    g_autofree char *file = g_build_filename(sandbox->folder, name, NULL);
    char *text = NULL;
    if (!g_file_get_contents(file, &text, NULL, NULL))
        fail_msg("the script leaves no %s", name);
    return text;
}

static uint32_t lines_with(const char *text, const char *word)
{
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, word)); at++)
        n++;
    return n;
}

static void test_rehearsal(void **state)
{
    (void)state;
    if (!exec_mpi_built())
        skip();
    enum { MODELS = 5, MOST_BYTES = 2 << 20 };
    g_autoptr(Sandbox) sandbox = sandbox_new();
    g_autofree char *first = NULL, *second = NULL, *third = NULL;
    assert_int_equal(rehearse(sandbox, "--budget 4", &first), 3);
    g_autofree char *begun = text_of(sandbox, "device/summary.txt");
    assert_int_equal(lines_with(begun, "done"), 0);
    if (rehearse(sandbox, "", &second) != 0)
        fail_msg("the rehearsal says %s", second);
    g_autofree char *summary = text_of(sandbox, "device/summary.txt");
    assert_int_equal(lines_with(summary, "done"), 12);
    assert_int_equal(lines_with(summary, "failed") + lines_with(summary, "limit"), 0);
    /* everything is done, so that a third call has nothing to do */
    assert_int_equal(rehearse(sandbox, "--budget 1", &third), 0);
    assert_int_equal(lines_with(third, "done"), 0);
    static const char *const left[] = {"device/measured.csv", "device/cluster.yaml",
                                       "device/validate.json", "device/hap-fig18.svg",
                                       "device/runs/5.json"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(left); i++) {
        g_autofree char *text = text_of(sandbox, left[i]);
        assert_true(strlen(text) > 100);
    }
    g_autofree char *criteria = text_of(sandbox, "device/criteria.txt");
    assert_non_null(strstr(criteria, "\n5 runs\n"));
    assert_non_null(strstr(criteria, "Spearman"));
    assert_int_equal(lines_with(criteria, "layers="), MODELS - 1);
    g_autofree char *archive = g_build_filename(sandbox->folder, "device.tar.gz", NULL);
    GStatBuf size;
    assert_int_equal(g_stat(archive, &size), 0);
    assert_in_range(size.st_size, 1000, MOST_BYTES);
}

#ifdef KILTER_EMULATED
static void link_to(const Sandbox *sandbox, const char *target, const char *name)
{
    g_autofree char *path = g_build_filename(sandbox->folder, name, NULL);
    assert_int_equal(symlink(target, path), 0);
}

static void folder_new(const Sandbox *sandbox, const char *name)
{
    g_autofree char *path = g_build_filename(sandbox->folder, name, NULL);
    assert_int_equal(g_mkdir_with_parents(path, 0700), 0);
}

static void tool_new(const Sandbox *sandbox, const char *name, const char *text)
{
    sandbox_write(sandbox, name, text);
    g_autofree char *path = g_build_filename(sandbox->folder, name, NULL);
    assert_int_equal(g_chmod(path, 0700), 0);
}

/* A kit of this build's programs, with the emulated devices, in there/kit; the environment of a
 * machine that has it and the tools of NVIDIA's driver. The caller frees it. */
static char **kit_unpacked(const Sandbox *sandbox)
{
    g_autofree char *built = g_path_get_dirname(g_getenv("KILTER_BIN"));
    g_autofree char *tests = g_build_filename(built, "tests", NULL);
    g_autofree char *tools = g_build_filename(sandbox->folder, "tools", NULL);
    g_autofree char *pack =
        g_strdup_printf("%s/exec/on-device.sh --built '%s/programs' --pack '%s/kit'",
                        KILTER_HOME, sandbox->folder, sandbox->folder);
    folder_new(sandbox, "programs");
    folder_new(sandbox, "tools");
    folder_new(sandbox, "there");
    folder_new(sandbox, "kit");
    link_to(sandbox, g_getenv("KILTER_BIN"), "programs/kilter");
    link_to(sandbox, KILTER_EMULATED, "programs/kilter_cuda.so");
    link_to(sandbox, tests, "programs/tests");
    assert_int_equal(exit_of(sandbox, NULL, pack, NULL), 2); /* that folder is no kit */
    assert_int_equal(exit_of(sandbox, NULL, "rmdir kit", NULL), 0);
    assert_int_equal(exit_of(sandbox, NULL, pack, NULL), 0);
    assert_int_equal(exit_of(sandbox, NULL, pack, NULL), 0);
    assert_int_equal(exit_of(sandbox, NULL, "tar czf kit.tar.gz kit", NULL), 0);
    assert_int_equal(exit_of(sandbox, NULL, "tar xzf kit.tar.gz -C there", NULL), 0);
    assert_int_equal(exit_of(sandbox, NULL, "rm -r kit programs", NULL), 0);
    tool_new(sandbox, "tools/nvidia-smi", "#!/bin/sh\necho 'Emulated GPU, 1.0'\n");
    tool_new(sandbox, "tools/compute-sanitizer",
             "#!/bin/sh\n[ $2 = memcheck ] || exit 0\nshift 4\nexec \"$@\"\n");
    g_autofree char *path = g_strdup_printf("%s:%s", tools, g_getenv("PATH"));
    char **environment = g_environ_setenv(g_get_environ(), "PATH", path, true);
    return g_environ_setenv(environment, "KILTER_EMULATED_GPUS", "1", true);
}

static void check_fitted(const Sandbox *sandbox, const char *measured,
                         const char *cluster)
{
    enum { LEAST_OPS = 30 };
    g_autofree char *ops = sandbox_read(sandbox, measured);
    g_autofree char *fitted = sandbox_read(sandbox, cluster);
    assert_true(lines_with(ops, "\n") > LEAST_OPS);
    assert_true(g_str_has_prefix(fitted, "# Emulated GPU, 1.0; measured 20"));
    assert_non_null(strstr(fitted, "ops:"));
}

/* Commands of the kit's program take what the script left. */
static void check_read_back(const Sandbox *sandbox, char **environment)
{
    enum { RUNS = 8 };
    g_autofree char *answer = NULL, *cost = NULL;
    folder_new(sandbox, "own");
    folder_new(sandbox, "own/clusters");
    assert_int_equal(exit_of(sandbox, environment,
                             "cp there/device/cluster.yaml own/clusters/emulated.yaml",
                             NULL),
                     0);
    assert_int_equal(exit_of(sandbox, environment,
                             "there/kit/kilter validate there/device/results.db --json",
                             &answer),
                     0);
    json_t *compared = json_of(answer);
    assert_true(number(compared, "plans") == RUNS);
    assert_true(number(compared, "spearman") > 0.5);
    json_decref(compared);
    assert_int_equal(
        exit_of(sandbox, environment,
                "env KILTER_PATH=own there/kit/kilter plan "
                "vgg19:width=2,fc=32,global_batch=4 emulated --planner dp-ev --json",
                &cost),
        0);
    json_t *plan = json_of(cost);
    assert_true(json_is_object(plan));
    json_decref(plan);
    check_fitted(sandbox, "there/device/measured.csv", "there/device/cluster.yaml");
    check_fitted(sandbox, "there/device/measured-half.csv",
                 "there/device/cluster-half.yaml");
}

/* Alone in an empty folder, the kit does on a GPU all that it is to do there. */
static void test_kit(void **state)
{
    (void)state;
    enum { STEPS = 17 };
    g_autoptr(Sandbox) sandbox = sandbox_new();
    g_auto(GStrv) environment = kit_unpacked(sandbox);
    g_autofree char *said = NULL;
    g_autofree char *line = g_strdup_printf(
        "there/kit/exec/on-device.sh --small --copy '%s' '%s/there/device'",
        sandbox->folder, sandbox->folder);
    if (exit_of(sandbox, environment, line, &said) != 0)
        fail_msg("the kit says %s", said);
    g_autofree char *summary = text_of(sandbox, "there/device/summary.txt");
    assert_int_equal(lines_with(summary, "done"), STEPS);
    assert_int_equal(lines_with(summary, "\n"), STEPS);
    g_autofree char *copied = text_of(sandbox, "summary.txt");
    assert_string_equal(copied, summary);
    g_autofree char *criteria = text_of(sandbox, "there/device/criteria.txt");
    assert_non_null(strstr(criteria, "\n8 runs\n"));
    check_read_back(sandbox, environment);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rehearsal),
#ifdef KILTER_EMULATED
        cmocka_unit_test(test_kit),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
