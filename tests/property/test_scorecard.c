/* The scorecard's fit: trials that the simulator made itself are met, and the held-out ones
 * predicted. */
#include <glib/gstdio.h>

#include "experiments/scorecard/record.h"
#include "tests/test.h"

static Trial trial(uint32_t layers, uint32_t pp, uint32_t dp, uint32_t tmp,
                   bool calibration)
{
    return (Trial){.contest = g_strdup("c"),
                   .model = g_strdup_printf("gpt2:layers=%u,hidden=64,heads=4,ffn=256,"
                                            "seq=32,vocab=128,global_batch=16",
                                            layers),
                   .device = g_strdup("D"),
                   .cuts = g_strdup(""),
                   .calibration = calibration,
                   .memory_bytes = 1e12,
                   .processors = 1,
                   .gpus = 2,
                   .machines = 2,
                   .pp = pp,
                   .dp = dp,
                   .tmp = tmp,
                   .mbs = 2,
                   .chunks = 1};
}

static void trial_clear(void *data)
{
    Trial *t = data;
    g_free(t->contest);
    g_free(t->model);
    g_free(t->device);
    g_free(t->cuts);
}

static GArray *make_trials(void)
{
    static const uint32_t degree[][3] = {{1, 4, 1}, {2, 2, 1}, {4, 1, 1},
                                         {1, 2, 2}, {2, 1, 2}, {1, 1, 4}};
    GArray *list = g_array_new(false, false, sizeof(Trial));
    g_array_set_clear_func(list, trial_clear);
    for (uint32_t layers = 4; layers <= 8; layers += 4)
        for (uint32_t i = 0; i < G_N_ELEMENTS(degree); i++) {
            Trial t =
                trial(layers, degree[i][0], degree[i][1], degree[i][2], layers == 4);
            t.measured_s = 1;
            g_array_append_val(list, t);
        }
    return list;
}

/* Trials with costs to start from. */
static TrialSet make_set(void)
{
    return (TrialSet){.name = (char *)"set",
                      .trial = make_trials(),
                      .rate = 3e12,
                      .bandwidth = 2e10,
                      .inner = 8e9,
                      .outer = 2e9,
                      .latency_s = 3e-6,
                      .launch_s = 3e-6};
}

/* The set's starting values are wrong by factors; times are those of other values, made by a set
 * that starts there. */
static void test_recovers(void **state)
{
    (void)state;
    const ScoreOptions options = {.threads = 1};
    TrialSet truth = {.name = (char *)"truth",
                      .trial = make_trials(),
                      .rate = 2e12,
                      .bandwidth = 4e10,
                      .inner = 5e9,
                      .outer = 1e9,
                      .latency_s = 2e-6,
                      .launch_s = 2e-6};
    TrialSet set = make_set();
    g_autoptr(GError) error = NULL;
    g_auto(Score) made = {0}, score = {0};
    score_evaluate(&truth, &options, &made, &error);
    assert_no_error(error);
    for (uint32_t i = 0; i < set.trial->len; i++) {
        assert_true(made.predicted_s[i] > 0);
        g_array_index(set.trial, Trial, i).measured_s = made.predicted_s[i];
    }
    score_trials(&set, &options, &score, &error);
    assert_no_error(error);
    assert_int_equal(score.n_fitted, 6);
    assert_int_equal(score.test.n, 6);
    assert_at_most(score.calibration.mape, 0.03);
    assert_at_most(score.test.mape, 0.05);
    assert_int_equal(score.n_memory_right, 6);
    g_array_unref(truth.trial);
    g_array_unref(set.trial);
}

static void count(uint32_t n_columns, char **value, char **column, void *data)
{
    (void)n_columns;
    (void)column;
    *(uint64_t *)data = g_ascii_strtoull(value[0], NULL, 10);
}

static uint64_t query(Store *store, const char *sql)
{
    g_autoptr(GError) error = NULL;
    uint64_t n = 0;
    store_query(store, sql, count, &n, &error);
    assert_no_error(error);
    return n;
}

/* Every predicted trial has one row, with its configuration, what was measured and the command;
 * again changes nothing. */
static void test_record(void **state)
{
    (void)state;
    TrialSet set = make_set();
    g_array_index(set.trial, Trial, 1).memory_bytes = 1;
    g_autoptr(GError) error = NULL;
    g_auto(Score) score = {0};
    score_evaluate(&set, &(ScoreOptions){.threads = 1}, &score, &error);
    assert_no_error(error);
    score.predicted_s[0] = NAN;
    g_autofree char *folder = g_dir_make_tmp("kilter-score-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(folder, "s.db", NULL);
    g_autoptr(Store) store = store_open(file, &error);
    assert_no_error(error);
    store_begin_run(store, "kilter reproduce scorecard:set", &error);
    assert_no_error(error);
    for (uint32_t i = 0; i < 2; i++) {
        score_record(&set, &score, store, &error);
        assert_no_error(error);
        assert_int_equal(query(store, "SELECT count(*) FROM result"), set.trial->len - 1);
    }
    assert_int_equal(query(store, "SELECT count(*) FROM result WHERE status = 'oom'"), 1);
    assert_int_equal(
        query(store, "SELECT count(*) FROM result JOIN run ON run.id = run WHERE command "
                     "LIKE '%scorecard:set' AND json_extract(detail, '$.measured_s') = 1 "
                     "AND json_extract(config, '$.trial.pp') = stages AND "
                     "json_extract(config, '$.costs.computation') = 1.5e12 AND "
                     "iteration_time_s > 0 AND peak_memory_bytes > 0"),
        set.trial->len - 1);
    g_clear_pointer(&store, store_close);
    g_unlink(file);
    g_rmdir(folder);
    g_array_unref(set.trial);
}

static void test_refusals(void **state)
{
    (void)state;
    TrialSet set = make_set();
    g_array_index(set.trial, Trial, 0).dp = 3;
    g_autoptr(GError) error = NULL;
    g_auto(Score) score = {0};
    assert_false(score_trials(&set, &(ScoreOptions){.threads = 1}, &score, &error));
    assert_non_null(strstr(error->message, "1 x 3 x 1 ranks on 4 GPUs"));
    g_array_unref(set.trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recovers),
        cmocka_unit_test(test_record),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
