/* Our network beside SimGrid (model CM02, exact updates), where it is installed: an all-to-all of
 * 250 kB pieces on a 4:1 tree whose hosts start up to 1 ms apart. Processor seconds without the
 * reading of the platform, and the largest difference of a host's end. */
#include <math.h>
#include <simgrid/actor.h>
#include <simgrid/comm.h>
#include <simgrid/host.h>
#include <simgrid/mailbox.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/bench/tree.h"
#include "tests/support/simgrid.h"

enum { LEAST_HOSTS = 16, MOST_HOSTS = 128 };
static const double BYTES = 250000, SKEW_S = 1e-3;

typedef struct {
    uint32_t hosts;
    double start_s[MOST_HOSTS];
    double end_s[MOST_HOSTS]; /* when the host has everything */
} Exchange;

/* --- ours --- */

typedef struct {
    SimNetwork *network;
    Exchange *exchange;
    SimUse (*use)[TREE_LINKS]; /* [from * hosts + to] */
} Run;

static void received(SimEngine *engine, void *context, uint64_t argument)
{
    Exchange *exchange = ((Run *)context)->exchange;
    exchange->end_s[argument % exchange->hosts] = sim_engine_now(engine);
}

static void start(SimEngine *engine, void *context, uint64_t from)
{
    Run *run = context;
    const uint32_t hosts = run->exchange->hosts;
    (void)engine;
    for (uint32_t to = 0; to < hosts; to++) {
        const uint64_t pair = from * hosts + to;
        if (to != from)
            bench_send(run->network, (uint32_t)from, to, BYTES, run->use[pair],
                       &(SimFlow){.done = received, .context = run, .argument = pair});
    }
}

static double run_ours(const Topology *topology, Exchange *exchange)
{
    const uint32_t hosts = exchange->hosts;
    const clock_t begin = clock();
    g_autoptr(SimEngine) engine = sim_engine_new();
    g_autoptr(SimNetwork) network = sim_network_new(engine, topology);
    g_autofree SimUse(*use)[TREE_LINKS] = g_malloc_n((gsize)hosts * hosts, sizeof *use);
    Run run = {network, exchange, use};
    for (uint32_t h = 0; h < hosts; h++)
        sim_engine_schedule(engine, exchange->start_s[h], 0, start, &run, h);
    sim_engine_run(engine);
    return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* --- SimGrid's --- */

static Exchange *exchange_of(char **argv, uint32_t *host)
{
    *host = (uint32_t)g_ascii_strtoull(argv[2], NULL, 10);
    return (Exchange *)(uintptr_t)g_ascii_strtoull(argv[1], NULL, 16);
}

static sg_mailbox_t mailbox(uint32_t from, uint32_t to)
{
    g_autofree char *name = g_strdup_printf("%u-%u", from, to);
    return sg_mailbox_by_name(name);
}

static void send_all(int argc, char **argv)
{
    sg_comm_t comm[MOST_HOSTS];
    uint32_t from, n = 0;
    Exchange *exchange = exchange_of(argv, &from);
    (void)argc;
    if (exchange->start_s[from] > 0)
        sg_actor_sleep_for(exchange->start_s[from]);
    for (uint32_t to = 0; to < exchange->hosts; to++)
        if (to != from)
            comm[n++] = sg_mailbox_put_async(mailbox(from, to), exchange, (long)BYTES);
    sg_comm_wait_all(comm, n);
}

static void receive_all(int argc, char **argv)
{
    sg_comm_t comm[MOST_HOSTS];
    void *data[MOST_HOSTS];
    uint32_t to, n = 0;
    Exchange *exchange = exchange_of(argv, &to);
    (void)argc;
    for (uint32_t from = 0; from < exchange->hosts; from++)
        if (to != from) {
            comm[n] = sg_mailbox_get_async(mailbox(from, to), &data[n]);
            n++;
        }
    sg_comm_wait_all(comm, n);
    exchange->end_s[to] = simgrid_get_clock();
}

/* In a child; writes the processor time and the ends. */
static void run_simgrid(const char *xml, Exchange *exchange, int output)
{
    if (!simgrid_begin(xml))
        _exit(1);
    const clock_t begin = clock();
    for (uint32_t h = 0; h < exchange->hosts; h++) {
        g_autofree char *pointer =
            g_strdup_printf("%" G_GINTPTR_MODIFIER "x", (guintptr)(void *)exchange);
        g_autofree char *number = g_strdup_printf("%u", h);
        g_autofree char *name = g_strdup_printf("h%u", h);
        const char *argv[] = {"host", pointer, number, NULL};
        sg_actor_create_("send", sg_host_by_name(name), send_all, 3, argv);
        sg_actor_create_("receive", sg_host_by_name(name), receive_all, 3, argv);
    }
    simgrid_run();
    const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    const ssize_t size = (ssize_t)(exchange->hosts * sizeof(double));
    _exit(write(output, &seconds, sizeof seconds) == sizeof seconds &&
                  write(output, exchange->end_s, (size_t)size) == size
              ? 0
              : 1);
}

static void compare(uint32_t hosts)
{
    g_autoptr(Topology) topology = bench_tree(hosts, 8);
    g_autoptr(GRand) rand = g_rand_new_with_seed(hosts);
    g_autoptr(GArray) pairs = g_array_new(FALSE, FALSE, sizeof(SimgridPair));
    Exchange ours = {.hosts = hosts}, theirs;
    for (uint32_t h = 0; h < hosts; h++) {
        ours.start_s[h] = g_rand_double_range(rand, 0, SKEW_S);
        for (uint32_t to = 0; to < hosts; to++) {
            const SimgridPair pair = {h, to};
            if (to != h)
                g_array_append_val(pairs, pair);
        }
    }
    theirs = ours;
    g_autoptr(SimEngine) engine = sim_engine_new();
    g_autoptr(SimNetwork) network = sim_network_new(engine, topology);
    g_autofree char *xml = simgrid_platform(
        topology, network, (const SimgridPair *)(const void *)pairs->data, pairs->len);
    int ends[2];
    double seconds = 0, largest = 0;
    if (pipe(ends) != 0)
        g_error("no pipe");
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        run_simgrid(xml, &theirs, ends[1]);
    close(ends[1]);
    const ssize_t size = (ssize_t)(hosts * sizeof(double));
    if (read(ends[0], &seconds, sizeof seconds) != sizeof seconds ||
        read(ends[0], theirs.end_s, (size_t)size) != size)
        g_error("SimGrid did not answer");
    close(ends[0]);
    waitpid(child, NULL, 0);
    const double own = run_ours(topology, &ours);
    for (uint32_t h = 0; h < hosts; h++)
        largest = fmax(largest, fabs(ours.end_s[h] / theirs.end_s[h] - 1));
    printf("%6u hosts %10.3f %10.3f %8.0f %12.1e\n", hosts, own, seconds, seconds / own,
           largest);
}

int main(void)
{
    printf("%-12s %10s %10s %8s %12s\n", "skewed all-to-all, CPU s", "Kilter", "SimGrid",
           "times", "difference");
    for (uint32_t hosts = LEAST_HOSTS; hosts <= MOST_HOSTS; hosts *= 2)
        compare(hosts);
    return 0;
}
