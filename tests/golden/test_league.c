/* kilter league against the plans themselves. */
#include <jansson.h>
#include <math.h>

#include "tests/support/program_json.h"

static const char *const MODEL[] = {
    "gpt2:layers=2,hidden=32,heads=2,ffn=64,seq=8,vocab=32,global_batch=16",
    "vgg19:width=8,fc=64"};
static const char *const PLANNER[] = {"dp-ev", "dp-cp", "tensor-parallel"};
enum { MODELS = G_N_ELEMENTS(MODEL), PLANNERS = G_N_ELEMENTS(PLANNER) };

static void write_experiment(const Sandbox *box)
{
    g_autofree char *file = g_build_filename(box->folder, "small.yaml", NULL);
    g_autofree char *text = g_strdup_printf(
        "name: small\ngrid:\n  model: [\"%s\", \"%s\"]\n  cluster: [hap-8]\n"
        "  planner: [dp-ev, dp-cp, tensor-parallel]\n",
        MODEL[0], MODEL[1]);
    assert_true(g_file_set_contents(file, text, -1, NULL));
}

static void test_league(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    double time_s[PLANNERS][MODELS], best_s[MODELS];
    write_experiment(box);
    g_auto(Ran) none = program_run(box, "league small.yaml --db small.db");
    assert_int_equal(none.status, 2);
    program_runs(box, "sweep small.yaml --db small.db -q");
    for (uint32_t m = 0; m < MODELS; m++) {
        best_s[m] = INFINITY;
        for (uint32_t p = 0; p < PLANNERS; p++) {
            g_autofree char *line =
                g_strdup_printf("simulate %s hap-8 -p %s --json", MODEL[m], PLANNER[p]);
            json_t *plan = program_json(box, line);
            time_s[p][m] = number(plan, "iteration_time_s");
            best_s[m] = fmin(best_s[m], time_s[p][m]);
            json_decref(plan);
        }
    }
    json_t *root = program_json(box, "league small.yaml --db small.db --json");
    const json_t *rows = json_object_get(root, "planners");
    assert_int_equal(json_array_size(rows), PLANNERS);
    assert_int_equal(json_integer_value(json_object_get(root, "missing")), 0);
    double last = -1;
    uint32_t all_firsts = 0;
    for (size_t i = 0; i < PLANNERS; i++) {
        const json_t *row = json_array_get(rows, i);
        const char *name = json_string_value(json_object_get(row, "planner"));
        uint32_t p = 0;
        while (strcmp(PLANNER[p], name) != 0)
            p++;
        double product = 1, worst = 0;
        uint32_t firsts = 0;
        for (uint32_t m = 0; m < MODELS; m++) {
            product *= time_s[p][m] / best_s[m];
            worst = fmax(worst, time_s[p][m] / best_s[m] - 1);
            firsts += time_s[p][m] <= best_s[m];
        }
        all_firsts += firsts;
        assert_int_equal(json_integer_value(json_object_get(row, "fastest")), firsts);
        assert_close(1 + number(row, "regret"), sqrt(product), 1e-9);
        assert_close(1 + number(row, "worst_regret"), 1 + worst, 1e-9);
        assert_true(number(row, "gap") >= number(row, "regret"));
        assert_true(number(row, "gap") >= last);
        last = number(row, "gap");
    }
    assert_true(all_firsts >= MODELS);
    json_decref(root);
}

/* The reasons for which a planner has no plans stand below it. */
static void test_refusals(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *file = g_build_filename(box->folder, "machines.yaml", NULL);
    g_autofree char *text = g_strdup_printf(
        "name: machines\ngrid:\n  model: [\"%s\", \"%s\"]\n  cluster: [hap-8]\n"
        "  granularity: [machine]\n  planner: [amp, dp-ev]\n",
        MODEL[0], MODEL[1]);
    assert_true(g_file_set_contents(file, text, -1, NULL));
    program_runs(box, "sweep machines.yaml --db machines.db -q");
    json_t *root = program_json(box, "league machines.yaml --db machines.db --json");
    const json_t *rows = json_object_get(root, "planners"),
                 *amp = json_array_get(rows, 1);
    assert_int_equal(
        json_array_size(json_object_get(json_array_get(rows, 0), "refusals")), 0);
    assert_string_equal(json_string_value(json_object_get(amp, "planner")), "amp");
    assert_int_equal(json_integer_value(json_object_get(amp, "plans")), 0);
    const json_t *refusals = json_object_get(amp, "refusals"),
                 *first = json_array_get(refusals, 0);
    assert_int_equal(json_array_size(refusals), 1);
    assert_int_equal(json_integer_value(json_object_get(first, "results")), MODELS);
    const char *reason = json_string_value(json_object_get(first, "reason"));
    assert_non_null(strstr(reason, "--granularity gpu"));
    g_auto(Ran) ran = program_run_good(box, "league machines.yaml --db machines.db");
    g_autofree char *line = g_strdup_printf("2 without a plan: %s\n", reason);
    assert_non_null(strstr(ran.out, line));
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_league),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
