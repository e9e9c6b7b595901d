/* The planner tag compared with TAG's baselines: never slower, and never faster than its own bound;
 * and with options.
 * KILTER_ALL=1: all six models on both clusters. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "synth/planners/planner.h"
#include "tests/support/rounds.h"
#include "tests/test.h"

static const char *const RIVALS[] = {"dp-nccl", "dp-nccl-p", "horovod", "flexflow",
                                     "heterog", "m-topo",    "m-etf",   "m-sct"};
static const char *const MODELS[] = {
    "vgg19:image=224,global_batch=96,classes=1000",
    "tag-bert-small:global_batch=96",
    "tag-transformer:global_batch=480",
    "tag-inceptionv3:global_batch=96",
    "tag-resnet101:global_batch=96",
    "tag-bert-large:global_batch=16",
};
static const char *const CLUSTERS[] = {"tag-testbed", "tag-cloud"};

static Plan *plan_of(const char *planner, const char *model, const ClusterView *view,
                     const char *cluster)
{
    PlannerOptions options;
    g_autoptr(GError) error = NULL;
    planner_options_init(&options);
    Plan *plan = planner_plan(planner_find(planner, NULL), model, cluster, view, &options,
                              NULL, &error);
    assert_no_error(error);
    return plan;
}

static void check_case(const char *model, const char *name)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load(name, &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Plan) tag = plan_of("tag", model, view, name);
    assert_true(tag->feasible);
    assert_at_most(tag->lower_bound_s, tag->iteration_time_s * (1 + 1e-9));
    print_message("%s on %s: tag %.2f ms, bound %.2f ms\n", model, name,
                  1e3 * tag->iteration_time_s, 1e3 * tag->lower_bound_s);
    for (uint32_t r = 0; r < G_N_ELEMENTS(RIVALS); r++) {
        g_autoptr(Plan) rival = plan_of(RIVALS[r], model, view, name);
        if (rival->feasible && rival->iteration_time_s < tag->iteration_time_s)
            fail_msg("%s on %s: tag takes %.9g s, %s %.9g s", model, name,
                     tag->iteration_time_s, RIVALS[r], rival->iteration_time_s);
    }
}

static void test_never_slower(void **state)
{
    (void)state;
    for (uint32_t m = 0; m < test_rounds(1, G_N_ELEMENTS(MODELS)); m++)
        for (uint32_t c = 0; c < test_rounds(1, G_N_ELEMENTS(CLUSTERS)); c++)
            check_case(MODELS[m], CLUSTERS[(m + c) % G_N_ELEMENTS(CLUSTERS)]);
}

/* The time of a plan on fast devices with little memory and slow ones with much, under an
 * option. */
static double tight_s(const char *model, const char *key, const char *value)
{
    static const char text[] =
        "name: tight\ndevice_types:\n"
        "  - {name: fast, rate: 8 TFLOP/s, memory: 1100 MiB, source: made up}\n"
        "  - {name: slow, rate: 4 TFLOP/s, memory: 4 GiB, source: made up}\n"
        "machines:\n"
        "  - {name: a, type: fast, gpus: 2, inner: {latency: 10 us, bandwidth: 10 GB/s}, "
        "source: made up}\n"
        "  - {name: b, type: slow, gpus: 2, inner: {latency: 10 us, bandwidth: 10 GB/s}, "
        "source: made up}\n"
        "collectives:\n"
        "  all_reduce: {latency: 30 us, bandwidth: 8 GB/s}\n"
        "  all_gather: {latency: 30 us, bandwidth: 8 GB/s}\n"
        "  grouped_all_gather: {latency: 30 us, bandwidth: 8 GB/s}\n"
        "  reduce_scatter: {latency: 30 us, bandwidth: 8 GB/s}\n"
        "  grouped_reduce_scatter: {latency: 30 us, bandwidth: 8 GB/s}\n"
        "  all_to_all: {latency: 30 us, bandwidth: 8 GB/s}\n"
        "  source: made up\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_parse("tight", text, strlen(text), &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    PlannerOptions options;
    planner_options_init(&options);
    assert_true(planner_options_set(&options, key, value, &error));
    /* one group: the same shares for everything */
    assert_true(planner_options_set(&options, "groups", "1", &error));
    g_autoptr(Plan) plan = planner_plan(planner_find("tag", NULL), model, "tight", view,
                                        &options, NULL, &error);
    assert_no_error(error);
    assert_true(plan->feasible);
    return plan->iteration_time_s;
}

/* Shares by HAP's linear program use all devices where neither even shares nor those by speed fit
 * the memory of the fast ones. */
static void test_shares_by_program(void **state)
{
    (void)state;
    static const char model[] = "vgg19:image=224,global_batch=64,classes=10,fc=256";
    assert_at_most(tight_s(model, "ratios", "best"),
                   0.8 * tight_s(model, "ratios", "own"));
}

/* Microbatches: devices that work one after the other on the whole batch work at the same time. */
static void test_pipelines(void **state)
{
    (void)state;
    static const char model[] = "tag-bert-large:global_batch=16";
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("tag-testbed", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    double before_s = INFINITY;
    for (uint32_t n = 1; n <= 16; n *= 16) {
        PlannerOptions options;
        g_autofree char *text = g_strdup_printf("%u", n);
        planner_options_init(&options);
        assert_true(planner_options_set(&options, "microbatches", text, &error));
        assert_true(planner_options_set(&options, "evaluations", "100", &error));
        g_autoptr(Plan) plan = planner_plan(planner_find("tag", NULL), model,
                                            "tag-testbed", view, &options, NULL, &error);
        assert_no_error(error);
        assert_true(plan->feasible);
        assert_int_equal(plan->program->n_microbatches, n);
        assert_int_equal(plan->lower_bound_s > 0, n == 1);
        assert_at_most(plan->iteration_time_s, 0.7 * before_s);
        before_s = plan->iteration_time_s;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_never_slower),
                                       cmocka_unit_test(test_shares_by_program),
                                       cmocka_unit_test(test_pipelines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
