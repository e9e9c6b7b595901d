/* Collectives that a cluster's curves price. */
#include "sim/network/measured.h"

#include <math.h>

#include "data/base/free.h"
#include "sim/network/lower/lower.h"
#include "sim/tasks/piece.h"
#include "sim/tasks/team.h"

/* The measured kind of a kind of traffic, and the number of such messages; COLLECTIVES: none. */
static Collective measured_kind(Traffic traffic, uint32_t n, double *messages)
{
    *messages = traffic == TRAFFIC_BROADCAST || traffic == TRAFFIC_REDUCE ? n : 1;
    return traffic == TRAFFIC_BROADCAST        ? COLLECTIVE_GROUPED_ALL_GATHER
           : traffic == TRAFFIC_REDUCE         ? COLLECTIVE_GROUPED_REDUCE_SCATTER
           : (int)traffic < COLLECTIVES_PRICED ? (Collective)traffic
                                               : COLLECTIVES;
}

/* Whether anything but the network prices collectives. */
static bool has_prices(const ClusterView *view)
{
    const Cluster *cluster = view->cluster;
    return view->priced || cluster->curves.n > 0 || cluster->transfer.bandwidth > 0;
}

static double largest_share(const double *share, uint32_t n)
{
    double largest = share ? 0 : 1.0 / n;
    for (uint32_t i = 0; share && i < n; i++)
        largest = fmax(largest, share[i]);
    return largest;
}

/* The groups of a collective as the sets of a team; the devices are borrowed. */
static SimTeam team_of(const ClusterView *view, const SimCollective *collective)
{
    const uint32_t n = collective->n, n_groups = MAX(1, collective->n_groups);
    const DeviceGroup group = {
        .n_replicas = n_groups, .n_devices = n, .device = (uint32_t *)collective->device};
    SimTeam team = {.axis = AXIS_POSITIONS,
                    .n_sets = n_groups,
                    .n = n,
                    .device = (uint32_t *)collective->device};
    sim_teams_find_links(view, &group, &team, 1);
    return team;
}

/* Seconds of messages from rank 0 to rank 1 of each group by the price of transfers; 0: the network
 * decides, as none goes from machine to machine and nothing prices those inside. */
static double send_s(const ClusterView *view, const SimCollective *collective)
{
    g_autoptr(GArray) pieces = g_array_new(false, false, sizeof(SimPiece));
    bool between = false;
    double latency_s, byte_s;
    for (uint32_t g = 0; g < MAX(1, collective->n_groups); g++) {
        const uint32_t *device = &collective->device[(size_t)g * collective->n];
        const SimPiece piece = {device[0], device[1], 0,
                                collective->weight ? collective->weight[g] : 1};
        between |= view->device[device[0]].machine != view->device[device[1]].machine;
        if (piece.from != piece.to && piece.part > 0)
            g_array_append_val(pieces, piece);
    }
    sim_pieces_time(view, pieces, &latency_s, &byte_s);
    return between || view->priced ? latency_s + byte_s * collective->bytes : 0;
}

/* Whether one of the cluster's own rules names the collective's algorithm. */
static bool has_rule(const ClusterView *view, const SimCollective *collective)
{
    const Tuning *own = view->cluster->tuning;
    return own && tuning_choose(own, collective->traffic, collective->n,
                                collective->bytes) != ALGORITHM_AUTO;
}

/* Seconds of a collective, and whether a curve or `place->own` says so; 0: neither. */
static double price_s(const ClusterView *view, const SimCollective *collective,
                      bool *by_curve)
{
    const uint32_t n = collective->n;
    double messages;
    bool measured;
    const Collective kind = measured_kind(collective->traffic, n, &messages);
    *by_curve = false;
    if (!has_prices(view) || n < 2 || kind == COLLECTIVES)
        return 0;
    const SimTeam team = team_of(view, collective);
    const double bytes = collective->bytes * messages;
    const LinkCost line = sim_team_line(view, &team, kind, bytes, &measured);
    LinkCost unused;
    *by_curve = measured &&
                (!team.place.own || sim_team_curve(view, &team, kind, bytes, &unused));
    if (!measured || (!*by_curve && (collective->algorithm != ALGORITHM_AUTO ||
                                     has_rule(view, collective))))
        return 0;
    return sim_collective_over(line, n, kind, bytes,
                               largest_share(collective->share_from, n),
                               largest_share(collective->share_to, n)) /
           messages;
}

double sim_measured_s(const ClusterView *view, const SimCollective *collective)
{
    bool by_curve;
    if (collective->traffic == TRAFFIC_SEND)
        return (view->priced || view->cluster->transfer.bandwidth > 0) &&
                       collective->n > 1
                   ? send_s(view, collective)
                   : 0;
    return price_s(view, collective, &by_curve);
}

bool sim_measured_by_curve(const ClusterView *view, const SimCollective *collective)
{
    bool by_curve;
    price_s(view, collective, &by_curve);
    return by_curve;
}

double sim_measured_bytes(const ClusterView *view, const SimCollective *collective)
{
    const uint32_t n = collective->n;
    double messages;
    if (collective->traffic == TRAFFIC_SEND)
        return collective->bytes;
    const Collective kind = measured_kind(collective->traffic, n, &messages);
    g_assert(kind != COLLECTIVES && n > 1);
    const uint32_t hosts = team_of(view, collective).place.hosts;
    return collective->bytes * n * curve_wire(kind, (CurvePlace){NULL, n, hosts}, 0, 0);
}

struct SimMeasured {
    const ClusterView *view;
    SimEngine *engine;
    SimNetwork *network; /* on which nothing else runs */
};

SimMeasured *sim_measured_new(const ClusterView *view, const Topology *topology)
{
    SimMeasured *measured = g_new0(SimMeasured, 1);
    measured->view = view;
    if (!has_prices(view))
        return measured;
    measured->engine = sim_engine_new();
    measured->network = sim_network_new(measured->engine, topology);
    return measured;
}

FREE_DEFINE(sim_measured_free, SimMeasured, measured, sim_network_free(measured->network),
            let_go(measured->engine, sim_engine_free));

/* Changes the lowering of the collective on the topology, if it has a price. */
static void apply(SimMeasured *measured, const SimCollective *collective,
                  SimLowered *lowered)
{
    const double measured_s =
        collective->bytes > 0 ? sim_measured_s(measured->view, collective) : 0;
    if (!(measured_s > 0))
        return;
    const double network_s = sim_run_alone_s(measured->network, lowered);
    if (network_s > measured_s)
        lowered_scale(lowered, measured_s / network_s);
    lowered->least_s = measured_s;
}

/* The cheapest algorithm by price; AUTO: the tuning table decides. */
static Algorithm measured_cheapest(const ClusterView *view,
                                   const SimCollective *collective)
{
    Algorithm algorithm = collective->algorithm;
    if (!view->cluster->wired || algorithm != ALGORITHM_AUTO || collective->n < 2 ||
        collective->traffic != TRAFFIC_ALL_REDUCE || has_rule(view, collective))
        return algorithm;
    const SimTeam team = team_of(view, collective);
    if (team.place.hosts > 1)
        price_line(&team.place, COLLECTIVE_ALL_REDUCE, collective->bytes, &algorithm);
    return algorithm;
}

SimLowered *sim_measured_lower(SimMeasured *measured, SimNetwork *network,
                               const SimCollective *collective, const SimLowered *like,
                               GArray *messages, GError **error)
{
    SimCollective chosen = *collective;
    chosen.algorithm = measured_cheapest(measured->view, collective);
    SimLowered *lowered = sim_lower_like(network, &chosen, like, messages, error);
    if (lowered)
        apply(measured, collective, lowered);
    return lowered;
}
