/* Messages bundled into one flow while nothing interferes (sim/network/bundle.c) end at the same
 * times as single messages, whatever comes in between. */
#include "sim/network/lower/lower.h"
#include "tests/support/collective_case.h"

enum { CASES = 400, MAX_OTHERS = 3, MAX_RANKS = 32 };

static const char *const NETWORKS[] = {
    "star:hosts=9",
    "star:hosts=6,latency=0s",
    "tree:hosts=16,leaf=4,oversubscription=4",
    "tree:hosts=13,leaf=3,spines=2,oversubscription=2",
    "tree:hosts=16,leaf=2,pod=2,oversubscription=3",
    "rail:hosts=3,gpus=4,rails=4,inner_bandwidth=3GB/s,inner_latency=9us",
    "dragonfly:hosts=16,leaf=2,group=4,global=1",
};

static const struct {
    Traffic traffic;
    Algorithm algorithm;
} KINDS[] = {
    {TRAFFIC_ALL_TO_ALL, ALGORITHM_DIRECT},     {TRAFFIC_ALL_GATHER, ALGORITHM_DIRECT},
    {TRAFFIC_REDUCE_SCATTER, ALGORITHM_DIRECT}, {TRAFFIC_PUSH, ALGORITHM_DIRECT},
    {TRAFFIC_PULL, ALGORITHM_DIRECT},
};

/* An interference: a message, or a link that gets slower. */
typedef struct {
    double at_s;
    bool link;
    uint32_t from, to;
    double bytes, end_s;
} Other;

typedef struct {
    NetworkCase net;
    uint32_t n, n_others;
    uint32_t device[MAX_RANKS];
    double share[MAX_RANKS];
    SimCollective collective;
    Other other[MAX_OTHERS];
    bool twice; /* the collective runs a second time, from the end of the first */
    SimLowered *lowered;
    SimRun *run[2];
    bool bundled;
    double rank_s[2][MAX_RANKS];
    uint32_t n_ended;
} Case;

static Case make_case(uint32_t seed, bool bundled)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    const size_t kind = (size_t)g_rand_int_range(rand, 0, G_N_ELEMENTS(KINDS));
    Case c = {.net =
                  network_case(NETWORKS[seed % G_N_ELEMENTS(NETWORKS)], GRANULARITY_GPU),
              .bundled = bundled};

    c.n = c.net.topology->n_devices;
    for (uint32_t j = 0; j < c.n; j++) {
        c.device[j] = j;
        c.share[j] = (j % 2 ? 1.5 : 0.5) / c.n; /* two kinds of ranks */
    }
    c.collective = (SimCollective){.traffic = KINDS[kind].traffic,
                                   .algorithm = KINDS[kind].algorithm,
                                   .bytes = 1e6 * g_rand_int_range(rand, 1, 100),
                                   .n = c.n};
    if (g_rand_boolean(rand))
        c.collective.root = c.collective.traffic == TRAFFIC_PUSH ? c.n : 0;
    c.twice = g_rand_boolean(rand);
    c.n_others = (uint32_t)g_rand_int_range(rand, 0, MAX_OTHERS + 1);
    for (uint32_t i = 0; i < c.n_others; i++) {
        Other *o = &c.other[i];
        o->link = g_rand_int_range(rand, 0, 4) == 0;
        o->at_s = g_rand_int_range(rand, 0, 4) == 0 ? 0 : 0.1 * g_rand_double(rand);
        o->from = (uint32_t)g_rand_int_range(
            rand, 0, (gint32)(o->link ? c.net.topology->n_links : c.n));
        o->to = (uint32_t)g_rand_int_range(rand, 0, (gint32)c.n);
        o->bytes = 1e5 * g_rand_int_range(rand, 1, 1000);
    }
    return c;
}

/* --- a run --- */

static void begin(Case *c, uint32_t which);

static void rank_ends(SimEngine *engine, void *context, uint64_t rank)
{
    Case *c = context;
    const uint32_t which = c->run[1] != NULL;
    c->rank_s[which][rank] = sim_engine_now(engine);
    c->n_ended++;
}

static void run_ends(SimEngine *engine, void *context, uint64_t argument)
{
    Case *c = context;
    (void)engine;
    if (argument == 0 && c->twice)
        begin(c, 1);
}

static void begin(Case *c, uint32_t which)
{
    c->run[which] =
        sim_run_new(c->net.network, c->lowered, rank_ends, run_ends, c, which);
    if (c->bundled)
        sim_run_arrive_all(c->run[which]);
    for (uint32_t r = 0; !c->bundled && r < c->n; r++)
        sim_run_arrive(c->run[which], r);
}

static void begin_first(SimEngine *engine, void *context, uint64_t argument)
{
    (void)engine, (void)argument;
    begin(context, 0);
}

static void other_ends(SimEngine *engine, void *context, uint64_t argument)
{
    ((Case *)context)->other[argument].end_s = sim_engine_now(engine);
}

static void other_comes(SimEngine *engine, void *context, uint64_t argument)
{
    Case *c = context;
    const Other *o = &c->other[argument];
    (void)engine;
    if (o->link)
        sim_network_set_bandwidth(c->net.network, o->from,
                                  c->net.topology->link[o->from].bandwidth / 3);
    else
        network_send(&c->net, o->from, o->to, o->bytes, other_ends, c, argument);
}

static void run_case(Case *c)
{
    g_autoptr(GError) error = NULL;
    c->collective.device = c->device;
    if (c->collective.bytes > 5e7)
        c->collective.share_from = c->collective.share_to = c->share;
    c->lowered = sim_lower(c->net.network, &c->collective, &error);
    assert_no_error(error);
    sim_engine_schedule(c->net.engine, 0, 0, begin_first, c, 0);
    for (uint32_t i = 0; i < c->n_others; i++)
        sim_engine_schedule(c->net.engine, c->other[i].at_s, 0, other_comes, c, i);
    sim_engine_run(c->net.engine);
    assert_int_equal(c->n_ended, c->n * (1 + c->twice));
}

static void clear_case(Case *c)
{
    sim_run_free(c->run[0]);
    sim_run_free(c->run[1]);
    sim_lowered_free(c->lowered);
    network_case_clear(&c->net);
}

static void test_bundles_change_nothing(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        Case one = make_case(seed, false), all = make_case(seed, true);
        run_case(&one);
        run_case(&all);
        for (uint32_t k = 0; k < 1U + one.twice; k++)
            for (uint32_t r = 0; r < one.n; r++)
                assert_close(all.rank_s[k][r], one.rank_s[k][r], 1e-9);
        for (uint32_t i = 0; i < one.n_others; i++)
            assert_close(all.other[i].end_s, one.other[i].end_s, 1e-9);
        for (uint32_t l = 0; l < one.net.topology->n_links; l++) {
            assert_close(sim_network_link_bytes(all.net.network, l),
                         sim_network_link_bytes(one.net.network, l), 1e-9);
            assert_close(sim_network_link_busy_s(all.net.network, l),
                         sim_network_link_busy_s(one.net.network, l), 1e-9);
        }
        clear_case(&one);
        clear_case(&all);
    }
}

/* An even all-to-all on a tree is two flows: inside a leaf, and between leaves. */
static void test_classes(void **state)
{
    g_auto(NetworkCase) net =
        network_case("tree:hosts=64,leaf=8,oversubscription=4", GRANULARITY_GPU);
    uint32_t device[64];
    const SimCollective collective = {.traffic = TRAFFIC_ALL_TO_ALL,
                                      .algorithm = ALGORITHM_DIRECT,
                                      .bytes = 1e9,
                                      .n = 64,
                                      .device = device};
    g_autoptr(GError) error = NULL;
    (void)state;
    for (uint32_t j = 0; j < 64; j++)
        device[j] = j;
    g_autoptr(SimLowered) lowered = sim_lower(net.network, &collective, &error);
    assert_no_error(error);
    g_autoptr(SimRun) run = sim_run_new(net.network, lowered, NULL, NULL, NULL, 0);
    sim_run_arrive_all(run);
    sim_engine_run(net.engine);
    assert_int_equal(sim_network_solved(net.network), 2);
    assert_true(sim_network_is_idle(net.network));
}

/* Messages are bundled if each class has four of them on average, and not otherwise: here there
 * are as many classes as pairs of kinds of ranks. */
static void test_worth(void **state)
{
    enum { RANKS = 18, MEMBERS = 4 };
    uint32_t bundled = 0, single = 0;
    (void)state;
    for (uint32_t kinds = 1; kinds <= RANKS; kinds++) {
        g_auto(NetworkCase) net = network_case("star:hosts=18", GRANULARITY_GPU);
        uint32_t device[RANKS];
        double share[RANKS];
        const SimCollective collective = {.traffic = TRAFFIC_ALL_TO_ALL,
                                          .algorithm = ALGORITHM_DIRECT,
                                          .bytes = 1e9,
                                          .n = RANKS,
                                          .device = device,
                                          .share_from = share,
                                          .share_to = share};
        g_autoptr(GError) error = NULL;
        for (uint32_t j = 0; j < RANKS; j++) {
            device[j] = j;
            share[j] = (1 + 0.1 * (j % kinds)) / RANKS;
        }
        g_autoptr(SimLowered) lowered = sim_lower(net.network, &collective, &error);
        assert_no_error(error);
        assert_true(lowered->n_bundles * MEMBERS <= lowered->message->len);
        if (kinds == 1)
            assert_int_equal(lowered->n_bundles, 1);
        bundled += lowered->n_bundles > 0;
        single += lowered->n_bundles == 0;
    }
    assert_true(bundled > 5 && single > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bundles_change_nothing),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_worth),
    };
    return cmocka_run_group_tests_name("bundles", tests, NULL, NULL);
}
