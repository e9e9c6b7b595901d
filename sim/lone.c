/* One collective alone on the network. */
#include <math.h>

#include "sim/lowering.h"
#include "sim/random.h"
#include "sim/sim.h"

typedef struct {
    SimRun *run;
    SimLone *lone;
    uint32_t n_done;
} Lone;

static void rank_arrives(SimEngine *engine, void *context, uint64_t rank)
{
    Lone *lone = context;
    lone->lone->arrival_s[rank] = sim_engine_now(engine);
    sim_run_arrive(lone->run, (uint32_t)rank);
}

static void rank_done(SimEngine *engine, void *context, uint64_t rank)
{
    Lone *lone = context;
    lone->lone->end_s[rank] = sim_engine_now(engine);
    lone->n_done++;
}

/* Each rank comes at a moment of its own, which the seed and its name decide. */
static void schedule_ranks(SimEngine *engine, Lone *lone, const ClusterView *view,
                           double skew_s, uint64_t seed)
{
    for (uint32_t j = 0; j < view->n_devices; j++) {
        SimRandom random;
        sim_random_start(&random,
                         sim_random_mix(seed, sim_random_name(view->device[j].name)));
        const double at_s = skew_s > 0 ? skew_s * gsl_rng_uniform(&random.rng) : 0;
        sim_engine_schedule(engine, at_s, 0, rank_arrives, lone, j);
    }
}

static char *link_name(const Topology *topology, uint32_t link)
{
    return g_strdup_printf("%s -> %s", topology->node[topology->link[link].from].name,
                           topology->node[topology->link[link].to].name);
}

static void report_links(SimLone *report, const SimNetwork *network)
{
    const Topology *topology = sim_network_topology(network);
    report->link = g_new0(SimLinkReport, topology->n_links);
    for (uint32_t l = 0; l < topology->n_links; l++) {
        const double bytes = sim_network_link_bytes(network, l);
        if (!(bytes > 0))
            continue;
        SimLinkReport *link = &report->link[report->n_links++];
        link->name = link_name(topology, l);
        link->bandwidth = topology->link[l].bandwidth;
        link->bytes = bytes;
        link->busy_s = sim_network_link_busy_s(network, l);
    }
}

static SimLone *lone_new(uint32_t n)
{
    SimLone *report = g_new0(SimLone, 1);
    report->n_ranks = n;
    report->arrival_s = g_new0(double, n);
    report->end_s = g_new0(double, n);
    return report;
}

static void finish(SimLone *report, const SimLowered *lowered)
{
    double last_s = 0;
    for (uint32_t r = 0; r < report->n_ranks; r++) {
        last_s = fmax(last_s, report->arrival_s[r]);
        report->time_s = fmax(report->time_s, report->end_s[r]);
    }
    report->last_arrival_s = last_s;
    report->algorithm = sim_algorithm_name(sim_lowered_algorithm(lowered));
    report->latency_s = sim_lowered_latency_s(lowered);
    report->sent_bytes = sim_lowered_bytes(lowered);
}

SimLone *sim_lone(const ClusterView *view, const SimLoneOptions *options, GError **error)
{
    SimCollective collective = {.bytes = options->bytes, .n = view->n_devices};
    if (!sim_traffic_find(options->kind, &collective.traffic, error) ||
        !sim_algorithm_find(options->algorithm ? options->algorithm : "auto",
                            &collective.algorithm, error))
        return NULL;
    /* Of an all-to-all, the bytes are a rank's. */
    if (collective.traffic == SIM_ALL_TO_ALL)
        collective.bytes *= view->n_devices;
    g_autoptr(Topology) topology = topology_of_view(view, error);
    if (!topology)
        return NULL;
    g_autofree uint32_t *device = g_new(uint32_t, view->n_devices);
    for (uint32_t j = 0; j < view->n_devices; j++)
        device[j] = j;
    collective.device = device;

    g_autoptr(SimEngine) engine = sim_engine_new();
    g_autoptr(SimNetwork) network = sim_network_new(engine, topology);
    g_autoptr(SimLowered) lowered = sim_lower(network, &collective, error);
    if (!lowered)
        return NULL;
    SimLone *report = lone_new(view->n_devices);
    Lone lone = {.lone = report};
    g_autoptr(SimRun) run = sim_run_new(network, lowered, rank_done, NULL, &lone, 0);
    lone.run = run;
    schedule_ranks(engine, &lone, view, options->skew_s, options->seed);
    sim_engine_run(engine);
    g_assert(lone.n_done == view->n_devices);
    finish(report, lowered);
    report_links(report, network);
    return report;
}

void sim_lone_free(SimLone *report)
{
    if (!report)
        return;
    for (uint32_t i = 0; i < report->n_links; i++)
        g_free(report->link[i].name);
    g_free(report->link);
    g_free(report->arrival_s);
    g_free(report->end_s);
    g_free(report);
}
