/* The planner hidup: HiDup's search, its program doubled into two microbatches that take turns.
 *
 * HiDup knows equal devices alone. With the option ratios=best search and linear program alternate
 * as hap's do (HAP Sec. 3.1), the linear program with the turns' overlap, from ratios by speed and
 * from even ones. */
#include "balance/balance.h"
#include "experiments/planners/make.h"
#include "synth/synth.h"

#include <string.h>

typedef struct {
    const Graph *graph;
    const ClusterView *view;
    const PlannerOptions *options;
    const double *ratio;
    bool balanced; /* the program gets its best ratios */
    Plan *plan;
} Make;

/* The best plan with memory at `memory_s` a byte (synth_hidup). */
static bool make_at(const Make *m, double memory_s, GError **error)
{
    const SynthHidupOptions believed = {.memory_s = memory_s,
                                        .noise = m->options->noise,
                                        .communication = m->options->communication,
                                        .serial_back =
                                            m->options->backward == BACKWARD_SERIAL,
                                        .seed = m->options->seed};
    SynthResult result;
    if (!synth_hidup(m->graph, m->view, m->ratio, &believed, &result, error))
        return false;
    plan_set(m->plan, m->graph, m->view, result.program, m->ratio);
    m->plan->search_time_s += result.search_s;
    m->plan->optimal = result.optimal;
    return (m->options->duplex == DUPLEX_OFF || plan_double(m->plan, m->graph, error)) &&
           plan_complete(m->plan, m->graph, m->view, error) &&
           (!m->balanced || plan_balance(m->plan, m->graph, m->view, error));
}

/* Raises the charge for memory until the plan fits, then lowers it again as far as it still does. */
static bool make_fit(const Make *m, GError **error)
{
    enum { RAISES = 12, HALVINGS = 4 };
    const double first = m->plan->iteration_time_s /
                         (double)m->view->device[0].memory_bytes / m->view->n_devices /
                         16;
    double fits = 0, misses = 0;
    for (uint32_t i = 0; i < RAISES && fits == 0; i++) {
        const double memory_s = misses > 0 ? 4 * misses : first;
        if (!make_at(m, memory_s, error))
            return false;
        *(m->plan->feasible ? &fits : &misses) = memory_s;
    }
    for (uint32_t i = 0; i < HALVINGS && fits > 0; i++) {
        const double middle = (fits + misses) / 2;
        if (!make_at(m, middle, error))
            return false;
        *(m->plan->feasible ? &fits : &misses) = middle;
    }
    return fits == 0 || m->plan->feasible || make_at(m, fits, error);
}

/* Gives the plan what another one has; times of search and balance add up. */
static bool take(const Make *m, Plan *from, GError **error)
{
    m->plan->optimal = from->optimal;
    plan_set(m->plan, m->graph, m->view, g_steal_pointer(&from->program), from->ratio);
    return plan_complete(m->plan, m->graph, m->view, error);
}

/* Search and linear program in turn from these ratios, as long as the plan gets better. */
static bool alternate(const Make *m, double *ratio, GError **error)
{
    bool better = true;
    for (uint32_t i = 0;
         i < m->options->max_rounds && better && !planner_is_late(m->options); i++) {
        g_autoptr(Plan) plan = plan_new();
        plan->bucket_bytes = m->plan->bucket_bytes;
        const Make round = {m->graph, m->view, m->options, ratio, true, plan};
        if (!make_at(&round, 0, error))
            return false;
        m->plan->search_time_s += plan->search_time_s;
        m->plan->balance_time_s += plan->balance_time_s;
        better = !m->plan->program || plan_is_better(plan, m->plan);
        memcpy(ratio, plan->ratio, m->view->n_devices * sizeof *ratio);
        if (better && !take(m, plan, error))
            return false;
    }
    return true;
}

static bool make_balanced(Make *m, GError **error)
{
    for (uint32_t choice = RATIOS_PROPORTIONAL; choice >= RATIOS_EVEN; choice--) {
        g_autofree double *ratio = ratios_pinned(m->view, choice);
        if (!alternate(m, ratio, error))
            return false;
    }
    if (m->plan->feasible)
        return true;
    g_autofree double *ratio =
        g_memdup2(m->plan->ratio, m->view->n_devices * sizeof *ratio);
    m->ratio = ratio;
    m->balanced = true;
    return make_fit(m, error);
}

bool plan_make_hidup(const Graph *graph, const ClusterView *view,
                     const PlannerOptions *options, Plan *plan, GError **error)
{
    Make m = {graph, view, options, NULL, false, plan};
    if (options->ratios == RATIOS_BEST)
        return make_balanced(&m, error);
    g_autofree double *ratio = ratios_pinned(view, options->ratios);
    if (!ratio)
        ratio = ratios_even(view);
    m.ratio = ratio;
    return make_at(&m, 0, error) && (plan->feasible || make_fit(&m, error));
}

bool plan_double(Plan *plan, const Graph *graph, GError **error)
{
    Program *doubled = synth_duplex(plan->program, graph, error);
    if (!doubled)
        return false;
    program_free(plan->program);
    plan->program = doubled;
    return true;
}

bool plan_balance(Plan *plan, const Graph *graph, const ClusterView *view, GError **error)
{
    g_autoptr(SimLinear) linear =
        sim_linear(plan->program, graph, view, plan->segment, plan->bucket_bytes);
    g_autoptr(SimMemory) memory = sim_memory(plan->program, graph, linear, plan->segment);
    g_autofree double *ratio = g_new(double, (gsize)plan->n_segments * view->n_devices);
    g_autoptr(Plan) candidate = plan_new();
    BalanceReport report;
    const gint64 start = g_get_monotonic_time();
    if (!balance_ratios(linear, memory, view, plan->n_segments, ratio, &report, NULL) &&
        !balance_ratios(linear, NULL, view, plan->n_segments, ratio, &report, error))
        return false;
    plan->balance_time_s += (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    candidate->bucket_bytes = plan->bucket_bytes;
    plan_set(candidate, graph, view, program_copy(plan->program), ratio);
    plan_set_segments(candidate, ratio, plan->segment, plan->n_segments);
    if (!plan_complete(candidate, graph, view, error))
        return false;
    if (!plan_is_better(candidate, plan))
        return true;
    plan->optimal = false;
    plan_set_segments(plan, ratio, candidate->segment, plan->n_segments);
    return plan_complete(plan, graph, view, error);
}
