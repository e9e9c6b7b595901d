/* Teams: devices of a group that communicate alike, and the links that price their collectives. */
#include "sim/tasks/team.h"

#include <string.h>

#include "data/base/free.h"
#include "sim/event/random.h"
#include "sim/tasks/transfer.h"

/* A pair of groups with a transfer from one to the other. */
typedef struct {
    uint16_t group, to_group;
    bool has_parts;
} Pair;

typedef struct {
    const SimCase *sim;
    SimTeams *teams;
    uint32_t *color; /* [device]: devices of equal color may share a lane */
    uint32_t n_colors;
    GArray *pairs;
} Coloring;

/* --- colors --- */

/* A device's key is a hash of 64 bits of all that may tell it from others. */
static void mix(uint64_t *key, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    *key = sim_random_mix(*key, bits);
}

static void mix_device(uint64_t *key, const Device *d)
{
    mix(key, d->rate);
    mix(key, d->gpus);
    mix(key, d->slowdown);
    mix(key, d->fitted);
    mix(key, d->stretch);
    mix(key, d->launch_s);
    mix(key, d->handover_s);
    mix(key, d->crowd);
    mix(key, d->interference);
    if (d->gpus > 1) {
        mix(key, d->inner.latency_s);
        mix(key, d->inner.bandwidth);
    }
}

/* Adds to a device's key that it is in a group, and its shares there. */
static void mix_shares(uint64_t *key, const SimParts *parts, uint32_t group, uint32_t i)
{
    mix(key, group);
    for (uint32_t s = 0; s < parts->n_splits; s++)
        if (parts->split[s].key.group == group)
            mix(key, parts->split[s].share[i]);
    if (parts->slots) { /* which experts it has */
        const DeviceGroup *of = &parts->layout.group[group];
        /* with `imbalance` all but the first are alike */
        const uint32_t most = parts->layout.plan->strategy.expert_tokens ? UINT32_MAX : 1;
        mix(key, MIN(i / of->n_devices % group_shards(of), most));
        mix(key, MIN(i % of->n_devices, most));
    }
}

/* Gives keys that are equal the same number, in the order of their first ones: [n], the caller
 * frees them. */
static uint32_t *number_keys(const uint64_t *key, uint32_t n, uint32_t *n_numbers)
{
    g_autoptr(GHashTable) known = g_hash_table_new(g_int64_hash, g_int64_equal);
    uint32_t *number = g_new(uint32_t, n);
    *n_numbers = 0;
    for (uint32_t i = 0; i < n; i++) {
        const gpointer found = g_hash_table_lookup(known, &key[i]);
        number[i] = found ? GPOINTER_TO_UINT(found) - 1 : (*n_numbers)++;
        if (!found)
            g_hash_table_insert(known, (gpointer)&key[i],
                                GUINT_TO_POINTER(number[i] + 1));
    }
    return number;
}

static void color_by(Coloring *c, const uint64_t *key)
{
    put_block(c->color, number_keys(key, c->teams->n_devices, &c->n_colors));
}

static void color_alone(Coloring *c)
{
    const SimParts *parts = c->sim->parts;
    g_autofree uint64_t *key = g_new0(uint64_t, c->teams->n_devices);
    for (uint32_t j = 0; j < c->teams->n_devices; j++)
        mix_device(&key[j], &c->sim->view->device[j]);
    items_at (const DeviceGroup, group, g, parts->layout.group, parts->layout.n_groups) {
        for (uint32_t i = 0; i < group->n_replicas * group->n_devices; i++)
            mix_shares(&key[group->device[i]], parts, g, i);
    }
    color_by(c, key);
}

/* A hash of the colors in each set over an axis of a group: [set]. */
static uint64_t *hash_sets(const Coloring *c, const DeviceGroup *group, FormAxis axis)
{
    uint64_t *hash = g_new0(uint64_t, sim_axis_sets(group, axis));
    for (uint32_t i = 0; i < group->n_replicas * group->n_devices; i++) {
        uint64_t *of = &hash[sim_set_of(group, axis, i)];
        *of = sim_random_mix(*of, c->color[group->device[i]] + 1);
    }
    return hash;
}

static void mix_senders(const Coloring *c, uint64_t *key)
{
    const SimParts *parts = c->sim->parts;
    array_each (const Pair, pair, c->pairs) {
        const DeviceGroup *to = &parts->layout.group[pair->to_group];
        g_autofree uint64_t *hash =
            hash_sets(c, &parts->layout.group[pair->group], AXIS_POSITIONS);
        for (uint32_t r = 0; r < to->n_replicas; r++) {
            uint32_t first, end;
            uint64_t all = 0;
            sim_transfer_sources(parts, pair->group, pair->to_group, pair->has_parts, r,
                                 &first, &end);
            for (; first < end; first++)
                all = sim_random_mix(all, hash[first]);
            for (uint32_t p = 0; p < to->n_devices; p++)
                key[to->device[r * to->n_devices + p]] =
                    sim_random_mix(key[to->device[r * to->n_devices + p]], all);
        }
    }
}

/* Gives devices different colors if their replicas, positions or senders differ. */
static void refine(Coloring *c)
{
    const SimParts *parts = c->sim->parts;
    g_autofree uint64_t *key = g_new0(uint64_t, c->teams->n_devices);
    for (uint32_t j = 0; j < c->teams->n_devices; j++)
        mix(&key[j], c->color[j]);
    items_each (const DeviceGroup, group, parts->layout.group, parts->layout.n_groups) {
        const FormAxis end = group->n_heads ? AXES : AXIS_REPLICAS + 1;
        for (FormAxis axis = AXIS_POSITIONS; axis < end; axis++) {
            g_autofree uint64_t *hash = hash_sets(c, group, axis);
            for (uint32_t i = 0; i < group->n_replicas * group->n_devices; i++)
                key[group->device[i]] = sim_random_mix(key[group->device[i]],
                                                       hash[sim_set_of(group, axis, i)]);
        }
    }
    mix_senders(c, key);
    color_by(c, key);
}

static void find_pairs(Coloring *c)
{
    const Program *program = c->sim->plan->program;
    c->pairs = g_array_new(false, true, sizeof(Pair));
    items_each (const Instr, instr, program->instr, program->n) {
        if (instr->kind != INSTR_TRANSFER || instr_regroups(program, instr))
            continue;
        const bool has_parts =
            instances_has_parts(c->sim->parts->layout.instances, instr->tensor);
        bool known = false;
        for (uint32_t k = 0; k < c->pairs->len && !known; k++) {
            const Pair *pair = &g_array_index(c->pairs, Pair, k);
            known = pair->group == instr->group && pair->to_group == instr->to_group &&
                    pair->has_parts == has_parts;
        }
        const Pair pair = {instr->group, instr->to_group, has_parts};
        if (!known)
            g_array_append_val(c->pairs, pair);
    }
}

static void find_lanes(Coloring *c, bool separate)
{
    SimTeams *teams = c->teams;
    find_pairs(c);
    color_alone(c);
    for (uint32_t before = 0; !separate && before != c->n_colors;) {
        before = c->n_colors;
        refine(c);
    }
    for (uint32_t j = 0; separate && j < teams->n_devices; j++)
        c->color[j] = j;
    g_array_unref(c->pairs);
    teams->n_lanes = separate ? teams->n_devices : c->n_colors;
    teams->lane = c->color;
    teams->device = g_new(uint32_t, teams->n_lanes);
    for (uint32_t j = teams->n_devices; j-- > 0;)
        teams->device[teams->lane[j]] = j;
}

/* --- teams --- */

/* Adds a group's teams over an axis, which are sets with equal sequences of lanes. Returns [set]
 * the number of the set's team. */
static uint32_t *add_teams(const SimCase *sim, SimTeams *teams, uint32_t g, FormAxis axis)
{
    g_assert(g < sim->parts->layout.n_groups);
    const DeviceGroup *group = &sim->parts->layout.group[g];
    SimGroupTeams *lanes = &teams->group[g];
    const uint32_t sets = sim_axis_sets(group, axis);
    const uint32_t n = sim_axis_extent(group, axis);
    uint32_t *first = &lanes->first[axis], *n_teams = &lanes->n[axis];
    const Coloring c = {.color = teams->lane};
    g_autofree uint64_t *hash = hash_sets(&c, group, axis);
    uint32_t *number = number_keys(hash, sets, n_teams);
    g_autofree bool *seen = g_new0(bool, teams->n_lanes);
    *first = teams->n_teams;
    lanes->of[axis] = g_new0(uint32_t, lanes->n_lanes);
    teams->n_teams += *n_teams;
    teams->team = g_renew(SimTeam, teams->team, teams->n_teams);
    for (uint32_t t = 0; t < *n_teams; t++)
        teams->team[*first + t] = (SimTeam){.group = g,
                                            .first = UINT32_MAX,
                                            .axis = axis,
                                            .n = n,
                                            .lane = g_new(uint32_t, n)};
    for (uint32_t s = 0; s < sets; s++)
        teams->team[*first + number[s]].n_sets++;
    for (uint32_t t = 0; t < *n_teams; t++) {
        SimTeam *team = &teams->team[*first + t];
        team->device = g_new(uint32_t, (size_t)team->n_sets * n);
        team->n_sets = 0;
    }
    for (uint32_t s = 0; s < sets; s++) {
        SimTeam *team = &teams->team[*first + number[s]];
        team->first = MIN(team->first, s);
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t i = sim_set_place(group, axis, s, k);
            const uint32_t lane = teams->lane[group->device[i]];
            team->device[(size_t)team->n_sets * n + k] = group->device[i];
            lanes->of[axis][lanes->index[lane]] = number[s];
            if (team->n_sets == 0 && !seen[lane])
                team->lane[team->n_lanes++] = lane;
            seen[lane] = true;
        }
        team->n_sets++;
    }
    if (sim->plan->program->n_groups > 0)
        sim_teams_find_links(sim->view, group, &teams->team[*first], *n_teams);
    return number;
}

static void find_group_lanes(const SimCase *sim, SimTeams *teams, uint32_t g)
{
    const DeviceGroup *group = &sim->parts->layout.group[g];
    SimGroupTeams *of = &teams->group[g];
    of->index = g_new(uint32_t, teams->n_lanes);
    for (uint32_t l = 0; l < teams->n_lanes; l++)
        of->index[l] = SIM_NO_LANE;
    of->lane = g_new(uint32_t, teams->n_lanes);
    of->place = g_new(uint32_t, teams->n_lanes);
    for (uint32_t i = 0; i < group->n_replicas * group->n_devices; i++) {
        const uint32_t lane = teams->lane[group->device[i]];
        if (of->index[lane] != SIM_NO_LANE)
            continue;
        of->index[lane] = of->n_lanes;
        of->place[of->n_lanes] = i;
        of->lane[of->n_lanes++] = lane;
    }
}

SimTeams *sim_teams_new(const SimCase *sim, bool separate)
{
    const uint32_t n = sim->view->n_devices;
    SimTeams *teams = g_new0(SimTeams, 1);
    Coloring c = {.sim = sim, .teams = teams};
    teams->n_devices = n;
    teams->n_groups = sim->parts->layout.n_groups;
    teams->group = g_new0(SimGroupTeams, teams->n_groups);
    find_lanes(&c, separate);
    items_at (SimGroupTeams, of, g, teams->group, teams->n_groups) {
        find_group_lanes(sim, teams, g);
        of->team_of = add_teams(sim, teams, g, AXIS_POSITIONS);
        for (FormAxis axis = AXIS_SHARDS; axis < AXES; axis++)
            if (sim_axis_extent(&sim->parts->layout.group[g], axis) > 1)
                g_free(add_teams(sim, teams, g, axis));
    }
    return teams;
}

void sim_teams_free(SimTeams *teams)
{
    if (!teams)
        return;
    items_each (SimGroupTeams, of, teams->group, teams->n_groups) {
        free_each(of->lane, of->index, of->place);
        for (FormAxis axis = AXIS_POSITIONS; axis < AXES; axis++)
            g_free(of->of[axis]);
        g_free(of->team_of);
    }
    for (uint32_t t = 0; t < teams->n_teams; t++) {
        free_each(teams->team[t].lane, teams->team[t].device);
    }
    free_each(teams->group, teams->team, teams->lane, teams->device, teams);
}
