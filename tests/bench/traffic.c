/* The time of fair sharing when all flows differ and each starts or ends at its own instant:
 * processor seconds for doubling numbers of hosts, and their growth. */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "tests/bench/tree.h"

enum { FIRST_HOSTS = 64, DOUBLINGS = 4, FLOWS_A_HOST = 100 };

typedef struct {
    uint32_t from, to;
    double start_s, bytes;
} Send;

typedef struct {
    SimNetwork *network;
    const Send *send;
    SimUse (*use)[TREE_LINKS]; /* [send] */
    uint32_t n_done;
} Run;

static void done(SimEngine *engine, void *context, uint64_t argument)
{
    (void)engine, (void)argument;
    ((Run *)context)->n_done++;
}

static void start(SimEngine *engine, void *context, uint64_t argument)
{
    Run *traffic = context;
    const Send *send = &traffic->send[argument];
    (void)engine;
    bench_send(traffic->network, send->from, send->to, send->bytes,
               traffic->use[argument],
               &(SimFlow){.done = done, .context = traffic, .argument = argument});
}

/* An all-to-all of 250 kB pieces whose hosts start up to 1 ms apart; sizes vary by `spread`. */
static void all_to_all(GArray *sends, uint32_t hosts, GRand *rand, double spread)
{
    for (uint32_t from = 0; from < hosts; from++) {
        const double start_s = g_rand_double_range(rand, 0, 1e-3);
        for (uint32_t to = 0; to < hosts; to++) {
            const Send send = {
                from, to, start_s,
                250e3 * g_rand_double_range(rand, 1 - spread, 1 + spread + 1e-300)};
            if (to != from)
                g_array_append_val(sends, send);
        }
    }
}

static void skewed(GArray *sends, uint32_t hosts, GRand *rand)
{
    all_to_all(sends, hosts, rand, 0);
}

static void skewed_sizes(GArray *sends, uint32_t hosts, GRand *rand)
{
    all_to_all(sends, hosts, rand, 0.2);
}

/* Random pairs, log-normal sizes of mean 1 MB, arrivals that fill 0.8 of the uplinks. */
static void poisson(GArray *sends, uint32_t hosts, GRand *rand)
{
    const double uplinks = 1.25e9 * hosts / 4, sigma = 1.5;
    double now_s = 0;
    for (uint32_t i = 0; i < FLOWS_A_HOST * hosts; i++) {
        const uint32_t from = (uint32_t)g_rand_int_range(rand, 0, (gint32)hosts);
        const uint32_t off = (uint32_t)g_rand_int_range(rand, 1, (gint32)hosts);
        const double radius = sqrt(-2 * log(1 - g_rand_double(rand)));
        const double normal = radius * cos(2 * G_PI * g_rand_double(rand));
        now_s -= log(1 - g_rand_double(rand)) * 1e6 / (0.8 * uplinks);
        const Send send = {from, (from + off) % hosts, now_s,
                           1e6 * exp(sigma * normal - sigma * sigma / 2)};
        g_array_append_val(sends, send);
    }
}

static double run(uint32_t hosts, void (*make)(GArray *, uint32_t, GRand *))
{
    g_autoptr(Topology) topology = bench_tree(hosts, 16);
    g_autoptr(GArray) sends = g_array_new(FALSE, FALSE, sizeof(Send));
    g_autoptr(GRand) rand = g_rand_new_with_seed(hosts);
    make(sends, hosts, rand);

    const clock_t begin = clock();
    g_autoptr(SimEngine) engine = sim_engine_new();
    g_autoptr(SimNetwork) network = sim_network_new(engine, topology);
    g_autofree SimUse(*use)[TREE_LINKS] =
        g_malloc_n(sends->len, sizeof(SimUse[TREE_LINKS]));
    Run traffic = {network, (const Send *)(const void *)sends->data, use, 0};
    for (uint32_t i = 0; i < sends->len; i++)
        sim_engine_schedule(engine, traffic.send[i].start_s, 0, start, &traffic, i);
    sim_engine_run(engine);
    if (traffic.n_done != sends->len)
        g_error("%u of %u flows ended", traffic.n_done, sends->len);
    return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

int main(void)
{
    static const struct {
        const char *name;
        void (*make)(GArray *, uint32_t, GRand *);
    } workloads[] = {
        {"all-to-all, starts 1 ms apart", skewed},
        {"the same, sizes +-20 %", skewed_sizes},
        {"random pairs, log-normal sizes", poisson},
    };
    printf("%-32s", "flows without symmetry, CPU s");
    for (uint32_t d = 0; d < DOUBLINGS; d++)
        printf(" %4u hosts", FIRST_HOSTS << d);
    printf("   growth of a doubling: 2^\n");
    for (uint32_t w = 0; w < G_N_ELEMENTS(workloads); w++) {
        double last_s = 0, before_s = 0;
        printf("%-32s", workloads[w].name);
        for (uint32_t d = 0; d < DOUBLINGS; d++) {
            if (w == 1 && d == DOUBLINGS - 1) { /* some 260,000 solves: half a minute */
                printf(" %10s", "-");
                continue;
            }
            before_s = last_s;
            last_s = run(FIRST_HOSTS << d, workloads[w].make);
            printf(" %10.3f", last_s);
            fflush(stdout);
        }
        printf("   %.1f\n", log2(last_s / before_s));
    }
    return 0;
}
