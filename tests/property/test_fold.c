/* Links that count as one (sim/network/lower/fold.c) change neither times nor bytes, whatever runs
 * at the same time and whichever link becomes slower. */
#include "sim/network/lower/lower.h"
#include "tests/support/collective_case.h"

enum { CASES = 300, MAX_RUNS = 6, MAX_DEVICES = 64 };

static const char *const NETWORKS[] = {
    "star:hosts=12",
    "star:hosts=4,gpus=4,inner_bandwidth=3GB/s,inner_latency=9us",
    "tree:hosts=16,leaf=4,oversubscription=4",
    "tree:hosts=13,leaf=3,spines=2,oversubscription=2",
    "tree:hosts=16,leaf=2,pod=2,oversubscription=3,gpus=2,inner_bandwidth=3GB/s",
    "rail:hosts=4,gpus=4,rails=4,inner_bandwidth=3GB/s,inner_latency=9us",
    "dragonfly:hosts=16,leaf=2,group=4,global=1",
};

static const struct {
    Traffic traffic;
    Algorithm algorithm;
} KINDS[] = {
    {TRAFFIC_ALL_REDUCE, ALGORITHM_RING},
    {TRAFFIC_ALL_REDUCE, ALGORITHM_TREE},
    {TRAFFIC_ALL_REDUCE, ALGORITHM_HALVING},
    {TRAFFIC_ALL_GATHER, ALGORITHM_RING},
    {TRAFFIC_ALL_TO_ALL, ALGORITHM_PAIRWISE},
    {TRAFFIC_ALL_TO_ALL, ALGORITHM_DIRECT},
    {TRAFFIC_ALL_REDUCE, ALGORITHM_DOUBLE_TREE},
    {TRAFFIC_GROUPED_ALL_GATHER, ALGORITHM_RING},
};

typedef struct {
    NetworkCase net;
    uint32_t n_runs;
    uint32_t device[MAX_DEVICES], scattered[MAX_DEVICES];
    SimCollective collective[MAX_RUNS];
    SimLowered *lowered[MAX_RUNS];
    SimRun *run[MAX_RUNS];
    double start_s[MAX_RUNS], end_s[MAX_RUNS];
    bool slow; /* a link gets slower */
    uint32_t slow_link;
    double slow_s;
    uint32_t *stands; /* NULL: not folded */
} Case;

/* Teams of the devices: of neighbours or of devices at equal distances, all of them, in order or
 * not. */
static void make_collective(Case *c, GRand *rand, uint32_t i)
{
    const uint32_t n = c->net.topology->n_devices;
    const size_t kind = (size_t)g_rand_int_range(rand, 0, G_N_ELEMENTS(KINDS));
    uint32_t size = 2 + (uint32_t)g_rand_int_range(rand, 0, (gint32)n - 1);
    while (n % size)
        size--;
    c->collective[i] = (SimCollective){
        .traffic = KINDS[kind].traffic,
        .algorithm = KINDS[kind].algorithm,
        .bytes = 1e6 * g_rand_int_range(rand, 1, 50),
        .n = size,
        .n_groups = n / size,
        .device = g_rand_int_range(rand, 0, 3) ? c->device : c->scattered};
    c->start_s[i] = g_rand_boolean(rand) ? 0 : 0.02 * g_rand_double(rand);
    if (i > 0 && g_rand_boolean(rand)) { /* the same in another size */
        const double bytes = c->collective[i].bytes;
        c->collective[i] = c->collective[i - 1];
        c->collective[i].bytes = bytes;
    }
}

static void make_case(Case *c, uint32_t seed)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    *c = (Case){
        .net = network_case(NETWORKS[seed % G_N_ELEMENTS(NETWORKS)], GRANULARITY_GPU)};
    const uint32_t n = c->net.topology->n_devices;
    assert_at_most(n, MAX_DEVICES);
    for (uint32_t j = 0; j < n; j++)
        c->device[j] = c->scattered[j] = j;
    for (uint32_t j = n - 1; j > 0; j--) {
        const uint32_t k = (uint32_t)g_rand_int_range(rand, 0, (gint32)j + 1);
        const uint32_t was = c->scattered[j];
        c->scattered[j] = c->scattered[k];
        c->scattered[k] = was;
    }
    c->n_runs = (uint32_t)g_rand_int_range(rand, 1, MAX_RUNS + 1);
    for (uint32_t i = 0; i < c->n_runs; i++)
        make_collective(c, rand, i);
    c->slow = g_rand_boolean(rand);
    c->slow_link = (uint32_t)g_rand_int_range(rand, 0, (gint32)c->net.topology->n_links);
    c->slow_s = 0.05 * g_rand_double(rand);
}

static void ends(SimEngine *engine, void *context, uint64_t argument)
{
    ((Case *)context)->end_s[argument] = sim_engine_now(engine);
}

static void begins(SimEngine *engine, void *context, uint64_t argument)
{
    Case *c = context;
    (void)engine;
    c->run[argument] =
        sim_run_new(c->net.network, c->lowered[argument], NULL, ends, c, argument);
    sim_run_arrive_all(c->run[argument]);
}

static void slows(SimEngine *engine, void *context, uint64_t argument)
{
    Case *c = context;
    (void)engine, (void)argument;
    sim_network_set_bandwidth(c->net.network, c->slow_link,
                              c->net.topology->link[c->slow_link].bandwidth / 3);
}

/* Lowers each collective alone, or like the one before and folded. */
static void run_case(Case *c, bool folded)
{
    g_autoptr(GError) error = NULL;
    for (uint32_t i = 0; i < c->n_runs; i++) {
        const bool same = i > 0 &&
                          c->collective[i].traffic == c->collective[i - 1].traffic &&
                          c->collective[i].n == c->collective[i - 1].n &&
                          c->collective[i].device == c->collective[i - 1].device;
        c->lowered[i] =
            sim_lower_like(c->net.network, &c->collective[i],
                           folded && same ? c->lowered[i - 1] : NULL, NULL, &error);
        assert_no_error(error);
    }
    if (folded) {
        g_autofree bool *apart = g_new0(bool, c->net.topology->n_links);
        apart[c->slow_link] = c->slow;
        c->stands = sim_lowered_fold(c->lowered, c->n_runs, c->net.topology, apart);
    }
    for (uint32_t i = 0; i < c->n_runs; i++)
        sim_engine_schedule(c->net.engine, c->start_s[i], 0, begins, c, i);
    if (c->slow)
        sim_engine_schedule(c->net.engine, c->slow_s, 0, slows, c, 0);
    sim_engine_run(c->net.engine);
}

static void clear_case(Case *c)
{
    for (uint32_t i = 0; i < c->n_runs; i++) {
        sim_run_free(c->run[i]);
        sim_lowered_free(c->lowered[i]);
    }
    g_free(c->stands);
    network_case_clear(&c->net);
}

static void test_folding_changes_nothing(void **state)
{
    uint32_t n_folded = 0;
    (void)state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        Case one, all;
        make_case(&one, seed);
        make_case(&all, seed);
        run_case(&one, false);
        run_case(&all, true);
        for (uint32_t i = 0; i < one.n_runs; i++) {
            assert_at_most(one.start_s[i], one.end_s[i]);
            assert_close(all.end_s[i], one.end_s[i], 1e-9);
            assert_close(sim_lowered_bytes(all.lowered[i]),
                         sim_lowered_bytes(one.lowered[i]), 1e-12);
        }
        for (uint32_t l = 0; l < one.net.topology->n_links; l++) {
            const uint32_t by = all.stands[l];
            assert_int_equal(all.stands[by], by);
            n_folded += by != l;
            assert_close(sim_network_link_bytes(all.net.network, by),
                         sim_network_link_bytes(one.net.network, l), 1e-9);
            assert_close(sim_network_link_busy_s(all.net.network, by),
                         sim_network_link_busy_s(one.net.network, l), 1e-9);
        }
        clear_case(&one);
        clear_case(&all);
    }
    assert_true(n_folded > CASES); /* there was something to fold */
}

static uint32_t count_uses(const SimLowered *lowered)
{
    return lowered->uses->use->len;
}

/* Rings in all machines, and rings of the GPUs of equal index over all machines: each takes the
 * links of one GPU, however many there are; a link that may become slower is one more. */
static void test_regular(void **state)
{
    (void)state;
    for (uint32_t hosts = 4; hosts <= 16; hosts *= 2)
        for (uint32_t slow = 0; slow < 2; slow++) {
            g_autofree char *name =
                g_strdup_printf("star:hosts=%u,gpus=4,inner_bandwidth=3GB/s", hosts);
            g_auto(NetworkCase) net = network_case(name, GRANULARITY_GPU);
            uint32_t device[2][MAX_DEVICES];
            SimLowered *lowered[2];
            g_autoptr(GError) error = NULL;
            for (uint32_t j = 0; j < 4 * hosts; j++) {
                device[0][j] = j;
                device[1][j] = j % hosts * 4 + j / hosts;
            }
            for (uint32_t i = 0; i < 2; i++) {
                const SimCollective collective = {.traffic = TRAFFIC_ALL_REDUCE,
                                                  .algorithm = ALGORITHM_RING,
                                                  .bytes = 1e6,
                                                  .n = i ? hosts : 4,
                                                  .n_groups = i ? 4 : hosts,
                                                  .device = device[i]};
                lowered[i] = sim_lower(net.network, &collective, &error);
                assert_no_error(error);
            }
            g_autofree bool *apart = g_new0(bool, net.topology->n_links);
            apart[0] = slow;
            g_free(sim_lowered_fold(lowered, 2, net.topology, apart));
            /* A link of a GPU for the first; it, and the link of a machine, for the second. */
            assert_int_equal(count_uses(lowered[0]), 1 + slow);
            assert_int_equal(count_uses(lowered[1]), 2 + slow);
            sim_lowered_free(lowered[0]);
            sim_lowered_free(lowered[1]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folding_changes_nothing),
        cmocka_unit_test(test_regular),
    };
    return cmocka_run_group_tests_name("fold", tests, NULL, NULL);
}
