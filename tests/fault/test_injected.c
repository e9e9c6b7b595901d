/* The n-th write, read or allocation fails (tests/support/failing.c), for n = 1, 2, 3, ...: a command gives the right answer or
 * one line and its status, leaves no half of a file, and a store stays whole. */
#include "data/data.h"
#include "tests/support/program.h"

/* The number of a command's calls that are tried, spread over all; the long run
 * (tests/CMakeLists.txt) tries more. */
#ifndef TRIES
#define TRIES 4
#endif

#define SMALL "vit:layers=1,hidden=64,heads=4,ffn=128"

static const char EXPERIMENT[] =
    "name: s\ngrid:\n  model: ['" SMALL "']\n"
    "  cluster: [hap-8, hap-16]\n  planner: [dp-ev, dp-cp]\n";

/* Runs with that fault; *calls gets the number of such calls. */
static Ran run_failing(const Sandbox *box, const char *line, const char *fault,
                       long *calls)
{
    g_autofree char *preload =
        g_strconcat("LD_PRELOAD=", g_getenv("KILTER_FAILING"), NULL);
    g_autofree char *count = g_build_filename(box->folder, "..", "kilter-count", NULL);
    g_autofree char *mine = g_strdup_printf("%s-%d", count, (int)getpid()), *text = NULL;
    g_setenv("KILTER_FAIL", fault, TRUE);
    g_setenv("KILTER_FAIL_COUNT", mine, TRUE);
    Ran ran = program_finish(program_start(box, line, preload));
    g_unsetenv("KILTER_FAIL");
    g_unsetenv("KILTER_FAIL_COUNT");
    if (calls)
        *calls =
            g_file_get_contents(mine, &text, NULL, NULL) ? strtol(text, NULL, 10) : 0;
    g_remove(mine);
    return ran;
}

/* The answer is the one without a fault, or a refusal in one line. */
static void check_run(const Ran *ran, const char *line, const char *fault, bool harmless)
{
    const bool good = ran->status == 0;
    const char *end = strchr(ran->err, '\n');
    if ((harmless && !good) ||
        (!good && (ran->status < 1 || ran->status > 3 || !end || end[1] ||
                   !g_str_has_prefix(ran->err, "kilter: "))))
        TEST_FAIL_AT(__FILE__, __LINE__, "kilter %s with %s: exit %d, '%s'", line, fault,
                     ran->status, ran->err);
}

/* `after` checks the files that the command left behind; good: the command reported success. */
typedef void (*After)(const Sandbox *box, bool good);

static void inject(const char *line, const char *kind, const char *how, bool harmless,
                   void (*before)(const Sandbox *box), After after)
{
    long calls = 0;
    g_autofree char *none = g_strdup_printf("%s:0:%s", kind, how);
    {
        g_autoptr(Sandbox) box = sandbox_new();
        before(box);
        g_auto(Ran) ran = run_failing(box, line, none, &calls);
        assert_int_equal(ran.status, 0);
        assert_true(calls > 0);
        after(box, true);
    }
    const long step = MAX(1, calls / TRIES);
    for (long n = 1; n <= calls; n += step) {
        g_autoptr(Sandbox) box = sandbox_new();
        g_autofree char *fault = g_strdup_printf("%s:%ld:%s", kind, n, how);
        before(box);
        g_auto(Ran) ran = run_failing(box, line, fault, NULL);
        check_run(&ran, line, fault, harmless);
        after(box, ran.status == 0);
    }
}

/* --- a plan --- */

static void nothing(const Sandbox *box)
{
    (void)box;
}

/* The file is complete, or absent. */
static void plan_is_whole(const Sandbox *box, bool good)
{
    g_autofree char *file = g_build_filename(box->folder, "p.json", NULL);
    g_autoptr(GDir) folder = g_dir_open(box->folder, 0, NULL);
    const char *name;
    if (good || g_file_test(file, G_FILE_TEST_EXISTS)) {
        g_auto(Ran) ran = program_run_good(box, "simulate p.json");
        (void)ran;
    }
    while ((name = g_dir_read_name(folder)))
        assert_string_equal(name, "p.json");
}

static void test_plan(void **state)
{
    static const char LINE[] = "plan " SMALL " hap-8 -p dp-ev -o p.json";
    (void)state;
    inject(LINE, "write", "full", false, nothing, plan_is_whole);
    inject(LINE, "write", "part", true, nothing, plan_is_whole);
    inject(LINE, "write", "signal", true, nothing, plan_is_whole);
    inject(LINE, "read", "signal", true, nothing, plan_is_whole);
    inject(LINE, "read", "part", true, nothing, plan_is_whole);
    inject(LINE, "memory", "full", false, nothing, plan_is_whole);
}

/* --- a store --- */

static void write_experiment(const Sandbox *box)
{
    sandbox_write(box, "s.yaml", EXPERIMENT);
}

/* The same command then runs to the end, and all rows exist. */
static void store_is_whole(const Sandbox *box, bool good)
{
    g_autofree char *file = g_build_filename(box->folder, "r.db", NULL);
    (void)good;
    if (g_file_test(file, G_FILE_TEST_EXISTS)) {
        g_autofree char *bytes = NULL;
        gsize length;
        assert_true(g_file_get_contents(file, &bytes, &length, NULL));
        assert_true(length > 0);
    }
    program_runs(box, "sweep s.yaml --db r.db");
    g_auto(Ran) table = program_run_good(
        box,
        "table r.db --rows cluster --columns planner --value iteration_time_s --csv");
    assert_non_null(strstr(table.out, "hap-16"));
}

static void test_sweep(void **state)
{
    static const char LINE[] = "sweep s.yaml --db r.db -j 1";
    (void)state;
    inject(LINE, "write", "full", false, write_experiment, store_is_whole);
    inject(LINE, "write", "part", true, write_experiment, store_is_whole);
    inject(LINE, "read", "signal", true, write_experiment, store_is_whole);
    inject(LINE, "memory", "full", false, write_experiment, store_is_whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
