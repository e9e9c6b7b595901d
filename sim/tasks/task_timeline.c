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

/* Reports each stage's part of the timeline: when its first task starts, and the times of its
 * collectives and its computations, each on the lane where they take longest. */
void sim_tasks_report(const SimTasks *tasks, const SimTimeline *timeline,
                      SimReport *report)
{
    const uint32_t n_lanes = tasks->teams->n_lanes;
    const double end_s = sim_timeline_end_s(timeline);
    g_autofree double *lane_s = g_new0(double, 2 * (size_t)report->n_stages * n_lanes);
    for (uint32_t i = 0; i < report->n_stages; i++)
        report->stage[i].start_s = end_s;
    items_at (const SimTask, task, i, tasks->task, tasks->n_tasks) {
        const SimSpan *span = &timeline->span[i];
        const bool communicates = sim_task_communicates(task);
        if (task->kind == TASK_LAUNCH)
            continue;
        SimStageReport *stage = &report->stage[task->stage];
        double *most_s = communicates ? &stage->comm_s : &stage->comp_s;
        uint32_t n;
        const uint32_t *lane = sim_task_lanes(tasks, task, &n);
        stage->start_s = MIN(stage->start_s, span->start_s);
        for (uint32_t k = 0; k < n; k++) {
            double *sum_s =
                &lane_s[2 * ((size_t)task->stage * n_lanes + lane[k]) + communicates];
            *sum_s += span->end_s - span->start_s;
            *most_s = MAX(*most_s, *sum_s);
        }
    }
}
