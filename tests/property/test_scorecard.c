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
                   .planner = g_strdup(""),
                   .options = g_strdup(""),
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
    g_free(t->planner);
    g_free(t->options);
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
                      .start = {[SCORE_LAUNCH] = 3e-6,
                                [SCORE_OVERHEAD] = 2e-6,
                                [SCORE_RATE] = 2.4e12,
                                [SCORE_BANDWIDTH] = 2e10,
                                [SCORE_ATTENTION] = 5e9,
                                [SCORE_LOSS] = 5e9,
                                [SCORE_INNER_LATENCY] = 3e-6,
                                [SCORE_INNER_BANDWIDTH] = 6e9,
                                [SCORE_OUTER_LATENCY] = 3e-6,
                                [SCORE_OUTER_BANDWIDTH] = 1.2e9}};
}

/* The set's starting values are wrong by factors; times are those of other values, made by a set
 * that starts there. Peaks are those of the plans and a runtime's. */
#define RUNTIME_BYTES 3e9

static void test_recovers(void **state)
{
    (void)state;
    const ScoreOptions options = {.threads = 1};
    TrialSet truth = {.name = (char *)"truth",
                      .trial = make_trials(),
                      .start = {[SCORE_LAUNCH] = 2e-6,
                                [SCORE_OVERHEAD] = 5e-6,
                                [SCORE_RATE] = 2e12,
                                [SCORE_BANDWIDTH] = 4e10,
                                [SCORE_ATTENTION] = 1e10,
                                [SCORE_LOSS] = 1e10,
                                [SCORE_INNER_LATENCY] = 2e-6,
                                [SCORE_INNER_BANDWIDTH] = 5e9,
                                [SCORE_OUTER_LATENCY] = 2e-6,
                                [SCORE_OUTER_BANDWIDTH] = 1e9}};
    TrialSet set = make_set();
    g_autoptr(GError) error = NULL;
    g_auto(Score) made = {0}, score = {0};
    score_evaluate(&truth, &options, &made, &error);
    assert_no_error(error);
    for (uint32_t i = 0; i < set.trial->len; i++) {
        assert_true(made.predicted_s[i] > 0);
        g_array_index(set.trial, Trial, i).measured_s = made.predicted_s[i];
        g_array_index(set.trial, Trial, i).measured_bytes =
            made.detail[i].peak_bytes + RUNTIME_BYTES;
    }
    score_trials(&set, &options, &score, &error);
    assert_no_error(error);
    assert_int_equal(score.n_fitted, 6);
    assert_int_equal(score.test.n, 6);
    assert_at_most(score.calibration.mape, 0.03);
    assert_at_most(score.test.mape, 0.05);
    assert_int_equal(score.n_memory_right, 6);
    assert_close(score.runtime_bytes, RUNTIME_BYTES, 1e-9);
    assert_int_equal(score.memory.n, 6);
    assert_at_most(score.memory.worst, 1e-9);
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
    store_begin_run(store, "kilter reproduce scorecard:set", "", &error);
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
                     "AND json_extract(config, '$.subject.trial.pp') = stages AND "
                     "json_extract(config, '$.cluster.costs.computation') = 2.4e12 AND "
                     "iteration_time_s > 0 AND peak_memory_bytes > 0"),
        set.trial->len - 1);
    g_clear_pointer(&store, store_close);
    g_unlink(file);
    g_rmdir(folder);
    g_array_unref(set.trial);
}

/* Two trials of planners, of a set that gives its costs. */
static TrialSet make_planned(void)
{
    static const char *const planner[] = {"ddp", "gshard"};
    TrialSet set = make_set();
    g_array_set_size(set.trial, 0);
    for (uint32_t i = 0; i < G_N_ELEMENTS(planner); i++) {
        Trial t = trial(2, 0, 0, 0, false);
        g_free(t.model);
        g_free(t.planner);
        t.model =
            g_strdup("bert-switch:layers=2,hidden=64,heads=4,ffn=256,seq=32,vocab=128,"
                     "experts=4,global_batch=16");
        g_free(t.options);
        t.planner = g_strdup(planner[i]);
        t.options = g_strdup("bucket=1kB,first_bucket=1kB");
        t.measured_s = 1;
        g_array_append_val(set.trial, t);
    }
    return set;
}

/* Nothing is fitted: the costs are the set's; time goes with them. */
static void test_planners(void **state)
{
    (void)state;
    const ScoreOptions options = {.threads = 1};
    TrialSet set = make_planned();
    g_autoptr(GError) error = NULL;
    g_auto(Score) score = {0}, slower = {0}, twice = {0};
    score_trials(&set, &options, &score, &error);
    assert_no_error(error);
    assert_int_equal(score.n_fitted, 0);
    assert_int_equal(score.test.n, 2);
    assert_memory_equal(score.parameter, set.start, sizeof set.start);
    assert_true(score.predicted_s[0] > 0 && score.predicted_s[1] > 0);
    assert_string_equal(trial_fidelity(&g_array_index(set.trial, Trial, 0)), "flow");
    for (uint32_t i = 0; i < 2; i++)
        g_array_index(set.trial, Trial, i).slowdown = 1.5;
    score_trials(&set, &options, &slower, &error);
    assert_no_error(error);
    assert_true(slower.predicted_s[0] > score.predicted_s[0]); /* it overlaps */
    for (uint32_t p = 0; p < SCORE_N_PARAMETERS; p++)
        set.start[p] *=
            strcmp(score_parameter((ScoreParameter)p)->unit, "s") == 0 ? 2 : 0.5;
    score_trials(&set, &options, &twice, &error);
    assert_no_error(error);
    assert_close(twice.predicted_s[0], 2 * slower.predicted_s[0], 1e-9);
    g_array_unref(set.trial);
}

static void refuses(const char *planner, const char *options, const char *expected)
{
    TrialSet set = make_planned();
    Trial *t = &g_array_index(set.trial, Trial, 0);
    g_autoptr(GError) error = NULL;
    g_auto(Score) score = {0};
    g_free(t->planner);
    g_free(t->options);
    t->planner = g_strdup(planner);
    t->options = g_strdup(options);
    assert_false(score_trials(&set, &(ScoreOptions){.threads = 1}, &score, &error));
    if (!strstr(error->message, expected))
        fail_msg("'%s' does not say '%s'", error->message, expected);
    g_array_unref(set.trial);
}

static void test_planner_refusals(void **state)
{
    (void)state;
    refuses("dpd", "", "ddp");
    refuses("ddp", "bucket", "expected key=value, got 'bucket'");
    refuses("ddp", "bucket=1MB,size=3", "size");
}

/* HiDup's traces: kernels alone say how long iterations take. FastMoE's waits for the GPU that the most
 * tokens are sent to, which nothing here knows. */
static void test_traces(void **state)
{
    (void)state;
    const char *folder = test_shared("measured");
    if (!folder)
        skip();
    g_autoptr(GError) error = NULL;
    g_autoptr(TrialSet) set = trials_read("hidup-traces", folder, &error);
    assert_no_error(error);
    g_auto(Score) score = {0};
    score_trials(set, &(ScoreOptions){.threads = 1}, &score, &error);
    assert_no_error(error);
    assert_int_equal(score.test.n, 4);
    for (uint32_t i = 0; i < 4; i++) {
        const Trial *t = &g_array_index(set->trial, Trial, i);
        const double error_s = score.predicted_s[i] - t->measured_s;
        const bool overlaps = t->measured_hidden_s > 0;
        assert_true(overlaps == (score.detail[i].hidden_s > 0));
        assert_at_most(score.detail[i].hidden_s, score.detail[i].comm_s);
        assert_at_most(score.detail[i].comm_s,
                       t->measured_comm_s); /* no rank comes late */
        if (strcmp(t->planner, "fastmoe") == 0)
            assert_true(error_s < 0);
        else
            assert_at_most(fabs(error_s), 0.08 * t->measured_s);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    TrialSet set = make_set();
    g_array_index(set.trial, Trial, 0).dp = 3;
    g_autoptr(GError) error = NULL;
    g_auto(Score) score = {0};
    assert_false(score_trials(&set, &(ScoreOptions){.threads = 1}, &score, &error));
    assert_non_null(strstr(error->message, "expected a product of 4, the cluster's GPUs"));
    g_array_unref(set.trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recovers),         cmocka_unit_test(test_record),
        cmocka_unit_test(test_refusals),         cmocka_unit_test(test_planners),
        cmocka_unit_test(test_planner_refusals), cmocka_unit_test(test_traces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
