/* kilter exec as users call it: its measurements, and errors in one line and in time when it cannot
 * run. */
#include <glib/gstdio.h>
#include <signal.h>

#include "exec/exec.h"
#include "experiments/cli/exec_launch.h"
#include "tests/support/program_json.h"

/* A sandbox with four.yaml, HAP's testbed cut down to four machines. */
static Sandbox *sandbox_with_cluster(void)
{
    Sandbox *sandbox = sandbox_new();
    g_autoptr(GString) text = g_string_new(NULL);
    char *file = NULL;
    assert_true(
        g_file_get_contents(KILTER_HOME "/data/clusters/hap-8.yaml", &file, NULL, NULL));
    g_string_append(text, file);
    g_free(file);
    assert_int_equal(g_string_replace(text, "count: 6", "count: 2", 0), 1);
    g_string_replace(text, "name: hap-8", "name: four", 1);
    sandbox_write(sandbox, "four.yaml", text->str);
    return sandbox;
}

static void test_reference(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_with_cluster();
    json_t *root =
        program_json(sandbox, "exec vit:layers=1 four.yaml -p dp-ev -b reference "
                              "--shrink --check --repeats 3 --json");
    assert_int_equal(number(root, "ranks"), 4);
    assert_at_most(1e-9, number(root, "iteration_time_s"));
    json_decref(root);
    program_refuses(sandbox, "exec vit four.yaml -b reference --dtype float32", 2,
                    "float64 only");
}

static void test_mpi(void **state)
{
    (void)state;
    if (!exec_mpi_built())
        skip();
    g_autoptr(Sandbox) sandbox = sandbox_with_cluster();
    json_t *root =
        program_json(sandbox, "exec bert-moe:layers=2 four.yaml -p deepspeed --ranks 4 "
                              "--shrink --check --dtype float64 --repeats 5 --json");
    assert_int_equal(number(root, "ranks"), 4);
    assert_int_equal(number(root, "repeats"), 5);
    assert_at_most(1e-9, number(root, "iteration_time_s"));
    assert_true(json_array_size(json_object_get(root, "stages")) > 1);
    assert_true(json_array_size(json_object_get(root, "kinds")) > 10);
    const double computation = number(root, "computation_s");
    json_decref(root);
    root = program_json(sandbox,
                        "exec bert-moe:layers=2 four.yaml -p deepspeed --shrink --dtype "
                        "float64 --slowdown 2=50 --repeats 3 --db r.db --json");
    assert_at_most(2 * computation, number(root, "computation_s"));
    json_decref(root);
    program_runs(sandbox, "validate r.db");
}

/* A pipeline of two stages of two replicas. */
static void test_pipeline(void **state)
{
    (void)state;
    if (!exec_mpi_built())
        skip();
    g_autoptr(Sandbox) sandbox = sandbox_with_cluster();
    program_runs(
        sandbox,
        "plan --planner hap gpt2:layers=4,global_batch=16 four.yaml --granularity gpu -q "
        "--planner amp --set pp=2 --set dp=2 --set mbs=4 -o p.json");
    json_t *root = program_json(sandbox, "exec p.json --ranks 4 --shrink --check --dtype "
                                         "float64 --repeats 3 --db r.db --json");
    assert_int_equal(number(root, "ranks"), 4);
    assert_at_most(1e-9, number(root, "iteration_time_s"));
    json_decref(root);
    program_runs(sandbox, "report r.db -o page.html");
}

/* Whether the folder has a folder of plans that were handed to ranks. */
static bool has_handed(const char *temporary)
{
    g_autoptr(GDir) dir = g_dir_open(temporary, 0, NULL);
    bool has = false;
    const char *name;
    while (dir && (name = g_dir_read_name(dir)))
        has |= g_str_has_prefix(name, "kilter-exec-");
    return has;
}

/* The words from `also` on of a command line with both texts; NULL: no process has it. */
static char *command_line(const char *temporary, const char *also)
{
    g_autoptr(GDir) dir = g_dir_open("/proc", 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename("/proc", name, "cmdline", NULL);
        g_autofree char *text = NULL;
        gsize length = 0;
        if (!g_ascii_isdigit(*name) || !g_file_get_contents(path, &text, &length, NULL))
            continue;
        for (gsize i = 0; i + 1 < length; i++)
            text[i] = text[i] ? text[i] : ' ';
        if (length > 0 && strstr(text, temporary) && strstr(text, also))
            return g_strdup(strstr(text, also));
    }
    return NULL;
}

/* Whether there are processes on whose command line that folder is. */
static bool has_ranks(const char *temporary)
{
    g_autofree char *line = command_line(temporary, "");
    return line != NULL;
}

/* Waits for a minute at most. */
static void wait_until(bool (*has)(const char *temporary), const char *temporary,
                       bool expected)
{
    enum { TRIES = 600, WAIT_US = 100000 };
    for (int i = 0; i < TRIES && has(temporary) != expected; i++)
        g_usleep(WAIT_US);
    assert_int_equal(has(temporary), expected);
}

/* A command that is stopped, or killed, leaves neither ranks nor files. */
static void test_signals(void **state)
{
    (void)state;
    if (!exec_mpi_built())
        skip();
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGKILL};
    for (uint32_t i = 0; i < G_N_ELEMENTS(signals); i++) {
        g_autoptr(Sandbox) sandbox = sandbox_with_cluster();
        g_autofree char *temporary = g_strdup_printf("TMPDIR=%s", sandbox->folder);
        GSubprocess *process =
            program_start(sandbox,
                          "exec vit:layers=1 four.yaml -p dp-ev --shrink --repeats "
                          "1000000 --timeout 100",
                          temporary);
        wait_until(has_handed, sandbox->folder, true);
        wait_until(has_handed, sandbox->folder, false); /* all ranks have read the plan */
        g_autofree char *shared = command_line(sandbox->folder, EXEC_SHARED);
        assert_non_null(shared);
        *strchrnul(shared, ' ') = '\0';
        g_subprocess_send_signal(process, signals[i]);
        g_auto(Ran) ran = program_finish(process);
        assert_int_equal(ran.status, signals[i] == SIGKILL ? -1 : 1);
        if (signals[i] != SIGKILL)
            assert_string_equal(ran.err,
                                "kilter: stopped by a signal; the 4 ranks were ended\n");
        wait_until(has_ranks, sandbox->folder, false);
        assert_false(has_handed(sandbox->folder));
        assert_false(g_file_test(shared, G_FILE_TEST_EXISTS));
    }
}

/* Waiting for the ranks leaves nothing behind in the main loop, so that a later signal is
 * nobody's but the command's. */
static void test_waiting(void **state)
{
    (void)state;
    enum { SOURCES = 100 };
/* Ranks of Open MPI put files for their shared memory there, and those that are killed leave
 * them. */
#define SHARES                                                      \
    "while [ $1 != btl_vader_backing_directory ]; do shift; done; " \
    "echo memory >$2/vader_segment.1; echo -n $2 >$(dirname $0)/place; "
    static const struct {
        const char *script;
        int code; /* 0: it ends well */
        const char *message;
    } CASE[] = {{"exit 0", 0, NULL},
                {"echo warning >&2; echo kilter: bad plan >&2; exit 2", 2, "bad plan"},
                {"echo no slots >&2; exit 77", 1, "mpirun: no slots"},
                {SHARES "kill -9 $$", 1, "the ranks ended with status -1"},
                {"kill -9 $$", 1, "the ranks ended with status -1"}};
    g_autoptr(Sandbox) sandbox = sandbox_new();
    g_autofree char *before = g_strdup(g_getenv("PATH")),
                    *path = g_strdup_printf("%s:%s", sandbox->folder, before),
                    *mpirun = g_build_filename(sandbox->folder, "mpirun", NULL);
    g_setenv("PATH", path, TRUE);
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autofree char *script = g_strdup_printf("#!/bin/sh\n%s\n", CASE[i].script);
        g_autoptr(GError) error = NULL;
        sandbox_write(sandbox, "mpirun", script);
        assert_int_equal(g_chmod(mpirun, 0700), 0);
        const bool good =
            exec_launch(2, 10, (const char *const[]){"exec", NULL}, true, &error);
        assert_int_equal(good, CASE[i].code == 0);
        if (!good) {
            assert_int_equal(error->code, CASE[i].code);
            assert_string_equal(error->message, CASE[i].message);
        }
        for (guint id = 1; id <= SOURCES; id++)
            assert_null(g_main_context_find_source_by_id(NULL, id));
    }
    g_setenv("PATH", before, TRUE);
    g_autofree char *place = sandbox_read(sandbox, "place");
    assert_true(g_str_has_prefix(place, "/dev/shm/"));
    assert_false(g_file_test(place, G_FILE_TEST_EXISTS));
}

static void test_refusals(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_with_cluster();
    program_refuses(sandbox, "exec", 2, "expected PLAN.json");
    program_refuses(sandbox, "exec vit four.yaml -b nothing", 2, "--backend");
    program_refuses(sandbox, "exec vit four.yaml --dtype float16", 2, "--dtype");
    program_refuses(sandbox, "exec vit four.yaml --repeats 0", 2, "--repeats");
    program_refuses(
        sandbox, "exec vit:layers=1,precision=mixed four.yaml -p dp-ev", 2,
        "model 'vit': precision=mixed: what is timed on CPUs runs in float32");
    program_refuses(sandbox, "exec vit:layers=1 four.yaml -p dp-ev --slowdown 4=2", 2,
                    "--slowdown");
    if (!exec_mpi_built()) {
        program_refuses(sandbox, "exec vit:layers=1 four.yaml -p dp-ev", 1,
                        "no mpi backend");
        return;
    }
    program_refuses(sandbox, "exec vit:layers=1 four.yaml -p dp-ev --ranks 3", 2,
                    "the plan is for 4 devices");
    program_refuses(sandbox, "exec bert-base:layers=60,batch=900 four.yaml -p dp-ev", 1,
                    "too big for this machine");
    program_refuses(sandbox,
                    "exec vit:layers=1 four.yaml -p dp-ev --shrink --repeats 1000000 "
                    "--timeout 1",
                    1, "more than the 1 s");
    program_refuses_in(sandbox, "exec vit:layers=1 four.yaml -p dp-ev", "PATH=/nowhere",
                       1, "no mpirun");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference), cmocka_unit_test(test_mpi),
        cmocka_unit_test(test_pipeline),  cmocka_unit_test(test_signals),
        cmocka_unit_test(test_waiting),   cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
