/* hap contains the baselines in its space: it can't be slower than one that fits, and its bound can't be above any plan.
 *
 *     KILTER_ALL=1    every model on every size of HAP's testbed (minutes) */
#include "tests/test.h"

#include "experiments/planner.h"

static double time_of(const char *planner, const char *model, const char *name,
                      bool *feasible, double *bound)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load(name, &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    PlannerOptions options;
    planner_options_init(&options);
    const Planner *method = planner_find(planner, &error);
    assert_no_error(error);
    g_autoptr(Plan) plan =
        planner_plan(method, model, name, view, &options, NULL, &error);
    assert_no_error(error);
    *feasible = plan->feasible;
    if (bound)
        *bound = plan->lower_bound_s;
    return plan->iteration_time_s;
}

static void compare(const char *model, const char *cluster)
{
    static const char *const baseline[] = {"dp-ev", "dp-cp", "deepspeed", "gshard",
                                           "tensor-parallel"};
    bool hap_fits, fits;
    double bound = 0, hap = time_of("hap", model, cluster, &hap_fits, &bound);
    assert_at_most(bound, hap);
    assert_true(bound > 0);
    for (uint32_t b = 0; b < G_N_ELEMENTS(baseline); b++) {
        double time_s = time_of(baseline[b], model, cluster, &fits, NULL);
        assert_true(hap_fits || !fits);
        if (fits == hap_fits)
            assert_at_most(hap, time_s);
        assert_at_most(bound, time_s);
    }
}

static void test_hap_is_never_slower(void **state)
{
    (void)state;
    static const char *const model[] = {"vgg19", "vit", "bert-base", "bert-moe"};
    static const char *const cluster[] = {"hap-8", "hap-16", "hap-32", "hap-64",
                                          "hap-p100-8"};
    bool all = g_getenv("KILTER_ALL") != NULL;
    for (uint32_t m = 0; m < G_N_ELEMENTS(model); m++)
        for (uint32_t c = 0; c < G_N_ELEMENTS(cluster); c++)
            if (all || (m < 3 && c % 3 == 0))
                compare(model[m], cluster[c]);
    compare("bert-moe:layers=2,hidden=96,ffn=192,vocab=640", "hap-16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hap_is_never_slower)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
