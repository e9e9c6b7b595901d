/* Microbatches and recomputation for the program of any planner that makes one for all devices.
 *
 * A search that is short of memory pays for it with time that recomputation may save: so the program
 * is first made as if memory were no matter, and given the techniques; where some layers are then computed
 * again, known strategies are tried with them, too. Only where none of these fits it is made once more for
 * the memory that there is. */
#include <math.h>
#include <string.h>

#include "experiments/planners/again.h"
#include "experiments/planners/complete.h"
#include "experiments/planners/make.h"
#include "experiments/planners/ratios.h"

bool plan_is_trained(const Planning *planning)
{
    const Strategy *strategy = &planning->options->strategy;
    return !planner_can(planning->planner, PLANNER_GROUPS) && strategy->zero == 0 &&
           (strategy->microbatches > 1 || strategy->recompute);
}

/* The planner's own program, which gets the techniques. */
typedef struct {
    const Planning *planning;
    Plan *plan;
    const Program *program;
    const Plan *made; /* its ratios, segments and counts */
} Training;

/* Gives the plan the program with the techniques, and ratios that are best for it. */
static bool give(const Training *t, const Strategy *strategy, GError **error)
{
    const Planning *planning = t->planning;
    Plan *plan = t->plan;
    const uint32_t all[] = {0, graph_n_layers(planning->graph)};
    Recompute *modes = NULL;
    const bool good =
        strategy_layer_modes(strategy, planning->graph, 1, all, &modes, error);
    Program *program = good ? synth_train(t->program, planning->graph, plan->n_devices,
                                          MAX(strategy->microbatches, 1), modes, error)
                            : NULL;
    g_free(modes);
    if (!program)
        return false;
    program_free(plan->program);
    plan->program = program;
    plan->strategy = *strategy;
    plan->optimal = false;
    plan_set_segments(plan, t->made->ratio, t->made->segment, t->made->n_segments);
    if (!plan_round(plan, planning->graph, error))
        return false;
    plan_copy_counts(plan, t->made);
    return plan_complete(plan, planning, error) &&
           (!planning_wants_best_ratios(planning) || plan_balance(plan, planning, error));
}

/* --- which layers --- */

/* Layers in the order in which they are computed again, and what is done with the others. */
typedef struct {
    const uint32_t *order;
    uint32_t n;
    const char *mode;
} Again;

static bool give_layers(const Training *t, const Again *again, uint32_t n_full,
                        GError **error)
{
    Strategy strategy = t->planning->options->strategy;
    strategy.recompute = again_text(again->order, again->n, n_full, again->mode);
    return give(t, &strategy, error);
}

/* The fewest layers that make the plan fit, with their plan; more than there are if all do not. */
static bool find_fewest(const Training *t, const Again *again, uint32_t *fewest,
                        GError **error)
{
    uint32_t low = 0, high = again->n, given = 0;
    *fewest = again->n + 1;
    if (!give_layers(t, again, 0, error))
        return false;
    if (t->plan->feasible) {
        *fewest = 0;
        return true;
    }
    if (!give_layers(t, again, given = again->n, error))
        return false;
    if (!t->plan->feasible)
        return true;
    while (low + 1 < high) {
        given = (low + high) / 2;
        if (!give_layers(t, again, given, error))
            return false;
        *(t->plan->feasible ? &high : &low) = given;
    }
    *fewest = high;
    return given == high || give_layers(t, again, high, error);
}

/* More layers than have to be leave room for ratios that are faster: climbs from `best`, whose plan is
 * given, to a number of layers that none nearby is faster than. */
static bool climb(const Training *t, const Again *again, uint32_t *best, GError **error)
{
    double best_s = t->plan->iteration_time_s;
    for (uint32_t step = (again->n - *best + 1) / 2, least = *best; step > 0; step /= 2) {
        const uint32_t at = *best;
        const uint32_t near[] = {MIN(at + step, again->n),
                                 at > least + step ? at - step : least};
        for (uint32_t i = 0; i < G_N_ELEMENTS(near) && *best == at; i++) {
            if (near[i] == at)
                continue;
            if (!give_layers(t, again, near[i], error))
                return false;
            if (t->plan->feasible && t->plan->iteration_time_s < best_s) {
                best_s = t->plan->iteration_time_s;
                *best = near[i];
            }
        }
    }
    return give_layers(t, again, *best, error);
}

/* The best number of layers; *fits: whether there is one. */
static bool find_layers(const Training *t, const Again *again, bool *fits,
                        uint32_t *n_full, GError **error)
{
    if (!find_fewest(t, again, n_full, error))
        return false;
    *fits = *n_full <= again->n;
    *n_full = MIN(*n_full, again->n);
    return !*fits || !planning_wants_best_ratios(t->planning) ||
           climb(t, again, n_full, error);
}

/* Whether the mode adds nothing to the program, as with fused attention. */
static bool is_idle(const Training *t, const Again *again, bool *idle, GError **error)
{
    const uint32_t n = t->program->n;
    const bool done = give_layers(t, again, 0, error);
    *idle = done && t->plan->program->n == n;
    return done;
}

/* The faster one of layers with nothing else computed again, and with attention's inner part in all
 * others. */
static bool choose_layers(const Training *t, GError **error)
{
    uint32_t n, plain, beside;
    bool fits, fits_beside, idle;
    g_autofree uint32_t *order = again_order(t->planning->graph, &n);
    const Again none = {order, n, "none"}, selective = {order, n, "selective"};
    if (!find_layers(t, &none, &fits, &plain, error))
        return false;
    if (plain == 0)
        return true;
    const double plain_s = fits ? t->plan->iteration_time_s : INFINITY;
    if (!is_idle(t, &selective, &idle, error) ||
        (!idle && !find_layers(t, &selective, &fits_beside, &beside, error)))
        return false;
    return (!idle && fits_beside && t->plan->iteration_time_s < plain_s) ||
           give_layers(t, &none, plain, error);
}

static bool is_automatic(const Planning *planning)
{
    return g_strcmp0(planning->options->strategy.recompute, "auto") == 0;
}

/* --- both --- */

static Plan *plan_like(const Plan *plan)
{
    Plan *other = plan_new();
    other->bucket_bytes = plan->bucket_bytes;
    other->granularity = plan->granularity;
    return other;
}

/* Gives the plan's own program the techniques. */
static bool train(const Planning *planning, Plan *plan, GError **error)
{
    g_autoptr(Plan) made = plan_like(plan);
    plan_set(made, planning->graph, planning->view, program_copy(plan->program),
             plan->ratio);
    plan_set_segments(made, plan->ratio, plan->segment, plan->n_segments);
    made->split = g_steal_pointer(&plan->split);
    made->n_splits = plan->n_splits;
    plan->n_splits = 0;
    const Training t = {planning, plan, made->program, made};
    return is_automatic(planning) ? choose_layers(&t, error)
                                  : give(&t, &planning->options->strategy, error);
}

/* Makes the planner's plan and gives it the techniques. `roomy`: as if memory were no matter. */
static bool make_with(const Planning *planning, bool roomy, Plan *plan, GError **error)
{
    /* More than any model takes; sums over a few devices do not overflow. */
    static const uint64_t ROOM = UINT64_MAX / 4;
    const uint32_t n = planning->view->n_devices;
    g_autofree Device *device = g_memdup2(planning->view->device, n * sizeof *device);
    ClusterView view = *planning->view;
    Planning seen = *planning;
    for (uint32_t j = 0; roomy && j < n; j++)
        device[j].memory_bytes = ROOM;
    view.device = device;
    seen.view = &view;
    seen.roomy = roomy;
    return planning->planner->make(&seen, plan, error) && train(planning, plan, error);
}

/* Takes over what was decided in `from`, if that is better. */
static void take_better(const Planning *planning, Plan *plan, Plan *from)
{
    plan->search_time_s += from->search_time_s;
    plan->balance_time_s += from->balance_time_s;
    if (!plan_is_better(from, plan) || from->n_segments != plan->n_segments)
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

/* Known strategies with the techniques: where memory binds, a program that is slower without them may
 * need less of them. */
static bool try_baselines(const Planning *planning, Plan *plan, GError **error)
{
    const ClusterView *view = planning->view;
    g_autofree double *ratio = ratios_proportional(view);
    for (Baseline baseline = 0; baseline < BASELINES; baseline++) {
        SynthResult result = {0};
        if (!synth_baseline(planning->graph, view, ratio, baseline, &result, NULL))
            continue;
        g_autoptr(Plan) other = plan_like(plan);
        plan_set(other, planning->graph, view, result.program, ratio);
        if (!synth_pins_hold(planning->pins, planning->graph, other->program))
            continue;
        if (!train(planning, other, error))
            return false;
        take_better(planning, plan, other);
    }
    return true;
}

bool plan_make_trained(const Planning *planning, Plan *plan, GError **error)
{
    if (!make_with(planning, true, plan, error))
        return false;
    const bool own = planning->options->ratios == RATIOS_OWN ||
                     planning->options->ratios == RATIOS_BEST;
    if (!planner_can(planning->planner, PLANNER_SEARCHES) ||
        (plan->feasible && !plan->strategy.recompute))
        return true;
    if (own && planning->options->search != SEARCH_REFERENCE &&
        !try_baselines(planning, plan, error))
        return false;
    if (!plan->feasible) {
        g_autoptr(Plan) other = plan_like(plan);
        if (!make_with(planning, false, other, error))
            return false;
        take_better(planning, plan, other);
    }
    return plan_complete(plan, planning, error);
}
