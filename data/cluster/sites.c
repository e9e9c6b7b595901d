/* Regions and switches as sites, and what lies between them. */
#include "data/cluster/sites.h"

#include <math.h>

#include "data/base/error.h"
#include "data/base/names.h"
#include "data/cluster/topology.h"

static const LinkCost NOTHING_NARROW = {0, INFINITY};

/* --- regions --- */

typedef struct {
    uint32_t n;
    const char *name[SITES_MAX];
    LinkCost direct[SITES_MAX][SITES_MAX]; /* bandwidth 0: no link */
    double toll[SITES_MAX][SITES_MAX];     /* of the links there together */
    bool tolled;                           /* some link is */
} Regions;

static uint32_t region_of(Regions *regions, const char *name)
{
    uint32_t i = TEXT_PLACE(regions->name, regions->n, name);
    if (i == regions->n && i < SITES_MAX)
        regions->name[regions->n++] = name;
    return i;
}

static bool read_regions(const Cluster *cluster, Regions *regions)
{
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        if (!cluster->machine[i].region ||
            region_of(regions, cluster->machine[i].region) == SITES_MAX)
            return false;
    items_each (const RegionLink, link, cluster->region_link, cluster->n_region_links) {
        const uint32_t a = region_of(regions, link->from),
                       b = region_of(regions, link->to);
        if (a == SITES_MAX || b == SITES_MAX)
            return false;
        LinkCost *there = &regions->direct[a][b];
        const double part = /* several links share the traffic */
            link->link.bandwidth / (there->bandwidth + link->link.bandwidth);
        regions->toll[a][b] += part * (link->toll - regions->toll[a][b]);
        regions->toll[b][a] = regions->toll[a][b];
        regions->tolled = regions->tolled || link->toll > 0;
        there->bandwidth += link->link.bandwidth;
        there->latency_s = fmax(there->latency_s, link->link.latency_s);
        regions->direct[b][a] = *there;
    }
    return true;
}

/* The way of the fewest links from a region to all others, as of routes, and its toll (may be
 * NULL); bandwidth 0: none. */
static void ways_from(const Regions *regions, uint32_t from, LinkCost *way, double *toll)
{
    uint32_t queue[SITES_MAX], head = 0, tail = 0;
    for (uint32_t i = 0; i < regions->n; i++)
        way[i] = (LinkCost){0, 0};
    way[from] = NOTHING_NARROW;
    if (toll)
        toll[from] = 0;
    queue[tail++] = from;
    while (head < tail) {
        const uint32_t at = queue[head++];
        for (uint32_t to = 0; to < regions->n; to++) {
            const LinkCost *link = &regions->direct[at][to];
            if (way[to].bandwidth > 0 || !(link->bandwidth > 0))
                continue;
            way[to] = (LinkCost){way[at].latency_s + link->latency_s,
                                 fmin(way[at].bandwidth, link->bandwidth)};
            if (toll)
                toll[to] = toll[at] + regions->toll[at][to];
            queue[tail++] = to;
        }
    }
}

bool regions_are_joined(const Cluster *cluster, GError **error)
{
    g_autofree Regions *regions = g_new0(Regions, 1);
    LinkCost way[SITES_MAX];
    if (!read_regions(cluster, regions))
        return refuse(error, "regions: expected at most %d", SITES_MAX);
    ways_from(regions, 0, way, NULL);
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        if (!(way[region_of(regions, cluster->machine[i].region)].bandwidth > 0))
            return refuse(error, "regions: no link leads from '%.60s' to '%.60s'",
                          regions->name[0], cluster->machine[i].region);
    return true;
}

static void sites_of_regions(ClusterView *view)
{
    const Cluster *cluster = view->cluster;
    g_autofree Regions *regions = g_new0(Regions, 1);
    if (!read_regions(cluster, regions) || regions->n < 2)
        return;
    view->n_sites = regions->n;
    view->between = g_new(LinkCost, (size_t)regions->n * regions->n);
    if (regions->tolled)
        view->toll = g_new0(double, (size_t)regions->n * regions->n);
    for (uint32_t s = 0; s < regions->n; s++)
        ways_from(regions, s, &view->between[(size_t)s * regions->n],
                  view->toll ? &view->toll[(size_t)s * regions->n] : NULL);
    for (uint32_t m = 0; m < cluster->n_machines; m++)
        view->site[m] = region_of(regions, cluster->machine[m].region);
}

/* --- topologies --- */

/* A machine's switch, and the bandwidth of its cables there; UINT32_MAX: not just one. */
static uint32_t switch_of(const Topology *topology, uint32_t device, double *bandwidth)
{
    uint32_t node = topology->device[device], found = UINT32_MAX;
    *bandwidth = 0;
    for (uint32_t pass = 0; pass < 2; pass++) {
        uint32_t inside = UINT32_MAX;
        for (uint32_t k = topology->first_link[node]; k < topology->first_link[node + 1];
             k++) {
            const TopologyLink *link = &topology->link[topology->out[k]];
            if (topology->node[link->to].kind == NODE_INNER)
                inside = link->to;
            if (topology->node[link->to].kind != NODE_SWITCH)
                continue;
            if (found != UINT32_MAX && found != link->to)
                return UINT32_MAX;
            found = link->to;
            *bandwidth += link->bandwidth;
        }
        if (found != UINT32_MAX || inside == UINT32_MAX)
            break;
        node = inside;
    }
    return found;
}

/* The links of a route between its first and its last switch. */
static LinkCost middle(const Topology *topology, const uint32_t *link, uint32_t n)
{
    LinkCost line = NOTHING_NARROW;
    for (uint32_t i = 0; i < n; i++) {
        const TopologyLink *l = &topology->link[link[i]];
        if (topology->node[l->from].kind != NODE_SWITCH ||
            topology->node[l->to].kind != NODE_SWITCH)
            continue;
        line.latency_s += l->latency_s;
        line.bandwidth = fmin(line.bandwidth, l->bandwidth);
    }
    return line;
}

static void sites_of_topology(ClusterView *view)
{
    g_autoptr(Topology) topology = topology_of_view(view, NULL);
    uint32_t at[SITES_MAX], first[SITES_MAX], n = 0;
    if (!topology)
        return;
    for (uint32_t d = 0; d < view->n_devices; d++) {
        const uint32_t m = view->device[d].machine;
        if (d > 0 && view->device[d - 1].machine == m)
            continue;
        const uint32_t node = switch_of(topology, d, &view->cable[m]);
        uint32_t s = 0;
        while (s < n && at[s] != node)
            s++;
        if (node == UINT32_MAX || s == SITES_MAX)
            return;
        if (s == n) {
            at[n] = node;
            first[n++] = d;
        }
        view->site[m] = s;
    }
    g_autoptr(Routes) routes = routes_new(topology);
    view->n_sites = n;
    view->between = g_new(LinkCost, (size_t)n * n);
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++) {
            uint32_t link[ROUTE_MAX_LINKS];
            const uint32_t hops = routes_find(routes, first[a], first[b], link);
            view->between[(size_t)a * n + b] = middle(topology, link, hops);
        }
}

void sites_find(ClusterView *view)
{
    const Cluster *cluster = view->cluster;
    if (!cluster->wired || cluster->n_machines == 1)
        return;
    view->site = g_new0(uint32_t, cluster->n_machines);
    view->cable = g_new(double, cluster->n_machines);
    for (uint32_t m = 0; m < cluster->n_machines; m++)
        view->cable[m] = INFINITY;
    if (cluster->network)
        sites_of_topology(view);
    else if (cluster->machine[0].region)
        sites_of_regions(view);
    for (uint32_t m = 0; view->n_sites == 0 && m < cluster->n_machines; m++)
        view->cable[m] = INFINITY;
}

void sites_copy(ClusterView *copy)
{
    const uint32_t n = copy->cluster->n_machines;
    copy->site = g_memdup2(copy->site, n * sizeof *copy->site);
    copy->cable = g_memdup2(copy->cable, n * sizeof *copy->cable);
    const size_t pairs = (size_t)copy->n_sites * copy->n_sites;
    copy->between = g_memdup2(copy->between, pairs * sizeof *copy->between);
    copy->toll = g_memdup2(copy->toll, pairs * sizeof *copy->toll);
}
