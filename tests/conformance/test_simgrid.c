/* Flows against SimGrid (model CM02, correction factors off) where it is installed: random networks
 * and sets of flows, each in its own process, since SimGrid runs only once per process.
 *
 * CM02 shares a link in proportion to 1 / latency of the flows, max-min fairness does not:
 * the two agree where all latencies are equal. Cases therefore have none, or are stars. */
#include <simgrid/actor.h>
#include <simgrid/comm.h>
#include <simgrid/host.h>
#include <simgrid/mailbox.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/collective_case.h"
#include "tests/support/program_json.h"
#include "tests/support/simgrid.h"

enum { CASES = 200, MAX_FLOWS = 30 };
static const double AGREE = 1e-4;

/* The largest difference among 3,000 cases was 1.6e-15. */
static const uint32_t WORST = 1127;

typedef struct {
    uint32_t from, to;
    double start_s, bytes, end_s;
} Flow;

typedef struct {
    NetworkCase net;
    uint32_t n;
    Flow flow[MAX_FLOWS];
} Case;

static const char *const NETWORKS[] = {
    "star:hosts=8,latency=20us",
    "star:hosts=12,latency=0s",
    "tree:hosts=16,leaf=4,oversubscription=3,latency=0s",
    "tree:hosts=12,leaf=3,spines=2,oversubscription=2,latency=0s",
    "tree:hosts=16,leaf=2,pod=2,spines=2,oversubscription=2,latency=0s",
    "dragonfly:hosts=18,leaf=2,group=3,global=1,latency=0s",
    "rail:hosts=4,gpus=4,rails=4,inner_bandwidth=3GB/s,inner_latency=0s,latency=0s",
};

/* Bandwidths are drawn for each cable, flows at random, some of them at the same time. */
static Case make_case(uint32_t seed)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    Case c = {.net =
                  network_case(NETWORKS[seed % G_N_ELEMENTS(NETWORKS)], GRANULARITY_GPU)};
    const gint32 devices = (gint32)c.net.topology->n_devices;

    for (uint32_t l = 0; l < c.net.topology->n_links; l += 2)
        c.net.topology->link[l].bandwidth = c.net.topology->link[l + 1].bandwidth =
            1e9 * g_rand_double_range(rand, 0.2, 4);
    sim_network_free(c.net.network); /* it was built with the old bandwidths */
    c.net.network = sim_network_new(c.net.engine, c.net.topology);
    c.n = (uint32_t)g_rand_int_range(rand, 1, MAX_FLOWS + 1);
    for (uint32_t i = 0; i < c.n; i++) {
        Flow *flow = &c.flow[i];
        flow->from = (uint32_t)g_rand_int_range(rand, 0, devices);
        flow->to = (flow->from + (uint32_t)g_rand_int_range(rand, 1, devices)) %
                   (uint32_t)devices;
        flow->start_s = 0.01 * g_rand_int_range(rand, 0, 6);
        flow->bytes = g_rand_int_range(rand, 1000000, 100000000);
    }
    return c;
}

/* --- ours --- */

static void flow_done(SimEngine *engine, void *context, uint64_t argument)
{
    ((Case *)context)->flow[argument].end_s = sim_engine_now(engine);
}

static void flow_start(SimEngine *engine, void *context, uint64_t argument)
{
    Case *c = context;
    const Flow *flow = &c->flow[argument];
    (void)engine;
    network_send(&c->net, flow->from, flow->to, flow->bytes, flow_done, c, argument);
}

static void run_ours(Case *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        sim_engine_schedule(c->net.engine, c->flow[i].start_s, 0, flow_start, c, i);
    sim_engine_run(c->net.engine);
}

/* --- SimGrid's, in a child --- */

static char *platform(const Case *c)
{
    SimgridPair pair[MAX_FLOWS];
    for (uint32_t i = 0; i < c->n; i++)
        pair[i] = (SimgridPair){c->flow[i].from, c->flow[i].to};
    return simgrid_platform(c->net.topology, c->net.network, pair, c->n);
}

/* Actors get a pointer to their flow as text. */
static Flow *flow_of(char **argv)
{
    return (Flow *)(uintptr_t)g_ascii_strtoull(argv[1], NULL, 16);
}

static void send_actor(int argc, char **argv)
{
    const Flow *flow = flow_of(argv);
    g_autofree char *name = g_strdup_printf("%p", (const void *)flow);
    (void)argc;
    if (flow->start_s > 0)
        sg_actor_sleep_for(flow->start_s);
    sg_mailbox_put(sg_mailbox_by_name(name), name, (long)flow->bytes);
}

static void receive_actor(int argc, char **argv)
{
    Flow *flow = flow_of(argv);
    g_autofree char *name = g_strdup_printf("%p", (const void *)flow);
    (void)argc;
    sg_mailbox_get(sg_mailbox_by_name(name));
    flow->end_s = simgrid_get_clock();
}

static void add_actors(Flow *flow)
{
    g_autofree char *pointer =
        g_strdup_printf("%" G_GINTPTR_MODIFIER "x", (guintptr)(void *)flow);
    g_autofree char *from = g_strdup_printf("h%u", flow->from);
    g_autofree char *to = g_strdup_printf("h%u", flow->to);
    const char *argv[] = {"flow", pointer, NULL};
    sg_actor_create_("send", sg_host_by_name(from), send_actor, 2, argv);
    sg_actor_create_("receive", sg_host_by_name(to), receive_actor, 2, argv);
}

static void run_simgrid(Case *c, int output)
{
    g_autofree char *xml = platform(c);
    if (!simgrid_begin(xml))
        _exit(1);
    for (uint32_t i = 0; i < c->n; i++)
        add_actors(&c->flow[i]);
    simgrid_run();
    for (uint32_t i = 0; i < c->n; i++)
        if (write(output, &c->flow[i].end_s, sizeof(double)) != sizeof(double))
            _exit(1);
    _exit(0);
}

/* The largest relative difference of a flow's end. */
static double compare(uint32_t seed)
{
    Case c = make_case(seed);
    int pipe_ends[2];
    double theirs_s[MAX_FLOWS], largest = 0;

    assert_int_equal(pipe(pipe_ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        run_simgrid(&c, pipe_ends[1]);
    close(pipe_ends[1]);
    run_ours(&c);
    for (uint32_t i = 0; i < c.n; i++)
        if (read(pipe_ends[0], &theirs_s[i], sizeof(double)) != sizeof(double))
            fail_msg("case %u: SimGrid did not say when flow %u ends", seed, i);
    close(pipe_ends[0]);
    waitpid(child, NULL, 0);
    for (uint32_t i = 0; i < c.n; i++)
        largest = fmax(largest, fabs(c.flow[i].end_s - theirs_s[i]) / theirs_s[i]);
    network_case_clear(&c.net);
    return largest;
}

static void test_random_cases(void **state)
{
    double largest = 0;
    uint32_t worst = 0;
    (void)state;
    for (uint32_t i = 0; i <= CASES; i++) {
        const uint32_t seed = i < CASES ? i : WORST;
        const double difference = compare(seed);
        if (difference > largest) {
            largest = difference;
            worst = seed;
        }
    }
    print_message("largest relative difference %.3g, case %u\n", largest, worst);
    assert_at_most(largest, AGREE);
}

/* --- whole collectives --- */

/* The part of each rank, written down here once more: rounds in which it sends to rank + shift and
 * receives from rank - shift, each begun when the one before is done, or all at once. */
typedef struct {
    const char *network;
    Traffic traffic;
    Algorithm algorithm;
    uint32_t turns; /* rounds are turns * (n - 1) */
    bool rotates;   /* the shift is the round's number + 1, else 1 */
    bool at_once;
} Whole;

/* Networks where both are exact: equal latencies at one switch, else none, and there no rounds in
 * which some messages end before others. */
static const Whole WHOLE[] = {
    {"star:hosts=8,bandwidth=10Gb/s,latency=20us", TRAFFIC_ALL_REDUCE, ALGORITHM_RING, 2,
     false, false},
    {"star:hosts=5,bandwidth=100Gb/s,latency=3us", TRAFFIC_ALL_REDUCE, ALGORITHM_RING, 2,
     false, false},
    {"star:hosts=12,latency=0s", TRAFFIC_ALL_GATHER, ALGORITHM_RING, 1, false, false},
    {"star:hosts=7,latency=50us", TRAFFIC_REDUCE_SCATTER, ALGORITHM_RING, 1, false,
     false},
    {"star:hosts=9,latency=7us", TRAFFIC_ALL_TO_ALL, ALGORITHM_PAIRWISE, 1, true, false},
    {"star:hosts=16,latency=11us", TRAFFIC_ALL_TO_ALL, ALGORITHM_DIRECT, 1, true, true},
    {"tree:hosts=16,leaf=4,oversubscription=3,latency=0s", TRAFFIC_ALL_TO_ALL,
     ALGORITHM_DIRECT, 1, true, true},
    {"tree:hosts=12,leaf=3,spines=2,oversubscription=2,latency=0s", TRAFFIC_ALL_TO_ALL,
     ALGORITHM_DIRECT, 1, true, true},
    {"dragonfly:hosts=18,leaf=2,group=3,global=1,latency=0s", TRAFFIC_ALL_TO_ALL,
     ALGORITHM_DIRECT, 1, true, true},
    {"rail:hosts=4,gpus=4,rails=4,inner_bandwidth=3GB/s,inner_latency=0s,latency=0s",
     TRAFFIC_ALL_TO_ALL, ALGORITHM_DIRECT, 1, true, true},
};
static const long PART = 1000000; /* bytes of a message */

typedef struct {
    const Whole *whole;
    uint32_t rank, n;
    double end_s;
} Rank;

static sg_mailbox_t mailbox(uint32_t from, uint32_t to, uint32_t round)
{
    g_autofree char *name = g_strdup_printf("%u-%u-%u", from, to, round);
    return sg_mailbox_by_name(name);
}

static void rank_actor(int argc, char **argv)
{
    Rank *rank = (Rank *)(uintptr_t)g_ascii_strtoull(argv[1], NULL, 16);
    const Whole *whole = rank->whole;
    const uint32_t n = rank->n, rounds = whole->turns * (n - 1);
    g_autofree sg_comm_t *comm = g_new(sg_comm_t, 2 * rounds);
    void *got;
    (void)argc;
    for (uint32_t k = 0, done = 0; k < rounds; k++) {
        const uint32_t shift = whole->rotates ? k + 1 : 1;
        comm[2 * k] = sg_mailbox_put_async(
            mailbox(rank->rank, (rank->rank + shift) % n, k), rank, PART);
        comm[2 * k + 1] = sg_mailbox_get_async(
            mailbox((rank->rank + n - shift) % n, rank->rank, k), &got);
        for (; done < 2 * (k + 1) && (!whole->at_once || k + 1 == rounds); done++)
            sg_comm_wait(comm[done]);
    }
    rank->end_s = simgrid_get_clock();
}

static void run_whole(const Whole *whole, const NetworkCase *c, int output)
{
    const uint32_t n = c->topology->n_devices;
    g_autofree SimgridPair *pair = g_new(SimgridPair, n * n);
    g_autofree Rank *rank = g_new0(Rank, n);
    uint32_t pairs = 0;
    double last_s = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            if (i != j)
                pair[pairs++] = (SimgridPair){i, j};
    g_autofree char *xml = simgrid_platform(c->topology, c->network, pair, pairs);
    if (!simgrid_begin(xml))
        _exit(1);
    for (uint32_t i = 0; i < n; i++) {
        rank[i] = (Rank){whole, i, n, 0};
        g_autofree char *pointer =
            g_strdup_printf("%" G_GINTPTR_MODIFIER "x", (guintptr)(void *)&rank[i]);
        g_autofree char *host = g_strdup_printf("h%u", i);
        const char *argv[] = {"rank", pointer, NULL};
        sg_actor_create_("rank", sg_host_by_name(host), rank_actor, 2, argv);
    }
    simgrid_run();
    for (uint32_t i = 0; i < n; i++)
        last_s = fmax(last_s, rank[i].end_s);
    _exit(write(output, &last_s, sizeof last_s) == sizeof last_s ? 0 : 1);
}

/* Seconds by kilter collective. */
static double command_s(const Sandbox *sandbox, const Whole *whole, double bytes)
{
    g_autofree char *line =
        g_strdup_printf("collective %s %s --bytes %.0fB --algorithm %s --json",
                        traffic_name(whole->traffic), whole->network, bytes,
                        algorithm_name(whole->algorithm));
    json_t *json = program_json(sandbox, line);
    const double seconds = number(json, "time_s");
    json_decref(json);
    return seconds;
}

static void test_collectives(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    for (uint32_t i = 0; i < G_N_ELEMENTS(WHOLE); i++) {
        const Whole *whole = &WHOLE[i];
        g_auto(NetworkCase) c = network_case(whole->network, GRANULARITY_GPU);
        const uint32_t n = c.topology->n_devices;
        const double bytes =
            (double)PART * n * (whole->traffic == TRAFFIC_ALL_TO_ALL ? n : 1);
        int end[2];
        double theirs_s = 0;
        assert_int_equal(pipe(end), 0);
        fflush(NULL);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            run_whole(whole, &c, end[1]);
        close(end[1]);
        if (read(end[0], &theirs_s, sizeof theirs_s) != sizeof theirs_s)
            fail_msg("%s: SimGrid did not end", whole->network);
        close(end[0]);
        waitpid(child, NULL, 0);
        const double ours_s = collective_s(&c,
                                           (SimCollective){.traffic = whole->traffic,
                                                           .algorithm = whole->algorithm,
                                                           .bytes = bytes},
                                           NULL);
        print_message("%s, %s: %.12g s, SimGrid %.12g s\n", whole->network,
                      traffic_name(whole->traffic), ours_s, theirs_s);
        assert_close(ours_s, theirs_s, 1e-9);
        assert_close(command_s(sandbox, whole, (double)PART * n), theirs_s, 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_cases),
                                       cmocka_unit_test(test_collectives)};
    return cmocka_run_group_tests_name("simgrid", tests, NULL, NULL);
}
