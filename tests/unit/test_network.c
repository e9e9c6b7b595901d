/* Flows: sharing by hand, changes of bandwidth, queries of the state, and random sets of flows
 * compared with a simulation that solves for all rates at every instant. */
#include "tests/support/collective_case.h"

typedef struct {
    NetworkCase *net;
    uint32_t from, to;
    double bytes;
    double *end_s;
} Send;

static void send_at(SimEngine *engine, void *context, uint64_t argument)
{
    const Send *send = &((const Send *)context)[argument];
    (void)engine;
    network_send(send->net, send->from, send->to, send->bytes, note_time, send->end_s,
                 argument);
}

/* 10 Gb/s is 1.25 GB/s; two links of 5 us. */
static void test_shared_port(void **state)
{
    g_auto(NetworkCase) net = network_case("star:hosts=4", GRANULARITY_MACHINE);
    double end_s[3];
    Send send[] = {{&net, 0, 1, 1.25e9, end_s},
                   {&net, 0, 2, 0.625e9, end_s},
                   {&net, 3, 2, 1.25e9, end_s}};
    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        sim_engine_schedule(net.engine, 0, 0, send_at, send, i);
    sim_engine_run(net.engine);
    /* All at half a port until 1 s, when the second is done; then each has its own. */
    assert_close(end_s[1], 1 + 10e-6, 1e-12);
    assert_close(end_s[0], 1.5 + 10e-6, 1e-12);
    assert_close(end_s[2], 1.5 + 10e-6, 1e-12);
    assert_close(sim_network_link_bytes(net.network, 0), 1.875e9, 1e-12);
    assert_close(sim_network_link_busy_s(net.network, 0), 1.5, 1e-12);
    assert_true(sim_network_is_idle(net.network));
}

/* Both directions of a cable at once. */
static void test_full_duplex(void **state)
{
    g_auto(NetworkCase) net = network_case("star:hosts=2", GRANULARITY_MACHINE);
    double end_s[2];
    Send send[] = {{&net, 0, 1, 1.25e9, end_s}, {&net, 1, 0, 1.25e9, end_s}};
    (void)state;
    sim_engine_schedule(net.engine, 0, 0, send_at, send, 0);
    sim_engine_schedule(net.engine, 0, 0, send_at, send, 1);
    sim_engine_run(net.engine);
    assert_close(end_s[0], 1 + 10e-6, 1e-12);
    assert_close(end_s[1], 1 + 10e-6, 1e-12);
}

static void test_nothing_to_send(void **state)
{
    g_auto(NetworkCase) net = network_case("star:hosts=2", GRANULARITY_MACHINE);
    double end_s[2] = {-1, -1};
    (void)state;
    network_send(&net, 0, 1, 0, note_time, end_s, 0);
    network_send(&net, 1, 1, 5, note_time, end_s, 1);
    sim_engine_run(net.engine);
    assert_close(end_s[0], 10e-6, 1e-12);
    assert_true(end_s[1] == 0);
}

typedef struct {
    SimNetwork *network;
    uint32_t link;
    double bandwidth;
} Change;

static void change(SimEngine *engine, void *context, uint64_t argument)
{
    const Change *c = context;
    (void)engine, (void)argument;
    sim_network_set_bandwidth(c->network, c->link, c->bandwidth);
}

static void look(SimEngine *engine, void *context, uint64_t argument)
{
    (void)engine;
    assert_close(sim_network_link_bytes(context, 0), (double)argument, 1e-9);
}

/* A link fails after half of the bytes and comes back a second later. */
static void test_failure(void **state)
{
    g_auto(NetworkCase) net =
        network_case("star:hosts=2,latency=0s", GRANULARITY_MACHINE);
    double end_s[1];
    Change off = {net.network, 0, 0}, on = {net.network, 0, 1.25e9};
    (void)state;
    network_send(&net, 0, 1, 1.25e9, note_time, end_s, 0);
    sim_engine_schedule(net.engine, 0.5, 0, change, &off, 0);
    sim_engine_schedule(net.engine, 1.0, 0, look, net.network, 625000000);
    sim_engine_schedule(net.engine, 1.5, 0, change, &on, 0);
    sim_engine_schedule(net.engine, 1.5, 2, look, net.network, 625000000);
    sim_engine_schedule(net.engine, 1.75, 0, look, net.network, 937500000);
    sim_engine_run(net.engine);
    assert_close(end_s[0], 2, 1e-12);
}

/* A link that stays down leaves its flow standing, and the run ends. */
static void test_failure_for_good(void **state)
{
    g_auto(NetworkCase) net = network_case("star:hosts=3", GRANULARITY_MACHINE);
    double end_s[2] = {-1, -1};
    Send send[] = {{&net, 0, 1, 1e6, end_s}, {&net, 0, 2, 1e6, end_s}};
    uint32_t link[ROUTE_MAX_LINKS];
    (void)state;
    assert_int_equal(sim_network_route(net.network, 0, 2, link), 2);
    sim_network_set_bandwidth(net.network, link[1], 0);
    sim_engine_schedule(net.engine, 0, 0, send_at, send, 0);
    sim_engine_schedule(net.engine, 0, 0, send_at, send, 1);
    sim_engine_run(net.engine);
    assert_close(end_s[0], 1e6 / 1.25e9 + 10e-6, 1e-9); /* has the port alone */
    assert_true(end_s[1] == -1);
    assert_false(sim_network_is_idle(net.network));
}

/* Flows on ports of their own are not solved for again. */
static void test_only_what_changes(void **state)
{
    g_auto(NetworkCase) net = network_case("star:hosts=64", GRANULARITY_MACHINE);
    double end_s[32];
    Send send[32];
    (void)state;
    for (uint32_t i = 0; i < 32; i++) {
        send[i] = (Send){&net, 2 * i, 2 * i + 1, 1e6 * (i + 1), end_s};
        sim_engine_schedule(net.engine, 1e-3 * i, 0, send_at, send, i);
    }
    sim_engine_run(net.engine);
    assert_int_equal(sim_network_solved(net.network), 32); /* none at the ends */
    for (uint32_t i = 0; i < 32; i++)
        assert_close(end_s[i], 1e-3 * i + 1e6 * (i + 1) / 1.25e9 + 10e-6, 1e-12);
}

/* --- against the obvious simulation --- */

enum { REF_FLOWS = 40 };

typedef struct {
    double start_s, left, rate, end_s, weight[256]; /* weight: [link], 0: not used */
    bool fixed;
} RefFlow;

static bool is_moving(const RefFlow *flow, double now_s)
{
    return flow->start_s <= now_s && flow->end_s < 0;
}

/* All rates from zero: the link with the least room per weight is full next. */
static void ref_rates(const Topology *topology, RefFlow *flow, uint32_t n, double now_s)
{
    for (uint32_t i = 0; i < n; i++)
        flow[i].fixed = !is_moving(&flow[i], now_s);
    for (;;) {
        double least = INFINITY;
        uint32_t full = 0;
        for (uint32_t l = 0; l < topology->n_links; l++) {
            double room = topology->link[l].bandwidth, weight = 0;
            for (uint32_t i = 0; i < n; i++) {
                if (flow[i].fixed && is_moving(&flow[i], now_s))
                    room -= flow[i].weight[l] * flow[i].rate;
                else if (!flow[i].fixed)
                    weight += flow[i].weight[l];
            }
            if (weight > 0 && room / weight < least) {
                least = room / weight;
                full = l;
            }
        }
        if (least == INFINITY)
            return;
        for (uint32_t i = 0; i < n; i++)
            if (!flow[i].fixed && flow[i].weight[full] > 0) {
                flow[i].fixed = true;
                flow[i].rate = fmax(least, 0);
            }
    }
}

static void ref_run(const Topology *topology, RefFlow *flow, uint32_t n)
{
    for (double now_s = 0;;) {
        double next_s = INFINITY;
        ref_rates(topology, flow, n, now_s);
        for (uint32_t i = 0; i < n; i++) {
            if (is_moving(&flow[i], now_s))
                next_s = fmin(next_s, now_s + flow[i].left / flow[i].rate);
            else if (flow[i].end_s < 0)
                next_s = fmin(next_s, flow[i].start_s);
        }
        if (next_s == INFINITY)
            return;
        for (uint32_t i = 0; i < n; i++) {
            if (!is_moving(&flow[i], now_s))
                continue;
            const double end_s = now_s + flow[i].left / flow[i].rate;
            flow[i].left -= flow[i].rate * (next_s - now_s);
            if (end_s <= next_s * (1 + 1e-13))
                flow[i].end_s = next_s;
        }
        now_s = next_s;
    }
}

static const char *const RANDOM_ON[] = {
    "star:hosts=9",
    "tree:hosts=16,leaf=4,oversubscription=3",
    "tree:hosts=18,leaf=3,spines=2,oversubscription=2",
    "tree:hosts=24,leaf=2,pod=3,spines=2,oversubscription=2",
    "dragonfly:hosts=18,leaf=2,group=3,global=1",
    "rail:hosts=4,gpus=4,rails=4,inner_bandwidth=3GB/s,inner_latency=10us",
};

static void start_flow(SimEngine *engine, void *context, uint64_t argument)
{
    const SimFlow *flow = &((const SimFlow *)context)[argument];
    (void)engine;
    sim_network_start(flow->context, flow);
}

typedef struct {
    double *end_s;
} Watched;

static void note_end(SimEngine *engine, void *context, uint64_t argument)
{
    const Watched *watched = (const Watched *)(uintptr_t)argument;
    (void)context;
    *watched->end_s = sim_engine_now(engine);
}

/* A flow of one message, or of several in lockstep. */
static uint32_t random_uses(NetworkCase *net, GRand *rand, SimUse *use, double *latency_s,
                            double *weight)
{
    const uint32_t n = net->topology->n_devices;
    const int messages = g_rand_boolean(rand) ? 1 : g_rand_int_range(rand, 2, 6);
    uint32_t n_uses = 0;

    *latency_s = 0;
    for (int m = 0; m < messages; m++) {
        uint32_t link[ROUTE_MAX_LINKS];
        const uint32_t a = (uint32_t)g_rand_int_range(rand, 0, (gint32)n);
        const uint32_t b = (a + (uint32_t)g_rand_int_range(rand, 1, (gint32)n)) % n;
        const uint32_t links = sim_network_route(net->network, a, b, link);
        for (uint32_t k = 0; k < links; k++) {
            *latency_s += net->topology->link[link[k]].latency_s;
            weight[link[k]] += 1;
        }
    }
    for (uint32_t l = 0; l < net->topology->n_links; l++)
        if (weight[l] > 0)
            use[n_uses++] = (SimUse){l, weight[l]};
    return n_uses;
}

static void compare_random(const char *cluster, GRand *rand)
{
    g_auto(NetworkCase) net = network_case(cluster, GRANULARITY_GPU);
    g_autofree RefFlow *ref = g_new0(RefFlow, REF_FLOWS);
    g_autofree SimUse *use = g_new0(SimUse, REF_FLOWS * 256);
    g_autofree Watched *watched = g_new0(Watched, REF_FLOWS);
    g_autofree SimFlow *flow = g_new0(SimFlow, REF_FLOWS);
    double end_s[REF_FLOWS];
    const uint32_t n = (uint32_t)g_rand_int_range(rand, 1, REF_FLOWS + 1);

    assert_true(net.topology->n_links <= 256);
    for (uint32_t i = 0; i < n; i++) {
        double latency_s;
        const uint32_t n_uses =
            random_uses(&net, rand, &use[i * 256], &latency_s, ref[i].weight);
        const double bytes = 1e6 * (1 << g_rand_int_range(rand, 0, 8));
        const double start_s = 1e-3 * g_rand_int_range(rand, 0, 8);
        ref[i].start_s = start_s + latency_s;
        ref[i].left = bytes;
        ref[i].end_s = -1;
        watched[i].end_s = &end_s[i];
        flow[i] = (SimFlow){&use[i * 256],
                            n_uses,
                            bytes,
                            1,
                            1,
                            latency_s,
                            note_end,
                            net.network,
                            (uint64_t)(uintptr_t)&watched[i]};
        sim_engine_schedule(net.engine, start_s, 0, start_flow, flow, i);
    }
    ref_run(net.topology, ref, n);
    sim_engine_run(net.engine);
    for (uint32_t i = 0; i < n; i++)
        assert_close(end_s[i], ref[i].end_s, 1e-9);
    /* Every link carried what its flows moved. */
    for (uint32_t l = 0; l < net.topology->n_links; l++) {
        double bytes = 0;
        for (uint32_t i = 0; i < n; i++)
            bytes += flow[i].bytes * ref[i].weight[l];
        assert_close(sim_network_link_bytes(net.network, l), bytes, 1e-9);
    }
}

static void test_random_flows(void **state)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(11);
    (void)state;
    for (uint32_t i = 0; i < 120; i++)
        compare_random(RANDOM_ON[i % G_N_ELEMENTS(RANDOM_ON)], rand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_port),      cmocka_unit_test(test_full_duplex),
        cmocka_unit_test(test_nothing_to_send),  cmocka_unit_test(test_failure),
        cmocka_unit_test(test_failure_for_good), cmocka_unit_test(test_only_what_changes),
        cmocka_unit_test(test_random_flows),
    };
    return cmocka_run_group_tests_name("network", tests, NULL, NULL);
}
