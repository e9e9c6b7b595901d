/* The sets of teams, their links, and the lines that price their collectives. */
#include "sim/tasks/team.h"

#include <math.h>

uint32_t sim_axis_extent(const DeviceGroup *group, FormAxis axis)
{
    return axis == AXIS_REPLICAS ? group_parts(group)
           : axis == AXIS_SHARDS ? group_shards(group)
                                 : group->n_devices;
}

uint32_t sim_set_place(const DeviceGroup *group, FormAxis axis, uint32_t set, uint32_t k)
{
    const uint32_t n = group->n_devices, n_shards = group_shards(group);
    switch (axis) {
    case AXIS_REPLICAS:
        return k * n_shards * n + set;
    case AXIS_SHARDS:
        return (set / n * n_shards + k) * n + set % n;
    case AXIS_POSITIONS:
        break;
    }
    return set * n + k;
}

uint32_t sim_axis_sets(const DeviceGroup *group, FormAxis axis)
{
    return group->n_replicas * group->n_devices / sim_axis_extent(group, axis);
}

/* Counts the sets that go through the busiest machine's port, and their devices behind it. */
static void count_port(const ClusterView *view, const DeviceGroup *group, FormAxis axis,
                       uint32_t *port_sets, uint32_t *n_devices)
{
    const uint32_t sets = sim_axis_sets(group, axis);
    const uint32_t n = sim_axis_extent(group, axis);
    const uint32_t n_machines = view->cluster->n_machines;
    g_autofree uint32_t *seen = g_new0(uint32_t, n_machines); /* 1 + its last set */
    g_autofree uint32_t *through = g_new0(uint32_t, n_machines);
    g_autofree uint32_t *behind = g_new0(uint32_t, n_machines);

    *port_sets = *n_devices = 1;
    for (uint32_t s = 0; s < sets; s++) {
        bool spans = false;
        for (uint32_t pass = 0; pass < 2; pass++)
            for (uint32_t k = 0; (pass == 0 || spans) && k < n; k++) {
                const uint32_t i = sim_set_place(group, axis, s, k);
                const uint32_t first = sim_set_place(group, axis, s, 0);
                const uint32_t machine = view->device[group->device[i]].machine;
                if (pass == 0) {
                    spans |= machine != view->device[group->device[first]].machine;
                    continue;
                }
                behind[machine]++;
                through[machine] += seen[machine] != s + 1;
                seen[machine] = s + 1;
                *n_devices = MAX(*n_devices, behind[machine]);
                *port_sets = MAX(*port_sets, through[machine]);
            }
    }
}

/* Whether each set of a team stays inside a machine; *inner gets the slowest link there. */
static bool stays_inside(const ClusterView *view, SimTeam *team, LinkCost *inner)
{
    *inner = (LinkCost){0, INFINITY};
    for (uint32_t s = 0; s < team->n_sets; s++) {
        const uint32_t *device = &team->device[(size_t)s * team->n];
        const Device *first = &view->device[device[0]];
        for (uint32_t k = 1; k < team->n; k++)
            if (view->device[device[k]].machine != first->machine)
                return false;
        if (s == 0 || first->inner.bandwidth < inner->bandwidth)
            team->slowest = device[0];
        inner->latency_s = fmax(inner->latency_s, first->inner.latency_s);
        inner->bandwidth = fmin(inner->bandwidth, first->inner.bandwidth);
    }
    return true;
}

/* The number of machines of a team's first set, whose devices are in the order of machines or not. */
static uint32_t count_hosts(const ClusterView *view, const SimTeam *team)
{
    g_autofree bool *seen = g_new0(bool, view->cluster->n_machines);
    uint32_t n = 0;
    for (uint32_t k = 0; k < team->n; k++) {
        const uint32_t machine = view->device[team->device[k]].machine;
        n += !seen[machine];
        seen[machine] = true;
    }
    return n;
}

void sim_teams_find_links(const ClusterView *view, const DeviceGroup *group,
                          SimTeam *team, uint32_t n)
{
    uint32_t port_sets, port_devices;
    count_port(view, group, team->axis, &port_sets, &port_devices);
    for (uint32_t t = 0; t < n; t++) {
        LinkCost inner;
        if (stays_inside(view, &team[t], &inner))
            team[t].inner = inner;
        team[t].hosts = count_hosts(view, &team[t]);
        team[t].port_sets = port_sets;
        team[t].port_devices = port_devices;
    }
}

LinkCost sim_team_line(const ClusterView *view, const SimTeam *team, Collective kind,
                       double bytes, bool *measured)
{
    KILTER_ASSERT((int)kind < COLLECTIVES_PRICED && bytes >= 0);
    LinkCost line = cluster_view_line(view, kind, bytes);
    bool unused;

    measured = measured ? measured : &unused;
    *measured = false;
    if (team->inner.bandwidth > 0) {
        const Device *device = &view->device[team->slowest];
        const CurvePlace place = {device->type_name, team->n, 1};
        const double part = cluster_view_ring_part(view, device, place, kind);
        line = team->inner;
        line.bandwidth *= part;
        *measured =
            curves_line(&view->cluster->curves, kind, place, bytes, &line) || part != 1;
        return line;
    }
    if (team->port_sets == 0)
        return line;
    *measured = curves_line(&view->cluster->curves, kind,
                            (CurvePlace){NULL, team->n, team->hosts}, bytes, &line);
    if (*measured) {
        line.bandwidth /= team->port_sets;
        return line;
    }
    line.bandwidth *=
        view->cluster->collective[kind].bandwidth / view->collective[kind].bandwidth;
    if (kind == COLLECTIVE_ALL_TO_ALL) {
        const double behind = (double)team->port_devices / team->port_sets;
        line.bandwidth *= (team->n - 1) / (team->n - behind) / team->port_devices;
    } else {
        line.bandwidth /= team->port_sets;
    }
    return line;
}
