/* kilter verify as users call it: its output and its refusals. */
#include "tests/support/program_json.h"

static void test_right_plans(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    json_t *root = program_json(
        sandbox, "verify bert-moe:layers=2 hap-8 -p deepspeed --shapes 2 --json");
    assert_true(json_is_true(json_object_get(root, "right")));
    assert_int_equal(json_integer_value(json_object_get(root, "devices")), 8);
    assert_at_most(json_real_value(json_object_get(root, "error")), 1e-10);
    assert_true(json_is_null(json_object_get(root, "wrong_tensor")));
    json_decref(root);
    program_runs(sandbox, "plan bert-base:layers=1 hap-8 -p dp-ev -o plan.json -q");
    root = program_json(sandbox, "verify plan.json --json");
    assert_true(json_is_true(json_object_get(root, "right")));
    json_decref(root);
}

/* Of many microbatches, whose middle repeats itself, few run under every schedule. */
static void test_many_microbatches(void **state)
{
    (void)state;
    static const char *const SCHEDULE[] = {"gpipe", "1f1b", "interleaved", "zb-h1",
                                           "zb-v"};
    g_autoptr(Sandbox) sandbox = sandbox_new();
    uint32_t spared = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(SCHEDULE); i++) {
        g_autofree char *command = g_strdup_printf(
            "verify gpt2:layers=8,hidden=16,heads=4,ffn=16,seq=8,vocab=16,"
            "global_batch=128,dropout=0 1x4xv100-16g -p manual --set pp=2 --set dp=2 "
            "--set micro_batch=1 --set schedule=%s --json",
            SCHEDULE[i]);
        json_t *root = program_json(sandbox, command);
        const int64_t all = json_integer_value(json_object_get(root, "microbatches")),
                      left = json_integer_value(
                          json_object_get(root, "microbatches_left_out"));
        assert_true(json_is_true(json_object_get(root, "right")));
        assert_int_equal(all, 64);
        assert_true(left >= 0 && left < all);
        spared += left > 32;
        json_decref(root);
    }
    assert_true(spared >= 3);
}

/* A token chooses two experts; without a capacity none is dropped, however uneven the choice. */
static void test_routing(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    for (uint32_t full = 0; full < 2; full++) {
        g_autofree char *command = g_strdup_printf(
            "verify mixtral:layers=2,hidden=16,heads=4,kv_heads=2,ffn=24,seq=16,vocab=24,"
            "global_batch=16,experts=4,capacity_factor=%u hap-8 -p manual --granularity "
            "gpu --set ep=4 --json",
            full);
        json_t *root = program_json(sandbox, command);
        const int64_t slots = json_integer_value(json_object_get(root, "expert_slots")),
                      most =
                          json_integer_value(json_object_get(root, "expert_tokens_most")),
                      fewest = json_integer_value(
                          json_object_get(root, "expert_tokens_fewest"));
        assert_true(json_is_true(json_object_get(root, "right")) && fewest < most);
        assert_int_equal(full, slots < most);
        assert_int_equal(full,
                         json_integer_value(json_object_get(root, "expert_dropped")) > 0);
        json_decref(root);
    }
}

static void test_the_theory_of_a_model(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    json_t *root =
        program_json(sandbox, "verify --theory vit:layers=1 --shapes 2 --json");
    assert_true(json_is_true(json_object_get(root, "right")));
    assert_at_most(100, json_integer_value(json_object_get(root, "rules")));
    json_decref(root);
    /* A model alone means its theory. */
    g_auto(Ran) ran = program_run_good(sandbox, "verify vit:layers=1");
    assert_non_null(strstr(ran.out, "rules"));
}

static void test_refusals(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    program_refuses(sandbox, "verify", 2, "expected PLAN.json");
    program_refuses(sandbox, "verify nothing.json", 2, "nothing.json");
    program_refuses(sandbox, "verify --theory vit hap-8", 2, "--theory");
    program_refuses(sandbox, "verify --theory nothing", 2, "nothing");
    program_refuses(sandbox, "verify vit hap-8 --planner nothing", 2, "unknown planner");
    program_refuses(sandbox, "verify vit --shapes=-1", 2, "--shapes");
    program_refuses(sandbox, "verify vit hap-8 --backend gpu", 2, "reference or cuda");
    program_refuses(sandbox, "verify vit hap-8 --virtual-ranks", 2, "--virtual-ranks");
}

/* A plan that lost an all-reduce. */
static void test_damaged_plan(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    program_runs(sandbox, "plan vit:layers=1 hap-8 -p dp-ev -o plan.json -q");
    g_autofree char *text = sandbox_read(sandbox, "plan.json");
    g_autoptr(GRegex) regex = g_regex_new(
        "\\[\\s*\"all_reduce\",\\s*\"head\\.weight\\.grad\"[^\\]]*\\],", 0, 0, NULL);
    g_autofree char *damaged = g_regex_replace(regex, text, -1, 0, "", 0, NULL);
    assert_string_not_equal(damaged, text);
    sandbox_write(sandbox, "damaged.json", damaged);
    program_refuses(sandbox, "verify damaged.json", 2, "head.weight");
    program_refuses(sandbox, "verify damaged.json -p hap", 2, "is a plan already");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_plans), cmocka_unit_test(test_many_microbatches),
        cmocka_unit_test(test_routing),     cmocka_unit_test(test_the_theory_of_a_model),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_damaged_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
