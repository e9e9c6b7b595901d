/* The strategies that HAP is compared with (Sec. 7.1), at the level of virtual devices. */
#include "experiments/planner_make.h"
#include "synth/synth.h"

static double *normalised(const ClusterView *view, double (*weight)(const Device *device))
{
    double *ratio = g_new(double, view->n_devices), sum = 0;
    for (uint32_t j = 0; j < view->n_devices; j++)
        sum += ratio[j] = weight(&view->device[j]);
    for (uint32_t j = 0; j < view->n_devices; j++)
        ratio[j] /= sum;
    return ratio;
}

static double gpus_of(const Device *device)
{
    return device->gpus;
}

static double rate_of(const Device *device)
{
    return device->rate;
}

double *ratios_even(const ClusterView *view)
{
    return normalised(view, gpus_of);
}

double *ratios_proportional(const ClusterView *view)
{
    return normalised(view, rate_of);
}

static bool make(const Graph *graph, const ClusterView *view, Baseline baseline,
                 double *ratio, Plan *plan, GError **error)
{
    g_autofree double *owned = ratio;
    SynthResult result;
    if (!synth_baseline(graph, view, ratio, baseline, &result, error))
        return false;
    plan_set(plan, graph, view, result.program, ratio);
    plan->search_time_s = result.search_s;
    return true;
}

bool plan_make_dp_even(const Graph *graph, const ClusterView *view,
                       const PlannerOptions *options, Plan *plan, GError **error)
{
    (void)options;
    return make(graph, view, BASELINE_DATA_PARALLEL, ratios_even(view), plan, error);
}

bool plan_make_dp_proportional(const Graph *graph, const ClusterView *view,
                               const PlannerOptions *options, Plan *plan, GError **error)
{
    (void)options;
    return make(graph, view, BASELINE_DATA_PARALLEL, ratios_proportional(view), plan,
                error);
}

bool plan_make_deepspeed(const Graph *graph, const ClusterView *view,
                         const PlannerOptions *options, Plan *plan, GError **error)
{
    (void)options;
    return make(graph, view, BASELINE_ZERO_EXPERT, ratios_even(view), plan, error);
}
