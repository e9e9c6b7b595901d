/* Computations and local conversions as tasks. */
#include "sim/tasks/task_lower.h"

#include <math.h>
#include <string.h>

#include "sim/cost/split.h"
#include "sim/tasks/buffers.h"
#include "sim/tasks/layer_times.h"

/* --- ops --- */

/* Whether an op on the batch will still run on other microbatches in its group. Only then does it
 * not reduce a parameter's gradient inside machines. */
static bool adds_more(const Lower *lower, uint32_t i)
{
    const BatchForms *batch = lower->sim->parts->layout.batch;
    return batch && batch->loop[task_instr(lower, i)->op] >= 0 && !lower->last[i];
}

/* The first task of an earlier instruction that computes the op in the same way, so as other
 * microbatches do; SIM_NO_TASK: none is known. */
static uint32_t task_alike(const Lower *lower, const Op *op, uint32_t i)
{
    const Instr *instr = task_instr(lower, i);
    const uint32_t known = lower->alike[instr->op];
    if (known == SIM_NO_TASK)
        return SIM_NO_TASK;
    const uint32_t before = g_array_index(lower->task, SimTask, known).instr;
    const Instr *other = task_instr(lower, before);
    return other->group == instr->group &&
                   adds_more(lower, before) == adds_more(lower, i) &&
                   memcmp(other->form, instr->form,
                          (op->n_in + op->n_out) * sizeof *instr->form) == 0
               ? known
               : SIM_NO_TASK;
}

void task_lower_compute(Lower *lower, const Instr *instr, SimTask task)
{
    const SimCase *sim = lower->sim;
    const SimGroupTeams *lanes = task_group_lanes(lower, instr);
    const Op *op = graph_get_op(sim->graph, instr->op);
    const uint32_t alike = task_alike(lower, op, task.instr);
    const Rule rule =
        alike == SIM_NO_TASK ? sim_split_rule(sim->graph, instr) : (Rule){0};
    const bool more = adds_more(lower, task.instr);
    task_lower_inner(lower, instr->group);
    task_ahead_return(lower, task);
    const Made made = {SIM_NO_TASK, lower->task->len, instr->group, AXIS_POSITIONS,
                       false};
    double least_s = INFINITY;
    task.kind = TASK_COMPUTE;
    for (uint32_t k = 0; k < lanes->n_lanes; k++) {
        const uint32_t first_dep = lower->dep->len, place = lanes->place[k];
        for (uint32_t i = 0; i < op->n_in; i++)
            task_add_dep(
                lower,
                task_made_for(lower, task_maker(lower, instr, op->in[i], instr->form[i]),
                              k, false));
        task_ahead_wait(lower, task.instr, k);
        task.lane = lanes->lane[k];
        task.duration_s =
            alike != SIM_NO_TASK
                ? g_array_index(lower->task, SimTask, alike + k).duration_s
                : sim_layer_factor(sim->layers, instr, place) *
                      (op->pass == PASS_UPDATE &&
                               strategy_offloads(&sim->plan->strategy, OFFLOAD_OPTIMIZER)
                           ? sim_offload_s(sim->parts, sim->view, instr, place)
                           : sim_part_s(sim->parts, sim->view, instr, &rule, place,
                                        more));
        least_s = fmin(least_s, task.duration_s);
        task_add(lower, task, first_dep);
    }
    lower->alike[instr->op] = made.compute;
    task_overlap_product(lower, instr, least_s);
    task_ring_attention(lower, instr, least_s);
    task_experts_compute(lower, instr, least_s);
    for (uint32_t i = 0; i < op->n_out; i++)
        *task_maker(lower, instr, op->out[i], instr->form[op->n_in + i]) = made;
    task_ahead_end(lower, instr, task, made.compute);
}

/* --- what machines communicate inside, for collectives --- */

/* Adds one task per lane after a collective. */
static void lower_one_inner(Lower *lower, const Inner *inner)
{
    const SimCase *sim = lower->sim;
    const Instr *instr = task_instr(lower, inner->instr);
    const SimGroupTeams *lanes = task_group_lanes(lower, instr);
    const Form cut = form_is_gather(instr->to) ? instr->to : instr->from;
    Made *made = task_maker(lower, instr, instr->tensor, instr->to);
    SimTask task = {.kind = TASK_COMPUTE,
                    .microbatch = instr->microbatch,
                    .instr = inner->instr,
                    .stage = inner->stage};
    g_autofree double *duration_s = g_new(double, lanes->n_lanes);
    SimWork work;
    bool any = false;
    sim_work_collective(sim->graph, instr->collective, instr->tensor, instr->from,
                        instr->to, &work);
    values_at (const uint32_t, place, k, lanes->place, lanes->n_lanes) {
        const uint32_t n = sim->parts->layout.group[instr->group].n_devices;
        const double part =
            sim_part_replica(sim->parts, instr->group, instr->tensor, cut, place / n);
        SimWork own = work;
        own.inner_bytes *= part;
        own.inner_bytes_sharded *= part;
        duration_s[k] = sim_work_s(
            &own, &sim->view->device[lower->tasks->teams->device[lanes->lane[k]]],
            sim_part_inside(sim->parts, instr->group, instr->tensor, cut, place));
        any = any || duration_s[k] > 0;
    }
    if (!any)
        return;
    const uint32_t first = lower->task->len;
    for (uint32_t k = 0; k < lanes->n_lanes; k++) {
        const uint32_t first_dep = lower->dep->len;
        task_add_dep(lower, task_communicated(lower, made, k));
        task.lane = lanes->lane[k];
        task.duration_s = duration_s[k];
        task_add(lower, task, first_dep);
    }
    made->compute = first;
}

/* The result of a local conversion is there as soon as its operand is. */
static void pass_on(Lower *lower, const Instr *instr)
{
    *task_maker(lower, instr, instr->tensor, instr->to) =
        *task_maker(lower, instr, instr->tensor, instr->from);
}

void task_lower_inner(Lower *lower, uint32_t group)
{
    GArray *inner = lower->inner[group];
    array_each (const Inner, one, inner) {
        const Instr *instr = task_instr(lower, one->instr);
        if (sim_is_priced(instr->collective))
            lower_one_inner(lower, one);
        else
            pass_on(lower, instr);
    }
    g_array_set_size(inner, 0);
}

void task_lower_local(Lower *lower, const Instr *instr, const SimTask *task)
{
    const Inner conversion = {task->instr, task->stage};
    pass_on(lower, instr);
    if (lower->inner[instr->group]->len > 0)
        g_array_append_val(lower->inner[instr->group], conversion);
}
