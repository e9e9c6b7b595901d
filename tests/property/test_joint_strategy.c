/* The strategies of joint's plans: `manual` makes the same plan of each, and frameworks take
 * those that they run. */
#include <jansson.h>

#include "tests/support/exported.h"

static json_t *plan_json(const Made *made)
{
    g_autofree char *text = plan_write(made->plan, made->graph);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    return root;
}

/* Compares a plan with that of `manual` by its strategy; false if it has none. */
static bool check_same(const char *model, const char *cluster, const char *set)
{
    static const char *const SAME[] = {"program", "splits", "ratios", "strategy",
                                       "iteration_time_s"};
    g_autoptr(GError) error = NULL;
    g_auto(Made) joint = made_plan("joint", model, cluster, set), manual = {0};
    if (!strategy_lays_out(&joint.plan->strategy))
        return false;
    manual.cluster = cluster_load(cluster, &error);
    manual.view = cluster_view(manual.cluster, GRANULARITY_GPU);
    PlannerOptions options;
    planner_options_init(&options);
    options.strategy = joint.plan->strategy;
    options.bucket_bytes = joint.plan->bucket_bytes;
    if (joint.plan->runtime) /* that of manual's would follow from the strategy */
        planner_options_set(&options, "runtime", joint.plan->runtime, &error);
    assert_no_error(error);
    manual.plan = planner_plan(planner_find("manual", NULL), model, cluster, manual.view,
                               &options, &manual.graph, &error);
    assert_no_error(error);
    json_t *a = plan_json(&joint), *b = plan_json(&manual);
    /* joint counts one iteration, also where the next one could begin before its end */
    const uint32_t last =
        schedule_row((Schedule)joint.plan->strategy.schedule)->successive;
    for (uint32_t i = 0; i < G_N_ELEMENTS(SAME) - last; i++)
        if (!json_equal(json_object_get(a, SAME[i]), json_object_get(b, SAME[i])))
            fail_msg("%s on %s: %s differs", model, cluster, SAME[i]);
    json_decref(a);
    json_decref(b);
    return true;
}

static void test_manual_makes_the_same(void **state)
{
    (void)state;
    static const struct {
        const char *model, *cluster, *set;
    } CASE[] = {
        {"gpt2:layers=8,global_batch=64,precision=mixed", "dgx-h100", ""},
        {"gpt2:layers=8,global_batch=64,precision=mixed", "amp-homogeneous", ""},
        {"gpt2:layers=12,global_batch=64,precision=mixed", "hap-8", ""},
        {"llama:layers=8,hidden=2048,heads=16,ffn=8192,seq=2048,global_batch=128",
         "dgx-a100", ""},
        {"llama:layers=8,hidden=2048,heads=16,ffn=8192,seq=2048,global_batch=256",
         "dgx-a100", ""},
        {"vit:global_batch=256", "dgx-h100", ""},
        {"vit:global_batch=256", "hap-8", ""},
        {"bert-base:global_batch=64", "star:hosts=4,bandwidth=10Gb/s", "microbatches=1"},
        {GPT("8", "global_batch=16"), "star:hosts=4,bandwidth=10Gb/s", ""},
    };
    uint32_t found = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++)
        found += check_same(CASE[i].model, CASE[i].cluster, CASE[i].set);

    assert_true(found >= 3);
}

/* Where optimizer states don't fit GPUs, they lie on hosts, also those of unlike stages, which no
 * strategy lays out; and its time is that of its plan. */
static void test_states_on_hosts(void **state)
{
    (void)state;
#define HOST "host_memory=512GB,host_link=25GB/s,host_bandwidth=200GB/s"
    static const char model[] = "llama-3.1-8b:seq=1024,global_batch=8,precision=bf16",
                      cluster[] =
                          "2xrtx-4090@2xib-hdr," HOST "+2xrtx-3090@2xib-hdr," HOST,
                      set[] = "offload=optimizer";
    g_auto(Made) without = make("joint", model, cluster, "", NULL),
                 unlike = made_plan("joint", model, cluster, set),
                 amp = made_plan("amp", model, cluster, set);
    assert_true(!without.plan || !without.plan->feasible);
    assert_true(unlike.plan->feasible);
    assert_true(unlike.plan->iteration_time_s < .9 * amp.plan->iteration_time_s);
    assert_false(strategy_lays_out(&unlike.plan->strategy));
    assert_string_equal(unlike.plan->strategy.offload, "optimizer");
    assert_true(unlike.plan->lower_bound_s <= unlike.plan->iteration_time_s);
    json_t *json = plan_json(&unlike);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(json, "strategy"), "offload")),
        "optimizer");
    json_decref(json);
    assert_true(check_same("gpt2:layers=8,global_batch=64,precision=mixed",
                           "4xrtx-4090," HOST, set));
}

/* One stage on equal GPUs runs the same under any schedule: it has one that frameworks run. With
 * one microbatch GPipe's was none of them, and with two its order was none. */
static void test_one_stage_is_exported(void **state)
{
    (void)state;
    static const char *const MODEL[] = {"llama-3.2-1b", "llama-3.1-8b"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(MODEL); i++) {
        g_auto(Made) made = made_plan("joint", MODEL[i], "8xh100-sxm", "");
        assert_int_equal(made.plan->strategy.pp, 1);
        g_autoptr(GArray) files = export(&made, "megatron");
        assert_true(files->len > 0);
    }
}

/* Whole machines in another order become node ranks, and GPUs of a machine are named. */
static void test_ranks_are_started(void **state)
{
    (void)state;
    g_auto(Made) turned =
        made_plan("manual", GPT("4", "global_batch=6"), "star:hosts=3,bandwidth=10Gb/s",
                  "pp=3 micro_batch=1 ranks=2;0;1");
    g_autoptr(GArray) files = export(&turned, "megatron");
    const char *third = strstr(file_text(files, 0), "# on host-2\ntorchrun --nnodes=3 "
                                                    "--nproc_per_node=1 --node_rank=0");
    assert_non_null(third);
    assert_non_null(strstr(third, "# on host-0 to host-1, NODE_RANK from 1 to 2\n"));
    g_auto(Made) mixed =
        made_plan("manual", GPT("4", "global_batch=8"),
                  "star:hosts=2,gpus=2,bandwidth=1Gb/s,inner_bandwidth=20GB/s",
                  "pp=2 dp=2 microbatches=2 ranks=1,2;0,3");
    g_autoptr(GArray) pieces = export(&mixed, "megatron");
    const char *text = file_text(pieces, 0);
    assert_non_null(strstr(text, "CUDA_VISIBLE_DEVICES=1 torchrun --nnodes=4 "
                                 "--nproc_per_node=1 --node_rank=0"));
    assert_non_null(strstr(text, "CUDA_VISIBLE_DEVICES=1 torchrun --nnodes=4 "
                                 "--nproc_per_node=1 --node_rank=3"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_manual_makes_the_same),
        cmocka_unit_test(test_states_on_hosts),
        cmocka_unit_test(test_one_stage_is_exported),
        cmocka_unit_test(test_ranks_are_started),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
