/* Shortest routes. Nodes with one neighbour, and repeatedly the nodes that have one neighbour once
 * these are removed, form trees that hang off the core, so a route climbs to the core, crosses it
 * and descends. Inside the core a breadth-first search from a destination gives every node's
 * distance to it, kept for the next route there. */
#include <string.h>

#include "data/base/assert.h"
#include "data/base/free.h"
#include "data/cluster/topology.h"

#define NONE UINT32_MAX

struct Routes {
    const Topology *topology;
    uint32_t *up;        /* [node]: link towards the core, NONE in the core */
    uint32_t *depth;     /* [node]: links to the core */
    uint16_t **distance; /* [core node]: [node] its distance to the core node, or NULL */
    uint32_t *local;     /* [device]: index in its machine */
};

/* Removes nodes with one link until none is left; a tree keeps one node. */
static void peel(Routes *routes)
{
    const Topology *topology = routes->topology;
    const uint32_t n = topology->n_nodes;
    g_autofree uint32_t *degree = g_new(uint32_t, n), *queue = g_new(uint32_t, n);
    uint32_t head = 0, tail = 0;
    for (uint32_t i = 0; i < n; i++) {
        degree[i] = topology->first_link[i + 1] - topology->first_link[i];
        if (degree[i] == 1)
            queue[tail++] = i;
    }
    while (head < tail) {
        const uint32_t node = queue[head++];
        if (degree[node] != 1) /* its last neighbour was removed before it */
            continue;
        degree[node] = 0;
        for (uint32_t k = topology->first_link[node]; k < topology->first_link[node + 1];
             k++) {
            const uint32_t to = topology->link[topology->out[k]].to;
            if (routes->up[to] != NONE)
                continue;
            routes->up[node] = topology->out[k];
            if (--degree[to] == 1)
                queue[tail++] = to;
        }
    }
    /* Parents are peeled after their children. */
    while (head-- > 0) {
        const uint32_t node = queue[head];
        if (routes->up[node] != NONE)
            routes->depth[node] = routes->depth[topology->link[routes->up[node]].to] + 1;
    }
}

Routes *routes_new(const Topology *topology)
{
    Routes *routes = g_new0(Routes, 1);
    routes->topology = topology;
    routes->up = g_new(uint32_t, topology->n_nodes);
    routes->depth = g_new0(uint32_t, topology->n_nodes);
    routes->distance = g_new0(uint16_t *, topology->n_nodes);
    routes->local = g_new0(uint32_t, topology->n_devices);
    memset(routes->up, 0xff, topology->n_nodes * sizeof *routes->up);
    for (uint32_t j = 1; j < topology->n_devices; j++)
        if (topology->machine[j] == topology->machine[j - 1])
            routes->local[j] = routes->local[j - 1] + 1;
    peel(routes);
    return routes;
}

FREE_DEFINE(routes_free, Routes, routes,
            free_items(routes->distance, routes->topology->n_nodes),
            free_each(routes->distance, routes->up, routes->depth, routes->local));

static const uint16_t *distances_to(Routes *routes, uint32_t target)
{
    if (!routes->distance[target])
        routes->distance[target] =
            topology_distances(routes->topology, target, routes->depth);
    return routes->distance[target];
}

/* Mixes the ends of a message and the place of a choice (the finalizer of splitmix64). */
static uint32_t routes_hash(uint32_t from, uint32_t to, uint32_t node)
{
    uint64_t x = ((uint64_t)from << 32 | to) + 0x9e3779b97f4a7c15 * (node + 1ULL);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return (uint32_t)((x ^ x >> 31) >> 32);
}

/* The link on which a route in the core goes on. */
static uint32_t step(const Routes *routes, const uint16_t *distance, uint32_t node,
                     uint32_t from, uint32_t to)
{
    KILTER_ASSERT(distance[node] > 0 && distance[node] != TOPOLOGY_FAR);
    const Topology *topology = routes->topology;
    const uint32_t first = topology->first_link[node],
                   last = topology->first_link[node + 1];
    uint32_t ties = 0, only = NONE;
    for (uint32_t k = first; k < last; k++) {
        const uint32_t next = topology->link[topology->out[k]].to;
        if (distance[next] != TOPOLOGY_FAR && distance[next] + 1 == distance[node]) {
            ties++;
            only = topology->out[k];
        }
    }
    if (ties <= 1)
        return only;
    uint32_t pick =
        (topology->by_rail ? routes->local[to] : routes_hash(from, to, node)) % ties;
    for (uint32_t k = first;; k++) {
        const uint32_t next = topology->link[topology->out[k]].to;
        if (distance[next] != TOPOLOGY_FAR && distance[next] + 1 == distance[node] &&
            pick-- == 0)
            return topology->out[k];
    }
}

/* The link in the core with which a machine's rail begins. */
static uint32_t rail_of(const Routes *routes, uint32_t machine, uint32_t pick)
{
    const Topology *topology = routes->topology;
    const uint32_t first = topology->first_link[machine],
                   last = topology->first_link[machine + 1];
    uint32_t rails = 0;
    for (uint32_t k = first; k < last; k++)
        rails += routes->depth[topology->link[topology->out[k]].to] == 0;
    g_assert(rails > 0);
    pick %= rails;
    for (uint32_t k = first;; k++)
        if (routes->depth[topology->link[topology->out[k]].to] == 0 && pick-- == 0)
            return topology->out[k];
}

/* Crosses the core of a network of rails, where each machine has a link to the switch of each rail:
 * the same route as that of step(), without distances from all machines to all others. */
static void cross_rail(const Routes *routes, uint32_t a, uint32_t b, uint32_t to,
                       uint32_t link[2])
{
    link[0] = rail_of(routes, a, routes->local[to]);
    link[1] = rail_of(routes, b, routes->local[to]) ^ 1;
    g_assert(routes->topology->link[link[0]].to == routes->topology->link[link[1]].from);
}

/* The invariant of a route: its links lead from one device to the other without a gap. */
static void walk_route(const Topology *topology, uint32_t from, uint32_t to,
                       const uint32_t *link, uint32_t n)
{
    uint32_t node = topology->device[from];
    for (uint32_t i = 0; i < n; i++) {
        g_assert(link[i] < topology->n_links && topology->link[link[i]].from == node);
        node = topology->link[link[i]].to;
    }
    g_assert(node == topology->device[to]);
}

uint32_t routes_find(Routes *routes, uint32_t from, uint32_t to,
                     uint32_t link[ROUTE_MAX_LINKS])
{
    const Topology *topology = routes->topology;
    KILTER_ASSERT(from < topology->n_devices && to < topology->n_devices);
    uint32_t a = topology->device[from], b = topology->device[to];
    uint32_t down[ROUTE_MAX_LINKS], n = 0, n_down = 0;
    while (a != b && (routes->depth[a] > 0 || routes->depth[b] > 0)) {
        g_assert(n + n_down < ROUTE_MAX_LINKS);
        if (routes->depth[a] >= routes->depth[b]) {
            link[n++] = routes->up[a];
            a = topology->link[routes->up[a]].to;
        } else {
            down[n_down++] = routes->up[b] ^ 1;
            b = topology->link[routes->up[b]].to;
        }
    }
    if (a != b && topology->by_rail) {
        g_assert(n + n_down + 2 <= ROUTE_MAX_LINKS);
        cross_rail(routes, a, b, to, &link[n]);
        n += 2;
        a = b;
    }
    const uint16_t *distance = a != b ? distances_to(routes, b) : NULL;
    while (a != b) {
        g_assert(n + n_down < ROUTE_MAX_LINKS);
        link[n] = step(routes, distance, a, from, to);
        a = topology->link[link[n++]].to;
    }
    while (n_down > 0)
        link[n++] = down[--n_down];
    KILTER_WALK(walk_route(topology, from, to, link, n));
    return n;
}
