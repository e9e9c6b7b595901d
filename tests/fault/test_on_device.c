/* exec/on-device.sh, rehearsed on CPUs with the programs of this build: every step ends well, the folder and its archive have
 * what the script's comment lists, and a budget stops it and lets it go on. */
#include <glib/gstdio.h>

#include "exec/exec.h"
#include "tests/support/program_json.h"

/* The script's exit status with the given words before the folder "device" of the sandbox; *said gets its stdout. */
static int rehearse(const Sandbox *sandbox, const char *words, char **said)
{
    g_autofree char *built = g_path_get_dirname(g_getenv("KILTER_BIN"));
    g_autofree char *line =
        g_strdup_printf("%s/exec/on-device.sh --rehearse --built '%s' %s '%s/device'",
                        KILTER_HOME, built, words, sandbox->folder);
    g_autoptr(GError) error = NULL;
    int status = 0;
    g_spawn_command_line_sync(line, said, NULL, &status, &error);
    assert_no_error(error);
    return g_spawn_check_wait_status(status, &error) ? 0 : error->code;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rehearsal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
