/* Exchanges of tensor parallelism beside products. Where the software cuts an exchange into as many
 * pieces as ranks (Jangda et al. 2022; Transformer Engine's user buffers, asynchronous tensor
 * parallelism of PyTorch), all pieces but one run beside a product that makes or takes them: an
 * exchange of a group is shorter by
 *
 *     min(overlap (1 - 1/n) its time, the time of products next to it)
 *
 * next to it being those of its group and microbatch since the exchange before, and then those up
 * to the exchange after; the time of a product hides one exchange only. `overlap` is the part of
 * exchanges that the software cuts so (data/cluster/stack.h). */
#include "sim/tasks/task_lower.h"

#include <math.h>
#include <string.h>

double sim_overlap_part(const Device *device, Collective kind, uint32_t n)
{
    const bool cut = kind == COLLECTIVE_ALL_GATHER || kind == COLLECTIVE_REDUCE_SCATTER;
    return cut && device->kernels && n > 1
               ? device->kernels->stack.overlap * (1 - 1.0 / n)
               : 0;
}

TaskOverlap *task_overlap_new(const ClusterView *view, uint32_t n_groups)
{
    const bool any =
        any_of(d, view->n_devices,
               view->device[d].kernels && view->device[d].kernels->stack.overlap > 0);
    return any ? g_new0(TaskOverlap, n_groups) : NULL;
}

void task_shorten(Lower *lower, uint32_t first, uint32_t n, double seconds)
{
    for (uint32_t t = 0; t < n; t++) {
        SimTask *task = &g_array_index(lower->task, SimTask, first + t);
        const double left = fmax(task->duration_s - seconds, 0);
        task->bytes *= task->duration_s > 0 ? left / task->duration_s : 1;
        task->duration_s = left;
    }
}

/* Makes the exchange's tasks shorter by up to so many seconds in all; returns what was left. */
static double overlap_hide(Lower *lower, TaskOverlap *of, double seconds)
{
    const double hidden = fmin(seconds, of->open_s);
    if (hidden <= 0)
        return seconds;
    task_shorten(lower, of->first, of->n, hidden);
    of->open_s -= hidden;
    return seconds - hidden;
}

/* Products and exchanges before those of this microbatch are not next to them. */
static TaskOverlap *overlap_of(const Lower *lower, const Instr *instr)
{
    TaskOverlap *of = &lower->beside[instr->group];
    if (of->microbatch != instr->microbatch)
        *of = (TaskOverlap){.microbatch = instr->microbatch};
    return of;
}

void task_overlap_product(Lower *lower, const Instr *instr, double seconds)
{
    if (!lower->beside)
        return;
    if (strcmp(op_kind_linear(graph_get_op(lower->sim->graph, instr->op)->kind), "0|1") !=
        0)
        return;
    TaskOverlap *of = overlap_of(lower, instr);
    of->products_s += overlap_hide(lower, of, seconds);
}

void task_overlap_exchange(Lower *lower, const Instr *instr, uint32_t first, uint32_t n)
{
    const SimTeams *teams = lower->tasks->teams;
    const SimTask *task = &g_array_index(lower->task, SimTask, first);
    double part = 1, seconds = INFINITY;
    if (!lower->beside)
        return;
    for (uint32_t t = 0; t < n; t++) {
        const SimTeam *team = &teams->team[task[t].team];
        for (uint32_t d = 0; d < team->n_sets * team->n; d++)
            part = fmin(part, sim_overlap_part(&lower->sim->view->device[team->device[d]],
                                               instr->collective, team->n));
        seconds = fmin(seconds, task[t].duration_s);
    }
    if (part <= 0)
        return;
    TaskOverlap *of = overlap_of(lower, instr);
    of->first = first;
    of->n = n;
    of->open_s = part * seconds;
    overlap_hide(lower, of, of->products_s);
    of->products_s = 0;
}
