/* The planner tag compared with TAG's baselines: never slower, and never faster than its own bound.
 * KILTER_ALL=1: all six models on both clusters. */
#include <stdlib.h>

#include "experiments/planners/planner.h"
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
    const bool all = g_getenv("KILTER_ALL") != NULL;
    for (uint32_t m = 0; m < (all ? G_N_ELEMENTS(MODELS) : 2); m++)
        for (uint32_t c = 0; c < (all ? G_N_ELEMENTS(CLUSTERS) : 1); c++)
            check_case(MODELS[m], CLUSTERS[(m + c) % G_N_ELEMENTS(CLUSTERS)]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_never_slower)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
