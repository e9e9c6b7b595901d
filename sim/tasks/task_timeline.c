/* Facts about a task graph, and about the timeline that it becomes. */
#include <string.h>

#include "sim/tasks/task.h"

const uint32_t *sim_task_lanes(const SimTasks *tasks, const SimTask *task, uint32_t *n)
{
    const SimTeam *team =
        sim_task_communicates(task) ? &tasks->teams->team[task->team] : NULL;
    *n = team ? team->n_lanes : 1;
    return team ? team->lane : &task->lane;
}

SimTimeline *sim_tasks_timeline(const SimTasks *tasks, uint32_t n_instrs)
{
    const SimTeams *teams = tasks->teams;
    SimTimeline *timeline = sim_timeline_new(teams->n_devices, teams->n_lanes,
                                             teams->n_teams, tasks->n_tasks, n_instrs);
    memcpy(timeline->lane, teams->lane, teams->n_devices * sizeof *teams->lane);
    memcpy(timeline->bucket, tasks->bucket, n_instrs * sizeof *tasks->bucket);
    for (uint32_t t = 0; t < teams->n_teams; t++) {
        timeline->team[t].n = teams->team[t].n_lanes;
        timeline->team[t].lane = g_memdup2(
            teams->team[t].lane, teams->team[t].n_lanes * sizeof *teams->team[t].lane);
    }
    items_at (const SimTask, task, i, tasks->task, tasks->n_tasks) {
        const bool communicates = sim_task_communicates(task);
        timeline->span[i] = (SimSpan){.instr = task->instr,
                                      .stage = task->stage,
                                      .n_fused = communicates ? task->n_fused : 1,
                                      .lane = communicates ? SIM_TEAM : task->lane,
                                      .team = communicates ? task->team : 0,
                                      .launch = task->kind == TASK_LAUNCH,
                                      .copies = (uint8_t)task->copies,
                                      .stream = communicates || task->copies,
                                      .cause = SIM_NO_SPAN};
        timeline->has_launches |= timeline->span[i].launch;
    }
    return timeline;
}
