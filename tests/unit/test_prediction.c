/* The section of a cluster's file about its fit: reading, writing, intervals, and plans outside of
 * the fitted range. */
#include "data/data.h"
#include "experiments/calibration/prediction.h"
#include "tests/test.h"

#define HEAD                                                                 \
    "name: c\ndevice_types: [{name: t4, rate: 1 TFLOP/s, memory: 16 GiB}]\n" \
    "machines: [{type: t4, gpus: 2, inner: {latency: 1 us, bandwidth: 1 GB/s}}]\n"
#define RANGES                                                                         \
    "  tp: {least: 1, most: 4}\n  pp: {least: 1, most: 2}\n  tp_pp: {least: 1, most: " \
    "4}\n"                                                                             \
    "  ranks: {least: 2, most: 8}\n  width: {least: 512, most: 2048}\n"                \
    "  sequence: {least: 128, most: 1024}\n"
#define FIT "fit:\n  fidelity: stage\n  planner: manual\n" RANGES

static Cluster *parse(const char *text, GError **error)
{
    return cluster_parse("c.yaml", text, strlen(text), error);
}

static void test_file(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster =
        parse(HEAD FIT "  errors: [t4 0.02, t4 -0.1, a100+t4 1e-3]\n", &error);
    assert_no_error(error);
    const Fitted *fitted = cluster->fitted;
    assert_int_equal(fitted->n_errors, 3);
    assert_string_equal(fitted->error[2].types, "a100+t4");
    assert_true(fitted->error[1].error == -0.1 && fitted->most[FITTED_WIDTH] == 2048);
    g_autofree char *text = cluster_write(cluster);
    g_autoptr(Cluster) again = parse(text, &error);
    assert_no_error(error);
    g_autofree char *one = cluster_canonical(cluster), *two = cluster_canonical(again);
    assert_string_equal(one, two);
    assert_non_null(strstr(one, "a100+t4 0.001"));
}

static void refuses(const char *fit, const char *expected)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strconcat(HEAD, fit, NULL);
    assert_null(parse(text, &error));
    assert_error(error, KILTER_ERROR_INPUT, expected);
}

static void test_bad_files(void **state)
{
    (void)state;
    refuses(FIT "  errors: [t4]\n",
            "fit.errors[0]: expected device types and log(measured / "
            "predicted), as 't4 0.03', got 't4'");
    refuses(FIT "  errors: [t4 0.1, t4 nan]\n", "fit.errors[1]");
    refuses(FIT "  errors: [t4 1e9]\n", "fit.errors[0]");
    refuses(FIT, "errors");
    refuses("fit:\n  fidelity: stage\n  planner: manual\n  errors: [t4 0]\n", "tp");
    refuses("fit:\n  fidelity: stage\n  planner: manual\n  tp: {least: -1, most: 2}\n",
            "c.yaml");
}

static FittedPoint inside(void)
{
    return (FittedPoint){.fidelity = "stage",
                         .planner = "manual",
                         .types = "t4",
                         .at = {[FITTED_TP] = 2,
                                [FITTED_PP] = 2,
                                [FITTED_SHARED] = 4,
                                [FITTED_RANKS] = 8,
                                [FITTED_WIDTH] = 1024,
                                [FITTED_SEQUENCE] = 128}};
}

static void outside(const Fitted *fitted, const FittedPoint *point, const char *expected)
{
    g_autoptr(GPtrArray) list = fitted_outside(fitted, point);
    assert_int_equal(list->len, 1);
    assert_string_equal(list->pdata[0], expected);
}

static void test_outside(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster =
        parse(HEAD FIT "  errors: [t4 0.02, a100+t4 -0.1]\n", &error);
    assert_no_error(error);
    FittedPoint point = inside();
    g_autoptr(GPtrArray) none = fitted_outside(cluster->fitted, &point);
    assert_int_equal(none->len, 0);
    point.at[FITTED_SHARED] = 8;
    outside(cluster->fitted, &point, "8 tp x pp (1 to 4)");
    point = inside();
    point.types = "a100+h100";
    outside(cluster->fitted, &point, "device type h100");
    point = inside();
    point.fidelity = "analytic";
    outside(cluster->fitted, &point, "fidelity analytic (stage was fitted)");
    point = inside();
    point.software = "pytorch"; /* the file does not say by which software */
    g_autoptr(GPtrArray) unsaid = fitted_outside(cluster->fitted, &point);
    assert_int_equal(unsaid->len, 0);
    g_autoptr(Cluster) said =
        parse(HEAD FIT "  software: nemo+megatron\n  errors: [t4 0.02, a100+t4 -0.1]\n",
              &error);
    assert_no_error(error);
    outside(said->fitted, &point, "software pytorch (nemo+megatron was fitted)");
    g_autofree char *text = cluster_write(said);
    g_autoptr(Cluster) again = cluster_parse("again", text, strlen(text), &error);
    assert_no_error(error);
    point.software = "megatron";
    g_autoptr(GPtrArray) fitting = fitted_outside(again->fitted, &point);
    assert_int_equal(fitting->len, 0);
    assert_string_equal(again->fitted->software, "nemo+megatron");
    point.planner = "hap";
    outside(cluster->fitted, &point, "planner hap (manual was fitted)");
    point = inside();
    point.at[FITTED_WIDTH] = 4096;
    outside(cluster->fitted, &point, "4096 width of the model (512 to 2048)");
}

/* Errors of a known distribution: normal with 8 %, and 5 % of outliers four times as large. */
static double draw(GRand *rand)
{
    double sum = -6;
    for (uint32_t i = 0; i < 12; i++)
        sum += g_rand_double(rand);
    return (g_rand_double(rand) < 0.05 ? 0.32 : 0.08) * sum;
}

/* Intervals from 40 errors each contain the next error with the requested probability. */
static void test_coverage(void **state)
{
    (void)state;
    enum { ERRORS = 40, TIMES = 4000 };
    const double coverage[] = {0.5, 0.9};
    GRand *rand = g_rand_new_with_seed(3);
    char types[] = "t4";
    FittedError error[ERRORS];
    Fitted fitted = {.n_errors = ERRORS, .error = error};
    for (uint32_t c = 0; c < G_N_ELEMENTS(coverage); c++) {
        uint32_t hits = 0;
        for (uint32_t k = 0; k < TIMES; k++) {
            double factor;
            for (uint32_t i = 0; i < ERRORS; i++)
                error[i] = (FittedError){types, draw(rand)};
            assert_true(fitted_interval(&fitted, "t4", coverage[c], &factor));
            hits += fabs(draw(rand)) <= log(factor);
        }
        assert_close((double)hits / TIMES, coverage[c], 0.04);
    }
    g_rand_free(rand);
}

static void test_few(void **state)
{
    (void)state;
    char one[] = "t4", other[] = "a100";
    FittedError error[28];
    Fitted fitted = {.n_errors = 8, .error = error};
    double factor;
    for (uint32_t i = 0; i < 28; i++)
        error[i] = (FittedError){i < 8 ? one : other, i < 8 ? 0.3 : -0.01};
    assert_false(fitted_interval(&fitted, "t4", 0.9, &factor)); /* nine are needed */
    assert_true(fitted_interval(&fitted, "t4", 0.5, &factor));
    assert_close(factor, exp(0.3), 1e-12);
    fitted.n_errors = 28;
    assert_true(fitted_interval(&fitted, "a100", 0.9, &factor)); /* by its own twenty */
    assert_close(factor, exp(0.01), 1e-12);
    assert_true(fitted_interval(&fitted, "t4", 0.9, &factor)); /* by all */
    assert_close(factor, exp(0.3), 1e-12);
}

/* Of plans on machines of other types all errors count, and equal times are as likely either way;
 * on a cluster that was not fitted there is no probability. */
static void test_faster(void **state)
{
    (void)state;
    static const char TEXT[] =
        "machines: [{device: t4, gpus: 1, inner: pcie3, nic: eth-100}, "
        "{device: a100-40g, gpus: 1, inner: pcie3, nic: eth-100}]\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) both = cluster_parse("both", TEXT, strlen(TEXT), &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(both, GRANULARITY_GPU);
    json_t *none = prediction_faster_json(view, 1, view, 2);
    assert_true(json_is_null(none));
    json_decref(none);
    char types[] = "t4";
    FittedError list[12];
    Fitted fitted = {.n_errors = 12, .error = list};
    for (uint32_t i = 0; i < 12; i++)
        list[i] = (FittedError){types, 0.02 * i};
    both->fitted = &fitted;
    double ends[2];
    assert_true(
        prediction_interval(view, 0.9, 2, ends)); /* the largest of twelve errors */
    assert_close(ends[0], 2 / exp(0.22), 1e-12);
    assert_close(ends[1], 2 * exp(0.22), 1e-12);
    const double seconds[] = {1 / exp(0.5), 1, exp(0.05), exp(0.5)};
    double before = 1;
    for (uint32_t i = 0; i < G_N_ELEMENTS(seconds); i++) {
        json_t *p = prediction_faster_json(view, seconds[i], view, 1);
        assert_at_most(json_real_value(p), before);
        before = json_real_value(p);
        if (i == 1)
            assert_close(before, 0.5, 1e-12);
        json_decref(p);
    }
    both->fitted = NULL;
    assert_true(before == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),    cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_outside), cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_few),     cmocka_unit_test(test_faster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
