/* Data sets of measured trials: queries over CSV files. */
#include <glib/gstdio.h>
#include <math.h>
#include <stdlib.h>

#include "experiments/scorecard/trials.h"
#include "tests/test.h"

/* A folder with an experiments/scorecard/toy.sql and a data folder, removed by the caller. */
typedef struct {
    char *root, *data;
} Toy;

static void put(const char *folder, const char *sub, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(folder, sub, NULL);
    g_autofree char *file = g_build_filename(path, name, NULL);
    assert_int_equal(g_mkdir_with_parents(path, 0700), 0);
    assert_true(g_file_set_contents(file, text, -1, NULL));
}

static const char QUERY[] =
    "-- A toy\nSELECT split, 'c' AS contest, 'm:a=' || a AS model, 'D' AS device, 1 AS "
    "memory_gib, 4 AS gpus, 2 AS machines, 2 AS pp, 2 AS dp, 2 AS tmp, 1 AS mbs, 1 AS "
    "chunks, 0 AS recompute, '3' AS cuts, CASE WHEN t > 0 THEN t END AS measured_s, NULL "
    "AS measured_gib, t < 0 AS failed, 1e12 AS rate, 1e9 AS bandwidth, 5e8 AS unfused, "
    "1e9 AS inner, 1e8 AS outer, 1e-5 AS overhead_s, 1e-4 AS launch_s, 1e-5 AS "
    "latency_s, 10 AS processors "
    "FROM set_times ORDER BY a\n";

static Toy toy_new(const char *query, const char *csv)
{
    Toy toy = {.root = g_dir_make_tmp("kilter-trials-XXXXXX", NULL)};
    toy.data = g_build_filename(toy.root, "measured", NULL);
    put(toy.root, "experiments/scorecard", "toy.sql", query);
    put(toy.data, "set", "times.csv", csv);
    g_setenv("KILTER_PATH", toy.root, TRUE);
    return toy;
}

static void toy_clear(Toy *toy)
{
    g_autofree char *command = g_strdup_printf("rm -r '%s'", toy->root);
    assert_int_equal(system(command), 0);
    g_free(toy->root);
    g_free(toy->data);
}

static void test_rows(void **state)
{
    (void)state;
    Toy toy =
        toy_new(QUERY, "a,split,t,\"odd, name\"\n2,test,-1,x\n1,calibration,0.5,\"y, "
                       "z\"\n");
    g_autoptr(GError) error = NULL;
    g_autoptr(TrialSet) set = trials_read("toy", toy.data, &error);
    assert_no_error(error);
    assert_string_equal(set->description, "A toy");
    assert_int_equal(set->trial->len, 2);
    const Trial *first = &g_array_index(set->trial, Trial, 0), *second = first + 1;
    assert_string_equal(first->model, "m:a=1");
    assert_true(first->calibration && !first->failed);
    assert_true(first->measured_s == 0.5 && isnan(first->measured_bytes));
    assert_true(!second->calibration && second->failed && isnan(second->measured_s));
    assert_int_equal(second->machines, 2);
    assert_true(!*first->planner && !*first->options && isnan(first->slowdown));
    assert_true(set->start[SCORE_ATTENTION] == 5e8 && set->start[SCORE_LAUNCH] == 1e-4);
    toy_clear(&toy);
}

static void test_planners(void **state)
{
    (void)state;
    g_auto(GStrv) part = g_strsplit(QUERY, "SELECT ", 2);
    g_autofree char *query = g_strconcat(
        part[0],
        "SELECT CASE a WHEN 1 THEN 'ddp' END AS planner, 'bucket=1MB' AS options, 1.5 AS "
        "slowdown, ",
        part[1], NULL);
    Toy toy = toy_new(query, "a,split,t\n1,test,1\n2,test,2\n");
    g_autoptr(GError) error = NULL;
    g_autoptr(TrialSet) set = trials_read("toy", toy.data, &error);
    assert_no_error(error);
    const Trial *first = &g_array_index(set->trial, Trial, 0), *second = first + 1;
    assert_string_equal(first->planner, "ddp");
    assert_string_equal(first->options, "bucket=1MB");
    assert_true(first->slowdown == 1.5);
    assert_string_equal(second->planner, "");
    toy_clear(&toy);
}

static void refuses(const char *query, const char *csv, const char *expected)
{
    Toy toy = toy_new(query, csv);
    g_autoptr(GError) error = NULL;
    assert_null(trials_read("toy", toy.data, &error));
    assert_non_null(error);
    if (!strstr(error->message, expected))
        fail_msg("'%s' does not say '%s'", error->message, expected);
    toy_clear(&toy);
}

static void test_refusals(void **state)
{
    (void)state;
    refuses(QUERY, "a,split,t\n1,test\n", "times.csv:2: expected 3 columns, got 2");
    refuses(QUERY, "a,split\n", "no such column: t");
    refuses("SELECT 1 AS pp", "a\n", "the query has no column 'split'");
    refuses("SELECT", "a\n", "toy.sql");
    g_autoptr(GError) error = NULL;
    assert_null(trials_read("nothing", "/nowhere", &error));
    assert_non_null(strstr(error->message, "unknown data set 'nothing'"));
}

/* Every bundled query reads the measured data that it is about. */
static void test_bundled(void **state)
{
    (void)state;
    const char *folder = test_shared("measured");
    if (!folder)
        skip();
    g_unsetenv("KILTER_PATH");
    g_auto(GStrv) names = trials_names();
    assert_true(g_strv_length(names) >= 4);
    for (char **name = names; *name; name++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(TrialSet) set = trials_read(*name, folder, &error);
        assert_no_error(error);
        uint32_t tests = 0;
        for (uint32_t i = 0; i < set->trial->len; i++) {
            const Trial *trial = &g_array_index(set->trial, Trial, i);
            if (!*trial->planner)
                assert_int_equal(trial->pp * trial->dp * trial->tmp,
                                 trial->gpus * trial->machines);
            tests += !trial->calibration;
        }
        assert_true(tests > 0 && set->start[SCORE_ATTENTION] > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_planners),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bundled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
