/* Every size that a user asks for has a bound, which the message names; input that never ends is
 * not read; and a failed write of output is a failure. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/data.h"
#include "tests/support/program.h"
#include "tests/support/sanitized.h"

#define SMALL "vit:layers=1,hidden=64,heads=4,ffn=128"
#define PLAN  "plan " SMALL " hap-8 -p dp-ev"

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"plan vit:layers=1000000 hap-8", "an integer from 1 to 4096"},
        {"plan vit:image=10000,patch=1 hap-8", "at most 2^53"},
        {"collective all_to_all star:hosts=65536 --bytes 64MB", "4.29e+09 messages"},
        {"collective all_gather star:hosts=65536 --bytes 64MB -a direct",
         "4.29e+09 messages"},
        {"collective all_reduce star:hosts=8 --bytes 1e300B", "amount of bytes"},
        {"collective all_reduce star:hosts=1000000 --bytes 1B", "from 1 to 65536"},
        {PLAN " --set bucket=1e30MiB", "amount of bytes"},
        {PLAN " --set bucket=10000TiB", "at most 2^53 bytes"},
        {PLAN " --set microbatches=1000000", "from 0 to 65534"},
        {"simulate " SMALL " hap-8 -p dp-ev -f flow --samples 2147483647", "--samples"},
        {"simulate " SMALL " hap-8 -p dp-ev --days 365 --mtbf 1ms", "at most 10000000"},
        {"verify " SMALL " hap-8 --shapes 0", "--shapes: expected 1 to 1000, got 0"},
        {PLAN " --memory-limit 1MiB", "--memory-limit: expected at least 64 MiB"},
    };
    g_autoptr(Sandbox) box = sandbox_new();
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        program_refuses(box, cases[i].line, 2, cases[i].says);
}

static void test_keys_once(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    program_refuses(box, "plan vit:layers=1,layers=2 hap-8", 2, "layers: given twice");
    program_refuses(box, "collective send star:hosts=2,hosts=3 --bytes 1B", 2,
                    "hosts: given twice");
    sandbox_write(box, "x.yaml",
                  "name: x\ngrid:\n  model: [vgg19]\n  cluster: [hap-8]\n"
                  "  planner: ['dp-ev:bucket=1MiB,bucket=2MiB']\n");
    program_refuses(box, "sweep x.yaml --db r.db", 2, "bucket: given twice");
    sandbox_write(box, "both.yaml",
                  "name: x\ngrid:\n  model: [vgg19]\n  cluster: [hap-8]\n"
                  "  planner: [dp-ev]\nexchange:\n  kind: [all_gather]\n");
    program_refuses(box, "sweep both.yaml --db r.db", 2,
                    "both.yaml:6: exchange: expected no grid beside it");
    g_autofree char *store = g_build_filename(box->folder, "r.db", NULL);
    assert_false(g_file_test(store, G_FILE_TEST_EXISTS));
}

static void test_files_that_never_end(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "plan /dev/zero hap-8",
        "plan " SMALL " /dev/zero",
        "simulate /dev/zero",
        PLAN " --pins /dev/zero",
        PLAN " --segments /dev/zero",
        "plan " SMALL " hap-8 -p manual --strategy /dev/zero",
        "calibrate /dev/zero -o c.yaml",
        "figure timeline -t /dev/zero",
    };
    g_autoptr(Sandbox) box = sandbox_new();
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++)
        program_refuses(box, lines[i], 2, "regular file");
    program_refuses(box, "sweep /dev/zero --db r.db", 2, "expected a file");
}

/* Traces of others that have text for numbers, or devices beyond any count. */
static void test_traces(void **state)
{
    (void)state;
    static const char *const events[] = {
        "{\"ph\":\"X\",\"ts\":\"a\"}",
        "{\"ph\":\"X\",\"pid\":9223372036854775807,\"tid\":1,\"ts\":0,\"dur\":1}",
        "{\"ph\":\"M\",\"pid\":-1}",
        "{\"ph\":\"X\",\"pid\":0,\"tid\":0,\"ts\":0,\"dur\":-1}",
        "{\"ph\":\"C\",\"pid\":0,\"ts\":true}",
        "7",
    };
    g_autoptr(Sandbox) box = sandbox_new();
    for (guint i = 0; i < G_N_ELEMENTS(events); i++) {
        g_autofree char *text = g_strdup_printf("{\"traceEvents\":[%s]}", events[i]);
        sandbox_write(box, "t.json", text);
        program_refuses(box, "figure timeline -t t.json", 2, "traceEvents[0]: expected");
    }
}

static void test_memory_limit(void **state)
{
    (void)state;
#ifdef TEST_SANITIZED
    skip();
#endif
    g_autoptr(Sandbox) box = sandbox_new();
    program_refuses(box,
                    "collective all_to_all star:hosts=2048 --bytes 1MB "
                    "--memory-limit 64MiB",
                    1, "out of memory: failed to allocate");
    g_auto(Ran) ran = program_run_good(box, PLAN " --memory-limit 4GiB");
    (void)ran;
}

/* Help texts are longer than the library's buffer. */
static void test_full_disk(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    static const char *const lines[] = {"plan --help", "", "models", "clusters --json"};
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++) {
        g_autofree char *command =
            g_strdup_printf("\"$KILTER_BIN\" %s > /dev/full", lines[i]);
        char *argv[] = {(char *)"sh", (char *)"-c", command, NULL};
        g_autofree char *says = NULL;
        int status = 0;
        assert_true(g_spawn_sync(box->folder, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL,
                                 NULL, &says, &status, NULL));
        assert_false(g_spawn_check_wait_status(status, NULL));
        if (!strstr(lines[i], "--json"))
            assert_string_equal(says, "kilter: cannot write to standard output\n");
        else
            assert_non_null(
                strstr(says, "\"message\":\"cannot write to standard output\""));
    }
    /* The work failed; a name that cannot be written is bad input. */
    program_refuses(box, PLAN " -o /dev/full", 1, "/dev/full: No space left on device");
    program_refuses(box, PLAN " -o none/p.json", 2, "none/p.json: no folder none");
}

/* A file that cannot be written is an error, whatever the command has said before. */
static void test_full_disk_of_files(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    static const char *const lines[] = {
        "models vit:layers=1 -o /dev/full",
        "plan vit:layers=1 hap-8 --planner dp-ev -o /dev/full",
        "simulate vit:layers=1 hap-8 -p dp-ev -f flow --trace /dev/full",
        "simulate vit:layers=1 hap-8 -p dp-ev --dot /dev/full",
    };
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++)
        program_refuses(box, lines[i], 1, "cannot write /dev/full");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_keys_once),
        cmocka_unit_test(test_files_that_never_end),
        cmocka_unit_test(test_traces),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_full_disk_of_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
