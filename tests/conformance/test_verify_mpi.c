/* Plans of every planner, shrunk, on four real ranks: run by mpirun (see tests/CMakeLists.txt). */
#include "exec/exec.h"
#include "synth/planners/planner.h"
#include "tests/support/ranks.h"

enum { TIME_LIMIT_S = 600, MACHINES = 4 };

/* The first four machines of HAP's smallest testbed: two of each type. */
static Cluster *four_machines(void)
{
    g_autoptr(GError) error = NULL;
    Cluster *cluster = cluster_load("hap-8", &error);
    assert_no_error(error);
    while (cluster->n_machines > MACHINES) {
        Machine *last = &cluster->machine[--cluster->n_machines];
        g_free(last->name);
        g_free(last->source);
    }
    return cluster;
}

static void test_plans_of_planners(void **state)
{
    (void)state;
    static const char *const models[] = {"vgg19", "vit", "bert-base", "bert-moe"};
    static const char *const planners[] = {"hap",       "dp-ev",  "dp-cp",
                                           "deepspeed", "gshard", "tensor-parallel"};
    g_autoptr(Cluster) cluster = four_machines();
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    g_autoptr(ExecBackend) backend = exec_mpi(NULL)->backend_new(sizeof(double));
    g_autoptr(GError) error = NULL;
    for (uint32_t m = 0; m < G_N_ELEMENTS(models); m++)
        for (uint32_t p = 0; p < G_N_ELEMENTS(planners); p++) {
            PlannerOptions options;
            planner_options_init(&options);
            g_autoptr(Graph) graph = NULL, small = NULL;
            g_autoptr(Plan) plan =
                planner_plan(planner_find(planners[p], &error), models[m], "hap-8", view,
                             &options, &graph, &error);
            assert_no_error(error);
            g_autoptr(Plan) shrunk = exec_shrink_plan(plan, graph, NULL, &small, &error);
            g_auto(ExecVerdict) verdict = {0};
            assert_no_error(error);
            exec_verify(backend, shrunk, small, 1, EXEC_TOLERANCE, &verdict, &error);
            assert_no_error(error);
            if (!verdict.right)
                fail_msg("%s by %s: error %g of %s", models[m], planners[p],
                         verdict.error, verdict.where);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plans_of_planners)};
    RUN_ON_RANKS(tests, TIME_LIMIT_S);
}
