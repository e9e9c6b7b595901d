/* The strategies that HAP is compared with (Sec. 7.1), at the level of virtual devices. */
#include "balance/balance.h"
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

double *ratios_pinned(const ClusterView *view, uint32_t choice)
{
    return choice == RATIOS_EVEN           ? ratios_even(view)
           : choice == RATIOS_PROPORTIONAL ? ratios_proportional(view)
                                           : NULL;
}

/* The best ratios of a program, in place; those of the memory's capacity if they exist. */
static bool rebalance(const Program *program, const Graph *graph, const ClusterView *view,
                      uint64_t bucket_bytes, double *ratio, Plan *plan, GError **error)
{
    g_autoptr(SimLinear) linear = sim_linear(program, graph, view, NULL, bucket_bytes);
    g_autoptr(SimMemory) memory = sim_memory(program, graph, linear, NULL);
    BalanceReport report;
    gint64 start = g_get_monotonic_time();
    bool done = balance_ratios(linear, memory, view, 1, ratio, &report, NULL) ||
                balance_ratios(linear, NULL, view, 1, ratio, &report, error);
    plan->balance_time_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return done;
}

/* `own`: the strategy's ratios, which the options may replace; taken over. */
static bool make(const Graph *graph, const ClusterView *view,
                 const PlannerOptions *options, Baseline baseline, double *own,
                 Plan *plan, GError **error)
{
    g_autofree double *ratio = own;
    if (options->ratios == RATIOS_EVEN || options->ratios == RATIOS_PROPORTIONAL) {
        g_free(ratio);
        ratio = ratios_pinned(view, options->ratios);
    }
    SynthResult result;
    if (!synth_baseline(graph, view, ratio, baseline, &result, error))
        return false;
    g_autoptr(Program) program = result.program;
    if (options->ratios == RATIOS_BEST &&
        !rebalance(program, graph, view, options->bucket_bytes, ratio, plan, error))
        return false;
    plan_set(plan, graph, view, g_steal_pointer(&program), ratio);
    plan->search_time_s = result.search_s;
    return true;
}

bool plan_make_dp_even(const Graph *graph, const ClusterView *view,
                       const PlannerOptions *options, Plan *plan, GError **error)
{
    return make(graph, view, options, BASELINE_DATA_PARALLEL, ratios_even(view), plan,
                error);
}

bool plan_make_dp_proportional(const Graph *graph, const ClusterView *view,
                               const PlannerOptions *options, Plan *plan, GError **error)
{
    return make(graph, view, options, BASELINE_DATA_PARALLEL, ratios_proportional(view),
                plan, error);
}

bool plan_make_deepspeed(const Graph *graph, const ClusterView *view,
                         const PlannerOptions *options, Plan *plan, GError **error)
{
    return make(graph, view, options, BASELINE_ZERO_EXPERT, ratios_even(view), plan,
                error);
}
