/* Sweeps: killed at random moments and resumed, or run on another number of threads, they leave the
 * same rows. */
#include <signal.h>

#include "tests/support/stored.h"

#ifndef KILLS
#define KILLS 10
#endif
enum { SEEDS = 100, CONFIGURATIONS = 12 * SEEDS };

/* Short configurations are stored many at a time: a sweep of few would be done before its first
 * row can be seen. */
static const char grid[] =
    "name: kill\n"
    "grid:\n"
    "  model: ['vit:layers=1,hidden=64,heads=4,ffn=128', 'vgg19:width=8,fc=64',\n"
    "          'bert-base:layers=1,hidden=4096,heads=32,ffn=65536,vocab=131072']\n"
    "  cluster: [hap-8, hap-16]\n"
    "  planner: [dp-ev, dp-cp]\n"
    "  seed: [1";

static void write_experiment(const Sandbox *box)
{
    g_autoptr(GString) text = g_string_new(grid);
    for (int seed = 2; seed <= SEEDS; seed++)
        g_string_append_printf(text, ", %d", seed);
    g_string_append(text, "]\n");
    sandbox_write(box, "kill.yaml", text->str);
}

static double seconds_of(const Sandbox *box, const char *line)
{
    gint64 start = g_get_monotonic_time();
    program_runs(box, line);
    return (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
}

static void test_kill_and_resume(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    write_experiment(box);
    double whole_s = seconds_of(box, "sweep kill.yaml --db whole.db -j 2 -q");
    /* Some of the plans must not fit, so that such rows are compared too. */
    g_autofree char *counts =
        stored_ask(box, "whole.db",
                   "SELECT count(*), sum(status = 'oom') BETWEEN 1 AND count(*) - 1 "
                   "FROM result");
    g_autofree char *expected = g_strdup_printf("%d|1|\n", CONFIGURATIONS);
    assert_string_equal(counts, expected);

    g_autoptr(GRand) random = g_rand_new_with_seed(1);
    uint32_t killed = 0, partial = 0;
    /* A sweep that was done before its kill does not count: the machine may have become faster
     * since the limit was set. */
    for (int i = 0; (killed < KILLS || partial == 0) && i < 5 * KILLS; i++) {
        g_autofree char *database = g_strdup_printf("killed-%d.db", i);
        g_autofree char *line =
            g_strdup_printf("sweep kill.yaml --db %s -j 2 -q", database);
        GSubprocess *process = program_start(box, line, NULL);
        g_usleep((gulong)(g_rand_double_range(random, 0.0, whole_s) * G_USEC_PER_SEC));
        g_subprocess_send_signal(process, SIGKILL);
        g_auto(Ran) ran = program_finish(process);
        killed += ran.status == -1;
        program_runs(box, line);
        assert_same_rows(box, database, "whole.db");
        g_autofree char *runs =
            stored_ask(box, database, "SELECT count(DISTINCT run) FROM result");
        partial += strcmp(runs, "2|\n") == 0;
    }
    assert_true(killed >= KILLS);
    /* Some kills left rows behind, which the second run kept. */
    assert_true(partial > 0);
}

static void test_threads_change_nothing(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    write_experiment(box);
    program_runs(box, "sweep kill.yaml --db one.db -j 1 -q");
    program_runs(box, "sweep kill.yaml --db four.db -j 4 -q");
    assert_same_rows(box, "four.db", "one.db");
}

/* Sends SIGINT to a sweep as soon as its store has a row; whether it was still running. */
static bool interrupt(const Sandbox *box, const char *database)
{
    g_autofree char *line = g_strdup_printf("sweep kill.yaml --db %s -j 1 -q", database);
    g_autofree char *path = g_build_filename(box->folder, database, NULL);
    GSubprocess *process = program_start(box, line, NULL);
    bool any = false;
    for (int i = 0; !any && i < 60000; i++) {
        g_usleep(1000);
        sqlite3 *db = NULL;
        GString *count = g_string_new(NULL);
        if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK)
            sqlite3_exec(db, "SELECT count(*) > 0 FROM result", stored_add_row, count,
                         NULL);
        sqlite3_close(db);
        any = strcmp(count->str, "1|\n") == 0;
        g_string_free(count, TRUE);
    }
    g_subprocess_send_signal(process, SIGINT);
    g_auto(Ran) ran = program_finish(process);
    if (ran.status == 0)
        return false;
    assert_int_equal(ran.status, 1);
    assert_non_null(strstr(ran.err, "resumes"));
    return true;
}

static void test_interrupt_finishes_cleanly(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    write_experiment(box);
    program_runs(box, "sweep kill.yaml --db whole.db -q");
    bool interrupted = false;
    g_autofree char *database = NULL;
    for (int i = 0; !interrupted && i < 10; i++) {
        g_free(database);
        database = g_strdup_printf("interrupted-%d.db", i);
        interrupted = interrupt(box, database);
    }
    assert_true(interrupted);
    g_autofree char *line = g_strdup_printf("sweep kill.yaml --db %s -q", database);
    program_runs(box, line);
    assert_same_rows(box, database, "whole.db");
}

/* A sweep that finds everything done does nothing, and says so. */
static void test_done_is_done(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    write_experiment(box);
    program_runs(box, "sweep kill.yaml");
    g_autofree char *before = stored_ask(box, "out/kill.db", "SELECT * FROM result");
    g_auto(Ran) second = program_run_good(box, "sweep kill.yaml --json");
    assert_non_null(strstr(second.out, "\"evaluated\": 0"));
    g_autofree char *after = stored_ask(box, "out/kill.db", "SELECT * FROM result");
    assert_string_equal(before, after);
}

/* Shards on separate machines, merged in any order and twice, equal the sweep. */
static void test_shards_merge(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    write_experiment(box);
    program_runs(box, "sweep kill.yaml --db whole.db -j 1 -q");
    program_runs(box, "sweep kill.yaml --shard 2/3 --db 2.db -q");
    program_runs(box, "sweep kill.yaml --shard 0/3 --db 0.db -q");
    program_runs(box, "sweep kill.yaml --shard 1/3 --db 1.db -q");
    g_auto(Ran) merged = program_run_good(box, "merge all.db 1.db 2.db 0.db");
    g_autofree char *expected = g_strdup_printf("%d results added", CONFIGURATIONS);
    assert_non_null(strstr(merged.out, expected));
    g_auto(Ran) again = program_run_good(box, "merge all.db 0.db 1.db 2.db");
    assert_non_null(strstr(again.out, " 0 results added"));
    assert_same_rows(box, "all.db", "whole.db");
    g_auto(Ran) done = program_run_good(box, "sweep kill.yaml --db all.db --json");
    assert_non_null(strstr(done.out, "\"evaluated\": 0"));
    g_auto(Ran) wrong = program_run(box, "sweep kill.yaml --shard 3/3 --db x.db");
    assert_int_equal(wrong.status, 2);
    assert_non_null(strstr(wrong.err, "--shard: expected I/N"));
    g_auto(Ran) itself = program_run(box, "merge all.db all.db");
    assert_int_equal(itself.status, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill_and_resume),
        cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_interrupt_finishes_cleanly),
        cmocka_unit_test(test_done_is_done),
        cmocka_unit_test(test_shards_merge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
