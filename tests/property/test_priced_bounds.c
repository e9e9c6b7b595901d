/* With either price of ops on random machines of data sheets no plan of any planner is faster than
 * the bound that the planner prints, nor than that of all machines, and auto's is the fastest.
 *
 *     KILTER_ALL=1    22 clusters (the test priced_bounds_long) */
#include <math.h>

#include "data/data.h"
#include "synth/auto/portfolio.h"
#include "tests/support/rounds.h"
#include "tests/test.h"

enum { EFFORT = 1000, SEED = 5, LABS = 22, FEW = 4, LAST = 21 };

static const char *const MODEL[] = {
    "gpt2:layers=2,hidden=512,heads=8,ffn=2048,seq=512,vocab=4096,global_batch=16",
    "llama:layers=2,hidden=1024,heads=8,kv_heads=4,ffn=2816,seq=1024,vocab=8192,"
    "global_batch=16,precision=bf16",
    "bert-moe:layers=2,hidden=256,heads=4,ffn=512,vocab=1024,batch=2,seq=64",
    "vgg19:width=16,fc=256,batch=8",
};
/* Its kernels are shorter than launches. */
static const char SMALL[] =
    "gpt2:layers=2,hidden=64,heads=2,ffn=256,seq=32,vocab=512,global_batch=8";

/* One or two kinds of machines of at most 1 << most GPUs over a network that is slow or fast. */
static Cluster *random_sheets(GRand *rand, int most)
{
    static const char *const device[] = {"v100-16g", "t4",       "a100-40g", "a10g",
                                         "l40s",     "h100-sxm", "h200",     "rtx-4090"};
    g_autoptr(GString) text = g_string_new("name: lab\ndescription: d\nmachines:\n");
    g_autoptr(GError) error = NULL;
    const int kinds = g_rand_int_range(rand, 1, 3);
    for (int k = 0; k < kinds; k++)
        g_string_append_printf(
            text,
            "  - {name: m%d, device: %s, gpus: %d, count: 1, inner: %s, nic: %s, source: "
            "random}\n",
            k, device[g_rand_int_range(rand, 0, G_N_ELEMENTS(device))],
            1 << g_rand_int_range(rand, 0, most + 1),
            g_rand_boolean(rand) ? "{link: nvlink3, count: 12}" : "pcie4",
            g_rand_boolean(rand) ? "eth-25" : "ib-ndr");
    Cluster *cluster = cluster_parse("lab", text->str, text->len, &error);
    assert_no_error(error);
    return cluster;
}

typedef struct {
    uint32_t plans;
    double nearest; /* bound over time */
} Seen;

/* Checks one planner's plan against its own bound; its time, INFINITY if there is none. */
static double planned_s(const Planner *planner, const char *model, const Cluster *cluster,
                        Granularity granularity, const PlannerOptions *options)
{
    g_autoptr(ClusterView) view = cluster_view(cluster, granularity);
    g_autoptr(Plan) plan = planner_plan(planner, model, "lab", view, options, NULL, NULL);
    if (!plan || !plan->feasible)
        return INFINITY;
    if (plan->lower_bound_s > plan->iteration_time_s * (1 + 1e-9))
        fail_msg("%s, %s: bound %g s, plan %g s", model, planner->name,
                 plan->lower_bound_s, plan->iteration_time_s);
    return plan->iteration_time_s;
}

static void check_case(const char *model, const Cluster *cluster, bool kernels,
                       Seen *seen)
{
    g_autoptr(GError) error = NULL;
    const PortfolioOptions how = {.prune = true};
    PlannerOptions options;
    planner_options_init(&options);
    options.effort = EFFORT;
    options.sim.costs = kernels ? SIM_COSTS_KERNELS : SIM_COSTS_SHARES;
    g_autoptr(Portfolio) portfolio =
        portfolio_new(model, cluster, &options, &how, &error);
    const PortfolioChoice *best =
        portfolio ? g_ptr_array_index(portfolio->choices, 0) : NULL;
    const double auto_s =
        best && best->report ? best->report->iteration_time_s : INFINITY;
    for (uint32_t p = 0; p < planner_count(); p++)
        for (Granularity g = GRANULARITY_MACHINE; g <= GRANULARITY_GPU; g++) {
            const Planner *planner = planner_at(p);
            if (!planner_can(planner, PLANNER_TRIED))
                continue;
            const double s = planned_s(planner, model, cluster, g, &options);
            const char *const costs = kernels ? "kernels" : "shares";
            if (portfolio && portfolio->bound_s > s * (1 + 1e-9))
                fail_msg("%s, %s, %s: bound of all %g s, plan %g s", model, costs,
                         planner->name, portfolio->bound_s, s);
            if (!portfolio || isinf(s))
                continue;
            seen->plans++;
            seen->nearest = fmax(seen->nearest, portfolio->bound_s / s);
            if (auto_s > s * (1 + 1e-9))
                fail_msg("%s, %s, %s: auto %g s, plan %g s", model, costs, planner->name,
                         auto_s, s);
        }
    if (portfolio && !(portfolio->bound_s > 0))
        fail_msg("%s, %s: no bound", model, kernels ? "kernels" : "shares");
}

static void test_bounds(void **state)
{
    (void)state;
    const uint32_t labs = test_rounds(FEW, LABS);
    Seen seen[2] = {0};
    for (uint32_t i = 0; i < labs; i++) {
        /* of the last cluster a part lacks bf16 */
        const uint32_t lab = i + 1 < labs ? i : LAST;
        g_autoptr(GRand) rand = g_rand_new_with_seed(SEED + lab);
        g_autoptr(Cluster) cluster = random_sheets(rand, 2);
        for (uint32_t kernels = 0; kernels < 2; kernels++)
            check_case(MODEL[lab % G_N_ELEMENTS(MODEL)], cluster, kernels,
                       &seen[kernels]);
    }
    for (uint32_t kernels = 0; kernels < 2; kernels++) {
        print_message("%s: %u plans, the nearest %.2f of its time\n",
                      kernels ? "kernels" : "shares", seen[kernels].plans,
                      seen[kernels].nearest);
        assert_true(seen[kernels].plans > 10 * labs);
        assert_true(seen[kernels].nearest > 0.5);
    }
}

/* Every plan launches the ops that follow from one another one by one: where launches decide, the
 * bound of all plans is of the order of the fastest. */
static void test_launches(void **state)
{
    (void)state;
    const uint32_t labs = test_rounds(2, LABS);
    Seen seen = {0};
    for (uint32_t lab = 0; lab < labs; lab++) {
        g_autoptr(GRand) rand = g_rand_new_with_seed(SEED + LABS + lab);
        g_autoptr(Cluster) cluster = random_sheets(rand, 0);
        seen.nearest = 0;
        check_case(SMALL, cluster, true, &seen);
        print_message("%u plans, the nearest %.2f of its time\n", seen.plans,
                      seen.nearest);
        assert_true(seen.nearest > 0.35); /* beside the longest path is as much again */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounds),
                                       cmocka_unit_test(test_launches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
