/* Calibration: known numbers are recovered from synthetic measurements, breakpoints are found, and
 * real measurements leave small residuals. */
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <stdlib.h>

#include "experiments/calibration/calibrate.h"
#include "experiments/calibration/place.h"
#include "experiments/cli/measured_report.h"
#include "sim/sim.h"
#include "tests/support/rows.h"

/* --- statistics --- */

static void test_agreement(void **state)
{
    (void)state;
    const double measured[] = {1, 2, 4, 8}, predicted[] = {1.1, 1.8, 4, 10};
    const Agreement a = statistics_agreement(predicted, measured, 4);
    assert_close(a.mape, (0.1 + 0.1 + 0 + 0.25) / 4, 1e-12);
    assert_close(a.bias, (0.1 - 0.1 + 0.25) / 4, 1e-12);
    assert_close(a.worst, 0.25, 1e-12);
    assert_close(a.spearman, 1, 1e-12);
    assert_at_most(0.98, a.pearson);
    const double reversed[] = {8, 4, 4, 1};
    /* Ranks 4, 2.5, 2.5, 1 against 1, 2, 3, 4. */
    assert_close(statistics_agreement(reversed, measured, 4).spearman,
                 -0.9486832980505138, 1e-12);
    assert_true(isnan(statistics_agreement(predicted, measured, 1).pearson));
    assert_true(isnan(statistics_agreement((double[]){1, 1}, measured, 2).spearman));
    assert_close(statistics_regret((double[]){3, 1, 2}, (double[]){1, 1.5, 2}, 3), 0.5,
                 1e-12);
    assert_true(statistics_regret(measured, measured, 4) == 0);
}

/* --- fits --- */

/* The solution x >= 0 has the property of its definition: no step along an axis improves it. */
static void test_nnls_is_optimal(void **state)
{
    (void)state;
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    uint32_t bounded = 0;
    for (uint32_t trial = 0; trial < 200; trial++) {
        enum { N = 12, K = 3 };
        double a[N * K], y[N], weight[N], x[K];
        for (uint32_t i = 0; i < N; i++) {
            for (uint32_t j = 0; j < K; j++)
                a[i * K + j] = gsl_ran_gaussian(random, 1);
            y[i] = gsl_ran_gaussian(random, 1);
            weight[i] = gsl_rng_uniform_pos(random);
        }
        fit_nnls(&(FitData){N, K, a, y}, weight, x);
        for (uint32_t j = 0; j < K; j++) {
            /* Karush-Kuhn-Tucker: the gradient is 0 where x > 0, and not negative where x is 0. */
            double gradient = 0;
            for (uint32_t i = 0; i < N; i++) {
                double residual = -y[i];
                for (uint32_t l = 0; l < K; l++)
                    residual += a[i * K + l] * x[l];
                gradient += weight[i] * residual * a[i * K + j];
            }
            assert_true(x[j] >= 0);
            assert_at_most(-1e-9, gradient);
            assert_at_most(x[j] > 0 ? fabs(gradient) : 0, 1e-9);
            bounded += x[j] == 0;
        }
    }
    assert_true(bounded > 50); /* otherwise the bound was not tested */
    gsl_rng_free(random);
}

/* One op in a hundred and one message in twenty took three times as long. */
static double disturbed(gsl_rng *random, double seconds, double outliers)
{
    const double factor = exp(gsl_ran_gaussian(random, 0.02));
    return seconds * factor * (gsl_rng_uniform(random) < outliers ? 3 : 1);
}

static void add_op(GArray *list, gsl_rng *random, OpKind kind, double overhead_s,
                   double rate, double bandwidth)
{
    for (uint32_t i = 0; i < 60; i++) {
        Measurement m = {.device = g_strdup("cpu"),
                         .shape = g_strdup(""),
                         .op = kind,
                         .collective = COLLECTIVES,
                         .ranks = 2,
                         .repeats = 1,
                         .share = 0.5};
        m.bytes = 1e3 * pow(1e4, gsl_rng_uniform(random));
        m.flops = m.bytes * pow(1e3, gsl_rng_uniform(random));
        m.median_s =
            disturbed(random, overhead_s + m.flops / rate + m.bytes / bandwidth, 0.05);
        m.low_s = m.high_s = m.median_s;
        g_array_append_val(list, m);
    }
}

static const double BREAK = 65536;

/* Seconds of a collective of the made-up network: a line below and one above BREAK. */
static double network_s(Collective kind, double bytes, double share)
{
    ClusterView view = {.n_devices = 2};
    view.collective[kind] =
        bytes <= BREAK ? (LinkCost){5e-6, 1e9} : (LinkCost){200e-6, 4e9};
    return sim_collective_s(&view, kind, bytes, share, share);
}

static void add_collectives(GArray *list, gsl_rng *random)
{
    static const double share[] = {0.5, 0.75, 0.9};
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        for (double bytes = 1024; bytes < 3e7; bytes *= 2)
            for (uint32_t s = 0; s < G_N_ELEMENTS(share); s++) {
                Measurement m = {.device = g_strdup("cpu"),
                                 .shape = g_strdup(""),
                                 .op = OP_KINDS,
                                 .collective = (Collective)kind,
                                 .ranks = 2,
                                 .repeats = 1,
                                 .share = share[s],
                                 .bytes = bytes};
                m.median_s =
                    disturbed(random, network_s((Collective)kind, bytes, share[s]), 0.05);
                m.low_s = m.high_s = m.median_s;
                g_array_append_val(list, m);
            }
}

static const CalibrateOptions OPTIONS = {
    .name = "made-up", .source = "a test", .memory_bytes = 1 << 30, .seed = 1};

static const CalibrationFit *fit_of(const Calibration *c, OpKind op, Collective kind)
{
    for (uint32_t i = 0; i < c->n_fits; i++)
        if (c->fit[i].op == op && c->fit[i].collective == kind)
            return &c->fit[i];
    fail_msg("no such fit");
    return NULL;
}

static void assert_inside(double low, double value, double high)
{
    assert_at_most(low, value);
    assert_at_most(value, high);
}

static void test_recovers(void **state)
{
    (void)state;
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    g_autoptr(GArray) list = measurements_new();
    g_autoptr(GError) error = NULL;
    add_op(list, random, OP_LINEAR, 2e-6, 5e10, 1e10);
    add_op(list, random, OP_RELU, 1e-6, INFINITY, 4e9);
    add_collectives(list, random);
    g_autoptr(Calibration) c = calibrate(list, &OPTIONS, &error);
    assert_no_error(error);
    const CalibrationLine *linear = &fit_of(c, OP_LINEAR, COLLECTIVES)->line;
    assert_close(linear->x[0], 2e-6, 0.1);
    assert_close(linear->x[1], 1 / 5e10, 0.05);
    assert_close(linear->x[2], 1 / 1e10, 0.15);
    assert_inside(linear->low[1], linear->x[1], linear->high[1]);
    assert_close(linear->low[1], 1 / 5e10, 0.05);
    assert_close(linear->high[1], 1 / 5e10, 0.05);
    const OpCost *relu = &c->cluster->type[0].op[OP_RELU];
    assert_close(relu->bandwidth, 4e9, 0.1);
    assert_at_most(1e13, relu->rate);
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
        const CalibrationFit *fit = fit_of(c, OP_KINDS, (Collective)kind);
        assert_true(fit->nearest && fit->curve > 0);
        assert_inside(fit->line.low[1], fit->line.x[1], fit->line.high[1]);
        assert_close(fit->line.x[1], 1 / 4e9, 0.1);
        assert_at_most(fit->agreement.mape,
                       0.25); /* one in twenty took three times as long */
    }
    /* The cluster's file prices as the network does. */
    g_autofree char *text = cluster_write(c->cluster);
    g_autoptr(Cluster) cluster = cluster_parse("made-up", text, strlen(text), &error);
    assert_no_error(error);
    assert_int_equal(cluster->n_machines, 2);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    /* Between two measured sizes nothing says where the break is. */
    for (double bytes = 1500; bytes < 3e7; bytes *= 3)
        if (fabs(log(0.6 * 2 * bytes / BREAK)) > log(2.5))
            assert_close(sim_collective_s(view, COLLECTIVE_ALL_GATHER, bytes, 0.6, 0.6),
                         network_s(COLLECTIVE_ALL_GATHER, bytes, 0.6), 0.1);
    gsl_rng_free(random);
}

static void test_refusals(void **state)
{
    (void)state;
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    const struct {
        bool ops, collectives;
        const char *part;
    } cases[] = {{false, true, "no op was measured"},
                 {true, false, "no all_reduce among 2 ranks was measured"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GArray) list = measurements_new();
        g_autoptr(GError) error = NULL;
        if (cases[i].ops)
            add_op(list, random, OP_LINEAR, 1e-6, 1e10, 1e10);
        if (cases[i].collectives)
            add_collectives(list, random);
        g_autoptr(Calibration) c = calibrate(list, &OPTIONS, &error);
        assert_null(c);
        assert_error(error, KILTER_ERROR_INPUT, cases[i].part);
    }
    g_autoptr(GArray) list = measurements_new();
    g_autoptr(GError) error = NULL;
    add_op(list, random, OP_LINEAR, 1e-6, 1e10, 1e10);
    g_autoptr(Cluster) base = cluster_load("hap-8", NULL);
    CalibrateOptions options = OPTIONS;
    options.base = base;
    g_autoptr(Calibration) c = calibrate(list, &options, &error);
    assert_null(c);
    assert_error(error, KILTER_ERROR_INPUT, "no device type cpu");
    gsl_rng_free(random);
}

/* Messages inside a machine of 8 GPUs beside an all-reduce of all of them: the all-reduce gives the
 * link's line, and each other row says why it has no place. */
static void test_reasons_of_places(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("dgx-h100", &error);
    g_autoptr(Sheets) sheets = sheets_load(&error);
    assert_no_error(error);
    static const struct {
        bool send;
        uint32_t ranks;
        Place place;
        const char *reason;
    } ROW[] = {{false, 8, PLACE_INNER, NULL},
               {true, 8, PLACE_NONE, "all_reduce among the same ranks is used"},
               {true, 2, PLACE_NONE, "8 ranks are more like the cluster's"}};
    g_autoptr(GArray) list = measurements_new();
    for (uint32_t i = 0; i < G_N_ELEMENTS(ROW); i++) {
        const Measurement m = {.device = g_strdup(cluster->type[0].name),
                               .shape = g_strdup(""),
                               .op = OP_KINDS,
                               .collective =
                                   ROW[i].send ? COLLECTIVES : COLLECTIVE_ALL_REDUCE,
                               .send = ROW[i].send,
                               .ranks = ROW[i].ranks,
                               .hosts = 1};
        g_array_append_val(list, m);
    }
    g_autofree Placing *placing = place_measurements(list, cluster, sheets);
    for (uint32_t i = 0; i < G_N_ELEMENTS(ROW); i++) {
        assert_int_equal(placing[i].place, ROW[i].place);
        assert_int_equal(placing[i].nearest, ROW[i].place == PLACE_INNER);
        if (ROW[i].reason)
            assert_string_equal(placing[i].reason, ROW[i].reason);
    }
}

/* --- what became of the rows --- */

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* Of random rows of two tables in two files: a table's rows are used or left out, its place is that
 * of the first one that is used, and its reason that of the first one that is not. */
static void test_report(void **state)
{
    (void)state;
    enum { CASES = 200, ROWS = 3, TABLES = 2 };
    static const char *const REASON[] = {"too small", "too far", NULL};
    static const Place PLACE[] = {PLACE_INNER, PLACE_BETWEEN};
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    for (uint32_t c = 0; c < CASES; c++) {
        double predicted_s[TABLES * ROWS];
        Placing placing[TABLES * ROWS] = {0};
        for (uint32_t i = 0; i < TABLES * ROWS; i++) {
            predicted_s[i] = g_rand_boolean(rand) ? 1e-3 : NAN;
            placing[i].place = PLACE[g_rand_int_range(rand, 0, 2)];
            placing[i].reason = REASON[g_rand_int_range(rand, 0, 3)];
        }
        const Calibration calibration = {.predicted_s = predicted_s, .placing = placing};
        g_autoptr(GArray) tables = measured_tables_new();
        for (uint32_t t = 0; t < TABLES; t++) {
            const MeasuredTable table = {.file = g_strdup_printf("%u.log", t),
                                         .device = g_strdup("gpu"),
                                         .test = g_strdup("all_reduce_perf"),
                                         .rows = ROWS,
                                         .passed = t,
                                         .reason = g_strdup("wrong"),
                                         .first = t * ROWS};
            g_array_append_val(tables, table);
        }
        json_t *files = measured_report_json(tables, &calibration);
        assert_int_equal(json_array_size(files), TABLES);
        for (uint32_t t = 0; t < TABLES; t++) {
            const json_t *file = json_array_get(files, t);
            const json_t *table = json_array_get(json_object_get(file, "tables"), 0);
            uint32_t used = 0;
            const Placing *first = NULL, *left = NULL;
            for (uint32_t i = (t + 1) * ROWS; i-- > t * ROWS;) {
                used += isfinite(predicted_s[i]);
                *(isfinite(predicted_s[i]) ? &first : &left) = &placing[i];
            }
            assert_int_equal(json_integer_value(json_object_get(table, "used")), used);
            assert_int_equal(json_integer_value(json_object_get(table, "left_out")),
                             ROWS + t - used);
            if (first)
                assert_string_equal(text_of(table, "place"), place_name(first->place));
            else
                assert_null(json_object_get(table, "place"));
            assert_string_equal(text_of(table, "reason"),
                                !left          ? "wrong"
                                : left->reason ? left->reason
                                               : "no cost of the cluster takes it");
        }
        json_decref(files);
    }
}

/* --- measured by others --- */

/* The all-reduces to take of a file, of nccl-tests or of vTrain, and the list they go to. */
typedef struct {
    bool nccl;
    const char *ranks;
    GArray *list;
} AllReduces;

static bool take_all_reduce(const Csv *csv, void *data, GError **error)
{
    (void)error;
    const AllReduces *all = data;
    const double bytes = test_number(csv, "size_bytes");
    if (!test_is(csv, all->nccl ? "n_ranks" : "n_gpus", all->ranks) || bytes < 1 ||
        (all->nccl ? !test_is(csv, "collective", "all_reduce_perf")
                   : !test_is(csv, "gpu", "a100")))
        return true;
    const double us = test_number(csv, all->nccl ? "time_us_oop" : "time_us_outplace");
    const uint32_t n = (uint32_t)g_ascii_strtoull(all->ranks, NULL, 10);
    Measurement m = {.device = g_strdup("gpu"),
                     .shape = g_strdup(""),
                     .op = OP_KINDS,
                     .collective = COLLECTIVE_ALL_REDUCE,
                     .ranks = n,
                     .repeats = 1,
                     .share = 1.0 / n,
                     .bytes = bytes,
                     .median_s = us * 1e-6};
    m.low_s = m.high_s = m.median_s;
    g_array_append_val(all->list, m);
    return true;
}

static void check_file(const char *path, bool nccl, const char *ranks, double mape)
{
    g_autoptr(GArray) list = measurements_new();
    g_autoptr(GError) error = NULL;
    test_rows(path, take_all_reduce, &(AllReduces){nccl, ranks, list});
    assert_true(list->len > 10);
    g_autofree char *base_text = g_strdup_printf("star:hosts=%s,bandwidth=10Gb/s", ranks);
    g_autoptr(Cluster) base = cluster_load(base_text, &error);
    assert_no_error(error);
    network_spec_free(base->network);
    base->network = NULL;
    CalibrateOptions options = OPTIONS;
    options.base = base;
    g_autoptr(Calibration) c = calibrate(list, &options, &error);
    assert_no_error(error);
    print_message("%s, %s ranks: %u rows, MAPE %.2f %%, p95 %.2f %%\n", path, ranks,
                  c->fit[0].agreement.n, 100 * c->fit[0].agreement.mape,
                  100 * c->fit[0].agreement.p95);
    assert_at_most(c->fit[0].agreement.mape, mape);
}

static void test_measured(void **state)
{
    (void)state;
    const char *nccl = test_shared("measured/nccl_tests/h100_2x8_efa_allreduce.csv");
    const char *vtrain = test_shared("measured/vtrain/allreduce_nvlink_v100_a100.csv");
    if (!nccl || !vtrain)
        skip();
    check_file(nccl, true, "16", 0.10);
    nccl = test_shared("measured/nccl_tests/h100_single_node.csv");
    check_file(nccl, true, "8", 0.10);
    vtrain = test_shared("measured/vtrain/allreduce_nvlink_v100_a100.csv");
    check_file(vtrain, false, "8", 0.03);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agreement),         cmocka_unit_test(test_nnls_is_optimal),
        cmocka_unit_test(test_recovers),          cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_measured),          cmocka_unit_test(test_report),
        cmocka_unit_test(test_reasons_of_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
