/* A better machine: the same plan is never slower on it. A new plan may be, as searches are
 * heuristics. Of 180 plans by each planner none of joint and amp is, both by its own fidelity and
 * by flow, and one of auto, which compares its best plans by flow, by .5 % (lab 58).
 *
 *     KILTER_ALL=1    60 clusters and all models (the test monotone_plans_long) */
#include "data/cluster/change.h"
#include "experiments/sweep/configuration.h"
#include "tests/support/random_lab.h"
#include "tests/support/rounds.h"

static const char *const MODEL[] = {
    "gpt2:layers=3,hidden=64,heads=4,ffn=128,seq=16,vocab=64,batch=2",
    "vgg19:width=8,fc=64,batch=4",
    "llama:layers=3,hidden=64,heads=4,kv_heads=2,ffn=96,seq=16,vocab=64,batch=2",
};
static const char *const PLANNER[] = {"joint", "amp", "auto"};
static const double MOST[] = {1 + 1e-9, 1 + 1e-9, 1.005};
enum { PLANNERS = G_N_ELEMENTS(PLANNER), MODELS = G_N_ELEMENTS(MODEL) };

/* Plans, those that are slower on the better cluster, and by which factor at most. */
typedef struct {
    uint32_t n, slower;
    double most;
} Count;

/* NULL: the cluster has nothing of that name. */
static Cluster *better(const Cluster *cluster, const char *change)
{
    g_autofree char *text = cluster_write(cluster);
    g_autoptr(Cluster) copy = cluster_parse("lab", text, strlen(text), NULL);
    return cluster_change(copy, CHANGE_SCALE, change, NULL) ? g_steal_pointer(&copy)
                                                            : NULL;
}

/* False: no plan fits. */
static bool plan_on(const char *planner, const char *model, const Cluster *cluster,
                    Evaluation *made)
{
    PlannerOptions options;
    planner_options_init(&options);
    options.effort = 1000;
    options.work = 15; /* --effort normal */
    const ConfigurationAsk ask = {.model = model,
                                  .cluster_name = "lab",
                                  .cluster = cluster,
                                  .granularity = GRANULARITY_GPU,
                                  .planner = planner_find(planner, NULL),
                                  .options = &options};
    g_autoptr(Configuration) c = configuration_new(&ask, NULL);
    return c && configuration_evaluate(c, made, NULL) && made->plan->feasible;
}

static double flow_s(const Evaluation *made)
{
    g_autoptr(SimReport) report =
        sim_evaluate(made->plan, made->graph, made->view, "flow", NULL);
    assert_non_null(report);
    return report->iteration_time_s;
}

/* The plan's time on the better machines among those that it uses. */
static double kept_s(const Evaluation *made, const char *change)
{
    g_autoptr(Cluster) cluster = better(made->view->cluster, change);
    if (!cluster)
        return made->report->iteration_time_s;
    g_autoptr(ClusterView) view = cluster_view(cluster, made->plan->granularity);
    g_autoptr(SimReport) report =
        sim_evaluate(made->plan, made->graph, view, made->report->fidelity, NULL);
    assert_non_null(report);
    return report->iteration_time_s;
}

static void compare(uint32_t p, uint32_t lab, const Cluster *cluster,
                    const char *const *change, Count *count)
{
    const char *model = MODEL[lab % MODELS];
    g_auto(Evaluation) made = {0};
    if (!plan_on(PLANNER[p], model, cluster, &made))
        return;
    const double time_s = made.report->iteration_time_s;
    for (uint32_t k = 0; change[k]; k++) {
        assert_at_most(kept_s(&made, change[k]), time_s * (1 + 1e-9));
        g_autoptr(Cluster) best = better(cluster, change[k]);
        if (!best)
            continue;
        g_auto(Evaluation) again = {0};
        assert_true(plan_on(PLANNER[p], model, best, &again));
        double part = again.report->iteration_time_s / time_s;
        if (part > 1 + 1e-9) /* auto compares sets of machines by flow */
            part = fmin(part, flow_s(&again) / flow_s(&made));
        count[p].n++;
        count[p].slower += part > 1 + 1e-9;
        count[p].most = fmax(count[p].most, part);
        if (part > 1 + 1e-9)
            print_message("lab %u, %s %s %s: %g, now by %s\n", lab, PLANNER[p], model,
                          change[k], part,
                          again.plan->maker ? again.plan->maker : PLANNER[p]);
    }
}

static void test_better_machines(void **state)
{
    (void)state;
    Count count[PLANNERS] = {0};
    const uint32_t rounds = test_rounds(3, 60);
    for (uint32_t i = 0; i < rounds; i++) {
        g_autoptr(GRand) rand = g_rand_new_with_seed(360 + i);
        g_autoptr(Cluster) cluster = random_lab(rand);
        static const char *const change[] = {"t0.rate=1.5", "network=2", "inner=2", NULL};
        for (uint32_t p = 0; p < PLANNERS; p++)
            compare(p, i, cluster, change, count);
    }
    for (uint32_t p = 0; p < PLANNERS; p++) {
        assert_true(count[p].n >= 2 * rounds);
        assert_true(count[p].slower * 150 <= count[p].n);
        assert_at_most(count[p].most, MOST[p]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_better_machines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
