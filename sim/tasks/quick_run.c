/* The longest chains of tasks, from the last checkpoint that still holds. */
#include <string.h>

#include "sim/tasks/quick_parts.h"

#include "sim/tasks/buffers.h"

enum { APART = 32 /* tasks between checkpoints, at least */ };

static size_t n_streams(const SimQuick *q)
{
    return 4 * (size_t)q->teams->n_lanes;
}

void quick_streams_init(SimQuick *q)
{
    const uint32_t n = q->teams->n_lanes;
    q->now.flow = g_new0(double, n_streams(q));
    q->now.comm = q->now.flow + n;
    q->now.stage = q->now.comm + n;
    q->now.busy = q->now.stage + n;
}

/* --- order --- */

static void make_room(SimQuick *q, uint32_t n)
{
    if (q->n_order >= n)
        return;
    q->n_order = 2 * n;
    q->order = g_renew(uint32_t, q->order, q->n_order);
    q->low = g_renew(uint32_t, q->low, q->n_order);
}

static void find_low(SimQuick *q, uint32_t n)
{
    const Task *task = q->task;
    uint32_t low = UINT32_MAX;
    for (uint32_t i = n; i-- > 0;)
        q->low[i] = low = MIN(low, task[i].place);
}

/* The tasks from `first` on by place, and by number where that is the same; most are in order
 * already. */
static void sort_tasks(SimQuick *q, uint32_t first)
{
    const Task *task = q->task;
    for (uint32_t i = first; i < q->n_tasks; i++) {
        uint32_t at = i;
        for (; at > first && task[q->order[at - 1]].place > task[i].place; at--)
            q->order[at] = q->order[at - 1];
        q->order[at] = i;
    }
}

/* --- checkpoints --- */

/* Whether none of the tasks from n on stands before one of the others. No task's place is above its
 * number, so the first n are then the first n in order, too. */
static bool is_apart(const SimQuick *q, uint32_t n)
{
    return n == q->n_tasks || q->low[n] >= n;
}

/* Goes back to the last checkpoint of tasks that are the same; returns how many have run. */
static uint32_t go_back(SimQuick *q, uint32_t n_same, SimQuickTimes *times)
{
    uint32_t n = q->check->len;
    while (n > 0) {
        const Checkpoint *check = &g_array_index(q->check, Checkpoint, n - 1);
        if (check->n <= n_same && is_apart(q, check->n))
            break;
        n--;
    }
    g_array_set_size(q->check, n);
    g_array_set_size(q->checked, (guint)(n * n_streams(q)));
    if (n == 0) {
        memset(q->now.flow, 0, n_streams(q) * sizeof *q->now.flow);
        return 0;
    }
    const Checkpoint *check = &g_array_index(q->check, Checkpoint, n - 1);
    memcpy(q->now.flow, &g_array_index(q->checked, double, (n - 1) * n_streams(q)),
           n_streams(q) * sizeof *q->now.flow);
    times->flow_s = check->flow_s;
    times->stage_s = check->stage_s;
    return check->n;
}

static void keep(SimQuick *q, uint32_t n, const SimQuickTimes *times)
{
    const Checkpoint check = {n, times->flow_s, times->stage_s};
    g_array_append_val(q->check, check);
    g_array_append_vals(q->checked, q->now.flow, (guint)n_streams(q));
}

/* --- the longest chain --- */

static void quick_run_task(SimQuick *q, Task *task)
{
    const Task *all = q->task;
    const SimGroupTeams *lanes = &q->teams->group[task->group];
    const Streams *now = &q->now;
    double flow = 0, stage = 0;
    for (uint32_t d = 0; d < task->n_deps; d++) {
        const Task *dep = &all[q->dep[task->first_dep + d]];
        flow = MAX(flow, dep->flow_s);
        stage = MAX(stage, dep->stage_s);
    }
    if (!task->collective && !task->transfer) {
        flow = MAX(flow, now->flow[task->lane]);
        stage = MAX(stage, now->stage[task->lane]);
        now->flow[task->lane] = flow + task->s;
        now->stage[task->lane] = stage + task->s;
        now->busy[task->lane] += task->s;
    }
    for (uint32_t k = 0; task->collective && k < lanes->n_lanes; k++) {
        flow = MAX(flow, now->comm[lanes->lane[k]]);
        stage = MAX(stage, now->stage[lanes->lane[k]]);
    }
    for (uint32_t k = 0; task->collective && k < lanes->n_lanes; k++) {
        now->comm[lanes->lane[k]] = flow + task->s;
        now->stage[lanes->lane[k]] = stage + task->s;
    }
    task->flow_s = flow + task->s;
    task->stage_s = stage + task->s;
}

SimQuickTimes quick_run(SimQuick *q, uint32_t n_same)
{
    SimQuickTimes times = {.n_tasks = q->n_tasks};
    make_room(q, times.n_tasks);
    find_low(q, times.n_tasks);
    const uint32_t first = go_back(q, n_same, &times);
    uint32_t kept = first;
    times.n_run = times.n_tasks - first;
    sort_tasks(q, first);
    for (uint32_t i = first; i < times.n_tasks; i++) {
        if (i >= kept + APART && is_apart(q, i)) {
            keep(q, i, &times);
            kept = i;
        }
        Task *task = &q->task[q->order[i]];
        quick_run_task(q, task);
        times.flow_s = MAX(times.flow_s, task->flow_s);
        times.stage_s = MAX(times.stage_s, task->stage_s);
    }
    for (uint32_t l = 0; l < q->teams->n_lanes; l++)
        times.busy_s = MAX(times.busy_s, q->now.busy[l]);
    return times;
}

/* --- the memory that programs need --- */

bool sim_quick_memory(SimQuick *q, const Program *program, uint64_t *peak)
{
    const uint32_t n_lanes = q->teams->n_lanes;
    Plan plan = {.program = (Program *)program};
    SimCase sim = q->sim;
    sim.plan = &plan;
    g_autoptr(Instances) instances =
        instances_new(program, q->graph, q->parts->layout.batch);
    g_autofree uint16_t *segment = plan_segments(program, q->graph, NULL);
    g_autoptr(PlanBuffers) buffers = plan_buffers(program, q->graph, instances, segment);
    sim_buffers_add_runtime(buffers, q->view->runtime, program, q->graph);
    g_autofree double *of_lane = g_new(double, n_lanes);
    g_autofree uint32_t *instr = g_new(uint32_t, n_lanes);
    sim_buffers_peaks(&sim, buffers, q->teams->device, n_lanes, of_lane, instr);
    bool fits = true;
    for (uint32_t j = 0; j < q->view->n_devices; j++) {
        peak[j] = sim_whole_bytes(of_lane[q->teams->lane[j]]);
        fits = fits && peak[j] <= q->view->device[j].memory_bytes;
    }
    return fits;
}
