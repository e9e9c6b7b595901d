/* Data sets of measured trials: queries over CSV files. */
#include <glib/gstdio.h>
#include <math.h>
#include <stdlib.h>

#include "experiments/scorecard/trials.h"
#include "tests/support/program_json.h"

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
    assert_true(first->split == SPLIT_FIT && !first->failed);
    assert_true(first->measured_s == 0.5 && isnan(first->measured_bytes));
    assert_true(second->split != SPLIT_FIT && second->failed &&
                isnan(second->measured_s));
    assert_int_equal(second->cluster->n_machines, 2);
    assert_string_equal(first->planner, "manual");
    assert_string_equal(first->options, "pp=2,dp=2,tp=2,micro_batch=1,cuts=3");
    assert_true(first->cluster->type[0].slowdown == 1);
    assert_true(first->start->attention == 5e8 && first->start->launch_s == 1e-4);
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
    assert_true(first->cluster->type[0].slowdown == 1.5);
    assert_string_equal(second->planner, "manual");
    toy_clear(&toy);
}

/* A row may give its cluster's file, tokens in place of a time, and why it cannot be expressed. */
static void test_clusters(void **state)
{
    (void)state;
    static const char query[] =
        "-- Clusters\nSELECT 'test' AS split, 'c' AS contest, 'g' || a AS \"group\", 'm' "
        "AS model, "
        "'manual' AS planner, 'tp=' || a AS options, 0 AS failed, NULL AS measured_gib, "
        "1000.0 "
        "AS tokens_per_s_per_gpu, CASE a WHEN 3 THEN 'no such thing' END AS reason, "
        "'{name: n, machines: [{device: t4, gpus: ' || a || '}]}' AS cluster FROM "
        "set_times "
        "ORDER BY a\n";
    Toy toy = toy_new(query, "a\n2\n3\n4\n");
    g_autoptr(GError) error = NULL;
    g_autoptr(TrialSet) set = trials_read("toy", toy.data, &error);
    assert_no_error(error);
    assert_int_equal(set->trial->len, 2);
    assert_int_equal(set->n_unable, 1);
    assert_int_equal(GPOINTER_TO_UINT(g_hash_table_lookup(set->unable, "no such thing")),
                     1);
    const Trial *second = &g_array_index(set->trial, Trial, 1);
    assert_string_equal(second->options, "tp=4");
    assert_string_equal(second->group, "g4");
    assert_true(second->tokens_per_s == 4000 && isnan(second->measured_s));
    assert_close(second->start->bandwidth, 0.4 * 320e9, 1e-9); /* T4: 320 GB/s */
    assert_close(device_type_rate(&second->cluster->type[0], NUMBERS_F16), 0.8 * 65e12,
                 1e-9);
    toy_clear(&toy);
}

/* As kilter simulate predicts: the cluster's own numbers, further options, no calibration. */
static void test_plain(void **state)
{
    (void)state;
    static const char query[] =
        "-- Plain\nSELECT 'calibration' AS split, 'c' AS contest, 'm' AS model, CASE a "
        "WHEN 2 THEN 'manual' ELSE '' END AS planner, CASE a WHEN 2 THEN 'tp=2' END AS "
        "options, 0 AS failed, NULL AS measured_gib, 1.5 AS measured_s, CASE WHEN a < 4 "
        "THEN '{name: n, machines: [{device: t4, gpus: 4}]}' END AS cluster, 2 AS pp, 1 "
        "AS "
        "dp, 2 AS tmp, 1 AS mbs FROM set_times ORDER BY a\n";
    Toy toy = toy_new(query, "a\n2\n3\n4\n");
    g_autoptr(GError) error = NULL;
    char *further[] = {"costs=kernels", "overlap=off", NULL};
    g_autoptr(TrialSet) set = trials_read_plain("toy", toy.data, further, &error);
    assert_no_error(error);
    assert_int_equal(set->trial->len, 2);
    assert_int_equal(set->n_unable, 1); /* the row without a cluster */
    const Trial *first = &g_array_index(set->trial, Trial, 0), *second = first + 1;
    assert_string_equal(first->options, "tp=2,costs=kernels,overlap=off");
    assert_true(
        g_str_has_suffix(second->options, "micro_batch=1,costs=kernels,overlap=off"));
    assert_true(first->split != SPLIT_FIT && !first->start && !first->waits);
    assert_true(first->cluster->type[0].kernels && !first->cluster->type[0].op);
    toy_clear(&toy);
}

/* The trials that the command lists, in the set's order: all of them only if the sealed ones are
 * asked for. */
static void check_listed(const Toy *toy, const TrialSet *set, bool sealed)
{
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *line = g_strdup_printf(
        "reproduce scorecard:toy --measured %s --unfitted --db r.db --json%s", toy->data,
        sealed ? " --sealed" : "");
    json_t *root = program_json(box, line);
    json_t *object = json_array_get(json_object_get(root, "scorecard"), 0);
    const json_t *trials = json_object_get(object, "trials");
    uint32_t n = 0;
    for (uint32_t i = 0; i < set->trial->len; i++) {
        const Trial *trial = &g_array_index(set->trial, Trial, i);
        if (trial->split == SPLIT_SEALED && !sealed)
            continue;
        const json_t *listed = json_array_get(trials, n++);
        assert_string_equal(json_string_value(json_object_get(listed, "split")),
                            trial_split_name(trial->split));
        assert_close(number(listed, "measured_s"), trial->measured_s, 1e-12);
        if (trial->split != SPLIT_FIT) /* only what the test is on is predicted */
            assert_int_equal(json_is_null(json_object_get(listed, "predicted_s")),
                             trial->split != (sealed ? SPLIT_SEALED : SPLIT_DEVELOPMENT));
    }
    assert_int_equal(json_array_size(trials), n);
    assert_string_equal(json_string_value(json_object_get(object, "test_split")),
                        trial_split_name(sealed ? SPLIT_SEALED : SPLIT_DEVELOPMENT));
    json_decref(root);
}

static void test_sealed(void **state)
{
    (void)state;
    static const char query[] =
        "-- Sealed\nSELECT split, 'c' AS contest, 'g' || a AS \"group\", "
        "'gpt2:layers=1,hidden=64,heads=4,ffn=256,seq=32,vocab=128,global_batch=16' AS "
        "model, 'ddp' AS planner, 'bucket=1MB' AS options, 0 AS failed, NULL AS "
        "measured_gib, a * 0.001 AS measured_s, '{name: n, machines: [{device: t4, gpus: "
        "2}]}' AS cluster FROM set_times ORDER BY a\n";
    Toy toy = toy_new(query, "a,split\n1,calibration\n2,test\n3,test\n4,test\n5,test\n"
                             "6,test\n7,test\n8,test\n9,calibration\n");
    g_autoptr(GError) error = NULL;
    g_autoptr(TrialSet) set = trials_read("toy", toy.data, &error);
    assert_no_error(error);
    uint32_t n[SPLIT_SEALED + 1] = {0};
    for (uint32_t i = 0; i < set->trial->len; i++)
        n[g_array_index(set->trial, Trial, i).split]++;
    assert_int_equal(n[SPLIT_FIT], 2);
    assert_true(n[SPLIT_SEALED] > 0 && n[SPLIT_DEVELOPMENT] > 0);
    check_listed(&toy, set, false);
    check_listed(&toy, set, true);
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

/* Every bundled query reads its measured data. */
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
            assert_true(*trial->group && *trial->model && trial_gpus(trial) > 0);
            assert_true(trial->start->attention > 0);
            tests += trial->split != SPLIT_FIT;
        }
        assert_true(tests > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),     cmocka_unit_test(test_planners),
        cmocka_unit_test(test_clusters), cmocka_unit_test(test_plain),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_bundled),
        cmocka_unit_test(test_sealed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
