/* The joint search on machines whose kinds have too many combinations, so that it takes the kinds
 * in an order. */
#include "tests/support/made_plan.h"

/* Five kinds of eight machines of two GPUs each. */
static Cluster *five_kinds(void)
{
    static const char *const device[] = {"h100", "a100-80g", "a100-40g", "v100-32g",
                                         "t4"};
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new("machines:\n");
    for (uint32_t k = 0; k < G_N_ELEMENTS(device); k++)
        g_string_append_printf(
            text, "  - {device: %s, gpus: 2, count: 8, inner: pcie4, nic: eth-100}\n",
            device[k]);
    Cluster *cluster = cluster_parse("five", text->str, text->len, &error);
    assert_no_error(error);
    return cluster;
}

static Plan *plan_by(const char *planner, const char *model, const ClusterView *view,
                     uint32_t microbatches)
{
    g_autoptr(GError) error = NULL;
    PlannerOptions options;
    planner_options_init(&options);
    options.strategy.microbatches = microbatches;
    Plan *plan = planner_plan(planner_find(planner, NULL), model, "five", view, &options,
                              NULL, &error);
    assert_no_error(error);
    return plan;
}

static void test_kinds_in_order(void **state)
{
    (void)state;
    static const char *const model =
        "gpt2:layers=12,hidden=1024,heads=16,ffn=4096,seq=512,vocab=8192,global_batch=64,"
        "precision=mixed";
    g_autoptr(Cluster) cluster = five_kinds();
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Plan) plan = plan_by("joint", model, view, 1);
    assert_true(plan->feasible);
    assert_true(plan->lower_bound_s > 0);
    assert_at_most(plan->lower_bound_s, plan->iteration_time_s);
    for (uint32_t m = 8; m <= 64; m *= 2) {
        g_autoptr(Plan) asked = plan_by("joint", model, view, m);
        assert_at_most(plan->iteration_time_s, asked->iteration_time_s * 1.05);
        assert_at_most(plan->lower_bound_s, asked->iteration_time_s);
    }
    g_autoptr(Plan) amp = plan_by("amp", model, view, 1);
    assert_at_most(plan->lower_bound_s, amp->iteration_time_s);
    assert_at_most(plan->iteration_time_s, amp->iteration_time_s);
}

/* On many kinds, schedules that need a number of stages are tried with numbers near the best one:
 * 0.2775 s, where the best found without them takes 0.2834 s. */
static void test_near_numbers_of_stages(void **state)
{
    (void)state;
    static const struct {
        const char *device, *nic;
        uint32_t count;
    } KIND[] = {{"a100-40g", "eth-100", 8}, {"l4", "ib-hdr", 8},
                {"t4", "eth-100", 16},      {"h100", "eth-25", 16},
                {"a100-80g", "eth-25", 8},  {"v100-32g", "eth-100", 8}};
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new("machines:\n");
    for (uint32_t k = 0; k < G_N_ELEMENTS(KIND); k++)
        g_string_append_printf(
            text, "  - {device: %s, gpus: 4, count: %u, inner: pcie4, nic: %s}\n",
            KIND[k].device, KIND[k].count, KIND[k].nic);
    g_autoptr(Cluster) cluster = cluster_parse("five", text->str, text->len, &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Plan) plan =
        plan_by("joint",
                "gpt2:layers=48,hidden=1024,heads=16,ffn=4096,seq=512,vocab=8192,"
                "global_batch=1024,precision=mixed",
                view, 1);
    assert_at_most(plan->iteration_time_s, 0.280);
}

/* A search with more work also makes what one with less work finds: where memory is tight, programs
 * that do not fit keep none that fit from being made. The second case is a long one. */
static void test_more_work_is_never_worse(void **state)
{
    static const char *const CASE[][2] = {
        {"gpt2:layers=40,hidden=2048,heads=16,ffn=8192,seq=2048,global_batch=64,"
         "precision=mixed",
         "2x4xh20@ib-ndr+2x4xv100-16g@eth-25+1x8xrtx-4090@ib-ndr"},
        {"llama:layers=80,hidden=8192,heads=64,kv_heads=8,ffn=28672,vocab=128256,seq="
         "8192,"
         "global_batch=512,precision=bf16",
         "4x8xh100-sxm@8xib-ndr+2x8xh20"},
    };
    static const char *const WORK[][3] = {{"work=1", "work=3", "work=10"},
                                          {"work=10", "work=100", "work=400"}};
    (void)state;
    for (uint32_t c = 0; c < (g_getenv("KILTER_ROUNDS") ? 2 : 1); c++) {
        double least_s = INFINITY;
        for (uint32_t w = 0; w < G_N_ELEMENTS(WORK[c]); w++) {
            g_auto(Made) made = made_plan("joint", CASE[c][0], CASE[c][1], WORK[c][w]);
            assert_at_most(made.plan->iteration_time_s, least_s);
            least_s = made.plan->iteration_time_s;
        }
    }
}

/* Many equal GPUs: numbers of microbatches that wait little come first, with coarse groups, before
 * the work is spent (4.67 s; of GPT-3 175B on 1,024 99.7 s in place of 26.3), and
 * of counted runs the cheap ones (4.44 s). */
static void test_many_equal(void **state)
{
    (void)state;
    g_auto(Made) made =
        made_plan("joint", "Meta-Llama-3.1-70B:precision=bf16,global_batch=512",
                  "64x8xh100-sxm@8xib-ndr", "work=15");
    assert_at_most(made.plan->iteration_time_s, 4.4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds_in_order),
        cmocka_unit_test(test_near_numbers_of_stages),
        cmocka_unit_test(test_more_work_is_never_worse),
        cmocka_unit_test(test_many_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
