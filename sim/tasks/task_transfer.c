/* Transfers between groups as tasks. */
#include "sim/tasks/task_lower.h"

/* Adds the tasks that a team of receivers waits for: the makers on its senders, and the transfer
 * before. */
static void add_senders(Lower *lower, const Instr *instr, const SimTeam *team,
                        bool has_parts)
{
    const SimGroupTeams *lanes = task_group_lanes(lower, instr);
    const SimParts *parts = lower->sim->parts;
    const Made *made = task_maker(lower, instr, instr->tensor, instr->from);
    uint32_t first, end, last = SIM_NO_TASK;
    sim_transfer_sources(parts, instr->group, instr->to_group, has_parts, team->first,
                         &first, &end);
    for (; first < end; first++) {
        const SimTeam *senders =
            &lower->tasks->teams
                 ->team[lanes->first[AXIS_POSITIONS] + lanes->team_of[first]];
        for (uint32_t k = 0; k < senders->n_lanes; k++) {
            const uint32_t dep =
                task_made_for(lower, made, lanes->index[senders->lane[k]], true);
            if (dep != last)
                task_add_dep(lower, dep);
            last = dep;
        }
    }
}

/* Between groups that share replicas each lane goes on with the task that it has. */
static void lower_join(Lower *lower, const Instr *instr)
{
    const SimTeams *teams = lower->tasks->teams;
    const SimGroupTeams *from = &teams->group[instr->group],
                        *to = &teams->group[instr->to_group];
    const Made *made = task_maker(lower, instr, instr->tensor, instr->from);
    Made *target = &lower->maker[task_instance(lower, instr->to_group, instr->microbatch,
                                               instr->tensor, instr->to)];
    if (!(instr->moves && target->joined)) {
        const uint32_t none = SIM_NO_TASK;
        *target = (Made){.communicate = SIM_NO_TASK,
                         .compute = lower->joined->len,
                         .group = instr->to_group,
                         .joined = true};
        for (uint32_t l = 0; l < teams->n_lanes; l++)
            g_array_append_val(lower->joined, none);
    }
    for (uint32_t k = 0; k < from->n_lanes; k++)
        if (to->index[from->lane[k]] != SIM_NO_LANE)
            g_array_index(lower->joined, uint32_t, target->compute + from->lane[k]) =
                task_made_for(lower, made, k, true);
}

void task_lower_transfer(Lower *lower, const Instr *instr, SimTask task)
{
    const SimCase *sim = lower->sim;
    const SimGroupTeams *to = &lower->tasks->teams->group[instr->to_group];
    const Made made = {.communicate = lower->task->len,
                       .compute = SIM_NO_TASK,
                       .group = instr->to_group};
    uint32_t *sent =
        &lower->sent[instr->group * sim->parts->layout.n_groups + instr->to_group];
    if (instr->across) {
        lower_join(lower, instr);
        return;
    }
    /* nothing moves: the devices are the same */
    if (instr_regroups(sim->plan->program, instr)) {
        lower->maker[task_instance(lower, instr->to_group, instr->microbatch,
                                   instr->tensor, instr->to)] =
            *task_maker(lower, instr, instr->tensor, instr->from);
        return;
    }
    task.kind = TASK_TRANSFER;
    task.n_fused = 1;
    task.bytes = (double)tensor_bytes(graph_tensor(sim->graph, instr->tensor));
    task.transfer =
        sim_transfer_of(sim->parts, sim->view, instr, lower->tasks->transfers);
    task.duration_s = task.transfer->latency_s + task.transfer->byte_s * task.bytes;
    for (uint32_t t = 0; t < to->n[AXIS_POSITIONS]; t++) {
        const uint32_t first_dep = lower->dep->len;
        task.team = to->first[AXIS_POSITIONS] + t;
        add_senders(lower, instr, &lower->tasks->teams->team[task.team],
                    task.transfer->cut.has_parts);
        if (sim->plan->program->n_microbatches > 1 && !lower->how->free_transfers &&
            *sent != SIM_NO_TASK)
            task_add_dep(lower, *sent + t);
        task_add(lower, task, first_dep);
    }
    *sent = made.communicate;
    lower->maker[task_instance(lower, instr->to_group, instr->microbatch, instr->tensor,
                               instr->to)] = made;
}
