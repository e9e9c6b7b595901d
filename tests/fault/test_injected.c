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

/* GLib makes its locks when they are first taken, and ends the program in its own words if there is
 * no memory for one. */
static bool is_lock_without_memory(const Ran *ran)
{
    return ran->status == -1 && g_str_has_prefix(ran->err, "GLib (gthread-posix.c): ") &&
           strstr(ran->err, "during 'malloc'");
}

/* The answer is the one without a fault, or a refusal in one line. */
static void check_run(const Ran *ran, const char *line, const char *fault, bool harmless)
{
    const bool good = ran->status == 0;
    const char *end = strchr(ran->err, '\n');
    const bool refused = ran->status >= 1 && ran->status <= 3 && end && !end[1] &&
                         g_str_has_prefix(ran->err, "kilter: ");
    if (!good && (harmless || (!refused && !is_lock_without_memory(ran))))
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

/* Asserts that no empty store was left behind, and that the sweep then runs to its end. */
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

/* --- merged stores, and a page of them --- */

/* Two parts of the sweep, made once. */
static const char *const PARTS[] = {"part-0.db", "part-1.db"};
static char *part_bytes[G_N_ELEMENTS(PARTS)];
static gsize part_length[G_N_ELEMENTS(PARTS)];

static void make_parts(void)
{
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "s.yaml", EXPERIMENT);
    for (uint32_t i = 0; i < G_N_ELEMENTS(PARTS); i++) {
        g_autofree char *line =
            g_strdup_printf("sweep s.yaml --shard %u/2 --db %s", i, PARTS[i]);
        g_autofree char *file = g_build_filename(box->folder, PARTS[i], NULL);
        program_runs(box, line);
        assert_true(g_file_get_contents(file, &part_bytes[i], &part_length[i], NULL));
    }
}

static void write_parts(const Sandbox *box)
{
    if (!part_bytes[0])
        make_parts();
    for (uint32_t i = 0; i < G_N_ELEMENTS(PARTS); i++) {
        g_autofree char *file = g_build_filename(box->folder, PARTS[i], NULL);
        assert_true(
            g_file_set_contents(file, part_bytes[i], (gssize)part_length[i], NULL));
    }
}

/* The parts are as they were, the whole is no empty file, and the same command then adds what is missing. */
static void parts_are_whole(const Sandbox *box, bool good)
{
    g_autofree char *whole = g_build_filename(box->folder, "whole.db", NULL),
                    *bytes = NULL;
    gsize length = 1;
    (void)good;
    if (g_file_get_contents(whole, &bytes, &length, NULL))
        assert_true(length > 0);
    for (uint32_t i = 0; i < G_N_ELEMENTS(PARTS); i++) {
        g_autofree char *file = g_build_filename(box->folder, PARTS[i], NULL),
                        *part = NULL;
        assert_true(g_file_get_contents(file, &part, &length, NULL));
        assert_int_equal(length, part_length[i]);
        assert_memory_equal(part, part_bytes[i], length);
    }
    program_runs(box, "merge whole.db part-0.db part-1.db");
    g_auto(Ran) again =
        program_run_good(box, "merge whole.db part-0.db part-1.db --json");
    assert_non_null(strstr(again.out, "\"added\": 0"));
    g_auto(Ran) table = program_run_good(
        box,
        "table whole.db --rows cluster --columns planner --value iteration_time_s --csv");
    assert_non_null(strstr(table.out, "hap-8"));
    assert_non_null(strstr(table.out, "hap-16"));
}

static void test_merge(void **state)
{
    static const char LINE[] = "merge whole.db part-0.db part-1.db";
    (void)state;
    inject(LINE, "write", "full", false, write_parts, parts_are_whole);
    inject(LINE, "write", "part", true, write_parts, parts_are_whole);
    inject(LINE, "read", "signal", true, write_parts, parts_are_whole);
    inject(LINE, "memory", "full", false, write_parts, parts_are_whole);
}

/* The page is complete, or absent. */
static void page_is_whole(const Sandbox *box, bool good)
{
    g_autofree char *file = g_build_filename(box->folder, "page.html", NULL),
                    *text = NULL;
    const bool is = g_file_get_contents(file, &text, NULL, NULL);
    assert_true(is || !good);
    if (is)
        assert_non_null(strstr(text, "</html>"));
}

static void test_report(void **state)
{
    static const char LINE[] = "report part-0.db -o page.html";
    (void)state;
    inject(LINE, "write", "full", false, write_parts, page_is_whole);
    inject(LINE, "write", "part", true, write_parts, page_is_whole);
    inject(LINE, "read", "signal", true, write_parts, page_is_whole);
    inject(LINE, "memory", "full", false, write_parts, page_is_whole);
}

static int free_parts(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(PARTS); i++)
        g_clear_pointer(&part_bytes[i], g_free);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_report),
    };
    return cmocka_run_group_tests(tests, NULL, free_parts);
}
