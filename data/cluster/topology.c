/* Topologies: devices and links of a network, by its kind. */
#include "data/cluster/topology.h"

#include <string.h>

#include "data/base/assert.h"
#include "data/base/error.h"
#include "data/base/free.h"
#include "data/cluster/network_spec.h"

/* --- nodes and cables --- */

typedef struct {
    const ClusterView *view;
    const NetworkSpec *spec; /* never NETWORK_LINKS in the builders */
    GArray *node, *link;     /* of TopologyNode, TopologyLink */
    uint32_t *port;          /* [machine]: the node that the network connects */
} Build;

/* Adds a node, which takes ownership of `name`. */
static uint32_t build_node(Build *build, char *name, NodeKind kind)
{
    TopologyNode node = {name, kind};
    g_array_append_val(build->node, node);
    return build->node->len - 1;
}

static void build_cable(Build *build, uint32_t a, uint32_t b, LinkCost cost, bool inner)
{
    KILTER_ASSERT(a < build->node->len && b < build->node->len && a != b);
    TopologyLink there = {a, b, cost.bandwidth, cost.latency_s, inner};
    TopologyLink back = {b, a, cost.bandwidth, cost.latency_s, inner};
    g_array_append_val(build->link, there);
    g_array_append_val(build->link, back);
}

static uint32_t ceil_div(uint32_t a, uint32_t b)
{
    KILTER_ASSERT(b > 0);
    return a / b + (a % b != 0);
}

/* Adds `n` switches; returns the first. */
static uint32_t add_switches(Build *build, uint32_t n, const char *name)
{
    const uint32_t first = build->node->len;
    for (uint32_t i = 0; i < n; i++)
        build_node(build, g_strdup_printf("%s-%u", name, i), NODE_SWITCH);
    return first;
}

static LinkCost times(LinkCost cost, double factor)
{
    return (LinkCost){cost.latency_s, cost.bandwidth * factor};
}

static void build_star(Build *build, double width)
{
    const uint32_t hub = add_switches(build, 1, "switch");
    for (uint32_t i = 0; i < build->view->cluster->n_machines; i++)
        build_cable(build, build->port[i], hub, times(build->spec->link, width), false);
}

/* Adds leaves with `leaf` ports each; returns the first. */
static uint32_t build_leaves(Build *build, uint32_t n, const char *name)
{
    KILTER_ASSERT((uint64_t)n * build->spec->leaf >= build->view->cluster->n_machines);
    const uint32_t first = add_switches(build, n, name);
    for (uint32_t i = 0; i < build->view->cluster->n_machines; i++)
        build_cable(build, build->port[i], first + i / build->spec->leaf,
                    build->spec->link, false);
    return first;
}

static void build_tree(Build *build)
{
    const NetworkSpec *spec = build->spec;
    const uint32_t leaves = ceil_div(build->view->cluster->n_machines, spec->leaf);
    const uint32_t first = build_leaves(build, leaves, "leaf");
    const LinkCost up =
        times(spec->link, spec->leaf / (spec->oversubscription * spec->spines));
    const uint32_t pod = spec->pod ? spec->pod : leaves;
    const uint32_t pods = ceil_div(leaves, pod);
    const uint32_t spine = add_switches(build, pods * spec->spines, "spine");
    for (uint32_t i = 0; i < leaves; i++)
        for (uint32_t s = 0; s < spec->spines; s++)
            build_cable(build, first + i, spine + i / pod * spec->spines + s, up, false);
    if (pods == 1)
        return;
    /* A pod's spines have as much bandwidth upwards as its leaves have towards them. */
    const uint32_t core = add_switches(build, spec->spines, "core");
    const LinkCost top = times(up, (double)pod / spec->spines);
    for (uint32_t i = 0; i < pods * spec->spines; i++)
        for (uint32_t c = 0; c < spec->spines; c++)
            build_cable(build, spine + i, core + c, top, false);
}

static void build_rails(Build *build)
{
    /* A machine that is one device sends over all its ports at once. */
    if (build->view->granularity == GRANULARITY_MACHINE) {
        build_star(build, build->spec->rails);
        return;
    }
    const uint32_t first = add_switches(build, build->spec->rails, "rail");
    for (uint32_t i = 0; i < build->view->cluster->n_machines; i++)
        for (uint32_t r = 0; r < build->spec->rails; r++)
            build_cable(build, build->port[i], first + r, build->spec->link, false);
}

/* Groups a < b are connected by the next free link of each: group a's links go to the other groups
 * in turn, `global` per router. */
static void build_dragonfly(Build *build)
{
    const NetworkSpec *spec = build->spec;
    const uint32_t groups = network_groups(spec, build->view->cluster->n_machines);
    const uint32_t first = build_leaves(build, groups * spec->group, "router");
    for (uint32_t g = 0; g < groups; g++)
        for (uint32_t a = 0; a < spec->group; a++)
            for (uint32_t b = a + 1; b < spec->group; b++)
                build_cable(build, first + g * spec->group + a,
                            first + g * spec->group + b, spec->link, false);
    for (uint32_t a = 0; a < groups; a++)
        for (uint32_t b = a + 1; b < groups; b++)
            build_cable(build, first + a * spec->group + (b - 1) / spec->global,
                        first + b * spec->group + a / spec->global, spec->link, false);
}

/* Adds the network of a builder between the ports. */
static void build_network(Build *build)
{
    switch (build->spec->kind) {
    case NETWORK_STAR:
        build_star(build, 1);
        break;
    case NETWORK_TREE:
        build_tree(build);
        break;
    case NETWORK_RAIL:
        build_rails(build);
        break;
    case NETWORK_DRAGONFLY:
        build_dragonfly(build);
        break;
    case NETWORK_LINKS:
        g_assert_not_reached();
    }
}

/* A link with half the latency of a hop, where the rounds of a ring of n together have the fit's
 * latency: a link is half of a route. */
static LinkCost ring_link(LinkCost fit, uint32_t n, double bandwidth)
{
    return (LinkCost){n > 1 ? fit.latency_s / (2.0 * (n - 1)) / 2 : 0, bandwidth};
}

/* --- machines --- */

/* The name of a machine's GPU; a single GPU has the machine's name. */
static char *gpu_name(const Machine *machine, uint32_t gpu)
{
    KILTER_ASSERT(gpu < machine->gpus);
    return machine->gpus == 1 ? g_strdup(machine->name)
                              : g_strdup_printf("%s:%u", machine->name, gpu);
}

/* Adds the GPUs of a machine and its inner links; its devices in the view begin at `device`.
 * Returns their number. */
static uint32_t topology_add_machine(Build *build, uint32_t index, uint32_t *device)
{
    KILTER_ASSERT(index < build->view->cluster->n_machines);
    const Machine *machine = &build->view->cluster->machine[index];
    const bool own =
        machine->gpus > 1 && network_spec_names_gpus(build->spec, machine->name);
    const bool whole = build->view->granularity == GRANULARITY_MACHINE;
    const uint32_t unit = cluster_unit(build->view->cluster, index);
    if (machine->domain && whole) { /* one device, on the domain's switch */
        if (unit == index)
            build->port[index] = build_node(build, g_strdup(machine->domain), NODE_INNER);
        build->port[index] = build->port[unit];
        device[0] = build_node(build, g_strdup(machine->name), NODE_DEVICE);
        build_cable(build, device[0], build->port[index],
                    ring_link(machine->inner, machine->gpus,
                              machine->inner.bandwidth * machine->gpus),
                    true);
        return 1;
    }
    if ((machine->gpus == 1 && !machine->domain) || (whole && !own)) {
        build->port[index] = build_node(build, g_strdup(machine->name), NODE_DEVICE);
        device[0] = build->port[index];
        return 1;
    }
    const bool first = unit == index;
    build->port[index] = first ? build_node(build, g_strdup(machine->name), NODE_INNER)
                               : build->port[unit];
    for (uint32_t gpu = 0; gpu < machine->gpus; gpu++) {
        const uint32_t node = build_node(build, gpu_name(machine, gpu), NODE_DEVICE);
        if (!whole || gpu == 0)
            device[gpu] = node;
        if (!own)
            build_cable(
                build, node, build->port[index],
                ring_link(machine->inner, machine->gpus, machine->inner.bandwidth), true);
    }
    return whole ? 1 : machine->gpus;
}

static void add_machines(Build *build, Topology *topology)
{
    const Cluster *cluster = build->view->cluster;
    uint32_t n = 0;
    for (uint32_t i = 0; i < cluster->n_machines; i++) {
        const uint32_t devices = topology_add_machine(build, i, &topology->device[n]);
        for (uint32_t k = 0; k < devices; k++)
            topology->machine[n + k] = i;
        n += devices;
    }
    g_assert(n == topology->n_devices);
}

/* --- between machines --- */

/* The node of a name; made if it is new. */
static uint32_t switch_called(Build *build, GHashTable *by_name, const char *name)
{
    gpointer found;
    if (g_hash_table_lookup_extended(by_name, name, NULL, &found))
        return GPOINTER_TO_UINT(found);
    const uint32_t node = build_node(build, g_strdup(name), NODE_SWITCH);
    g_hash_table_insert(by_name, (char *)name, GUINT_TO_POINTER(node));
    return node;
}

/* The ports of a wired cluster at an ideal switch, or at one in each region. A domain has one
 * cable for the ports of all its machines. */
static void add_ports(Build *build)
{
    const Cluster *cluster = build->view->cluster;
    g_autoptr(GHashTable) by_name = g_hash_table_new(g_str_hash, g_str_equal);
    g_autofree double *bandwidth = g_new0(double, cluster->n_machines);
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        bandwidth[cluster_unit(cluster, i)] +=
            port_capacity(&cluster->machine[i].port, cluster->machine[i].gpus,
                          cluster->machine[i].gpus);
    items_at (const Machine, machine, i, cluster->machine, cluster->n_machines) {
        if (cluster_unit(cluster, i) != i || !(bandwidth[i] > 0))
            continue;
        const uint32_t hub = switch_called(
            build, by_name, cluster->n_region_links > 0 ? machine->region : "switch");
        build_cable(build, build->port[i], hub,
                    (LinkCost){machine->port.hop_s / 2, bandwidth[i]}, false);
    }
    items_each (const RegionLink, link, cluster->region_link, cluster->n_region_links) {
        const uint32_t from = switch_called(build, by_name, link->from),
                       to = switch_called(build, by_name, link->to);
        build_cable(build, from, to, link->link, false);
    }
}

/* The network without a topology section: one port per machine to an ideal switch. */
static void add_fitted_network(Build *build, Topology *topology)
{
    const Cluster *cluster = build->view->cluster;
    topology->source = g_strdup(cluster->collective_source);
    if (cluster->n_machines == 1)
        return;
    if (cluster->wired) {
        add_ports(build);
        for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
            topology->efficiency[kind] = 1;
        return;
    }
    double widest = 0;
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        widest = MAX(widest, cluster->collective[kind].bandwidth);
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        topology->efficiency[kind] = cluster->collective[kind].bandwidth / widest;
    const NetworkSpec star = {
        .kind = NETWORK_STAR,
        .link = ring_link(cluster->collective[COLLECTIVE_ALL_REDUCE], cluster->n_machines,
                          widest),
    };
    build->spec = &star;
    build_network(build);
    build->spec = NULL;
}

static bool find_end(GHashTable *by_name, const char *name, uint32_t *node,
                     GError **error)
{
    gpointer found;
    if (!g_hash_table_lookup_extended(by_name, name, NULL, &found))
        return refuse(
            error,
            "expected a machine, a GPU such as 'machine:0' or one of nodes, got '%.100s'",
            name);
    *node = GPOINTER_TO_UINT(found);
    return true;
}

/* A cable is inside a machine if one of its ends is a GPU of a larger machine. */
static bool is_inner(const Build *build, const char *name)
{
    const char *colon = strrchr(name, ':');
    const Cluster *cluster = build->view->cluster;
    for (uint32_t i = 0; colon && i < cluster->n_machines; i++)
        if (strlen(cluster->machine[i].name) == (size_t)(colon - name) &&
            g_str_has_prefix(name, cluster->machine[i].name))
            return true;
    return false;
}

static bool add_explicit_network(Build *build, GError **error)
{
    const NetworkSpec *spec = build->spec;
    for (uint32_t i = 0; i < spec->n_nodes; i++)
        build_node(build, g_strdup(spec->node[i]), NODE_SWITCH);
    g_autoptr(GHashTable) by_name = g_hash_table_new(g_str_hash, g_str_equal);
    for (uint32_t i = 0; i < build->node->len; i++) {
        char *name = g_array_index(build->node, TopologyNode, i).name;
        if (!g_hash_table_insert(by_name, name, GUINT_TO_POINTER(i)))
            return refuse(error, "nodes: expected a new name, got '%.100s' again", name);
    }
    items_at (const NetworkLink, link, i, spec->explicit_link, spec->n_links) {
        uint32_t from = 0, to = 0;
        if (!find_end(by_name, link->from, &from, error) ||
            !find_end(by_name, link->to, &to, error))
            return kilter_prefix(error, "links[%u]: ", i);
        if (from == to)
            return refuse(error, "links[%u]: expected two ends, got '%.100s' twice", i,
                          link->from);
        build_cable(build, from, to, link->cost,
                    is_inner(build, link->from) && is_inner(build, link->to));
    }
    return true;
}

static bool add_network(Build *build, Topology *topology, GError **error)
{
    if (!build->spec) {
        add_fitted_network(build, topology);
        return true;
    }
    topology->source = g_strdup(build->spec->source);
    if (build->spec->kind == NETWORK_LINKS)
        return add_explicit_network(build, error);
    topology->by_rail = build->spec->kind == NETWORK_RAIL;
    if (!network_spec_check(build->spec, build->view->cluster->n_machines, error))
        return false;
    build_network(build);
    return true;
}

/* --- the graph --- */

static void index_links(Topology *topology)
{
    topology->first_link = g_new0(uint32_t, topology->n_nodes + 1);
    topology->out = g_new(uint32_t, topology->n_links);
    for (uint32_t i = 0; i < topology->n_links; i++)
        topology->first_link[topology->link[i].from + 1]++;
    for (uint32_t i = 0; i < topology->n_nodes; i++)
        topology->first_link[i + 1] += topology->first_link[i];
    g_autofree uint32_t *next =
        g_memdup2(topology->first_link, topology->n_nodes * sizeof *next);
    for (uint32_t i = 0; i < topology->n_links; i++)
        topology->out[next[topology->link[i].from]++] = i;
}

uint16_t *topology_distances(const Topology *topology, uint32_t from,
                             const uint32_t *depth)
{
    const uint32_t n = topology->n_nodes;
    g_autofree uint32_t *queue = g_new(uint32_t, n);
    uint16_t *distance = g_new(uint16_t, n);
    uint32_t head = 0, tail = 0;
    memset(distance, 0xff, n * sizeof *distance);
    distance[from] = 0;
    queue[tail++] = from;
    while (head < tail) {
        const uint32_t node = queue[head++];
        for (uint32_t k = topology->first_link[node]; k < topology->first_link[node + 1];
             k++) {
            const uint32_t to = topology->link[topology->out[k]].to;
            if (distance[to] != TOPOLOGY_FAR || (depth && depth[to] > 0))
                continue;
            distance[to] = (uint16_t)MIN(distance[node] + 1, TOPOLOGY_FAR - 1);
            queue[tail++] = to;
        }
    }
    return distance;
}

/* Checks that routes have at most ROUTE_MAX_LINKS links: no device may be further than half of that
 * from device 0. */
static bool check_routes(const Topology *topology, GError **error)
{
    const uint32_t start = topology->device[0];
    g_autofree uint16_t *distance = topology_distances(topology, start, NULL);
    values_at (const uint32_t, node, j, topology->device, topology->n_devices) {
        if (distance[node] == TOPOLOGY_FAR)
            return refuse(error, "no route from '%.100s' to '%.100s'",
                          topology->node[start].name, topology->node[node].name);
        if (distance[node] > ROUTE_MAX_LINKS / 2)
            return refuse(error,
                          "%u links from '%.100s' to '%.100s'; expected at most %d",
                          distance[node], topology->node[start].name,
                          topology->node[node].name, ROUTE_MAX_LINKS / 2);
    }
    return true;
}

/* Numbers the devices in the order of a depth-first walk from device 0; nodes keep where it is. */
static void walk(Topology *topology)
{
    const uint32_t n = topology->n_nodes;
    g_autofree uint32_t *next = g_memdup2(topology->first_link, n * sizeof *next);
    g_autofree uint32_t *stack = g_new(uint32_t, n), *seen = g_new0(uint32_t, n);
    uint32_t depth = 0, n_seen = 0;
    stack[depth++] = topology->device[0];
    seen[topology->device[0]] = ++n_seen;
    while (depth > 0) {
        const uint32_t node = stack[depth - 1];
        if (next[node] == topology->first_link[node + 1]) {
            depth--;
            continue;
        }
        const uint32_t to = topology->link[topology->out[next[node]++]].to;
        if (!seen[to]) {
            seen[to] = ++n_seen;
            stack[depth++] = to;
        }
    }
    /* [node]: its index among the devices */
    g_autofree uint32_t *device_at = g_new(uint32_t, n + 1);
    memset(device_at, 0xff, (n + 1) * sizeof *device_at);
    for (uint32_t j = 0; j < topology->n_devices; j++)
        device_at[seen[topology->device[j]]] = j;
    uint32_t position = 0;
    for (uint32_t i = 0; i <= n; i++)
        if (device_at[i] != UINT32_MAX)
            topology->order[device_at[i]] = position++;
    g_assert(position == topology->n_devices);
}

static void topology_take(Topology *topology, Build *build)
{
    topology->n_nodes = build->node->len;
    topology->n_links = build->link->len;
    topology->node = (TopologyNode *)(void *)g_array_free(build->node, FALSE);
    topology->link = (TopologyLink *)(void *)g_array_free(build->link, FALSE);
    g_free(build->port);
}

/* The invariant: links come in pairs of opposite directions between existing nodes. */
static void walk_links(const Topology *topology)
{
    g_assert(topology->n_links % 2 == 0);
    for (uint32_t l = 0; l < topology->n_links; l++) {
        const TopologyLink *link = &topology->link[l], *back = &topology->link[l ^ 1];
        g_assert(link->from < topology->n_nodes && link->to < topology->n_nodes);
        g_assert(link->from == back->to && link->bandwidth == back->bandwidth);
    }
}

Topology *topology_of_view(const ClusterView *view, GError **error)
{
    g_autoptr(Topology) topology = g_new0(Topology, 1);
    Build build = {view, view->cluster->network,
                   g_array_new(FALSE, FALSE, sizeof(TopologyNode)),
                   g_array_new(FALSE, FALSE, sizeof(TopologyLink)),
                   g_new0(uint32_t, view->cluster->n_machines)};
    topology->n_devices = view->n_devices;
    topology->device = g_new0(uint32_t, view->n_devices);
    topology->machine = g_new0(uint32_t, view->n_devices);
    topology->order = g_new0(uint32_t, view->n_devices);
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        topology->efficiency[kind] = 1;
    add_machines(&build, topology);
    const bool good = add_network(&build, topology, error);
    topology_take(topology, &build);
    if (!good)
        return NULL;
    index_links(topology);
    if (!check_routes(topology, error))
        return NULL;
    KILTER_WALK(walk_links(topology));
    walk(topology);
    topology->tuning = tuning_of_cluster(view->cluster, error);
    if (!topology->tuning)
        return NULL;
    return g_steal_pointer(&topology);
}

FREE_DEFINE(topology_free, Topology, topology,
            free_column(topology->node, topology->n_nodes, name),
            g_free(topology->source), tuning_free(topology->tuning),
            free_each(topology->node, topology->link, topology->device, topology->machine,
                      topology->order, topology->first_link, topology->out));
