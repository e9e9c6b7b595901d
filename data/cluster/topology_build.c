/* Helpers that put devices and links into a topology. */
#include "data/cluster/topology_build.h"

#include "data/base/assert.h"
#include "data/cluster/network_spec.h"

uint32_t build_node(Build *build, char *name, NodeKind kind)
{
    TopologyNode node = {name, kind};
    g_array_append_val(build->node, node);
    return build->node->len - 1;
}

void build_cable(Build *build, uint32_t a, uint32_t b, LinkCost cost, bool inner)
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

void build_network(Build *build)
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
