/* Collectives as tasks. */
#include "sim/tasks/piece.h"
#include "sim/tasks/task_lower.h"

#include <math.h>
#include <string.h>

uint32_t task_add_sources(Lower *lower, const Instr *instr, const SimTeam *team)
{
    const SimGroupTeams *lanes = task_group_lanes(lower, instr);
    const Made *made = task_maker(lower, instr, instr->tensor, instr->from);
    uint32_t last = SIM_NO_TASK, ready = 0;
    for (uint32_t k = 0; k < team->n_lanes; k++) {
        const uint32_t dep =
            task_made_for(lower, made, lanes->index[team->lane[k]], true);
        if (dep != last)
            task_add_dep(lower, dep);
        if (dep != SIM_NO_TASK)
            ready = MAX(ready, dep + 1);
        last = dep;
    }
    return ready;
}

/* The place in tasks->share of the shares that a team has in a form that divides its axis. */
static uint32_t task_find_shares(Lower *lower, const Instr *instr, const SimTeam *team,
                                 Form form)
{
    const SimParts *parts = lower->sim->parts;
    const DeviceGroup *group = &parts->layout.group[instr->group];
    GArray *all = lower->tasks->share;
    const uint32_t n = team->n;
    g_autofree double *share = g_new(double, n);
    for (uint32_t k = 0; k < n; k++) {
        const SimPart part = sim_part(parts, instr->group, instr->tensor, form,
                                      sim_set_place(group, team->axis, team->first, k));
        share[k] = team->axis == AXIS_REPLICAS    ? part.replicas
                   : team->axis == AXIS_SHARDS    ? part.shards
                   : team->axis == AXIS_POSITIONS ? part.inside
                                                  : 1.0 / n;
    }
    for (uint32_t first = 0; first + n <= all->len; first++)
        if (memcmp(&g_array_index(all, double, first), share, n * sizeof *share) == 0)
            return first;
    g_array_append_vals(all, share, n);
    return all->len - n;
}

uint32_t task_shares_of(Lower *lower, const Instr *instr, const SimTeam *team, Form form,
                        double *largest)
{
    enum { TEAM_BITS = 24 };
    const uint64_t number = (uint64_t)(team - lower->tasks->teams->team);
    *largest = 0;
    if (!form_is_gather(form_on(team->axis, form)))
        return SIM_NO_SHARE;
    G_STATIC_ASSERT(sizeof(Form) == 1);
    g_assert(number >> TEAM_BITS == 0);
    /* of other microbatches the same */
    void *key = GSIZE_TO_POINTER((uint64_t)instr->tensor << 32 | number << 8 | form);
    uint32_t first = GPOINTER_TO_UINT(g_hash_table_lookup(lower->shares, key));
    if (first == 0) {
        first = task_find_shares(lower, instr, team, form) + 1;
        g_hash_table_insert(lower->shares, key, GUINT_TO_POINTER(first));
    }
    const double *share = &g_array_index(lower->tasks->share, double, first - 1);
    for (uint32_t k = 0; k < team->n; k++)
        *largest = fmax(*largest, share[k]);
    return first - 1;
}

double task_bytes(const Lower *lower, const Instr *instr, const SimTeam *team)
{
    const SimParts *parts = lower->sim->parts;
    const DeviceGroup *group = &parts->layout.group[instr->group];
    const double bytes =
        (double)tensor_bytes(graph_tensor(lower->sim->graph, instr->tensor));
    const SimPart part = sim_part(parts, instr->group, instr->tensor, instr->from,
                                  sim_set_place(group, team->axis, team->first, 0));
    return bytes * (part.batch * (team->axis == AXIS_REPLICAS ? 1 : part.replicas) *
                    (form_on(team->axis, form_over(0, 1, 0)) ? 1 : part.shards) *
                    (team->axis == AXIS_POSITIONS ? 1 : part.inside));
}

void task_teams(const Lower *lower, const Instr *instr, uint32_t *first, uint32_t *n)
{
    const SimGroupTeams *of = task_group_lanes(lower, instr);
    const FormAxis axis = instr_axis(instr);
    *first = of->first[axis];
    *n = of->n[axis];
}

void task_server_line(const ClusterView *view, const SimTeam *team, uint32_t server,
                      bool back, double *latency_s, double *byte_s)
{
    g_autoptr(GArray) pieces = g_array_new(false, false, sizeof(SimPiece));
    for (uint32_t s = 0; s < team->n_sets; s++)
        for (uint32_t k = 0; k < team->n; k++) {
            const uint32_t worker = team->device[s * team->n + k],
                           root = team->device[s * team->n + server];
            const SimPiece piece = {back ? root : worker, back ? worker : root, 0, 1};
            if (worker != root)
                g_array_append_val(pieces, piece);
        }
    sim_pieces_time(view, pieces, latency_s, byte_s);
}

static double server_s(const ClusterView *view, const SimTeam *team, const SimTask *task)
{
    double latency_s, byte_s;
    task_server_line(view, team, task->server - 1, task->back, &latency_s, &byte_s);
    return latency_s + byte_s * task->bytes;
}

/* Adds one task per team to the server, and a second one back. */
static void lower_server(Lower *lower, const Instr *instr, SimTask task)
{
    Made made = {lower->task->len, SIM_NO_TASK, instr->group, AXIS_REPLICAS, false};
    uint32_t first, n;
    task_teams(lower, instr, &first, &n);
    task.kind = TASK_COLLECTIVE;
    task.collective = COLLECTIVE_ALL_REDUCE;
    task.n_fused = 1;
    task.gradient = task_reduces_gradient(lower->sim->graph, instr);
    task.from = task.to = SIM_NO_SHARE;
    task.server = instr->server;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t t = first; t < first + n; t++) {
            const SimTeam *team = &lower->tasks->teams->team[t];
            const uint32_t first_dep = lower->dep->len;
            if (pass == 0)
                task_add_sources(lower, instr, team);
            else
                task_add_dep(lower, made.communicate + t - first);
            task.back = pass == 1;
            task.team = t;
            task.bytes = task_bytes(lower, instr, team);
            task.duration_s = server_s(lower->sim->view, team, &task);
            task_add(lower, task, first_dep);
        }
    made.communicate += n;
    *task_maker(lower, instr, instr->tensor, instr->to) = made;
}

/* Adds what a team waits for: the operand's makers, and its copy from the host. */
static void add_waits(Lower *lower, const Instr *instr, const SimTeam *team,
                      uint32_t fetch)
{
    task_add_sources(lower, instr, team);
    for (uint32_t k = 0; fetch != SIM_NO_TASK && k < team->n_lanes; k++)
        task_add_dep(lower, fetch + task_group_lanes(lower, instr)->index[team->lane[k]]);
}

/* Sets what a team's task sends, so much of the tensor, and its time; returns the latency. */
static double set_traffic(Lower *lower, const Instr *instr, const SimTeam *team,
                          double part, SimTask *task)
{
    double from, to;
    task->team = (uint32_t)(team - lower->tasks->teams->team);
    task->bytes = task_bytes(lower, instr, team) * part;
    task->from = task_shares_of(lower, instr, team, instr->from, &from);
    task->to = task_shares_of(lower, instr, team, instr->to, &to);
    const LinkCost line =
        sim_team_line(lower->sim->view, team, instr->collective, task->bytes, NULL);
    task->collective = instr->collective;
    task->duration_s =
        sim_collective_over(line, team->n, instr->collective, task->bytes, from, to);
    return team->n > 1 ? line.latency_s : 0;
}

/* Adds the tasks of an exchange over a part of the shards (AXIS_HEADS, AXIS_RINGS), of so much of
 * the tensor; they wait for those of `before`, or, without, for the operand. */
static Made lower_part(Lower *lower, const Instr *instr, SimTask task, FormAxis axis,
                       double part, const Made *before)
{
    const SimGroupTeams *lanes = task_group_lanes(lower, instr);
    const uint32_t fetch = before ? SIM_NO_TASK : task_ahead_return(lower, task);
    const Made made = {lower->task->len, SIM_NO_TASK, instr->group, axis, false};
    Instr own = *instr;
    if (axis == AXIS_HEADS) {
        own.from = own.to = form_is_gather(form_shards(own.from)) ? own.from : own.to;
        own.collective = COLLECTIVE_ALL_TO_ALL;
    }
    task.kind = TASK_COLLECTIVE;
    task.n_fused = 1;
    for (uint32_t t = lanes->first[axis]; t < lanes->first[axis] + lanes->n[axis]; t++) {
        const SimTeam *team = &lower->tasks->teams->team[t];
        const uint32_t first_dep = lower->dep->len;
        for (uint32_t k = 0; before && k < team->n_lanes; k++)
            task_add_dep(lower,
                         task_communicated(lower, before, lanes->index[team->lane[k]]));
        if (!before)
            add_waits(lower, instr, team, fetch);
        set_traffic(lower, &own, team, part, &task);
        task_add(lower, task, first_dep);
    }
    return made;
}

/* Exchanges for heads, of so much of the tensor, and around the rings (task_ring.c). */
static void lower_rings(Lower *lower, const Instr *instr, SimTask task, double exchanged,
                        bool forward)
{
    const bool gather = instr->collective == COLLECTIVE_ALL_GATHER;
    const double of_heads = 1.0 / lower->sim->parts->layout.group[instr->group].n_heads;
    Made made;
    if (gather && forward)
        made = lower_part(lower, instr, task, AXIS_HEADS, exchanged, NULL);
    made = lower_part(lower, instr, task, AXIS_RINGS, of_heads,
                      gather && forward ? &made : NULL);
    task_ring_exchange(lower, instr, made.communicate,
                       lower->task->len - made.communicate);
    if (!gather)
        made = lower_part(lower, instr, task, AXIS_HEADS, exchanged, &made);
    *task_maker(lower, instr, instr->tensor, instr->to) = made;
    if (lower->overlap)
        task_lower_inner(lower, instr->group);
}

void task_lower_collective(Lower *lower, const Instr *instr, SimTask task,
                           bool pays_latency)
{
    uint32_t first, n;
    bool forward;
    if (instr->server) {
        lower_server(lower, instr, task);
        return;
    }
    const double exchanged = task_ring_heads(lower, instr, &forward);
    if (exchanged > 0) {
        lower_rings(lower, instr, task, exchanged, forward);
        return;
    }
    const uint32_t fetch = task_ahead_return(lower, task);
    const Made made = {lower->task->len, SIM_NO_TASK, instr->group, instr_axis(instr),
                       false};
    task_teams(lower, instr, &first, &n);
    task.kind = TASK_COLLECTIVE;
    task.n_fused = 1;
    task.gradient = task_reduces_gradient(lower->sim->graph, instr);
    const bool is_measured =
        lower->sim->layers && made.axis == AXIS_POSITIONS && !task.gradient;
    for (uint32_t t = first; t < first + n; t++) {
        const SimTeam *team = &lower->tasks->teams->team[t];
        const uint32_t first_dep = lower->dep->len;
        add_waits(lower, instr, team, fetch);
        task_ahead_gather(lower, instr, task.instr);
        const double latency_s =
            set_traffic(lower, instr, team, task_experts_part(lower, instr, team), &task);
        task.joins = !pays_latency;
        task.duration_s -= pays_latency ? 0 : latency_s;
        if (is_measured)
            task.bytes = task.duration_s = 0;
        task_add(lower, task, first_dep);
    }
    *task_maker(lower, instr, instr->tensor, instr->to) = made;
    if (made.axis == AXIS_POSITIONS && !task.gradient)
        task_overlap_exchange(lower, instr, made.communicate, n);
    task_ring_exchange(lower, instr, made.communicate, n);
    task_experts_exchange(lower, instr, made.communicate, n);
    task_ahead_reduce(lower, instr, made.communicate, n);
    const Inner inner = {task.instr, task.stage};
    if (made.axis == AXIS_POSITIONS)
        g_array_append_val(lower->inner[instr->group], inner);
    if (lower->overlap)
        task_lower_inner(lower, instr->group);
}
