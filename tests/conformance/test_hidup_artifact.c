/* The duplex search on the graphs that HiDup's published searcher was given, beside the strategies that it found, both
 * priced alike: with Eq. 5 in both directions, and with the artifact's backward, which overlaps nothing. */
#include "tests/support/hidup_artifact.h"
#include "tests/test.h"

/* The profile in the artifact's exp/config.py; work counts as its graphs do. */
static ArtifactProfile profile_of(double rate)
{
    return (ArtifactProfile){
        7429968322 / 2., 7537901123 / 2., 4421821530 / 2., 25451035500 / 2., rate, 4};
}

static const struct {
    const char *name;
    double rate;
} CASES[] = {{"Rmoe_4_2_exp", 4139214925014},
             {"Rmoe_4_8_exp", 4139214925014},
             {"Rswitch_4_8_exp", 4139214925014},
             {"Tmoe_4_6_artifact", 3312996495566},
             {"Rmoe_4_24_exp", 4139214925014}};

static void compare(DuplexCost cost)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autofree char *graph =
            g_strdup_printf("reference/hidup/graphs/g_%s.txt", CASES[i].name);
        g_autofree char *strategy = g_strdup_printf(
            "reference/hidup/strategies/strat_%s_nvlink.txt", CASES[i].name);
        const ArtifactProfile profile = profile_of(CASES[i].rate);
        g_autofree char *file = g_strdup(test_shared(graph));
        g_autofree char *known = g_strdup(test_shared(strategy));
        if (!file || !known)
            skip();
        g_autoptr(Artifact) artifact = artifact_read(file, &profile);
        assert_non_null(artifact);
        artifact_set_cost(artifact, cost);
        DuplexSolution solution;
        assert_true(duplex_solve(artifact_problem(artifact), &solution));
        const double published_s = artifact_strategy_s(artifact, known);
        print_message("%s: %.6f s, published %.6f s, %" G_GUINT64_FORMAT " labels\n",
                      CASES[i].name, solution.time_s, published_s, solution.labels);
        assert_at_most(solution.time_s, published_s * (1 + 1e-9));
        duplex_solution_clear(&solution);
    }
}

static void test_overlapped(void **state)
{
    (void)state;
    compare(DUPLEX_OVERLAPPED);
}

static void test_serial_back(void **state)
{
    (void)state;
    compare(DUPLEX_SERIAL_BACK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_overlapped),
                                       cmocka_unit_test(test_serial_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
