/* Prices of collectives by ports, switches and direct links. */
#include "data/cluster/price.h"

#include <math.h>

#include "data/base/assert.h"

double port_capacity(const Port *port, uint32_t machine_gpus, uint32_t gpus)
{
    KILTER_ASSERT(gpus > 0 && machine_gpus >= gpus);
    const double used =
        fmin(port->nics, fmax(gpus, (double)gpus * port->nics / machine_gpus));
    const double bandwidth =
        port->nics > 0 ? port->bandwidth * used / port->nics : port->bandwidth;
    return port->gpu > 0 ? fmin(bandwidth, gpus * port->gpu) : bandwidth;
}

/* --- inside machines --- */

static uint32_t whole(uint32_t gpus)
{
    return gpus < PEERS_MAX_GPUS ? (1U << gpus) - 1 : UINT32_MAX;
}

LinkCost machine_line(const Cluster *cluster, const Machine *machine, uint32_t set)
{
    const LinkCost *across =
        machine->across.bandwidth > 0 ? &machine->across : &machine->inner;
    uint32_t rings, all;
    if (!machine->peers || __builtin_popcount(set) < 2 ||
        !peers_memo_rings(cluster->rings, machine->peers, machine->gpus, set, &rings))
        return machine->inner;
    if (rings == 0)
        return *across;
    if (machine->peer.bandwidth > 0)
        return (LinkCost){machine->peer.latency_s, rings * machine->peer.bandwidth};
    (void)peers_memo_rings(cluster->rings, machine->peers, machine->gpus,
                           whole(machine->gpus), &all);
    return all > 0 ? (LinkCost){machine->inner.latency_s,
                                machine->inner.bandwidth * rings / all}
                   : machine->inner;
}

static bool slower(const LinkCost *a, const LinkCost *b)
{
    return a->bandwidth < b->bandwidth ||
           (a->bandwidth == b->bandwidth && a->latency_s > b->latency_s);
}

/* The same of the slowest of the blocks 0 to n - 1, n to 2 n - 1, ... of its GPUs. */
static LinkCost machine_block_line(const Cluster *cluster, const Machine *machine,
                                   uint32_t n)
{
    LinkCost slowest = machine->inner;
    g_assert(n > 0);
    if (n > machine->gpus || !machine->peers || machine->gpus > PEERS_MAX_GPUS)
        return slowest;
    for (uint32_t first = 0; first + n <= machine->gpus; first += n) {
        const LinkCost line = machine_line(cluster, machine, whole(n) << first);
        if (first == 0 || slower(&line, &slowest))
            slowest = line;
    }
    return slowest;
}

/* The latency of a step of a ring among the machine's GPUs. */
static double inner_hop_s(const Machine *machine)
{
    return machine->gpus > 1 ? machine->inner.latency_s / (2.0 * (machine->gpus - 1)) : 0;
}

/* --- places --- */

/* Counts of a unit while sets are walked through. */
typedef struct {
    uint32_t set;             /* 1 + the last set that was seen here */
    uint32_t ranks;           /* of it */
    uint32_t machine;         /* of its first rank */
    bool several;             /* it is on several machines of the unit */
    uint32_t gpus;            /* bits of its GPUs, if on one */
    uint32_t through, behind; /* sets that leave the unit, and their devices */
} Walk;

typedef struct {
    const ClusterView *view;
    PricePlace *place;
    Walk *walk;           /* [unit] */
    uint32_t *first;      /* [machine] its first device */
    uint32_t *behind;     /* [machine] GPUs of sets that leave its unit */
    uint32_t *site_set;   /* [site] 1 + the last set that was seen there */
    uint32_t *site_ranks; /* [site] ranks of sets that leave it */
    uint32_t *site_sets;  /* [site] such sets */
} Walker;

static uint32_t unit_of(const ClusterView *view, uint32_t device)
{
    return cluster_unit(view->cluster, view->device[device].machine);
}

/* Notes where the ranks of a set are; returns its number of units. */
static uint32_t see_set(Walker *w, const uint32_t *device, uint32_t n, uint32_t set)
{
    uint32_t units = 0;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t m = w->view->device[device[k]].machine;
        Walk *walk = &w->walk[unit_of(w->view, device[k])];
        if (walk->set != set + 1) {
            *walk = (Walk){.set = set + 1,
                           .machine = m,
                           .through = walk->through,
                           .behind = walk->behind};
            units++;
        }
        const uint32_t gpu = device[k] - w->first[m];
        walk->several |= m != walk->machine;
        walk->gpus |= gpu < PEERS_MAX_GPUS ? 1U << gpu : 0;
        walk->ranks++;
        w->place->most = MAX(w->place->most, walk->ranks);
    }
    w->place->hosts = MAX(w->place->hosts, units);
    return units;
}

/* The link among the ranks of a set on a unit. */
static void price_add_inner(Walker *w, const Walk *walk, uint32_t device)
{
    PricePlace *place = w->place;
    const Machine *machine = &w->view->cluster->machine[walk->machine];
    LinkCost line = walk->several ? machine->inner
                                  : machine_line(w->view->cluster, machine, walk->gpus);
    line.bandwidth *= w->view->device[device].gpus; /* of all GPUs of a device */
    if (!isfinite(place->inner.bandwidth) || slower(&line, &place->inner))
        place->slowest = device;
    place->inner.latency_s = fmax(place->inner.latency_s, line.latency_s);
    place->inner.bandwidth = fmin(place->inner.bandwidth, line.bandwidth);
    place->inner_hop_s = fmax(place->inner_hop_s, inner_hop_s(machine));
    /* switches of a domain of several machines were not seen to do better than rings */
    const bool sums = !walk->several;
    place->sums = fmax(place->sums, sums && machine->sums > 0 ? machine->sums : INFINITY);
    place->tree_sums = fmax(
        place->tree_sums, sums && machine->tree_sums > 0 ? machine->tree_sums : INFINITY);
    place->own |= machine->peers || machine->sums > 0;
}

static void add_set(Walker *w, const uint32_t *device, uint32_t n, uint32_t set)
{
    const uint32_t units = see_set(w, device, n, set);
    uint32_t sites = 0;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t m = w->view->device[device[k]].machine;
        Walk *walk = &w->walk[unit_of(w->view, device[k])];
        if (units > 1) {
            walk->behind++;
            w->behind[m] += w->view->device[device[k]].gpus;
        }
        if (w->view->n_sites > 1) {
            const uint32_t s = w->view->site[m];
            sites += w->site_set[s] != set + 1;
            w->site_set[s] = set + 1;
        }
        if (walk->ranks == 0) /* seen */
            continue;
        walk->through += units > 1;
        if (walk->ranks > 1)
            price_add_inner(w, walk, device[k]);
        walk->ranks = 0;
    }
    if (sites < 2)
        return;
    w->place->sites = MAX(w->place->sites, sites);
    for (uint32_t k = 0; k < n; k++)
        w->site_ranks[w->view->site[w->view->device[device[k]].machine]]++;
    for (uint32_t s = 0; s < w->view->n_sites; s++)
        w->site_sets[s] += w->site_set[s] == set + 1;
}

/* The part of a unit's port that each set has. */
static void add_port(Walker *w, uint32_t unit)
{
    const Cluster *cluster = w->view->cluster;
    const Walk *walk = &w->walk[unit];
    PricePlace *place = w->place;
    double capacity = 0;
    place->port_sets = MAX(place->port_sets, walk->through);
    place->port_devices = MAX(place->port_devices, walk->behind);
    if (!cluster->wired)
        return;
    for (uint32_t m = unit; m < cluster->n_machines; m++) {
        const Machine *machine = &cluster->machine[m];
        if (cluster_unit(cluster, m) == unit && w->behind[m] > 0) {
            const uint32_t gpus = MIN(w->behind[m], machine->gpus);
            capacity += fmin(port_capacity(&machine->port, machine->gpus, gpus),
                             w->view->cable ? w->view->cable[m] : INFINITY);
            place->base_s = fmax(place->base_s, machine->port.base_s);
            place->hop_s = fmax(place->hop_s, machine->port.hop_s);
        }
        if (!machine->domain)
            break;
    }
    place->ring = fmin(place->ring, capacity / walk->through);
    place->exchange = fmin(place->exchange, capacity / walk->behind);
}

/* The part of the links between two sites that each set there has. */
static void add_sites(Walker *w)
{
    const ClusterView *view = w->view;
    PricePlace *place = w->place;
    const double n = place->ranks;
    for (uint32_t a = 0; place->sites > 1 && a < view->n_sites; a++)
        for (uint32_t b = 0; w->site_sets[a] > 0 && b < view->n_sites; b++) {
            const LinkCost *line = &view->between[(size_t)a * view->n_sites + b];
            if (a == b || w->site_sets[b] == 0)
                continue;
            const double sets = w->site_sets[a], here = w->site_ranks[a] / sets;
            place->far_s = fmax(place->far_s, line->latency_s);
            place->ring = fmin(place->ring, line->bandwidth / sets);
            /* of a rank's n - most parts for other units, n - here go this way */
            place->exchange = fmin(place->exchange, line->bandwidth / w->site_ranks[a] *
                                                        (n - place->most) / (n - here));
        }
}

void price_place(const ClusterView *view, const PriceSets *sets, PricePlace *place)
{
    const Cluster *cluster = view->cluster;
    g_assert(sets->n > 0 && sets->n_sets > 0);
    const uint32_t n = cluster->n_machines, n_sites = view->n_sites + 1;
    g_autofree Walk *walk = g_new0(Walk, n);
    g_autofree uint32_t *count = g_new0(uint32_t, 2 * (size_t)n + 3 * (size_t)n_sites);
    Walker w = {view,
                place,
                walk,
                count,
                count + n,
                count + 2 * (size_t)n,
                count + 2 * (size_t)n + n_sites,
                count + 2 * (size_t)n + 2 * (size_t)n_sites};
    for (uint32_t d = view->n_devices; d-- > 0;)
        w.first[view->device[d].machine] = d;
    *place = (PricePlace){.ranks = sets->n,
                          .inner = {0, INFINITY},
                          .ring = INFINITY,
                          .exchange = INFINITY,
                          .port_sets = 1,
                          .port_devices = 1,
                          .slowest = sets->device[0]};
    for (uint32_t s = 0; s < sets->n_sets; s++)
        add_set(&w, &sets->device[(size_t)s * sets->n], sets->n, s);
    for (uint32_t m = 0; m < n; m++)
        if (walk[m].through > 0)
            add_port(&w, m);
    add_sites(&w);
    place->own |= cluster->wired;
    place->sums = isfinite(place->sums) ? place->sums : 0;
    place->tree_sums = isfinite(place->tree_sums) ? place->tree_sums : 0;
}

bool price_of_machine(const Cluster *cluster, const Machine *machine, uint32_t ranks,
                      uint32_t hosts, uint32_t sets, PricePlace *place)
{
    g_assert(ranks > 0 && hosts > 0 && sets > 0);
    const Port *port = &machine->port;
    const uint32_t most = (ranks + hosts - 1) / hosts,
                   behind = MIN(most * sets, machine->gpus);
    *place = (PricePlace){.ranks = ranks,
                          .hosts = hosts,
                          .most = most,
                          .inner = {0, INFINITY},
                          .ring = INFINITY,
                          .exchange = INFINITY};
    if (most > 1) {
        place->inner = machine_block_line(cluster, machine, MIN(most, machine->gpus));
        place->inner_hop_s = inner_hop_s(machine);
        place->sums = machine->sums;
        place->tree_sums = machine->tree_sums;
        place->own = machine->peers || machine->sums > 0;
    }
    if (hosts == 1 || !cluster->wired)
        return place->own && hosts == 1;
    place->ring = port_capacity(port, machine->gpus, behind) / sets;
    place->exchange = port_capacity(port, machine->gpus, behind) / (most * sets);
    place->base_s = port->base_s;
    place->hop_s = port->hop_s;
    return place->own = true;
}

/* --- lines --- */

typedef struct {
    Algorithm algorithm;
    double latency_s, byte_s;
} Way;

enum { MOST_WAYS = 2 };

static double rounds(uint32_t n)
{
    return ceil(log2(MAX(n, 2)));
}

static Way ring_way(const PricePlace *p)
{
    const double n = p->ranks, h = p->hosts;
    return (Way){ALGORITHM_RING,
                 p->base_s + 2 * (h - 1) * p->hop_s + 2 * (n - h) * p->inner_hop_s +
                     2 * p->sites * p->far_s,
                 2 * (n - 1) / n / fmin(p->inner.bandwidth, p->ring)};
}

static Way tree_way(const PricePlace *p)
{
    const double a = p->most;
    const double sums =
        p->tree_sums > 0 && a > 2 ? fmin(2, p->tree_sums * (a + 1) / a) : 2;
    return (Way){
        ALGORITHM_MACHINE_TREE,
        p->base_s + 2 * rounds(p->hosts) * p->hop_s + 2 * (a - 1) * p->inner_hop_s +
            2 * rounds(p->sites) * p->far_s,
        fmax((p->hosts == 2 ? 1 : 2) / p->ring, a > 1 ? sums / p->inner.bandwidth : 0)};
}

static Way inside_way(const PricePlace *p)
{
    const double n = p->ranks;
    const double sums = p->sums > 0 && n > 2 ? p->sums * (n + 1) / n : INFINITY;
    return (Way){ALGORITHM_RING, p->inner.latency_s,
                 fmin(2 * (n - 1) / n, sums) / p->inner.bandwidth};
}

/* The ways of an all-reduce, by rising latency and falling time per byte; returns their number. */
static uint32_t ways_of(const PricePlace *p, Way way[MOST_WAYS])
{
    uint32_t n = 0;
    if (p->hosts == 1) {
        way[n++] = inside_way(p);
        return n;
    }
    const Way ring = ring_way(p), tree = tree_way(p);
    const bool tree_first = tree.latency_s <= ring.latency_s;
    const Way low = tree_first ? tree : ring, high = tree_first ? ring : tree;
    way[n++] = low;
    if (high.byte_s < low.byte_s)
        way[n++] = high;
    return n;
}

static LinkCost line_of(const PricePlace *p, Way way)
{
    const double n = p->ranks;
    return (LinkCost){way.latency_s, 2 * (n - 1) / n / way.byte_s};
}

/* The line of a kind other than an all-reduce. */
static LinkCost other_line(const PricePlace *p, Collective kind)
{
    const double n = p->ranks, a = p->most;
    if (p->hosts == 1)
        return p->inner;
    const double steps = kind == COLLECTIVE_ALL_TO_ALL ? 1 : rounds(p->hosts);
    const double latency_s =
        p->base_s + steps * p->hop_s + p->inner.latency_s / 2 +
        (kind == COLLECTIVE_ALL_TO_ALL ? 1 : rounds(p->sites)) * p->far_s;
    if (kind != COLLECTIVE_ALL_TO_ALL)
        return (LinkCost){latency_s, fmin(p->inner.bandwidth, p->ring)};
    /* a rank sends n - a of its n - 1 parts through the port, the others inside */
    return (LinkCost){latency_s,
                      fmin(p->exchange * (n - 1) / (n - a),
                           a > 1 ? p->inner.bandwidth * (n - 1) / (a - 1) : INFINITY)};
}

LinkCost price_line(const PricePlace *place, Collective kind, double bytes,
                    Algorithm *algorithm)
{
    KILTER_ASSERT((int)kind < COLLECTIVES_PRICED && bytes >= 0 && place->ranks > 1);
    Way way[MOST_WAYS];
    if (kind != COLLECTIVE_ALL_REDUCE)
        return other_line(place, kind);
    const uint32_t n = ways_of(place, way);
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (way[i].latency_s + way[i].byte_s * bytes <
            way[best].latency_s + way[best].byte_s * bytes)
            best = i;
    if (algorithm)
        *algorithm = way[best].algorithm;
    return line_of(place, way[best]);
}

void price_pieces(const PricePlace *place, Collective kind, CollectivePieces *pieces,
                  LinkCost *line)
{
    Way way[MOST_WAYS];
    *pieces = (CollectivePieces){0};
    *line = price_line(place, kind, 0, NULL);
    const uint32_t n = kind == COLLECTIVE_ALL_REDUCE ? ways_of(place, way) : 1;
    if (n == 1)
        return;
    const double crossing =
        (way[1].latency_s - way[0].latency_s) / (way[0].byte_s - way[1].byte_s);
    if (!isfinite(crossing)) /* both take as long per byte */
        return;
    if (crossing > 0) {
        pieces->n = 1;
        pieces->piece = g_new(CollectivePiece, 1);
        pieces->piece[0] = (CollectivePiece){crossing, line_of(place, way[0])};
    }
    *line = line_of(place, way[1]);
}

LinkCost price_between(const ClusterView *view, uint32_t machine, uint32_t other)
{
    const Machine *a = &view->cluster->machine[machine],
                  *b = &view->cluster->machine[other];
    if (cluster_unit(view->cluster, machine) == cluster_unit(view->cluster, other))
        return a->inner;
    LinkCost line = {fmax(a->port.base_s, b->port.base_s) +
                         fmax(a->port.hop_s, b->port.hop_s),
                     fmin(port_capacity(&a->port, a->gpus, a->gpus),
                          port_capacity(&b->port, b->gpus, b->gpus))};
    if (view->cable)
        line.bandwidth =
            fmin(line.bandwidth, fmin(view->cable[machine], view->cable[other]));
    if (view->n_sites > 1) {
        const LinkCost *between =
            &view->between[(size_t)view->site[machine] * view->n_sites +
                           view->site[other]];
        line.latency_s += between->latency_s;
        line.bandwidth = fmin(line.bandwidth, between->bandwidth);
    }
    return line;
}
