/* Plans of the planners of pipelines: the reference backend proves each one, the simulations accept
 * it, and the program has the strategy that was asked for. */
#include "tests/conformance/verify_cases.h"
#include "tests/support/made_plan.h"

static const char MODEL[] =
    "gpt2:global_batch=32,layers=6,hidden=64,heads=4,ffn=128,seq=32,vocab=96";

static void prove(const char *name, const Made *made)
{
    GError *error = NULL;
    g_autoptr(Graph) small = NULL;
    g_autoptr(Plan) shrunk =
        exec_shrink_plan(made->plan, made->graph, NULL, &small, &error);
    assert_no_error(error);
    check_right(name, shrunk, small);
}

static const struct {
    const char *planner, *cluster, *set;
} CASES[] = {
    {"amp", "amp-homogeneous", ""},
    {"amp", "amp-het-cluster", "pp=4 dp=2 tmp=2 mbs=4"},
    {"amp", "amp-homogeneous", "pp=4 dp=4 mbs=2 schedule=gpipe"},
    {"amp", "amp-homogeneous", "pp=2 dp=8 mbs=1 schedule=interleaved chunks=3"},
    {"amp", "amp-het-model", "cost=faithful mbs=4"},
    {"amp-sa", "amp-het-cluster", "pp=2 mbs=8"},
    {"megatron", "amp-homogeneous", "pp=4 tmp=4 balance=parameters"},
    {"amp-random", "amp-het-cluster", "rank=3"},
};

static void test_plans_are_right(void **state)
{
    (void)state;
    for (guint i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *name = g_strdup_printf("%s on %s with %s", CASES[i].planner,
                                                CASES[i].cluster, CASES[i].set);
        g_auto(Made) made =
            make(CASES[i].planner, MODEL, CASES[i].cluster, CASES[i].set, &error);
        if (!made.plan)
            fail_msg("%s: %s", name, error->message);
        assert_true(made.plan->feasible);
        prove(name, &made);
        for (const char *const *f = (const char *const[]){"stage", "flow", NULL}; *f;
             f++) {
            g_autoptr(SimReport) report =
                sim_evaluate(made.plan, made.graph, made.view, *f, &error);
            assert_no_error(error);
            assert_true(report->iteration_time_s > 0 &&
                        isfinite(report->iteration_time_s));
        }
        g_autofree char *text = plan_write(made.plan, made.graph);
        assert_non_null(text);
    }
}

/* pp groups of dp replicas of tmp devices; gas microbatches. */
static void test_program_has_the_degrees(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_auto(Made) made =
        make("amp", MODEL, "amp-het-cluster", "pp=4 dp=2 tmp=2 mbs=4", &error);
    assert_no_error(error);
    const Program *program = made.plan->program;
    assert_int_equal(program->n_groups, 4);
    assert_int_equal(program->n_microbatches, 32 / 2 / 4);
    for (uint32_t g = 0; g < program->n_groups; g++) {
        assert_int_equal(program->group[g].n_replicas, 2);
        assert_int_equal(program->group[g].n_devices, 2);
    }
}

/* Stages of equal time without communication: the simulated bubble is Eq. 5's, (pp - 1) of gas + pp
 * - 1 microbatches, under both schedules. */
static void test_bubble(void **state)
{
    (void)state;
    static const char cluster[] =
        "star:hosts=1,gpus=4,rate=1TFLOP/s,memory=64GiB,bandwidth=1e6Gb/s,latency=0us,"
        "inner_bandwidth=1e9Gb/s,inner_latency=0us";
    for (const char *const *s = (const char *const[]){"gpipe", "1f1b", NULL}; *s; s++) {
        double time_s[2];
        for (uint32_t k = 0; k < 2; k++) {
            g_autoptr(GError) error = NULL;
            g_autofree char *set = g_strdup_printf(
                "pp=4 dp=1 mbs=%u balance=layers schedule=%s", k ? 8 : 1, *s);
            g_auto(Made) made = make(
                "megatron",
                "gpt2:global_batch=8,layers=14,hidden=64,heads=4,ffn=256,seq=64,vocab=64",
                cluster, set, &error);
            assert_no_error(error);
            time_s[k] = made.plan->iteration_time_s;
        }
        /* gas = 8 against gas = 1: of the slowest stages' time 8 + 3 eighths against 4 whole
         * microbatches. */
        assert_true(time_s[0] < 0.5 * time_s[1]);
        assert_true(time_s[0] > 0.8 * 11 / 32 * time_s[1]);
    }
}

static void expect_refused(const char *set, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_auto(Made) made = make("amp", MODEL, "amp-homogeneous", set, &error);
    assert_null(made.plan);
    assert_error(error, KILTER_ERROR_INPUT, message);
}

static void test_refusals(void **state)
{
    (void)state;
    expect_refused("pp=3", "expected a product of 16");
    expect_refused("pp=16", "as many as the model has layers, 8");
    expect_refused("dp=16 mbs=3", "a replica's batch, 2");
    expect_refused("pp=4 dp=4 mbs=8 schedule=interleaved", "multiple of 4 micro-batches");
    expect_refused("schedule=zigzag", "expected one of gpipe, 1f1b, interleaved");
    expect_refused("trials=x", "expected an integer");
    expect_refused("profile=/no/such.csv", "/no/such.csv");
}

/* Microbatches that take turns on GPUs of two kinds, with the best ratios for the turns. */
static void test_turns_on_uneven_devices(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"hidup", "bert-switch:layers=2", "ratios=best"},
        {"hidup", "vgg19", "ratios=best"},
        {"hidup", "vit:layers=2", "ratios=best backward=serial"},
        {"gshard", "bert-moe:layers=2", "ratios=best duplex=on"},
        {"hap", "bert-base:layers=2", "duplex=on"}};
    for (uint32_t c = 0; c < G_N_ELEMENTS(cases); c++) {
        GError *error = NULL;
        g_auto(Made) made =
            make(cases[c][0], cases[c][1], "hap-a100-p100-4", cases[c][2], &error);
        assert_no_error(error);
        assert_int_equal(made.plan->program->n_microbatches, 2);
        assert_true(made.plan->ratio[0] > made.plan->ratio[made.plan->n_devices - 1]);
        prove(cases[c][1], &made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns_on_uneven_devices),
        cmocka_unit_test(test_plans_are_right),
        cmocka_unit_test(test_program_has_the_degrees),
        cmocka_unit_test(test_bubble),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
