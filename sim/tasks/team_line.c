/* The sets of teams, their places, and the lines that price their collectives. */
#include "sim/tasks/team.h"

#include <math.h>

uint32_t sim_axis_extent(const DeviceGroup *group, FormAxis axis)
{
    const uint32_t n_shards = group_shards(group), n_heads = MAX(group->n_heads, 1);
    const uint32_t extent[AXES] = {group->n_devices, n_shards, group_parts(group),
                                   n_heads, group->n_heads ? n_shards / n_heads : 1};
    return extent[axis];
}

/* The number of places from a device of a set to the next one. */
static uint32_t axis_stride(const DeviceGroup *group, FormAxis axis)
{
    const uint32_t n = group->n_devices;
    const uint32_t stride[AXES] = {1, n, n * group_shards(group), n,
                                   n * MAX(group->n_heads, 1)};
    return stride[axis];
}

uint32_t sim_set_place(const DeviceGroup *group, FormAxis axis, uint32_t set, uint32_t k)
{
    const uint32_t stride = axis_stride(group, axis);
    return (set / stride * sim_axis_extent(group, axis) + k) * stride + set % stride;
}

uint32_t sim_set_of(const DeviceGroup *group, FormAxis axis, uint32_t place)
{
    const uint32_t stride = axis_stride(group, axis);
    return place / (stride * sim_axis_extent(group, axis)) * stride + place % stride;
}

uint32_t sim_axis_sets(const DeviceGroup *group, FormAxis axis)
{
    return group->n_replicas * group->n_devices / sim_axis_extent(group, axis);
}

void sim_teams_find_links(const ClusterView *view, const DeviceGroup *group,
                          SimTeam *team, uint32_t n)
{
    const uint32_t sets = sim_axis_sets(group, team->axis),
                   ranks = sim_axis_extent(group, team->axis);
    g_autofree uint32_t *device = g_new(uint32_t, (size_t)sets * ranks);
    PricePlace all;
    for (uint32_t s = 0; s < sets; s++)
        for (uint32_t k = 0; k < ranks; k++)
            device[s * ranks + k] = group->device[sim_set_place(group, team->axis, s, k)];
    price_place(view, &(PriceSets){sets, ranks, device}, &all);
    for (uint32_t t = 0; t < n; t++) {
        PricePlace *place = &team[t].place;
        if (n == 1) {
            *place = all;
            continue;
        }
        /* the ports are shared with the other teams' sets */
        price_place(view, &(PriceSets){team[t].n_sets, team[t].n, team[t].device}, place);
        place->port_sets = all.port_sets;
        place->port_devices = all.port_devices;
        place->ring = fmin(place->ring, all.ring);
        place->exchange = fmin(place->exchange, all.exchange);
    }
}

bool sim_team_curve(const ClusterView *view, const SimTeam *team, Collective kind,
                    double bytes, LinkCost *line)
{
    const PricePlace *place = &team->place;
    const bool inside = place->hosts == 1;
    const CurvePlace at = {inside ? view->device[place->slowest].type_name : NULL,
                           team->n, place->hosts};
    if (place->hosts == 0 || !curves_line(&view->cluster->curves, kind, at, bytes, line))
        return false;
    line->bandwidth /= inside ? 1 : place->port_sets;
    return true;
}

LinkCost sim_team_line(const ClusterView *view, const SimTeam *team, Collective kind,
                       double bytes, bool *measured)
{
    KILTER_ASSERT((int)kind < COLLECTIVES_PRICED && bytes >= 0);
    LinkCost line = cluster_view_line(view, kind, bytes);
    bool unused;
    measured = measured ? measured : &unused;
    *measured = false;
    const PricePlace *place = &team->place;
    if (place->hosts == 0) /* all devices */
        return line;
    const bool inside = place->hosts == 1;
    if (inside)
        line = place->inner;
    if (place->own)
        line = price_line(place, kind, bytes, NULL);
    if (sim_team_curve(view, team, kind, bytes, &line)) {
        *measured = true;
        return line;
    }
    *measured = place->own;
    if (place->own || inside)
        return line;
    line.bandwidth *=
        view->cluster->collective[kind].bandwidth / view->collective[kind].bandwidth;
    if (kind == COLLECTIVE_ALL_TO_ALL) {
        const double behind = (double)place->port_devices / place->port_sets;
        line.bandwidth *= (team->n - 1) / (team->n - behind) / place->port_devices;
    } else {
        line.bandwidth /= place->port_sets;
    }
    return line;
}
