/* The scorecard's fit: it meets trials made by the simulator itself, and predicts the held-out
 * ones. */
#include <glib/gstdio.h>
#include <math.h>

#include "data/store/store.h"
#include "experiments/scorecard/record.h"
#include "experiments/scorecard/scorecard.h"
#include "tests/support/rounds.h"
#include "tests/test.h"

/* Costs of a cluster of four devices in two machines. */
typedef struct {
    double launch_s, handover_s, overhead_s, rate, memory, unfused, latency_s, inner,
        outer;
} Costs;

static Cluster *make_cluster(const Costs *costs)
{
    g_autofree char *text = g_strdup_printf(
        "name: network\ndevice_types: [{name: D, rate: %.17g FLOP/s, memory: 1e12 B}]\n"
        "machines: [{type: D, gpus: 2, count: 2, inner: {latency: %.17g s, bandwidth: "
        "%.17g B/s}}]\ncollectives:\n",
        costs->rate, costs->latency_s, costs->inner);
    g_autoptr(GString) all = g_string_new(text);
    for (Collective kind = 0; kind < (Collective)COLLECTIVES_PRICED; kind++)
        g_string_append_printf(all, "  %s: {latency: %.17g s, bandwidth: %.17g B/s}\n",
                               collective_name(kind), costs->latency_s, costs->outer);
    g_autoptr(GError) error = NULL;
    Cluster *cluster = cluster_parse("test", all->str, all->len, &error);
    assert_no_error(error);
    return cluster;
}

static Trial trial(const Costs *costs, uint32_t layers, const char *options,
                   bool calibration)
{
    TypeStart *start = g_new(TypeStart, 1);
    *start = (TypeStart){.bandwidth = costs->memory,
                         .attention = costs->unfused,
                         .loss = costs->unfused,
                         .overhead_s = costs->overhead_s,
                         .launch_s = costs->launch_s,
                         .handover_s = costs->handover_s,
                         .processors = 1};
    return (Trial){.name = g_strdup("t"),
                   .contest = g_strdup("c"),
                   .group = g_strdup(options),
                   .model = g_strdup_printf("gpt2:layers=%u,hidden=64,heads=4,ffn=256,"
                                            "seq=32,vocab=128,global_batch=16",
                                            layers),
                   .planner = g_strdup("manual"),
                   .options = g_strdup(options),
                   .cluster = make_cluster(costs),
                   .waits = true,
                   .start = start,
                   .split = calibration ? SPLIT_FIT : SPLIT_DEVELOPMENT,
                   .measured_s = 1,
                   .measured_bytes = NAN,
                   .measured_comm_s = NAN,
                   .measured_hidden_s = NAN,
                   .tokens_per_s = NAN,
                   .samples_per_s = NAN};
}

static const Costs GUESSED = {.launch_s = 3e-6,
                              .overhead_s = 2e-6,
                              .rate = 2.4e12,
                              .memory = 2e10,
                              .unfused = 5e9,
                              .latency_s = 3e-6,
                              .inner = 6e9,
                              .outer = 1.2e9};
static const Costs TRUE_ONES = {.launch_s = 2e-6,
                                .overhead_s = 5e-6,
                                .rate = 2e12,
                                .memory = 4e10,
                                .unfused = 1e10,
                                .latency_s = 2e-6,
                                .inner = 5e9,
                                .outer = 1e9};

static TrialSet *make_set(const Costs *costs)
{
    static const char *const degrees[] = {"pp=1,dp=4,tp=1", "pp=2,dp=2,tp=1",
                                          "pp=4,dp=1,tp=1", "pp=1,dp=2,tp=2",
                                          "pp=2,dp=1,tp=2", "pp=1,dp=1,tp=4"};
    TrialSet *set = trials_new("set");
    for (uint32_t layers = 2; layers <= 4; layers += 2)
        for (uint32_t i = 0; i < G_N_ELEMENTS(degrees); i++) {
            g_autofree char *options = g_strdup_printf("%s,micro_batch=2", degrees[i]);
            const Trial t = trial(costs, layers, options, layers == 2);
            g_array_append_val(set->trial, t);
        }
    return set;
}

static Trial *at(TrialSet *set, uint32_t i)
{
    return &g_array_index(set->trial, Trial, i);
}

/* Predicts all trials, of every split, at the set's starting values. */
static void predict_all(TrialSet *set, Score *score)
{
    const ScoreOptions options = {.threads = 1, .unfitted = true};
    g_autofree TrialSplit *split = g_new(TrialSplit, set->trial->len);
    g_autoptr(GError) error = NULL;
    for (uint32_t i = 0; i < set->trial->len; i++) {
        split[i] = at(set, i)->split;
        at(set, i)->split = SPLIT_DEVELOPMENT;
    }
    score_trials(set, &options, score, &error);
    assert_no_error(error);
    for (uint32_t i = 0; i < set->trial->len; i++)
        at(set, i)->split = split[i];
}

/* The set's starting values are wrong by factors; the trials' times are made by a set with other
 * starting values. Peaks are those of the plans plus a runtime's memory. */
#define RUNTIME_BYTES 3e9

static void test_recovers(void **state)
{
    (void)state;
    const ScoreOptions options = {.threads = 1};
    g_autoptr(TrialSet) truth = make_set(&TRUE_ONES), set = make_set(&GUESSED);
    g_autoptr(GError) error = NULL;
    g_auto(Score) made = {0}, score = {0};
    predict_all(truth, &made);
    for (uint32_t i = 0; i < set->trial->len; i++) {
        assert_true(made.predicted_s[i] > 0);
        at(set, i)->measured_s = made.predicted_s[i];
        at(set, i)->measured_bytes = made.detail[i].peak_bytes + RUNTIME_BYTES;
    }
    score_trials(set, &options, &score, &error);
    assert_no_error(error);
    assert_int_equal(score.n_fitted, 6);
    assert_int_equal(score.test.n, 6);
    assert_at_most(score.calibration.mape, 0.03);
    assert_at_most(score.test.mape, 0.05);
    assert_at_most(score.calibration.mape, score.held_out.mape);
    assert_int_equal(score.verdict.fit, 6);
    assert_int_equal(score.verdict.false_alarms, 0);
    assert_close(score.runtime_bytes, RUNTIME_BYTES, 1e-9);
    assert_int_equal(score.memory.n, 6);
    assert_at_most(score.memory.worst, 1e-9);
    /* From other starts the fit is as good, and the set's own starts come back. */
    enum { STARTS = 2 };
    StartScore start[STARTS];
    const double launch_s = at(set, 0)->start->launch_s;
    if (!test_rounds(0, 1))
        return; /* as many fits again */
    assert_true(starts_score(set, &options, STARTS, 1, start, &error));
    assert_close(at(set, 0)->start->launch_s, launch_s, 1e-12);
    assert_close(at(set, 0)->cluster->machine[0].inner.bandwidth, GUESSED.inner, 1e-12);
    assert_true(start[0].test.mape != start[1].test.mape);
    for (uint32_t k = 0; k < STARTS; k++) {
        assert_int_equal(start[k].test.n, 6);
        assert_at_most(start[k].test.mape, 0.15);
    }
}

/* Trials that the starting values explain are missed from other starts, each by its own factor,
 * which is no wider than the widest cost's. A seed gives the same starts, and the set has its own
 * values again afterwards. */
static void test_starts(void **state)
{
    (void)state;
    enum { STARTS = 3 };
    const ScoreOptions options = {.threads = 1, .unfitted = true};
    g_autoptr(TrialSet) set = make_set(&TRUE_ONES);
    g_autoptr(GError) error = NULL;
    g_auto(Score) made = {0}, score = {0};
    StartScore start[STARTS], again[STARTS], other[STARTS];
    double widest = 0;
    predict_all(set, &made);
    for (uint32_t i = 0; i < set->trial->len; i++)
        at(set, i)->measured_s = made.predicted_s[i];
    for (Cost cost = 0; cost < COSTS; cost++)
        widest = fmax(widest, cost_info(cost)->width);
    assert_true(starts_score(set, &options, STARTS, 1, start, &error));
    score_trials(set, &options, &score, &error);
    assert_no_error(error);
    assert_at_most(score.test.mape, 1e-9);
    for (uint32_t i = 0; i < set->trial->len; i++)
        assert_close(at(set, i)->start->launch_s, TRUE_ONES.launch_s, 1e-12);
    assert_true(starts_score(set, &options, STARTS, 1, again, &error));
    assert_true(starts_score(set, &options, STARTS, 2, other, &error));
    for (uint32_t k = 0; k < STARTS; k++) {
        assert_true(start[k].test.mape > 1e-3);
        assert_at_most(start[k].test.mape, exp(widest) - 1);
        assert_close(again[k].test.mape, start[k].test.mape, 1e-9);
        assert_true(fabs(other[k].test.mape / start[k].test.mape - 1) > 1e-6);
        for (uint32_t i = 0; i < k; i++)
            assert_true(fabs(start[k].test.mape / start[i].test.mape - 1) > 1e-6);
    }
}

/* Two device types are off by a common factor, and one of them by another factor besides: the fit
 * finds the common factor, and a third type without trials gets it. */
static void test_common(void **state)
{
    (void)state;
    static const char *const options[] = {
        "pp=1,tp=1,micro_batch=4", "pp=1,tp=1,micro_batch=1", "pp=1,tp=4,micro_batch=4",
        "pp=2,tp=2,micro_batch=2"};
    TrialPlan plan[8] = {0};
    Trial t[8];
    g_autoptr(GError) error = NULL;
    for (uint32_t i = 0; i < 8; i++) {
        const bool other = i >= 4;
        Costs actual = TRUE_ONES, guess = TRUE_ONES;
        guess.rate *= other ? 1.2 : 1.6;
        guess.memory *= 2;
        t[i] = trial(&actual, 4, options[i % 4], true);
        trial_plan_make(&t[i], NULL, &plan[i], &error);
        assert_no_error(error);
        double time_s;
        trial_plan_predict(&plan[i], NULL, &time_s, NULL, &error);
        trial_plan_clear(&plan[i]);
        trial_clear(&t[i]);
        t[i] = trial(&guess, 4, options[i % 4], true);
        t[i].measured_s = time_s;
        g_free(t[i].cluster->type[0].name);
        t[i].cluster->type[0].name = g_strdup(other ? "other" : "one");
        trial_plan_make(&t[i], NULL, &plan[i], &error);
        assert_no_error(error);
    }
    g_auto(TrialFit) fit = {0};
    trial_fit(plan, 8, &(TrialFitOptions){.threads = 1, .hold_out = true}, &fit, &error);
    assert_no_error(error);
    assert_at_most(fit.fitted.mape, 0.03);
    const FittedCost *common = fitted_costs_find(&fit.costs, COST_BANDWIDTH, ""),
                     *own = fitted_costs_find(&fit.costs, COST_BANDWIDTH, "one");
    assert_true(common && own);
    assert_at_most(common->log, -0.1); /* log(1/2) is -0.69 */
    assert_at_most(fabs(own->log), fabs(common->log) + 0.1);
    assert_true(common->low < common->log && common->log < common->high);
    g_free(t[0].cluster->type[0].name);
    t[0].cluster->type[0].name = g_strdup("third");
    g_autofree double *log = fitted_costs_at(&fit.costs, &t[0]);
    assert_close(log[COST_BANDWIDTH], common->log, 1e-12);
    for (uint32_t i = 0; i < 8; i++) {
        trial_plan_clear(&plan[i]);
        trial_clear(&t[i]);
    }
}

/* Pipelines' hosts take 400 us for a hand-over, the other costs are known. From a start of 50 us
 * the fit finds that, and predicts deeper models; without the cost nothing makes up for it. */
static void test_handover(void **state)
{
    (void)state;
    static const double START_S[] = {50e-6, 0};
    double mape[2];
    for (uint32_t k = 0; k < 2; k++) {
        const ScoreOptions options = {.threads = 1};
        Costs actual = TRUE_ONES, guess = TRUE_ONES;
        actual.handover_s = 400e-6;
        guess.handover_s = START_S[k];
        g_autoptr(TrialSet) truth = make_set(&actual), set = make_set(&guess);
        g_autoptr(GError) error = NULL;
        g_auto(Score) made = {0}, score = {0};
        predict_all(truth, &made);
        for (uint32_t i = 0; i < set->trial->len; i++)
            at(set, i)->measured_s = made.predicted_s[i];
        score_trials(set, &options, &score, &error);
        assert_no_error(error);
        mape[k] = score.test.mape;
        const FittedCost *cost = fitted_costs_find(&score.costs, COST_HANDOVER, "D");
        if (START_S[k] > 0) {
            assert_close(START_S[k] * exp(cost->log), actual.handover_s, 0.2);
            assert_true(cost->low < cost->log && cost->log < cost->high);
        }
    }
    assert_at_most(mape[0], 0.02);
    assert_at_most(4 * mape[0], mape[1]);
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

/* Every predicted trial has one row, with its configuration, the measurements and the command;
 * running again changes nothing. */
static void test_record(void **state)
{
    (void)state;
    g_autoptr(TrialSet) set = make_set(&GUESSED);
    at(set, 1)->cluster->type[0].memory_bytes = 1;
    g_autoptr(GError) error = NULL;
    g_auto(Score) score = {0};
    predict_all(set, &score);
    score.predicted_s[0] = NAN;
    g_autofree char *folder = g_dir_make_tmp("kilter-score-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(folder, "s.db", NULL);
    g_autoptr(Store) store = store_open(file, &error);
    assert_no_error(error);
    store_begin_run(store, "kilter reproduce scorecard:set", "", &error);
    assert_no_error(error);
    for (uint32_t i = 0; i < 2; i++) {
        score_record(set, &score, store, &error);
        assert_no_error(error);
        assert_int_equal(query(store, "SELECT count(*) FROM result"),
                         set->trial->len - 1);
    }
    assert_int_equal(query(store, "SELECT count(*) FROM result WHERE status = 'oom'"), 1);
    assert_int_equal(
        query(store,
              "SELECT count(*) FROM result JOIN run ON run.id = run WHERE command "
              "LIKE '%scorecard:set' AND json_extract(detail, '$.measured_s') = 1 "
              "AND json_extract(config, '$.subject.trial.options') LIKE 'pp=%' AND "
              "json_extract(config, '$.cluster.costs.D.\"computation in fp32\"') = "
              "2.4e12 AND "
              "iteration_time_s > 0 AND peak_memory_bytes > 0"),
        set->trial->len - 1);
    g_clear_pointer(&store, store_close);
    g_unlink(file);
    g_rmdir(folder);
}

/* Two trials of planners, in a set with given costs. */
static TrialSet *make_planned(const Costs *costs, double slowdown)
{
    static const char *const planner[] = {"ddp", "gshard"};
    TrialSet *set = trials_new("planned");
    for (uint32_t i = 0; i < G_N_ELEMENTS(planner); i++) {
        Trial t = trial(costs, 2, "bucket=1kB,first_bucket=1kB", false);
        g_free(t.model);
        g_free(t.planner);
        t.model =
            g_strdup("bert-switch:layers=2,hidden=64,heads=4,ffn=256,seq=32,vocab=128,"
                     "experts=4,global_batch=16");
        t.planner = g_strdup(planner[i]);
        t.cluster->type[0].slowdown = slowdown;
        g_array_append_val(set->trial, t);
    }
    return set;
}

/* Nothing is fitted: the costs are those of the set, and times change with them. */
static void test_planners(void **state)
{
    (void)state;
    const ScoreOptions options = {.threads = 1};
    Costs half = GUESSED;
    half.launch_s *= 2;
    half.overhead_s *= 2;
    half.latency_s *= 2;
    half.rate /= 2;
    half.memory /= 2;
    half.unfused /= 2;
    half.inner /= 2;
    half.outer /= 2;
    g_autoptr(TrialSet) set = make_planned(&GUESSED, 1),
                        slow = make_planned(&GUESSED, 1.5),
                        late = make_planned(&half, 1.5);
    g_autoptr(GError) error = NULL;
    g_auto(Score) score = {0}, slower = {0}, twice = {0};
    score_trials(set, &options, &score, &error);
    assert_no_error(error);
    assert_int_equal(score.n_fitted, 0);
    assert_int_equal(score.test.n, 2);
    assert_int_equal(score.costs.n, 0);
    assert_true(score.predicted_s[0] > 0 && score.predicted_s[1] > 0);
    assert_string_equal(trial_fidelity(at(set, 0)), "flow");
    score_trials(slow, &options, &slower, &error);
    assert_no_error(error);
    assert_true(slower.predicted_s[0] > score.predicted_s[0]); /* it overlaps */
    score_trials(late, &options, &twice, &error);
    assert_no_error(error);
    assert_close(twice.predicted_s[0], 2 * slower.predicted_s[0], 1e-9);
}

/* Trials that cannot be made are counted with their reason, and the others are predicted; if none
 * is left, that is an error. */
static void refuses(const char *planner, const char *options, const char *expected)
{
    g_autoptr(TrialSet) set = make_planned(&GUESSED, 1);
    g_autoptr(GError) error = NULL;
    g_auto(Score) score = {0}, none = {0};
    for (uint32_t i = 0; i < 2; i++) {
        Trial *t = at(set, i);
        g_free(t->planner);
        g_free(t->options);
        t->planner = g_strdup(planner);
        t->options = g_strdup(options);
        if (i > 0)
            break;
        score_trials(set, &(ScoreOptions){.threads = 1}, &score, &error);
        assert_no_error(error);
        assert_int_equal(score.test.n, 1);
        assert_non_null(strstr(score.reason[0], expected));
        assert_null(score.reason[1]);
    }
    assert_false(score_trials(set, &(ScoreOptions){.threads = 1}, &none, &error));
    assert_error(error, KILTER_ERROR_INPUT, expected);
}

static void test_refusals(void **state)
{
    (void)state;
    refuses("dpd", "", "ddp");
    refuses("ddp", "bucket", "expected key=value, got 'bucket'");
    refuses("ddp", "bucket=1MB,size=3", "size");
    refuses("manual", "pp=1,dp=3,tp=1", "expected a product of 4, the cluster's GPUs");
}

/* Sealed trials are predicted only on request. */
static void test_sealed(void **state)
{
    (void)state;
    g_autoptr(TrialSet) set = make_planned(&GUESSED, 1);
    at(set, 1)->split = SPLIT_SEALED;
    g_autoptr(GError) error = NULL;
    g_auto(Score) score = {0}, sealed = {0};
    score_trials(set, &(ScoreOptions){.threads = 1}, &score, &error);
    assert_no_error(error);
    assert_true(score.predicted_s[0] > 0 && isnan(score.predicted_s[1]));
    score_trials(set, &(ScoreOptions){.threads = 1, .sealed = true}, &sealed, &error);
    assert_no_error(error);
    assert_true(isnan(sealed.predicted_s[0]) && sealed.predicted_s[1] > 0);
    assert_int_equal(sealed.test.n, 1);
}

/* HiDup's traces: kernels alone say how long iterations take. FastMoE's waits for the GPU that the
 * most tokens are sent to, which nothing here knows. */
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
    predict_all(set, &score);
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

/* Times that follow from FLOPs, from FLOPs and bubble, and from all seven terms are met by the
 * baseline that knows so. */
static void test_baselines(void **state)
{
    (void)state;
    enum { N = 40 };
    static const double weight[BASELINE_TERMS] = {-30, 0.9, 1.2, -0.1, 0.05, 0.1, -0.2};
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    BaselinePoint point[N];
    double time_s[BASELINES][N];
    for (uint32_t i = 0; i < N; i++) {
        point[i] =
            (BaselinePoint){.kind = g_intern_string(i % 2 ? "a" : "b"), .term = {1}};
        for (uint32_t j = 1; j < BASELINE_TERMS; j++)
            point[i].term[j] = g_rand_double_range(random, 0, 3);
        point[i].term[1] += 30;
        const double rate = i % 2 ? 29 : 31; /* of the kind */
        time_s[BASELINE_MFU][i] = exp(point[i].term[1] - rate);
        time_s[BASELINE_BUBBLE][i] = exp(point[i].term[1] + point[i].term[2] - rate);
        time_s[BASELINE_RIDGE][i] = 0;
        for (uint32_t j = 0; j < BASELINE_TERMS; j++)
            time_s[BASELINE_RIDGE][i] += weight[j] * point[i].term[j];
        time_s[BASELINE_RIDGE][i] = exp(time_s[BASELINE_RIDGE][i]);
    }
    for (Baseline b = 0; b < BASELINES; b++) {
        g_auto(BaselineFit) fit = {0};
        baseline_fit(point, time_s[b], N / 2, &fit);
        for (uint32_t i = N / 2; i < N; i++)
            assert_close(baseline_predict(&fit, b, &point[i]), time_s[b][i],
                         b == BASELINE_RIDGE ? 0.05 : 1e-9);
    }
}

/* Today's models: nine rows of ten are strategies of `manual`, those of frameworks that overlap
 * by `flow`. */
static void test_modern(void **state)
{
    (void)state;
    const char *folder = test_shared("measured");
    if (!folder)
        skip();
    g_autoptr(GError) error = NULL;
    g_autoptr(TrialSet) set = trials_read("modern", folder, &error);
    assert_no_error(error);
    uint32_t flow = 0, experts = 0, sequences = 0;
    for (uint32_t i = 0; i < set->trial->len; i++) {
        const Trial *t = &g_array_index(set->trial, Trial, i);
        flow += strcmp(trial_fidelity(t), "flow") == 0;
        experts += strstr(t->options, ",ep=") != NULL;
        sequences += strstr(t->options, ",cp=") != NULL;
    }
    assert_int_equal(set->trial->len + set->n_unable, 456);
    assert_true(set->trial->len * 10 >= 456 * 9);
    assert_true(flow > 0 && flow < set->trial->len && experts > 0 && sequences > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recovers),  cmocka_unit_test(test_record),
        cmocka_unit_test(test_refusals),  cmocka_unit_test(test_planners),
        cmocka_unit_test(test_sealed),    cmocka_unit_test(test_traces),
        cmocka_unit_test(test_common),    cmocka_unit_test(test_modern),
        cmocka_unit_test(test_baselines), cmocka_unit_test(test_handover),
        cmocka_unit_test(test_starts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
