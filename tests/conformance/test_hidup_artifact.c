/* HiDup's published searcher: the exact costs of its strategies, and the duplex search on its
 * graphs with its prices: by its code, whose backward pass overlaps nothing, and by Eq. 5 in both
 * directions. */
#include "tests/support/hidup_artifact.h"
#include "tests/support/rows.h"
#include "tests/test.h"

#define COSTS(cost) "reference/hidup/search_results_" cost ".csv"

static const struct {
    const char *name;
    double rate;
} CASES[] = {{"Rmoe_4_2_exp", 4139214925014},
             {"Rmoe_4_8_exp", 4139214925014},
             {"Rswitch_4_8_exp", 4139214925014},
             {"Tmoe_4_6_artifact", 3312996495566},
             {"Rmoe_4_24_exp", 4139214925014}};

typedef struct {
    const char *name; /* MODEL_RANKS_LAYERS_VARIANT */
    double cost_s;
} Known;

static bool take_cost(const Csv *csv, void *data, GError **error)
{
    Known *known = data;
    (void)error;
    g_autofree char *name = g_strdup_printf(
        "%s_%s_%s_%s", csv_text(csv, "model"), csv_text(csv, "world_size"),
        csv_text(csv, "nlayers"), csv_text(csv, "variant"));
    if (strcmp(name, known->name) == 0 && test_is(csv, "bw_set", "nvlink"))
        known->cost_s = test_number(csv, "est_cost_s");
    return true;
}

/* The artifact's cost of its strategy, to 1e-6; 0 without reference data. */
static double known_cost_s(const char *name, const char *costs)
{
    Known known = {.name = name};
    const char *file = test_shared(costs);
    if (file)
        test_rows(file, take_cost, &known);
    return known.cost_s;
}

static Artifact *read_case(uint32_t i, DuplexCost cost)
{
    g_autofree char *graph =
        g_strdup_printf("reference/hidup/graphs/g_%s.txt", CASES[i].name);
    const ArtifactProfile profile = artifact_nvlink(CASES[i].rate);
    const char *file = test_shared(graph);
    Artifact *artifact = file ? artifact_read(file, &profile) : NULL;
    if (artifact)
        artifact_set_cost(artifact, cost);
    return artifact;
}

static bool read_strategy(const Artifact *artifact, uint32_t i, ArtifactCost *cost)
{
    g_autofree char *name =
        g_strdup_printf("reference/hidup/strategies/strat_%s_nvlink.txt", CASES[i].name);
    const char *file = test_shared(name);
    return file && artifact_strategy(artifact, file, cost);
}

static void test_published_costs(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autoptr(Artifact) artifact = read_case(i, DUPLEX_SERIAL_BACK);
        const double known_s = known_cost_s(CASES[i].name, COSTS("code_formula"));
        ArtifactCost cost;
        if (!artifact || known_s <= 0 || !read_strategy(artifact, i, &cost))
            skip();
        assert_at_most(fabs(cost.cost_s - known_s), 1e-6);
    }
}

/* The search finds strategies that take no longer than the artifact's best, both complete. Under
 * Eq. 5 only the costs of the artifact's strategies are known; they end as the others do, with the
 * decoder alone in the last stage, where its weight is read. */
static void compare(DuplexCost how, const char *costs)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autoptr(Artifact) artifact = read_case(i, how);
        const double known_s = known_cost_s(CASES[i].name, costs);
        ArtifactCost cost;
        if (!artifact || known_s <= 0 || !read_strategy(artifact, i, &cost))
            skip();
        DuplexSolution solution;
        assert_true(duplex_solve(artifact_problem(artifact), &solution));
        print_message("%s: %.6f s, published %.6f s, %" G_GUINT64_FORMAT " labels\n",
                      CASES[i].name, solution.time_s, known_s + cost.left_out_s,
                      solution.labels);
        assert_at_most(solution.time_s, known_s + cost.left_out_s + 1e-6);
        duplex_solution_clear(&solution);
    }
}

static void test_code(void **state)
{
    (void)state;
    compare(DUPLEX_SERIAL_BACK, COSTS("code_formula"));
}

static void test_eq5(void **state)
{
    (void)state;
    compare(DUPLEX_OVERLAPPED, COSTS("paper_eq5"));
}

/* The time of the chain under given choices. */
static double time_by(const DuplexProblem *problem, const DuplexSolution *chosen)
{
    DuplexProblem only = *problem;
    g_autofree DuplexNode *node =
        g_memdup2(problem->node, problem->n_nodes * sizeof *problem->node);
    only.node = node;
    for (uint32_t i = 0; i < problem->n_nodes; i++) {
        node[i].choices = g_array_new(FALSE, FALSE, sizeof(DuplexChoice));
        const DuplexChoice *same =
            &g_array_index(problem->node[i].choices, DuplexChoice, chosen->choice[i]->id);
        g_array_append_vals(node[i].choices, same, 1);
    }
    DuplexSolution solution;
    assert_true(duplex_solve(&only, &solution));
    const double time_s = solution.time_s;
    duplex_solution_clear(&solution);
    for (uint32_t i = 0; i < problem->n_nodes; i++)
        g_array_unref(node[i].choices);
    return time_s;
}

/* A copy with times of nodes that are off by up to `noise`; ids are indices into the original's
 * choices. */
static DuplexNode *disturb(const DuplexProblem *problem, double noise, GRand *random)
{
    DuplexNode *node = g_memdup2(problem->node, problem->n_nodes * sizeof *problem->node);
    for (uint32_t i = 0; i < problem->n_nodes; i++) {
        const double factor = g_rand_double_range(random, 1 - noise, 1 + noise);
        const double comm = g_rand_double_range(random, 1 - noise, 1 + noise);
        node[i].choices = g_array_new(FALSE, FALSE, sizeof(DuplexChoice));
        for (uint32_t c = 0; c < problem->node[i].choices->len; c++) {
            DuplexChoice choice =
                g_array_index(problem->node[i].choices, DuplexChoice, c);
            choice.id = c;
            choice.forward.s[0] *= factor;
            choice.back.s[0] *= factor;
            for (uint32_t m = 0; m < 2; m++) {
                choice.gather_s[m] *= comm;
                choice.sync_s[m] *= comm;
            }
            g_array_append_val(node[i].choices, choice);
        }
    }
    return node;
}

/* Table 5: strategies found with estimates that are off by up to 20 % take at most 2 % longer than
 * the best, in 10 draws. */
static void test_noise(void **state)
{
    (void)state;
    g_autoptr(Artifact) artifact = read_case(1, DUPLEX_OVERLAPPED);
    if (!artifact)
        skip();
    const DuplexProblem *problem = artifact_problem(artifact);
    DuplexSolution best;
    assert_true(duplex_solve(problem, &best));
    GRand *random = g_rand_new_with_seed(5);
    double sum = 0;
    enum { DRAWS = 10 };
    for (uint32_t draw = 0; draw < DRAWS; draw++) {
        DuplexProblem off = *problem;
        off.node = disturb(problem, 0.2, random);
        DuplexSolution found;
        assert_true(duplex_solve(&off, &found));
        sum += time_by(problem, &found) / best.time_s;
        duplex_solution_clear(&found);
        for (uint32_t i = 0; i < problem->n_nodes; i++)
            g_array_unref(off.node[i].choices);
        g_free(off.node);
    }
    print_message("20 %% noise: %.4f of the best time on average\n", sum / DRAWS);
    assert_at_most(sum / DRAWS, 1.02);
    assert_at_most(1 - 1e-9, sum / DRAWS);
    g_rand_free(random);
    duplex_solution_clear(&best);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_costs), cmocka_unit_test(test_code),
        cmocka_unit_test(test_eq5), cmocka_unit_test(test_noise)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
