/* Microbatches and recomputation for the program of any planner that makes one for all devices.
 *
 * A search that is short of memory pays for it with time that recomputation may save: so the program
 * is first made as if memory were no matter, and given the techniques; only where that does not fit
 * it is made once more for the memory that there is, and the better plan is taken. */
#include <string.h>

#include "experiments/planners/complete.h"
#include "experiments/planners/make.h"

bool plan_is_trained(const Planning *planning)
{
    const Strategy *strategy = &planning->options->strategy;
    return !planner_can(planning->planner, PLANNER_GROUPS) &&
           (strategy->microbatches > 1 || strategy->recompute);
}

/* The planner's own program, which gets the techniques. */
typedef struct {
    const Planning *planning;
    Plan *plan;
    Program *program;
    double *ratio; /* [n_segments * n_devices] */
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
    memcpy(plan->ratio, t->ratio,
           (size_t)plan->n_segments * plan->n_devices * sizeof *t->ratio);
    return plan_complete(plan, planning, error) &&
           (!planning_wants_best_ratios(planning) || plan_balance(plan, planning, error));
}

/* --- which layers --- */

/* A strategy that computes layers first to first + n - 1 again. */
static Strategy with_layers(const Training *t, const char *mode, uint32_t first,
                            uint32_t n)
{
    Strategy strategy = t->planning->options->strategy;
    g_autofree char *text = g_strdup_printf("%s@%u-%u", mode, first, first + n - 1);
    strategy.recompute = n > 0 ? g_intern_string(text) : NULL;
    return strategy;
}

/* The fewest layers from the second one on whose recomputation makes the plan fit, and attention's
 * inner part in all of them if that does and is faster. */
static bool choose_layers(const Training *t, GError **error)
{
    const uint32_t n_layers = graph_n_layers(t->planning->graph);
    const uint32_t first = n_layers > 2, most = n_layers - 2 * first;
    uint32_t low = 0, high = most;
    Strategy best = with_layers(t, "full", first, 0), selective;
    if (!give(t, &best, error) || t->plan->feasible)
        return t->plan->feasible;
    best = with_layers(t, "full", first, most);
    if (!give(t, &best, error) || !t->plan->feasible)
        return !*error;
    while (low + 1 < high) {
        const Strategy half = with_layers(t, "full", first, (low + high) / 2);
        if (!give(t, &half, error))
            return false;
        if (t->plan->feasible) {
            high = (low + high) / 2;
            best = half;
        } else {
            low = (low + high) / 2;
        }
    }
    selective = with_layers(t, "selective", first, most);
    if (!give(t, &best, error))
        return false;
    const double full_s = t->plan->iteration_time_s;
    return give(t, &selective, error) &&
           ((t->plan->feasible && t->plan->iteration_time_s < full_s) ||
            give(t, &best, error));
}

static bool is_automatic(const Planning *planning)
{
    return g_strcmp0(planning->options->strategy.recompute, "auto") == 0;
}

/* --- both --- */

/* Makes the planner's plan and gives it the techniques. `roomy`: as if memory were no matter. */
static bool make_with(const Planning *planning, bool roomy, Plan *plan, GError **error)
{
    const uint32_t n = planning->view->n_devices;
    g_autofree Device *device = g_memdup2(planning->view->device, n * sizeof *device);
    ClusterView view = *planning->view;
    Planning seen = *planning;
    for (uint32_t j = 0; roomy && j < n; j++)
        device[j].memory_bytes = UINT64_MAX / 4;
    view.device = device;
    seen.view = &view;
    if (!planning->planner->make(&seen, plan, error))
        return false;
    g_autoptr(Program) program = program_copy(plan->program);
    g_autofree double *ratio =
        g_memdup2(plan->ratio, (size_t)plan->n_segments * n * sizeof *ratio);
    const Training t = {planning, plan, program, ratio};
    g_autoptr(GError) trouble = NULL;
    if (is_automatic(planning) ? choose_layers(&t, &trouble)
                               : give(&t, &planning->options->strategy, &trouble))
        return true;
    if (!trouble)
        return true;
    g_propagate_error(error, g_steal_pointer(&trouble));
    return false;
}

/* Takes over what planning decided in `from`. */
static void take(Plan *plan, Plan *from)
{
    program_free(plan->program);
    plan->program = g_steal_pointer(&from->program);
    memcpy(plan->ratio, from->ratio,
           (size_t)plan->n_segments * plan->n_devices * sizeof *plan->ratio);
    plan->strategy = from->strategy;
}

bool plan_make_trained(const Planning *planning, Plan *plan, GError **error)
{
    g_autoptr(Plan) other = NULL;
    if (!make_with(planning, true, plan, error))
        return false;
    if (plan->feasible || !planner_can(planning->planner, PLANNER_SEARCHES))
        return true;
    other = plan_new();
    other->bucket_bytes = plan->bucket_bytes;
    other->granularity = plan->granularity;
    if (!make_with(planning, false, other, error))
        return false;
    plan->search_time_s += other->search_time_s;
    plan->balance_time_s += other->balance_time_s;
    if (plan_is_better(other, plan) && other->n_segments == plan->n_segments)
        take(plan, other);
    return plan_complete(plan, planning, error);
}
