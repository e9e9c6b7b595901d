/* The tuning table: the rule that decides, a cluster's own rules before the default ones, and
 * errors in a file. */
#include "data/data.h"
#include "sim/network/collective_run.h"
#include "sim/sim.h"
#include "tests/test.h"

static const char CLUSTER[] =
    "name: two\n"     /* 1 */
    "device_types:\n" /* 2 */
    "  - {name: v, rate: 1 TFLOP/s, memory: 1 GiB, source: s}\n"
    "machines:\n"                                    /* 4 */
    "  - name: a\n"                                  /* 5 */
    "    type: v\n"                                  /* 6 */
    "    gpus: 4\n"                                  /* 7 */
    "    inner: {latency: 0 s, bandwidth: 1 GB/s}\n" /* 8 */
    "    source: s\n"                                /* 9 */
    "tuning:\n"                                      /* 10 */
    "  rules:\n"                                     /* 11 */
    "    - {collective: all_reduce, most_ranks: 4, most_bytes: 1 MB, algorithm: tree}\n"
    "    - {collective: all_to_all, power_of_two: true, algorithm: pairwise}\n" /* 13 */
    "  piece: 64 KiB\n"                                                         /* 14 */
    "  source: made up\n";                                                      /* 15 */

static Cluster *parse(const char *find, const char *replace, GError **error)
{
    const char *at = find ? strstr(CLUSTER, find) : CLUSTER;
    assert_non_null(at);
    g_autofree char *text =
        g_strdup_printf("%.*s%s%s", (int)(at - CLUSTER), CLUSTER, find ? replace : "",
                        at + (find ? strlen(find) : 0));
    return cluster_parse("two.yaml", text, strlen(text), error);
}

static Tuning *table_of(const Cluster *cluster)
{
    g_autoptr(GError) error = NULL;
    Tuning *tuning = tuning_of_cluster(cluster, &error);
    assert_no_error(error);
    return tuning;
}

/* The bundled table has an answer for everything, with an algorithm that can do it. */
static void test_default_is_complete(void **state)
{
    static const double BYTES[] = {0, 1, 1e5, 1e6, 1e9, 1e15};
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("star:hosts=2", &error);
    assert_no_error(error);
    g_autoptr(Tuning) tuning = table_of(cluster);
    (void)state;
    for (Traffic t = 0; t < TRAFFICS; t++)
        for (uint32_t n = 1; n < 70; n++)
            for (size_t i = 0; i < G_N_ELEMENTS(BYTES); i++) {
                const Algorithm algorithm = tuning_choose(tuning, t, n, BYTES[i]);
                assert_int_not_equal(algorithm, ALGORITHM_AUTO);
                assert_true(algorithm_check(algorithm, t, NULL));
                assert_false(algorithm == ALGORITHM_HALVING && (n & (n - 1)) != 0 &&
                             t != TRAFFIC_ALL_REDUCE);
            }
    assert_true(tuning->piece_bytes > 0);
}

static void test_own_rules_first(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = parse(NULL, NULL, &error);
    assert_no_error(error);
    g_autoptr(Tuning) tuning = table_of(cluster);
    (void)state;
    assert_int_equal(tuning_choose(tuning, TRAFFIC_ALL_REDUCE, 4, 1e6), ALGORITHM_TREE);
    /* one byte or rank more: the default's */
    assert_int_equal(tuning_choose(tuning, TRAFFIC_ALL_REDUCE, 4, 1e6 + 1),
                     ALGORITHM_DOUBLE_TREE);
    assert_int_equal(tuning_choose(tuning, TRAFFIC_ALL_REDUCE, 5, 1e9), ALGORITHM_RING);
    assert_int_equal(tuning_choose(tuning, TRAFFIC_ALL_TO_ALL, 8, 1e9),
                     ALGORITHM_PAIRWISE);
    assert_int_equal(tuning_choose(tuning, TRAFFIC_ALL_TO_ALL, 6, 1e9), ALGORITHM_DIRECT);
    assert_close(tuning->piece_bytes, 65536, 0);
}

/* A collective without a named algorithm takes the cluster's. */
static void test_collectives_follow(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = parse(NULL, NULL, &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    const SimCollectiveOptions options = {.kind = "all_reduce", .bytes = 1e5};
    const SimCollectiveOptions named = {
        .kind = "all_reduce", .algorithm = "ring", .bytes = 1e5};
    g_autoptr(SimCollectiveRun) run = sim_collective_run(view, &options, &error);
    assert_no_error(error);
    assert_string_equal(run->algorithm, "tree");
    g_autoptr(SimCollectiveRun) ring = sim_collective_run(view, &named, &error);
    assert_no_error(error);
    assert_string_equal(ring->algorithm, "ring");
    (void)state;
}

static void test_bad_rules(void **state)
{
    static const struct {
        const char *find, *replace, *message;
    } CASE[] = {
        {"most_ranks", "ranks",
         "two.yaml:12: tuning.rules[0].ranks: unknown key; did you mean "
         "'most_ranks'?"},
        {"all_reduce", "allreduce",
         "two.yaml:12: tuning.rules[0].collective: unknown collective 'allreduce'; did "
         "you mean 'all_reduce'?"},
        {"tree", "auto",
         "two.yaml:12: tuning.rules[0].algorithm: expected the name of an algorithm"},
        {"tree", "pairwise",
         "two.yaml:12: tuning.rules[0].algorithm: pairwise does not do all_reduce; "
         "expected one of ring, tree, double_tree, halving, hierarchical, machine_tree"},
        {"4, most", "0, most",
         "two.yaml:12: tuning.rules[0].most_ranks: expected a whole number from 1 to "
         "4294967295, got '0'"},
        {"1 MB", "1 MB/s",
         "two.yaml:12: tuning.rules[0].most_bytes: expected an amount of bytes such as "
         "16 "
         "GiB, got '1 MB/s'"},
        {"true", "yes",
         "two.yaml:13: tuning.rules[1].power_of_two: expected true, or no such key"},
        {"64 KiB", "0 B",
         "two.yaml:14: tuning.piece: expected 1 B to 9.09e+05 TiB, got "
         "'0 B'"},
    };
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Cluster) cluster = parse(CASE[i].find, CASE[i].replace, &error);
        assert_null(cluster);
        assert_error(error, KILTER_ERROR_INPUT, "two.yaml");
        assert_string_equal(error->message, CASE[i].message);
    }
}

/* --set algorithm=... */
static void test_option(void **state)
{
    SimOptions options;
    Algorithm algorithm[TRAFFICS];
    g_autoptr(GError) error = NULL;
    sim_options_init(&options);
    (void)state;
    assert_true(sim_options_set(&options, "algorithm",
                                "all_to_all:pairwise+all_reduce:ring", &error));
    assert_true(sim_algorithms_parse(options.algorithm, algorithm, &error));
    for (Traffic t = 0; t < TRAFFICS; t++)
        assert_int_equal(algorithm[t], t == TRAFFIC_ALL_TO_ALL   ? ALGORITHM_PAIRWISE
                                       : t == TRAFFIC_ALL_REDUCE ? ALGORITHM_RING
                                                                 : ALGORITHM_AUTO);
    assert_false(sim_options_set(&options, "algorithm", "all_reduce=ring", &error));
    assert_string_equal(error->message, "option 'algorithm': expected KIND:NAME, got "
                                        "'all_reduce=ring'");
    g_clear_error(&error);
    assert_false(sim_options_set(&options, "algorithm", "all_to_all:ring", &error));
    assert_string_equal(error->message,
                        "option 'algorithm': ring does not do all_to_all; expected one "
                        "of pairwise, direct, hierarchical");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_is_complete),
        cmocka_unit_test(test_own_rules_first),
        cmocka_unit_test(test_collectives_follow),
        cmocka_unit_test(test_bad_rules),
        cmocka_unit_test(test_option),
    };
    return cmocka_run_group_tests_name("tuning", tests, NULL, NULL);
}
