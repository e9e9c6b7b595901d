/* Collectives on networks: times by hand, bytes over the links, order of the devices, late ranks,
 * and cases without work. */
#include "tests/support/collective_case.h"

/* --- times that follow by hand: w = 1.25 GB/s, 5 us per link --- */

typedef struct {
    const char *cluster;
    Traffic traffic;
    Algorithm algorithm;
    double bytes; /* of the whole tensor */
    double seconds;
} Exact;

#define MB                1e6
#define TREE(hosts, leaf) "tree:hosts=" hosts ",leaf=" leaf ",oversubscription=4"

static const Exact EXACT[] = {
    /* 2 (n-1) (10 us + V/n/w) */
    {"star:hosts=8", TRAFFIC_ALL_REDUCE, ALGORITHM_RING, 100 * MB, 0.14014},
    {"star:hosts=64", TRAFFIC_ALL_REDUCE, ALGORITHM_RING, 100 * MB, 0.15876},
    {"star:hosts=256", TRAFFIC_ALL_REDUCE, ALGORITHM_RING, 100 * MB, 0.164475},
    {"star:hosts=1024", TRAFFIC_ALL_REDUCE, ALGORITHM_RING, 100 * MB, 0.18030375},
    /* 64 MB a host; the leaf's link carries leaf (n - leaf) 64 MB / n at leaf w / 4 */
    {TREE("8", "4"), TRAFFIC_ALL_TO_ALL, ALGORITHM_DIRECT, 8 * 64 * MB, 0.10242},
    {TREE("64", "8"), TRAFFIC_ALL_TO_ALL, ALGORITHM_DIRECT, 64 * 64 * MB, 0.17922},
    {TREE("256", "16"), TRAFFIC_ALL_TO_ALL, ALGORITHM_DIRECT, 256 * 64 * MB, 0.19202},
    /* (n-1) (10 us + V/n/w) */
    {"star:hosts=4", TRAFFIC_ALL_GATHER, ALGORITHM_RING, 100 * MB, 0.06003},
    {"star:hosts=4", TRAFFIC_REDUCE_SCATTER, ALGORITHM_RING, 100 * MB, 0.06003},
    /* 2 log n rounds of 10 us, 2 (n-1)/n V/w */
    {"star:hosts=8", TRAFFIC_ALL_REDUCE, ALGORITHM_HALVING, 100 * MB, 0.14006},
    {"star:hosts=8", TRAFFIC_ALL_GATHER, ALGORITHM_HALVING, 100 * MB, 0.07003},
    /* folds one rank: V/w + 10 us more, twice */
    {"star:hosts=9", TRAFFIC_ALL_REDUCE, ALGORITHM_HALVING, 100 * MB, 0.30008},
    /* n-1 rounds of V/n^2 */
    {"star:hosts=4", TRAFFIC_ALL_TO_ALL, ALGORITHM_PAIRWISE, 100 * MB, 0.01503},
    {"star:hosts=4", TRAFFIC_ALL_TO_ALL, ALGORITHM_DIRECT, 100 * MB, 0.01501},
    /* the root's port sends V to each of 3 */
    {"star:hosts=4", TRAFFIC_BROADCAST, ALGORITHM_DIRECT, 100 * MB, 0.24001},
    {"star:hosts=4", TRAFFIC_REDUCE, ALGORITHM_DIRECT, 100 * MB, 0.24001},
    {"star:hosts=4", TRAFFIC_PUSH, ALGORITHM_DIRECT, 100 * MB, 0.24001},
    {"star:hosts=4", TRAFFIC_PULL, ALGORITHM_DIRECT, 100 * MB, 0.24001},
    {"star:hosts=2", TRAFFIC_SEND, ALGORITHM_DIRECT, 100 * MB, 0.08001},
    /* a chain of 3 links in 200 pieces of 512 KiB: 2 more pieces, 3 hops */
    {"star:hosts=4", TRAFFIC_BROADCAST, ALGORITHM_RING, 104857600, 0.0847549408},
    {"star:hosts=4", TRAFFIC_REDUCE, ALGORITHM_RING, 104857600, 0.0847549408},
    /* 2 ranks: a tree is one link each way, both ways in 2 levels */
    {"star:hosts=2", TRAFFIC_ALL_REDUCE, ALGORITHM_TREE, 104857600, 0.0843255104},
    /* two trees of 2 levels with V/2 each, up and down: the busiest port carries 4 of them; the
     * pieces of 512 KiB shrink to 32 KiB, of which 3 fill the pipeline */
    {"star:hosts=4", TRAFFIC_ALL_REDUCE, ALGORITHM_DOUBLE_TREE, 131072, 0.000564288},
    /* in a machine of 4: 3 rounds of V/4 at 10 GB/s and 2 half hops; between 2: 2 rounds
     * in which the port carries 4 times V/8 */
    {"star:hosts=2,gpus=4,inner_bandwidth=10GB/s,inner_latency=60us", TRAFFIC_ALL_REDUCE,
     ALGORITHM_HIERARCHICAL, 100 * MB, 2 * (0.0075 + 30e-6) + 0.08 + 2 * (20e-6)},
    /* among 3 machines of 4: 2 rounds in which the port carries 4 times V/12; inside 3 rounds of
     * V/4 */
    {"star:hosts=3,gpus=4,inner_bandwidth=10GB/s,inner_latency=60us", TRAFFIC_ALL_GATHER,
     ALGORITHM_HIERARCHICAL, 120 * MB, 0.064 + 2 * 20e-6 + 0.009 + 30e-6},
    {"star:hosts=3,gpus=4,inner_bandwidth=10GB/s,inner_latency=60us",
     TRAFFIC_REDUCE_SCATTER, ALGORITHM_HIERARCHICAL, 120 * MB,
     0.064 + 2 * 20e-6 + 0.009 + 30e-6},
    /* inside: 3 messages of V/8 * 2/8; between: the port carries 4 of V/8 * 4/8 */
    {"star:hosts=2,gpus=4,inner_bandwidth=10GB/s,inner_latency=60us", TRAFFIC_ALL_TO_ALL,
     ALGORITHM_HIERARCHICAL, 100 * MB, 0.0009375 + 10e-6 + 0.02 + 20e-6},
};

static void test_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(EXACT); i++) {
        const Exact *e = &EXACT[i];
        g_auto(NetworkCase) net = network_case(e->cluster, GRANULARITY_GPU);
        const SimCollective collective = {
            .traffic = e->traffic, .algorithm = e->algorithm, .bytes = e->bytes};
        const double seconds = collective_s(&net, collective, NULL);
        if (fabs(seconds - e->seconds) > 1e-9 * e->seconds)
            print_error("%s on %s by %s:\n", traffic_name(e->traffic), e->cluster,
                        algorithm_name(e->algorithm));
        assert_close(seconds, e->seconds, 1e-9);
    }
}

/* A ring's rounds are one set of rates, however many ranks there are. */
static void test_rounds_advance_together(void **state)
{
    g_auto(NetworkCase) net = network_case("star:hosts=1024", GRANULARITY_MACHINE);
    (void)state;
    collective_s(&net,
                 (SimCollective){.traffic = TRAFFIC_ALL_REDUCE,
                                 .algorithm = ALGORITHM_RING,
                                 .bytes = 1e8},
                 NULL);
    assert_int_equal(sim_network_solved(net.network), 1);
}

/* The network derived from fitted collectives takes the time of the formula for collectives whose
 * latency is that of a ring. */
static void test_fitted_network(void **state)
{
    g_auto(NetworkCase) net = network_case("hap-64", GRANULARITY_MACHINE);
    const double bytes = 256e6, n = 8;
    const LinkCost *fit = net.cluster->collective;
    SimCollective collective = {.algorithm = ALGORITHM_RING, .bytes = bytes};
    (void)state;
    collective.traffic = TRAFFIC_ALL_REDUCE;
    assert_close(collective_s(&net, collective, NULL),
                 fit[COLLECTIVE_ALL_REDUCE].latency_s +
                     2 * (n - 1) / n * bytes / fit[COLLECTIVE_ALL_REDUCE].bandwidth,
                 1e-9);
    collective.traffic = TRAFFIC_ALL_GATHER;
    assert_close(collective_s(&net, collective, NULL),
                 fit[COLLECTIVE_ALL_REDUCE].latency_s / 2 +
                     (n - 1) / n * bytes / fit[COLLECTIVE_ALL_GATHER].bandwidth,
                 1e-9);
}

/* --- bytes over the links = bytes that the algorithm sends --- */

static const char *const NETWORKS[] = {
    "star:hosts=7",
    "star:hosts=8",
    "tree:hosts=16,leaf=4,spines=2,oversubscription=2",
    "tree:hosts=12,leaf=2,pod=2,oversubscription=3",
    "rail:hosts=4,gpus=4,rails=4,inner_bandwidth=100GB/s,inner_latency=9us",
    "dragonfly:hosts=16,leaf=2,group=4,global=1",
};

static double sum_out_of_devices(const NetworkCase *net)
{
    double bytes = 0;
    for (uint32_t j = 0; j < net->topology->n_devices; j++) {
        const uint32_t node = net->topology->device[j];
        for (uint32_t k = net->topology->first_link[node];
             k < net->topology->first_link[node + 1]; k++)
            bytes += sim_network_link_bytes(net->network, net->topology->out[k]);
    }
    return bytes;
}

/* The bytes that all ranks send together, by the kind of collective. */
static double sent_bytes(Traffic traffic, Algorithm algorithm, double n, double machines,
                         double v)
{
    const double gpus = n / machines;
    switch (traffic) {
    case TRAFFIC_ALL_REDUCE:
        return algorithm == ALGORITHM_HALVING && n == 7 ? (2 * 3 + 2 * 3.0) * v
                                                        : 2 * (n - 1) * v;
    case TRAFFIC_ALL_TO_ALL: /* hierarchical: twice, between machines once */
        return algorithm == ALGORITHM_HIERARCHICAL
                   ? ((gpus - 1) / gpus + (machines - 1) / machines) * v
                   : (n - 1) / n * v;
    case TRAFFIC_SEND:
        return v;
    default: /* every part, or all of V, to n - 1 others; with servers likewise */
        return (n - 1) * v;
    }
}

static bool can_do(NetworkCase *net, SimCollective collective, SimLowered **lowered)
{
    g_autofree uint32_t *device = g_new(uint32_t, net->topology->n_devices);
    g_autoptr(GError) error = NULL;
    for (uint32_t j = 0; j < net->topology->n_devices; j++)
        device[j] = j;
    collective.device = device;
    collective.n = net->topology->n_devices;
    *lowered = sim_lower(net->network, &collective, &error);
    if (!*lowered)
        assert_error(error, KILTER_ERROR_INPUT, algorithm_name(collective.algorithm));
    return *lowered;
}

static void test_conservation(void **state)
{
    uint32_t cases = 0;
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(NETWORKS); i++)
        for (Traffic t = 0; t < TRAFFICS; t++)
            for (Algorithm a = 1; a < ALGORITHMS; a++) {
                g_auto(NetworkCase) net = network_case(NETWORKS[i], GRANULARITY_GPU);
                const SimCollective collective = {
                    .traffic = t, .algorithm = a, .bytes = 3e6, .root = 2};
                g_autoptr(SimLowered) lowered = NULL;
                if (!can_do(&net, collective, &lowered))
                    continue;
                const double n = net.topology->n_devices;
                assert_true(collective_s(&net, collective, NULL) > 0);
                const double want = sent_bytes(t, a, n, net.cluster->n_machines, 3e6);
                assert_close(sim_lowered_bytes(lowered), want, 1e-9);
                assert_close(sum_out_of_devices(&net), want, 1e-9);
                cases++;
            }
    assert_true(cases > 100);
}

/* --- who is called what --- */

/* On a symmetric network a collective takes the same time on other devices, and on the same devices
 * in another order. */
static void test_permutation(void **state)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(NETWORKS); i++)
        for (Traffic t = 0; t < TRAFFICS; t++) {
            g_auto(NetworkCase) net = network_case(NETWORKS[i], GRANULARITY_GPU);
            const uint32_t n = net.topology->n_devices;
            SimCollective collective = {.traffic = t, .bytes = 3e6, .root = n};
            /* With a root the others' ways to it differ. */
            if (t == TRAFFIC_SEND || t == TRAFFIC_BROADCAST || t == TRAFFIC_REDUCE)
                continue;
            collective.root = t == TRAFFIC_PUSH || t == TRAFFIC_PULL ? n : 0;
            const double seconds = collective_s(&net, collective, NULL);
            g_autofree uint32_t *device = g_new(uint32_t, n);
            for (uint32_t j = 0; j < n; j++)
                device[j] = j;
            for (uint32_t j = n; j > 1; j--) {
                const uint32_t k = (uint32_t)g_rand_int_range(rand, 0, (gint32)j);
                const uint32_t kept = device[k];
                device[k] = device[j - 1];
                device[j - 1] = kept;
            }
            collective.device = device;
            collective.n = n;
            assert_close(collective_s(&net, collective, NULL), seconds, 1e-9);
        }
}

/* Doubling every bandwidth halves the time where latency is none. */
static void test_scaling(void **state)
{
    (void)state;
    for (Traffic t = 0; t < TRAFFICS; t++) {
        g_auto(NetworkCase) slow = network_case(
            "tree:hosts=8,leaf=2,oversubscription=2,latency=0s", GRANULARITY_MACHINE);
        g_auto(NetworkCase) fast = network_case(
            "tree:hosts=8,leaf=2,oversubscription=2,latency=0s,bandwidth=20Gb/s",
            GRANULARITY_MACHINE);
        const SimCollective collective = {.traffic = t, .bytes = 5e6};
        assert_close(collective_s(&slow, collective, NULL),
                     2 * collective_s(&fast, collective, NULL), 1e-12);
    }
}

/* --- uneven shares --- */

static void test_uneven_shares(void **state)
{
    g_auto(NetworkCase) net =
        network_case("star:hosts=4,latency=0s", GRANULARITY_MACHINE);
    const uint32_t device[] = {0, 1, 2, 3};
    const double share[] = {0.4, 0.3, 0.2, 0.1};
    SimCollective collective = {.traffic = TRAFFIC_ALL_GATHER,
                                .algorithm = ALGORITHM_RING,
                                .bytes = 125e6,
                                .n = 4,
                                .device = device,
                                .share_from = share,
                                .share_to = share};
    (void)state;
    /* padded: 3 rounds of 0.4 V; V/w = 0.1 s */
    assert_close(collective_s(&net, collective, NULL), 0.12, 1e-12);
    collective.traffic = TRAFFIC_REDUCE_SCATTER;
    assert_close(collective_s(&net, collective, NULL), 0.12, 1e-12);
    /* rank 0 sends 0.4 (1 - 0.4) V; so does it receive */
    collective.traffic = TRAFFIC_ALL_TO_ALL;
    collective.algorithm = ALGORITHM_DIRECT;
    assert_close(collective_s(&net, collective, NULL), 0.024, 1e-12);
    /* exact: V/w, and 2 pieces that fill the first chain (96 of 50 MB) */
    collective.traffic = TRAFFIC_GROUPED_ALL_GATHER;
    collective.algorithm = ALGORITHM_RING;
    assert_close(collective_s(&net, collective, NULL), 0.1 * (1 + 0.4 * 2 / 96), 1e-12);
}

/* --- ranks that come late --- */

typedef struct {
    SimRun *run;
} Late;

static void arrive(SimEngine *engine, void *context, uint64_t argument)
{
    const Late *late = context;
    (void)engine;
    sim_run_arrive(late->run, (uint32_t)argument);
}

static void run_late(NetworkCase *net, const SimCollective *collective, double late_s,
                     double *rank_s)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SimLowered) lowered = sim_lower(net->network, collective, &error);
    assert_no_error(error);
    g_autoptr(SimRun) run =
        sim_run_new(net->network, lowered, note_time, NULL, rank_s, 0);
    Late late = {run};
    for (uint32_t r = 0; r < collective->n; r++)
        sim_engine_schedule(net->engine, r + 1 == collective->n ? late_s : 0, 0, arrive,
                            &late, r);
    sim_engine_run(net->engine);
}

static void test_late_rank(void **state)
{
    const uint32_t device[] = {0, 1, 2, 3};
    SimCollective collective = {.traffic = TRAFFIC_ALL_REDUCE,
                                .algorithm = ALGORITHM_RING,
                                .bytes = 125e6,
                                .n = 4,
                                .device = device};
    double rank_s[4];
    (void)state;
    /* A ring waits for all. */
    g_auto(NetworkCase) ring =
        network_case("star:hosts=4,latency=0s", GRANULARITY_MACHINE);
    run_late(&ring, &collective, 3, rank_s);
    for (uint32_t r = 0; r < 4; r++)
        assert_close(rank_s[r], 3.15, 1e-12);
    /* Messages between the other ranks do not: rank 0 sends 3 parts of V/16 = 6.25 ms, the one to
     * the late rank when that arrives. */
    g_auto(NetworkCase) free_ =
        network_case("star:hosts=4,latency=0s", GRANULARITY_MACHINE);
    collective.traffic = TRAFFIC_ALL_TO_ALL;
    collective.algorithm = ALGORITHM_DIRECT;
    run_late(&free_, &collective, 3, rank_s);
    for (uint32_t r = 0; r < 4; r++)
        assert_close(rank_s[r], 3.01875, 1e-12);
    assert_close(sim_network_link_busy_s(free_.network, 0), 0.0125 + 0.01875, 1e-9);
    /* A rank without messages from the late rank is done before that arrives. */
    g_auto(NetworkCase) tree =
        network_case("star:hosts=4,latency=0s", GRANULARITY_MACHINE);
    collective.traffic = TRAFFIC_BROADCAST;
    run_late(&tree, &collective, 3, rank_s);
    assert_close(rank_s[1], 0.2, 1e-12);
    assert_close(rank_s[3], 3.1, 1e-12);
    assert_close(rank_s[0], 3.1, 1e-12);
}

/* --- groups --- */

/* Four groups of two next to one another, as one collective and as four. */
static void test_groups(void **state)
{
    const uint32_t device[] = {0, 1, 2, 3, 4, 5, 6, 7};
    SimCollective collective = {.traffic = TRAFFIC_ALL_REDUCE,
                                .algorithm = ALGORITHM_RING,
                                .bytes = 125e6,
                                .n = 2,
                                .n_groups = 4,
                                .device = device};
    (void)state;
    g_auto(NetworkCase) net =
        network_case("star:hosts=8,latency=0s", GRANULARITY_MACHINE);
    assert_close(collective_s(&net, collective, NULL), 0.1, 1e-12);
    assert_int_equal(sim_network_solved(net.network), 1);
    collective.traffic = TRAFFIC_ALL_TO_ALL;
    collective.algorithm = ALGORITHM_DIRECT;
    assert_close(collective_s(&net, collective, NULL), 0.025, 1e-12);
}

/* --- the edges --- */

static void test_small_and_large(void **state)
{
    static const double BYTES[] = {1, 1e9};
    (void)state;
    for (size_t b = 0; b < G_N_ELEMENTS(BYTES); b++)
        for (Traffic t = 0; t < TRAFFICS; t++)
            for (Algorithm a = 0; a < ALGORITHMS; a++) {
                g_auto(NetworkCase) net =
                    network_case("star:hosts=8", GRANULARITY_MACHINE);
                const SimCollective collective = {
                    .traffic = t, .algorithm = a, .bytes = BYTES[b]};
                g_autoptr(SimLowered) lowered = NULL;
                if (!can_do(&net, collective, &lowered))
                    continue;
                const double seconds = collective_s(&net, collective, NULL);
                const double latency_s = sim_lowered_latency_s(lowered);
                assert_at_most(10e-6, latency_s);
                assert_at_most(latency_s, seconds);
                if (BYTES[b] == 1) /* nothing but latency, to 40 bytes */
                    assert_at_most(seconds, latency_s + 40 / 1.25e9);
                else /* at most everything through one port, twice */
                    assert_at_most(seconds, latency_s + 2.1 * 8 * BYTES[b] / 1.25e9);
            }
}

static void test_one_rank(void **state)
{
    (void)state;
    for (Traffic t = 0; t < TRAFFICS; t++) {
        g_auto(NetworkCase) net = network_case("star:hosts=1", GRANULARITY_MACHINE);
        const SimCollective collective = {.traffic = t, .bytes = 1e6};
        if (t == TRAFFIC_SEND) {
            g_autoptr(GError) error = NULL;
            const uint32_t device = 0;
            const SimCollective send = {
                .traffic = t, .bytes = 1e6, .n = 1, .device = &device};
            assert_null(sim_lower(net.network, &send, &error));
            assert_error(error, KILTER_ERROR_INPUT, "expected 2 ranks");
        } else {
            assert_true(collective_s(&net, collective, NULL) == 0);
        }
    }
}

static void refuses(SimCollective collective, const char *message)
{
    g_auto(NetworkCase) net = network_case(
        "star:hosts=3,gpus=2,inner_bandwidth=1GB/s,inner_latency=1us", GRANULARITY_GPU);
    const uint32_t device[] = {0, 1, 2};
    g_autoptr(GError) error = NULL;
    collective.device = collective.device ? collective.device : device;
    collective.n = 3;
    assert_null(sim_lower(net.network, &collective, &error));
    assert_error(error, KILTER_ERROR_INPUT, message);
}

static void test_refusals(void **state)
{
    const uint32_t device[] = {0, 1, 6};
    (void)state;
    refuses((SimCollective){.traffic = TRAFFIC_ALL_TO_ALL, .algorithm = ALGORITHM_RING},
            "ring does not do all_to_all; expected one of pairwise, direct");
    refuses(
        (SimCollective){.traffic = TRAFFIC_ALL_GATHER, .algorithm = ALGORITHM_HALVING},
        "needs a power of two of ranks, got 3");
    refuses((SimCollective){.traffic = TRAFFIC_ALL_REDUCE,
                            .algorithm = ALGORITHM_HIERARCHICAL},
            "equally many ranks in each machine, got 2 and 1");
    refuses((SimCollective){.traffic = TRAFFIC_BROADCAST, .root = 3}, "root 3");
    refuses((SimCollective){.traffic = TRAFFIC_BROADCAST, .device = device},
            "device 6: the network has 6");
    refuses((SimCollective){.traffic = TRAFFIC_BROADCAST, .bytes = INFINITY}, "finite");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_rounds_advance_together),
        cmocka_unit_test(test_fitted_network),
        cmocka_unit_test(test_conservation),
        cmocka_unit_test(test_permutation),
        cmocka_unit_test(test_scaling),
        cmocka_unit_test(test_uneven_shares),
        cmocka_unit_test(test_late_rank),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_small_and_large),
        cmocka_unit_test(test_one_rank),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("lowering", tests, NULL, NULL);
}
