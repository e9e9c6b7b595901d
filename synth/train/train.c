/* Microbatches and recomputation for any planner whose one program runs on all devices.
 *
 * A search that is short of memory pays for it with time that recomputation may save. So the
 * program is first made as if memory did not matter, and then gets the techniques; where some
 * layers are then recomputed, known strategies, mixes and, for small graphs, programs within more
 * memory than the real one are tried with recomputation, too. Only if none of these fits, the program is
 * made again within the real memory. */
#include <math.h>
#include <string.h>

#include "synth/answer/complete.h"
#include "synth/planners/make.h"
#include "synth/answer/ratios.h"
#include "synth/train/train.h"

bool plan_is_trained(const Planning *planning)
{
    const Strategy *strategy = &planning->options->strategy;
    return !planner_can(planning->planner, PLANNER_GROUPS) && strategy->zero == 0 &&
           (strategy->microbatches > 1 || strategy->recompute);
}

static bool is_automatic(const Planning *planning)
{
    return g_strcmp0(planning->options->strategy.recompute, "auto") == 0;
}

/* Adds the techniques to the plan's own program. */
static bool train(const Planning *planning, Plan *plan, GError **error)
{
    g_autoptr(Plan) made = training_plan_like(plan);
    plan_set(made, planning->graph, planning->view, program_copy(plan->program),
             plan->ratio);
    plan_set_segments(made, plan->ratio, plan->segment, plan->n_segments);
    made->split = g_steal_pointer(&plan->split);
    made->n_splits = plan->n_splits;
    plan->n_splits = 0;
    training_set_apart(planning, made);
    const Training t = {planning, plan, made->program, made};
    return is_automatic(planning)
               ? training_choose_layers(&t, error)
               : training_give(&t, &planning->options->strategy, error);
}

/* The plan's own program before it gets the techniques. */
static Plan *copy_made(const Planning *planning, const Plan *plan)
{
    Plan *copy = training_plan_like(plan);
    plan_set(copy, planning->graph, planning->view, program_copy(plan->program),
             plan->ratio);
    plan_set_segments(copy, plan->ratio, plan->segment, plan->n_segments);
    return copy;
}

/* Makes the planner's plan as if there were `room` times the memory (INFINITY: as if memory did not
 * matter), and adds the techniques. *first, unless NULL: a copy before them. */
static bool make_with(const Planning *planning, double room, Plan *plan, Plan **first,
                      GError **error)
{
    /* More than any model needs; sums over a few devices do not overflow. */
    static const uint64_t ROOM = UINT64_MAX / 4;
    const uint32_t n = planning->view->n_devices;
    g_autofree Device *device = g_memdup2(planning->view->device, n * sizeof *device);
    ClusterView view = *planning->view;
    Planning seen = *planning;
    for (uint32_t j = 0; j < n; j++) {
        device[j].memory_bytes =
            (uint64_t)fmin((double)device[j].memory_bytes * room, (double)ROOM);
        device[j].capacity_bytes =
            (uint64_t)fmin((double)device[j].capacity_bytes * room, (double)ROOM);
    }
    view.device = device;
    seen.view = &view;
    seen.roomy = isinf(room);
    if (!planning->planner->make(&seen, plan, error))
        return false;
    if (first)
        *first = copy_made(planning, plan);
    return train(planning, plan, error);
}

/* Takes over the decisions of `from`, if that plan is better. */
static void take_better(const Planning *planning, Plan *plan, Plan *from)
{
    plan->search_time_s += from->search_time_s;
    plan->balance_time_s += from->balance_time_s;
    if (!plan_is_better(from, plan))
        return;
    g_autofree double *ratio = g_memdup2(
        from->ratio, (size_t)from->n_segments * from->n_devices * sizeof *ratio);
    g_autofree uint16_t *segment =
        g_memdup2(from->segment, from->n_ops * sizeof *segment);
    plan_set(plan, planning->graph, planning->view, g_steal_pointer(&from->program),
             ratio);
    plan_set_segments(plan, ratio, segment, from->n_segments);
    plan->split = g_steal_pointer(&from->split);
    plan->n_splits = from->n_splits;
    from->n_splits = 0;
    plan->strategy = from->strategy;
    plan->iteration_time_s = from->iteration_time_s;
    plan->feasible = from->feasible;
}

/* Tries known strategies with the techniques: where memory is short, a program that is slower
 * without the techniques may need less of them. */
static bool try_baselines(const Planning *planning, Plan *plan, GError **error)
{
    const ClusterView *view = planning->view;
    g_autofree double *ratio = ratios_proportional(view);
    for (Baseline baseline = 0; baseline < BASELINES; baseline++) {
        SynthResult result = {0};
        if (!synth_baseline(planning->graph, view, ratio, baseline, &result, NULL))
            continue;
        g_autoptr(Plan) other = training_plan_like(plan);
        plan_set(other, planning->graph, view, result.program, ratio);
        if (!synth_pins_hold(planning->pins, planning->graph, other->program))
            continue;
        if (!train(planning, other, error))
            return false;
        take_better(planning, plan, other);
    }
    return true;
}

static bool try_mixes(const Planning *planning, const Plan *first, Plan *plan,
                      GError **error)
{
    g_autoptr(Plan) mixed = NULL;
    if (!training_mix(planning, first, &mixed, error))
        return false;
    if (!mixed)
        return true;
    if (!train(planning, mixed, error))
        return false;
    take_better(planning, plan, mixed);
    return true;
}

/* Programs of searches within more memory than the real one: recomputation makes up for the
 * rest. Only for small graphs, for which such searches are quick; with a budget of time for large
 * ones, too, within the real memory. */
static bool try_rooms(const Planning *planning, Plan *plan, GError **error)
{
    static const double ROOM[] = {1, 1.1, 1.25, 1.5, 2};
    const uint32_t n = training_is_small(planning) ? G_N_ELEMENTS(ROOM)
                       : planning->deadline_us > 0 ? 1
                                                   : 0;
    for (uint32_t i = 0; i < n && !planning_is_late(planning); i++) {
        g_autoptr(Plan) other = training_plan_like(plan);
        g_autoptr(GError) misfit = NULL;
        if (make_with(planning, ROOM[i], other, NULL, &misfit))
            take_better(planning, plan, other);
        else if (misfit->code != KILTER_ERROR_INFEASIBLE)
            return g_propagate_error(error, g_steal_pointer(&misfit)), false;
    }
    return true;
}

bool plan_make_trained(const Planning *planning, Plan *plan, GError **error)
{
    g_autoptr(Plan) first = NULL;
    if (!make_with(planning, INFINITY, plan, &first, error))
        return false;
    const bool own = planning->options->ratios == RATIOS_OWN ||
                     planning->options->ratios == RATIOS_BEST;
    if (!planner_can(planning->planner, PLANNER_SEARCHES) ||
        (plan->feasible && !plan->strategy.recompute))
        return true;
    if (own && planning->options->search != SEARCH_REFERENCE &&
        (!try_baselines(planning, plan, error) ||
         (is_automatic(planning) && (!try_mixes(planning, first, plan, error) ||
                                     !try_rooms(planning, plan, error)))))
        return false;
    if (!plan->feasible) {
        g_autoptr(Plan) other = training_plan_like(plan);
        if (!make_with(planning, 1, other, NULL, error))
            return false;
        take_better(planning, plan, other);
    }
    return plan_complete(plan, planning, error);
}
