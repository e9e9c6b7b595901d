/* The planner hidup: HiDup's search, its program doubled into two microbatches that take turns. */
#include "experiments/planners/make.h"
#include "synth/synth.h"

typedef struct {
    const Graph *graph;
    const ClusterView *view;
    const PlannerOptions *options;
    const double *ratio;
    Plan *plan;
} Make;

/* The best plan with memory at `memory_s` a byte (synth_hidup). */
static bool make_at(const Make *m, double memory_s, GError **error)
{
    SynthResult result;
    if (!synth_hidup(m->graph, m->view, m->ratio, memory_s, &result, error))
        return false;
    plan_set(m->plan, m->graph, m->view, result.program, m->ratio);
    m->plan->search_time_s += result.search_s;
    m->plan->optimal = result.optimal;
    return (m->options->duplex == DUPLEX_OFF || plan_double(m->plan, m->graph, error)) &&
           plan_complete(m->plan, m->graph, m->view, error);
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

bool plan_make_hidup(const Graph *graph, const ClusterView *view,
                     const PlannerOptions *options, Plan *plan, GError **error)
{
    if (options->ratios == RATIOS_BEST)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "option 'ratios': planner hidup expected own, even or "
                           "proportional, got 'best'");
    g_autofree double *ratio = ratios_pinned(view, options->ratios);
    if (!ratio)
        ratio = ratios_even(view);
    const Make m = {graph, view, options, ratio, plan};
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
