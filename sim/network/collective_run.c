/* One collective alone on the network. */
#include <math.h>

#include "data/base/free.h"
#include "sim/event/random.h"
#include "sim/network/collective_run.h"
#include "sim/network/measured.h"

typedef struct {
    SimRun *run;
    SimCollectiveRun *report;
    uint32_t n_done;
} Running;

static void rank_arrives(SimEngine *engine, void *context, uint64_t rank)
{
    Running *state = context;
    state->report->arrival_s[rank] = sim_engine_now(engine);
    sim_run_arrive(state->run, (uint32_t)rank);
}

static void rank_done(SimEngine *engine, void *context, uint64_t rank)
{
    Running *state = context;
    state->report->end_s[rank] = sim_engine_now(engine);
    state->n_done++;
}

/* After the ranks, where the price is more than the network's time (SimLowered, least_s). */
static void run_done(SimEngine *engine, void *context, uint64_t argument)
{
    (void)argument;
    Running *state = context;
    state->report->time_s = sim_engine_now(engine);
}

/* Each rank arrives at a random time of its own, which follows from the seed and its name. */
static void schedule_ranks(SimEngine *engine, Running *state, const ClusterView *view,
                           const SimCollective *collective, double skew_s, uint64_t seed)
{
    for (uint32_t j = 0; j < collective->n; j++) {
        SimRandom random;
        sim_random_start(
            &random, sim_random_mix(seed, sim_random_name(
                                              view->device[collective->device[j]].name)));
        const double at_s = skew_s * gsl_rng_uniform(&random.rng);
        sim_engine_schedule(engine, at_s, 0, rank_arrives, state, j);
    }
}

static void report_links(SimCollectiveRun *report, const SimNetwork *network)
{
    const Topology *topology = sim_network_topology(network);
    report->link = g_new0(SimLinkReport, topology->n_links);
    for (uint32_t l = 0; l < topology->n_links; l++) {
        const double bytes = sim_network_link_bytes(network, l);
        if (!(bytes > 0))
            continue;
        SimLinkReport *link = &report->link[report->n_links++];
        link->name =
            g_strdup_printf("%s -> %s", topology->node[topology->link[l].from].name,
                            topology->node[topology->link[l].to].name);
        link->bandwidth = topology->link[l].bandwidth;
        link->bytes = bytes;
        link->busy_s = sim_network_link_busy_s(network, l);
    }
}

static SimCollectiveRun *report_new(uint32_t n)
{
    KILTER_ASSERT(n > 0);
    SimCollectiveRun *report = g_new0(SimCollectiveRun, 1);
    report->n_ranks = n;
    report->arrival_s = g_new0(double, n);
    report->end_s = g_new0(double, n);
    return report;
}

static void collective_finish(SimCollectiveRun *report, const SimLowered *lowered)
{
    double last_s = 0, end_s = 0;
    for (uint32_t r = 0; r < report->n_ranks; r++) {
        last_s = fmax(last_s, report->arrival_s[r]);
        end_s = fmax(end_s, report->end_s[r]);
    }
    for (uint32_t r = 0; end_s < report->time_s && r < report->n_ranks; r++)
        report->end_s[r] = report->time_s;
    report->last_arrival_s = last_s;
    report->algorithm = algorithm_name(sim_lowered_algorithm(lowered));
    report->latency_s = sim_lowered_latency_s(lowered);
    report->sent_bytes = sim_lowered_bytes(lowered);
}

static bool has_root(Traffic traffic)
{
    return traffic == TRAFFIC_BROADCAST || traffic == TRAFFIC_REDUCE ||
           traffic == TRAFFIC_PUSH || traffic == TRAFFIC_PULL;
}

/* The options' shares, scaled to sum to 1; NULL and an error if they are not shares. The caller
 * frees them. */
static double *find_shares(const SimCollectiveOptions *options, Traffic traffic,
                           uint32_t n, GError **error)
{
    static const uint32_t HAVE =
        1U << TRAFFIC_ALL_GATHER | 1U << TRAFFIC_GROUPED_ALL_GATHER |
        1U << TRAFFIC_REDUCE_SCATTER | 1U << TRAFFIC_GROUPED_REDUCE_SCATTER |
        1U << TRAFFIC_ALL_TO_ALL | 1U << TRAFFIC_PUSH | 1U << TRAFFIC_PULL;
    double sum = 0;
    if (!(HAVE & 1U << traffic))
        return refuse(error, "%s has no shares", traffic_name(traffic)), NULL;
    if (options->n_shares != n)
        return refuse(error, "expected a share for each of %u ranks, got %u", n,
                      options->n_shares),
               NULL;
    for (uint32_t i = 0; i < n; i++)
        sum += options->share[i];
    double *share = g_memdup2(options->share, n * sizeof *share);
    for (uint32_t i = 0; i < n; i++)
        share[i] /= sum;
    return share;
}

/* The collective that the options ask for, without its devices and shares. */
static bool describe(const SimCollectiveOptions *options, uint32_t n,
                     SimCollective *collective, GError **error)
{
    *collective = (SimCollective){.bytes = options->bytes, .n = n};
    if (!traffic_find(options->kind, &collective->traffic, error) ||
        !algorithm_find(options->algorithm ? options->algorithm : "auto",
                        &collective->algorithm, error))
        return false;
    const bool servers =
        collective->traffic == TRAFFIC_PUSH || collective->traffic == TRAFFIC_PULL;
    /* For an all-to-all the option gives the bytes of one rank. */
    if (collective->traffic == TRAFFIC_ALL_TO_ALL)
        collective->bytes *= n;
    const bool every = servers && options->root == SIM_EVERY_RANK;
    if (options->root >= n && !every)
        return refuse(error, "root %u: there are %u ranks", options->root, n);
    collective->root = every ? n : options->root;
    return has_root(collective->traffic) || options->root == 0 ||
           refuse(error, "%s has no root", traffic_name(collective->traffic));
}

/* The collective as the cluster's curves price it; NULL: it was not measured in such a place, or an
 * algorithm, shares or late ranks are asked for. */
static SimCollectiveRun *run_measured(const ClusterView *view,
                                      const SimCollectiveOptions *options,
                                      const SimCollective *collective)
{
    const uint32_t n = collective->n;
    SimCollective nothing = *collective;
    nothing.bytes = 0;
    const double measured_s =
        collective->algorithm != ALGORITHM_AUTO || options->share || options->skew_s > 0
            ? 0
            : sim_measured_s(view, collective);
    if (!(measured_s > 0) || !sim_measured_by_curve(view, collective))
        return NULL;
    SimCollectiveRun *report = report_new(n);
    report->algorithm = "measured times";
    report->time_s = measured_s;
    report->latency_s = sim_measured_s(view, &nothing);
    report->sent_bytes = sim_measured_bytes(view, collective);
    for (uint32_t r = 0; r < n; r++)
        report->end_s[r] = report->time_s;
    return report;
}

SimCollectiveRun *sim_collective_run(const ClusterView *view,
                                     const SimCollectiveOptions *options, GError **error)
{
    SimCollective collective;
    g_autofree double *share = NULL;
    const uint32_t n = options->device ? options->n_devices : view->n_devices;
    if (!describe(options, n, &collective, error))
        return NULL;
    if (options->share) {
        share = find_shares(options, collective.traffic, n, error);
        if (!share)
            return NULL;
        collective.share_from = collective.share_to = share;
    }
    g_autofree uint32_t *device = g_new(uint32_t, n);
    for (uint32_t j = 0; j < n; j++)
        device[j] = options->device ? options->device[j] : j;
    collective.device = device;
    SimCollectiveRun *measured = run_measured(view, options, &collective);
    if (measured)
        return measured;
    g_autoptr(Topology) topology = topology_of_view(view, error);
    if (!topology)
        return NULL;
    g_autoptr(SimEngine) engine = sim_engine_new();
    g_autoptr(SimNetwork) network = sim_network_new(engine, topology);
    SimMeasured *measured_times = sim_measured_new(view, topology);
    g_autoptr(SimLowered) lowered =
        sim_measured_lower(measured_times, network, &collective, NULL, NULL, error);
    sim_measured_free(measured_times);
    if (!lowered)
        return NULL;
    SimCollectiveRun *report = report_new(n);
    Running state = {.report = report};
    g_autoptr(SimRun) run = sim_run_new(network, lowered, rank_done, run_done, &state, 0);
    state.run = run;
    if (options->skew_s > 0)
        schedule_ranks(engine, &state, view, &collective, options->skew_s, options->seed);
    else
        sim_run_arrive_all(run);
    sim_engine_run(engine);
    g_assert(state.n_done == n);
    collective_finish(report, lowered);
    report_links(report, network);
    return report;
}

FREE_DEFINE(sim_collective_run_free, SimCollectiveRun, report,
            free_column(report->link, report->n_links, name),
            free_each(report->link, report->arrival_s, report->end_s));
