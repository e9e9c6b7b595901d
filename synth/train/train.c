/* Microbatches and recomputation for any planner whose one program runs on all devices.
 *
 * A search that is short of memory pays for it with time that recomputation may save. So the
 * program is first made as if memory did not matter, and then gets the techniques; where some
 * layers are then recomputed, known strategies, mixes and, for small graphs, programs within more
 * memory than the real one are tried with recomputation, too. Only if none of these fits, the
 * program is made again within the real memory. */
#include <math.h>

#include "synth/answer/complete.h"
#include "synth/answer/ratios.h"
#include "synth/train/train.h"

static bool is_automatic(const Question *question)
{
    return g_strcmp0(question->options->strategy.recompute, "auto") == 0;
}

/* Adds the techniques to the plan's own program. */
static bool train(const Question *question, Answer *answer, Plan *plan, GError **error)
{
    g_autoptr(Plan) made = training_plan_of(question, plan, program_copy(plan->program));
    made->split = g_steal_pointer(&plan->split);
    made->n_splits = plan->n_splits;
    plan->n_splits = 0;
    training_set_apart(question, made);
    const Training t = {question, answer, plan, made->program, made};
    return is_automatic(question)
               ? training_choose_layers(&t, error)
               : training_give(&t, &question->options->strategy, error);
}

/* Makes the planner's plan as if there were `room` times the memory (INFINITY: as if memory did not
 * matter), and adds the techniques. *first, unless NULL: a copy before them. */
static bool make_with(const Question *question, Answer *answer, double room, Plan *plan,
                      Plan **first, GError **error)
{
    /* More than any model needs; sums over a few devices do not overflow. */
    static const uint64_t ROOM = UINT64_MAX / 4;
    const uint32_t n = question->view->n_devices;
    g_autofree Device *device = g_memdup2(question->view->device, n * sizeof *device);
    ClusterView view = *question->view;
    Question seen = *question;
    for (uint32_t j = 0; j < n; j++) {
        device[j].memory_bytes =
            (uint64_t)fmin((double)device[j].memory_bytes * room, (double)ROOM);
        device[j].capacity_bytes =
            (uint64_t)fmin((double)device[j].capacity_bytes * room, (double)ROOM);
    }
    view.device = device;
    seen.view = &view;
    answer->roomy = isinf(room);
    const bool made = answer_make(answer, &seen, plan, question->planner->make, error);
    answer->roomy = false;
    if (!made)
        return false;
    if (first)
        *first = training_plan_of(question, plan, program_copy(plan->program));
    return train(question, answer, plan, error);
}

/* Takes over the decisions of `from`, if that plan is better. */
static void take_better(const Question *question, Plan *plan, Plan *from)
{
    plan->search_time_s += from->search_time_s;
    plan->balance_time_s += from->balance_time_s;
    if (!plan_is_better(from, plan))
        return;
    plan_take(plan, from, question);
    plan->strategy = from->strategy;
    plan->iteration_time_s = from->iteration_time_s;
    plan->feasible = from->feasible;
}

/* Tries known strategies with the techniques: where memory is short, a program that is slower
 * without the techniques may need less of them. */
static bool try_baselines(const Question *question, Answer *answer, GError **error)
{
    const ClusterView *view = question->view;
    g_autofree double *ratio = ratios_proportional(view);
    for (Baseline baseline = 0; baseline < BASELINES; baseline++) {
        SynthResult result = {0};
        if (!synth_baseline(question->graph, view, ratio, baseline, &result, NULL))
            continue;
        g_autoptr(Plan) other = training_plan_like(answer->plan);
        plan_set(other, question->graph, view, result.program, ratio);
        if (!synth_pins_hold(question->pins, question->graph, other->program))
            continue;
        if (!train(question, answer, other, error))
            return false;
        take_better(question, answer->plan, other);
    }
    return true;
}

static bool try_mixes(const Question *question, const Plan *first, Answer *answer,
                      GError **error)
{
    g_autoptr(Plan) mixed = NULL;
    if (!training_mix(question, answer, first, &mixed, error))
        return false;
    if (!mixed)
        return true;
    if (!train(question, answer, mixed, error))
        return false;
    take_better(question, answer->plan, mixed);
    return true;
}

/* Programs of searches within more memory than the real one: recomputation makes up for the
 * rest. Only for small graphs, for which such searches are quick; with a budget of time for large
 * ones, too, within the real memory. */
static bool try_rooms(const Question *question, Answer *answer, GError **error)
{
    static const double ROOM[] = {1, 1.1, 1.25, 1.5, 2};
    const uint32_t n = training_is_small(question) ? G_N_ELEMENTS(ROOM)
                       : answer->deadline_us > 0   ? 1
                                                   : 0;
    for (uint32_t i = 0; i < n && !answer_is_late(answer); i++) {
        g_autoptr(Plan) other = training_plan_like(answer->plan);
        g_autoptr(GError) misfit = NULL;
        if (make_with(question, answer, ROOM[i], other, NULL, &misfit))
            take_better(question, answer->plan, other);
        else if (misfit->code != KILTER_ERROR_INFEASIBLE)
            return g_propagate_error(error, g_steal_pointer(&misfit)), false;
    }
    return true;
}

bool training_make(const Question *question, Answer *answer, GError **error)
{
    Plan *plan = answer->plan;
    g_autoptr(Plan) first = NULL;
    if (!make_with(question, answer, INFINITY, plan, &first, error))
        return false;
    const bool own = !planner_ratios_are_fixed(question->options);
    if (!planner_can(question->planner, PLANNER_SEARCHES) ||
        (plan->feasible && !plan->strategy.recompute))
        return true;
    if (own && question->options->search != SEARCH_REFERENCE &&
        (!try_baselines(question, answer, error) ||
         (is_automatic(question) && (!try_mixes(question, first, answer, error) ||
                                     !try_rooms(question, answer, error)))))
        return false;
    if (!plan->feasible) {
        g_autoptr(Plan) other = training_plan_like(answer->plan);
        if (!make_with(question, answer, 1, other, NULL, error))
            return false;
        take_better(question, answer->plan, other);
    }
    return answer_complete(answer, plan, question, error);
}
