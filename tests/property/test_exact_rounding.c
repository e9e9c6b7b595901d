/* Whole units of tiny plans against brute force: no other whole units of the same program are
 * faster and fit. */
#include "data/data.h"
#include "synth/planners/planner.h"
#include "synth/synth.h"
#include "tests/support/rounds.h"
#include "tests/test.h"

enum { DEVICES = 3, MOST = 200000 };

static const char CLUSTER[] =
    "name: tiny\ndescription: three devices\ndevice_types:\n"
    "  - {name: a, rate: %d GFLOP/s, memory: 64 GiB, source: made up}\n"
    "  - {name: b, rate: %d GFLOP/s, memory: 64 GiB, source: made up}\n"
    "  - {name: c, rate: %d GFLOP/s, memory: 64 GiB, source: made up}\n"
    "machines:\n"
    "  - {name: a, count: 1, type: a, gpus: 1, source: made up}\n"
    "  - {name: b, count: 1, type: b, gpus: 1, source: made up}\n"
    "  - {name: c, count: 1, type: c, gpus: 1, source: made up}\n"
    "collectives:\n"
    "  all_reduce: {latency: 10 us, bandwidth: %d MB/s}\n"
    "  all_gather: {latency: 10 us, bandwidth: %d MB/s}\n"
    "  grouped_all_gather: {latency: 10 us, bandwidth: %d MB/s}\n"
    "  reduce_scatter: {latency: 10 us, bandwidth: %d MB/s}\n"
    "  grouped_reduce_scatter: {latency: 10 us, bandwidth: %d MB/s}\n"
    "  all_to_all: {latency: 10 us, bandwidth: %d MB/s}\n  source: made up\n";

static int number(GRand *rand, double least, double most)
{
    return (int)(least * pow(most / least, g_rand_double(rand)));
}

static char *random_cluster(GRand *rand)
{
    int n[9];
    for (int i = 0; i < 9; i++)
        n[i] = i < 3 ? number(rand, 500, 20000) : number(rand, 200, 20000);
    return g_strdup_printf(CLUSTER, n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8]);
}

static char *random_model(GRand *rand)
{
    static const char *const NAME[] = {"bert-base", "bert-sgmoe", "bert-switch"};
    const int kind = g_rand_int_range(rand, 0, 3);
    g_autofree char *experts =
        kind ? g_strdup_printf(",experts=%d", g_rand_int_range(rand, 2, 9))
             : g_strdup("");
    return g_strdup_printf(
        "%s:layers=%d,seq=%d,hidden=%d,ffn=%d,heads=%d,vocab=64,global_batch=%d%s",
        NAME[kind], kind ? 2 : 1, number(rand, 4, 64), 16 * number(rand, 1, 16),
        8 * number(rand, 1, 64), 1 << g_rand_int_range(rand, 0, 5),
        g_rand_int_range(rand, 3, 13), experts);
}

/* The fewest seconds of all whole units of the splits from `split` on. */
static double fewest(const SimLinear *linear, const SimMemory *memory,
                     const ClusterView *view, double *share, uint32_t split)
{
    if (split == linear->n_splits)
        return sim_memory_fits(memory, view, share)
                   ? sim_linear_time(linear, view, share, NULL, NULL)
                   : INFINITY;
    const uint32_t units = linear->split[split].units;
    double best_s = INFINITY;
    for (uint32_t i = 0; i <= units; i++)
        for (uint32_t j = 0; i + j <= units; j++) {
            const uint32_t count[DEVICES] = {i, j, units - i - j};
            for (uint32_t d = 0; d < DEVICES; d++)
                share[split * DEVICES + d] = (double)count[d] / units;
            best_s = fmin(best_s, fewest(linear, memory, view, share, split + 1));
        }
    return best_s;
}

/* The time of the plan over the best one; 0 if it has too many splits to try all. */
static double ratio_to_best(const char *planner, const char *model,
                            const ClusterView *view)
{
    PlannerOptions options;
    planner_options_init(&options);
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = NULL;
    if (strcmp(planner, "hap") != 0)
        assert_true(planner_options_set(&options, "ratios", "best", &error));
    g_autoptr(Plan) plan = planner_plan(planner_find(planner, NULL), model, "tiny", view,
                                        &options, &graph, &error);
    assert_no_error(error);
    g_autoptr(SimLinear) linear =
        sim_linear(plan->program, graph, view, plan->segment, plan->bucket_bytes);
    g_autoptr(SimMemory) memory =
        sim_memory(plan->program, graph, linear, plan->segment, view->runtime);
    double ways = 1;
    for (uint32_t k = 0; k < linear->n_splits; k++) {
        const double units = linear->split[k].units;
        ways *= (units + 1) * (units + 2) / 2;
    }
    if (ways > MOST)
        return 0;
    g_autofree double *share = sim_plan_shares(plan, linear);
    const double time_s = sim_linear_time(linear, view, share, NULL, NULL);
    return time_s / fewest(linear, memory, view, share, 0);
}

static void test_brute_force(void **state)
{
    (void)state;
    static const char *const PLANNER[] = {"hap", "dp-ev", "dp-cp", "deepspeed"};
    const uint32_t cases = test_rounds(40, 500);
    g_autoptr(GRand) rand = g_rand_new_with_seed(11);
    uint32_t tried = 0, off = 0;
    double worst = 1;
    while (tried < cases) {
        g_autofree char *text = random_cluster(rand), *model = random_model(rand);
        const char *planner = PLANNER[g_rand_int_range(rand, 0, G_N_ELEMENTS(PLANNER))];
        g_autoptr(GError) error = NULL;
        g_autoptr(Cluster) cluster = cluster_parse("tiny", text, strlen(text), &error);
        assert_no_error(error);
        g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
        const double ratio = ratio_to_best(planner, model, view);
        tried += ratio > 0;
        if (ratio > 1 + 1e-9) {
            off++;
            worst = fmax(worst, ratio);
            print_message("%s %s: %.4f\n", planner, model, ratio);
        }
    }
    print_message("%u of %u off, at most %.4f\n", off, tried, worst);
    assert_int_equal(off, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_brute_force)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
