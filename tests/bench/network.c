/* The time of the network simulation, on the cases on which other simulators were measured, and of
 * the event queue under the hold model (every handled event schedules one). */
#include <math.h>
#include <time.h>

#include "sim/event/engine.h"
#include "sim/network/lower/lowering.h"
#include "tests/bench/bench.h"

/* --- collectives --- */

typedef struct {
    const char *name, *cluster;
    Traffic traffic;
    Algorithm algorithm;
    double bytes; /* of the whole tensor */
    uint32_t repeats;
    Topology *topology;
    uint32_t *device;
    double simulated_s;
} Case;

static void count(SimEngine *engine, void *context, uint64_t argument)
{
    (void)argument;
    ((Case *)context)->simulated_s = sim_engine_now(engine);
}

/* From the topology: routes, flows, rates, events. */
static void simulate(void *data)
{
    Case *c = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(SimEngine) engine = sim_engine_new();
    g_autoptr(SimNetwork) network = sim_network_new(engine, c->topology);
    const SimCollective collective = {.traffic = c->traffic,
                                      .algorithm = c->algorithm,
                                      .bytes = c->bytes,
                                      .n = c->topology->n_devices,
                                      .device = c->device};
    g_autoptr(SimLowered) lowered = sim_lower(network, &collective, &error);
    if (!lowered)
        g_error("%s", error->message);
    for (uint32_t i = 0; i < c->repeats; i++) {
        g_autoptr(SimRun) run = sim_run_new(network, lowered, NULL, count, c, 0);
        sim_run_arrive_all(run);
        sim_engine_run(engine);
    }
}

static void bench_case(Case *c)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load(c->cluster, &error);
    if (!cluster)
        g_error("%s", error->message);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    c->topology = topology_of_view(view, &error);
    if (!c->topology)
        g_error("%s", error->message);
    c->device = g_new(uint32_t, view->n_devices);
    for (uint32_t j = 0; j < view->n_devices; j++)
        c->device[j] = j;
    bench_run(c->name, simulate, c);
    printf("%36s simulated: %.9g s\n", "", c->simulated_s);
    g_free(c->device);
    topology_free(c->topology);
}

/* --- the event queue --- */

enum { DRAWS = 1 << 16, HELD = 3000000, RUNS = 3 };

typedef struct {
    const double *draw_s;
    uint64_t left, scheduled;
} Hold;

/* Every handled event schedules one. */
static void held(SimEngine *engine, void *context, uint64_t argument)
{
    Hold *h = context;
    (void)argument;
    if (h->left == 0)
        return;
    h->left--;
    sim_engine_schedule(engine,
                        sim_engine_now(engine) + h->draw_s[h->scheduled++ % DRAWS], 0,
                        held, h, 0);
}

/* Events per second of processor time, as others may use the machine. */
static double hold(uint32_t pending, const double *draw_s)
{
    g_autoptr(SimEngine) engine = sim_engine_new();
    Hold h = {draw_s, HELD, pending};
    for (uint32_t i = 0; i < pending; i++)
        sim_engine_schedule(engine, draw_s[i % DRAWS], 0, held, &h, 0);
    const clock_t start = clock();
    const uint64_t handled = sim_engine_run(engine);
    return (double)handled * CLOCKS_PER_SEC / (double)(clock() - start);
}

static void bench_hold(void)
{
    g_autofree double *draw_s = g_new(double, DRAWS); /* exponential, mean 1 */
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);

    for (uint32_t i = 0; i < DRAWS; i++)
        draw_s[i] = -log(1 - g_rand_double(rand));
    printf("%-36s %10s   M events/s\n", "hold model, pending", "");
    for (uint32_t pending = 100; pending <= 1000000; pending *= 10) {
        double most = 0;
        for (uint32_t i = 0; i < RUNS; i++)
            most = fmax(most, hold(pending, draw_s));
        printf("%36u %10.1f\n", pending, most / 1e6);
    }
}

int main(void)
{
    static Case cases[] = {
        {.name = "ring all-reduce, 1024 hosts",
         .cluster = "star:hosts=1024,bandwidth=10Gb/s,latency=5us",
         .traffic = TRAFFIC_ALL_REDUCE,
         .algorithm = ALGORITHM_RING,
         .bytes = 100e6,
         .repeats = 1},
        {.name = "12 all-reduces, 1024 hosts",
         .cluster = "star:hosts=1024,bandwidth=10Gb/s,latency=5us",
         .traffic = TRAFFIC_ALL_REDUCE,
         .algorithm = ALGORITHM_RING,
         .bytes = 28e6,
         .repeats = 12},
        {.name = "all-to-all, 256 hosts, 4:1 tree",
         .cluster = "tree:hosts=256,leaf=16,oversubscription=4",
         .traffic = TRAFFIC_ALL_TO_ALL,
         .algorithm = ALGORITHM_DIRECT,
         .bytes = 256 * 64e6,
         .repeats = 1},
        {.name = "the same, 20 times",
         .cluster = "tree:hosts=256,leaf=16,oversubscription=4",
         .traffic = TRAFFIC_ALL_TO_ALL,
         .algorithm = ALGORITHM_DIRECT,
         .bytes = 256 * 64e6,
         .repeats = 20},
    };
    bench_print_header("network");
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++)
        bench_case(&cases[i]);
    bench_hold();
    return 0;
}
