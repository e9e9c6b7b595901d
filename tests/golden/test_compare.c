/* kilter compare and kilter sensitivity: their answers agree with the plans, and with planning
 * again by hand. */
#include <jansson.h>
#include <math.h>

#include "tests/support/program_json.h"

#define MODEL "gpt2:layers=4,hidden=64,heads=4,ffn=128,seq=16,vocab=64,global_batch=32"

static double text_number(const json_t *root, const char *list, size_t i, const char *key)
{
    return number(json_array_get(json_object_get(root, list), i), key);
}

static void test_compare(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    static const char *const made[] = {"plan " MODEL " hap-8 -q -o a.json -p dp-ev",
                                       "plan " MODEL " hap-8 -q -o b.json -p amp"};
    for (uint32_t i = 0; i < 2; i++) {
        program_runs(box, made[i]);
    }
    json_t *root = program_json(box, "compare a.json b.json --json");
    static const char *const simulated[] = {"simulate a.json --json",
                                            "simulate b.json --json"};
    for (uint32_t i = 0; i < 2; i++) {
        json_t *alone = program_json(box, simulated[i]);
        assert_close(text_number(root, "plans", i, "iteration_time_s"),
                     number(alone, "iteration_time_s"), 1e-12);
        json_decref(alone);
        const json_t *plan = json_array_get(json_object_get(root, "plans"), i);
        assert_close(number(plan, "computation_s") +
                         number(plan, "exposed_communication_s") + number(plan, "idle_s"),
                     number(plan, "iteration_time_s"), 1e-9);
    }
    bool planner = false;
    size_t k;
    json_t *value;
    json_array_foreach (json_object_get(root, "differs"), k, value) {
        planner |= strcmp(json_string_value(value), "planner") == 0;
        assert_string_not_equal(json_string_value(value), "model");
    }
    assert_true(planner);
    /* As text, too: a row for each, with one value per plan. */
    static const char *const ROW_OF[] = {"planner", "iteration", "  computation",
                                         "  communication", "memory per GPU"};
    g_auto(Ran) table = program_run_good(box, "compare a.json b.json");
    for (k = 0; k < G_N_ELEMENTS(ROW_OF); k++) {
        g_autofree char *begin = g_strdup_printf("\n  %s ", ROW_OF[k]);
        if (!strstr(table.out, begin))
            fail_msg("no row '%s' in %s", ROW_OF[k], table.out);
    }
    assert_null(strstr(table.out, "-0"));       /* no idle time below 0 */
    assert_null(strstr(table.out, "P(faster")); /* nobody was asked how sure this is */
    assert_non_null(strstr(table.out, "dp-ev"));
    assert_non_null(strstr(table.out, "amp"));
    json_decref(root);
    g_auto(Ran) same = program_run_good(box, "compare a.json a.json");
    assert_non_null(strstr(same.out, "All take the same time."));
    assert_non_null(strstr(same.out, "Different: nothing else"));
    g_auto(Ran) none = program_run(box, "compare a.json nothing.json");
    assert_int_equal(none.status, 2);
    g_auto(Ran) lone = program_run(box, "compare a.json");
    assert_int_equal(lone.status, 2);
}

static const json_t *knob(const json_t *root, const char *what)
{
    size_t i;
    json_t *row;
    json_array_foreach (json_object_get(root, "knobs"), i, row) {
        if (strcmp(json_string_value(json_object_get(row, "what")), what) == 0)
            return row;
    }
    TEST_FAIL_AT(__FILE__, __LINE__, "no knob %s", what);
    return NULL;
}

static void test_sensitivity(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    json_t *root = program_json(box, "sensitivity vgg19 hap-8 -p dp-cp --json");
    static const struct {
        const char *what, *line;
    } again[] = {
        {"network", "plan vgg19 hap-8 -p dp-cp --scale network=2 --json"},
        {"v100.rate", "plan vgg19 hap-8 -p dp-cp --scale v100.rate=2 --json"},
        {"latency", "plan vgg19 hap-8 -p dp-cp --scale latency=0.5 --json"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(again); i++) {
        json_t *plan = program_json(box, again[i].line);
        assert_close(number(knob(root, again[i].what), "replanned_s"),
                     number(plan, "iteration_time_s"), 1e-9);
        json_decref(plan);
    }
    /* The time is a + b / bandwidth: twice the bandwidth saves half of the time that the derivative
     * predicts. */
    const double slope = number(knob(root, "network"), "elasticity");
    const double kept = number(knob(root, "network"), "kept_s"),
                 now = number(root, "iteration_time_s");
    assert_true(slope < 0 && slope > -1);
    assert_close(1 - kept / now, -slope / 2, 0.02);
    assert_true(json_is_null(json_object_get(knob(root, "v100.memory"), "kept_s")));
    json_t *each;
    size_t k;
    json_array_foreach (json_object_get(root, "knobs"), k, each)
        assert_true(json_number_value(json_object_get(each, "gain")) > -1e-9);
    json_decref(root);
    program_runs(box, "plan --planner hap vgg19 hap-8 -q -o a.json");
    g_auto(Ran) kept_only = program_run_good(box, "sensitivity a.json");
    assert_non_null(strstr(kept_only.out, "Largest gain: "));
    assert_non_null(strstr(kept_only.out, "The plan is kept"));
}

/* The text about a pipeline of unlike stages. */
static void test_stages(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    json_t *root = program_json(box, "plan " MODEL " hap-16 -p joint --json");
    const json_t *stages = json_object_get(root, "pipeline");
    size_t i;
    json_t *stage;
    json_int_t layers = 0;
    json_array_foreach ((json_t *)stages, i, stage) {
        layers += json_integer_value(json_object_get(stage, "layers"));
        assert_true(number(stage, "busy_s") > 0);
    }
    assert_true(!json_is_array(stages) || layers == 6); /* embedding, 4 layers, decoder */
    json_decref(root);
    program_runs(box, "plan " MODEL " hap-16 -p amp --set pp=2 -q -o a.json");
    json_t *plan = program_json(box, "simulate a.json --json");
    assert_int_equal(json_array_size(json_object_get(plan, "pipeline")), 2);
    json_decref(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_sensitivity),
        cmocka_unit_test(test_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
