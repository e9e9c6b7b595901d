/* Lanes and teams: which devices do the same at the same time, and which communicate. Private to
 * sim.
 *
 * A lane is a set of devices that do the same at the same time. Two devices share a lane when they
 * have the same speed, the same inner link, the same places in groups and the same shares there,
 * and when the replicas that they belong to, the devices at their position of the other replicas,
 * and those that send to them are alike as well.
 *
 * A team is a set of lanes that communicate over an axis (data/program/program.h): the positions of
 * replicas that are alike, shards that are alike, or the replicas at positions that are alike. Its
 * sets of devices run the same collective at the same time. */
#pragma once

#include "data/cluster/price.h"
#include "sim/evaluate.h"

#define SIM_NO_LANE UINT32_MAX

typedef struct {
    uint32_t group;
    uint32_t first; /* its first set (sim_set_place) */
    FormAxis axis;  /* over which its sets communicate */
    uint32_t n_lanes, *lane;
    uint32_t n_sets, n, *device; /* [set * n + rank] */
    PricePlace place;            /* hosts 0: not looked for, as it has all devices */
} SimTeam;

typedef struct {
    uint32_t n_lanes, *lane; /* lanes of its devices */
    /* [lane]: its index among the group's lanes, or SIM_NO_LANE */
    uint32_t *index;
    uint32_t *place; /* [index]: replica * n_devices + position of its first device */
    /* for each axis [index of lane]: its team; then the first team and their number, 0 where the
     * group has no such axis */
    uint32_t *of[AXES], first[AXES], n[AXES];
    uint32_t *team_of; /* [replica]: its team over the positions */
} SimGroupTeams;

/* The place (replica * n_devices + position) of the k-th device of a set over an axis, and the set
 * to which the device at a place belongs. */
uint32_t sim_set_place(const DeviceGroup *group, FormAxis axis, uint32_t set, uint32_t k);
uint32_t sim_set_of(const DeviceGroup *group, FormAxis axis, uint32_t place);

typedef struct {
    uint32_t n_devices, n_lanes, n_groups, n_teams;
    uint32_t *lane;   /* [device]: its lane */
    uint32_t *device; /* [lane]: its first device */
    SimGroupTeams *group;
    SimTeam *team;
} SimTeams;

/* The number of devices that communicate over an axis of a group. */
uint32_t sim_axis_extent(const DeviceGroup *group, FormAxis axis);
/* The number of sets of such devices. */
uint32_t sim_axis_sets(const DeviceGroup *group, FormAxis axis);

/* Fills in the places of the n teams over one axis of a group. */
void sim_teams_find_links(const ClusterView *view, const DeviceGroup *group,
                          SimTeam *team, uint32_t n);

/* The latency and bandwidth that price a collective on `bytes` in every set of a team. A ring
 * enters and leaves each machine once; in an all-to-all all devices send. *measured (may be NULL)
 * gets whether a curve of the cluster prices it, or the rings among some of a machine's GPUs. */
LinkCost sim_team_line(const ClusterView *view, const SimTeam *team, Collective kind,
                       double bytes, bool *measured);

/* The line of a curve that prices it; false: none does. */
bool sim_team_curve(const ClusterView *view, const SimTeam *team, Collective kind,
                    double bytes, LinkCost *line);

/* `separate` gives each device a lane of its own. */
SimTeams *sim_teams_new(const SimCase *sim, bool separate);
void sim_teams_free(SimTeams *teams);
