/* Words about proofs: a bound names its space of plans wherever it is printed, and an edited plan
 * does not keep the bound of another plan. */
#include <string.h>

#include "tests/support/program_json.h"

#define ON " vit:layers=1,hidden=64,heads=4,ffn=128 hap-a100-p100-4 "

static void test_every_bound_is_over_something(void **state)
{
    (void)state;
    static const struct {
        const char *how, *over; /* NULL: no bound */
    } cases[] = {
        {"-p hap", "programs of one microbatch on all 2 devices, at any ratios"},
        {"-p hap --set pin=head.weight=identity", "that keep the pins"},
        {"-p dp-ev --set certify=0.5", "programs of one microbatch on all 2 devices"},
        {"-p hap --set certify=1e-30", "programs of one microbatch on all 2 devices"},
        {"-p tag --set evaluations=30", "strategies of these op groups"},
        {"-p joint", "pipelines of stages"},
        {"-p auto", "every plan on any of the machines"},
        {"-p dp-ev", NULL},
        {"-p amp", NULL},
    };
    g_autoptr(Sandbox) box = sandbox_new();
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *line = g_strdup_printf("plan" ON "%s --seed 3", cases[i].how);
        g_autofree char *asked = g_strdup_printf("%s --json", line);
        json_t *plan = program_json(box, asked);
        const json_t *bound = json_object_get(plan, "lower_bound_s"),
                     *over = json_object_get(plan, "bound_over");
        assert_int_equal(json_is_number(bound), cases[i].over != NULL);
        assert_int_equal(json_is_string(over), cases[i].over != NULL);
        if (!cases[i].over) {
            json_decref(plan);
            continue;
        }
        assert_non_null(strstr(json_string_value(over), cases[i].over));
        const double s = json_number_value(json_object_get(plan, "iteration_time_s")),
                     least = json_number_value(bound);
        assert_true(least > 0 && least <= s * (1 + 1e-9));
        assert_close(json_number_value(json_object_get(plan, "gap")), s / least - 1,
                     1e-9);
        g_auto(Ran) ran = program_run_good(box, line);
        assert_non_null(strstr(ran.out, "lower bound"));
        assert_non_null(strstr(ran.out, cases[i].over));
        json_decref(plan);
    }
}

/* The planner joint prints bounds over four spaces, each with its words; more freedom, a lower
 * bound. */
static void test_joint_has_four_bounds(void **state)
{
    (void)state;
    static const char *const line =
        "plan --planner hap "
        "gpt2:layers=4,hidden=64,heads=4,ffn=128,seq=16,vocab=64,global_batch=16 "
        "hap-a100-p100-4 --granularity gpu -p joint";
    static const char *const over[] = {"by the computation per device",
                                       "tensor parallelism alone", "under 1f1b"};
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *asked = g_strdup_printf("%s --json", line);
    json_t *plan = program_json(box, asked);
    const json_t *bounds = json_object_get(plan, "bounds");
    const double s = json_number_value(json_object_get(plan, "iteration_time_s")),
                 any = json_number_value(json_object_get(plan, "lower_bound_s"));
    g_auto(Ran) ran = program_run_good(box, line);
    double bound[3];
    assert_int_equal(json_array_size(bounds), 3);
    for (uint32_t i = 0; i < 3; i++) {
        const json_t *one = json_array_get(bounds, i);
        const char *words = json_string_value(json_object_get(one, "over"));
        bound[i] = json_number_value(json_object_get(one, "bound_s"));
        assert_non_null(strstr(words, over[i]));
        assert_non_null(strstr(ran.out, words));
        if (s < bound[i] * (1 - 1e-9)) /* the plan is not in that space */
            assert_true(json_is_null(json_object_get(one, "gap")));
        else
            assert_close(json_number_value(json_object_get(one, "gap")), s / bound[i] - 1,
                         1e-9);
    }
    assert_true(bound[0] > 0 && bound[0] <= any * (1 + 1e-9) &&
                any <= bound[1] * (1 + 1e-9) && bound[1] <= bound[2]);
    json_decref(plan);
}

/* A bound is of the costs that it was proved for: on a faster network, or slower devices, the plan of
 * a file has none. */
static void test_bounds_of_other_costs(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool holds;
    } cases[] = {{"plan p.json --json", true},
                 {"simulate p.json -f stage --json", true},
                 {"plan p.json --scale network=2 --json", false},
                 {"plan p.json --slowdown 0=2 --json", false},
                 {"simulate p.json --scale network=2 -f stage --json", false}};
    g_autoptr(Sandbox) box = sandbox_new();
    g_auto(Ran) made = program_run_good(
        box, "plan vit:layers=1,hidden=64,heads=4,ffn=128 hap-8 -p hap -q -o p.json");
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        json_t *plan = program_json(box, cases[i].line);
        assert_true(json_is_number(json_object_get(plan, "lower_bound_s")) ==
                    cases[i].holds);
        json_decref(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_bound_is_over_something),
        cmocka_unit_test(test_joint_has_four_bounds),
        cmocka_unit_test(test_bounds_of_other_costs),
    };
    return cmocka_run_group_tests_name("bounds", tests, NULL, NULL);
}
