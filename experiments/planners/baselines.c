/* The strategies that HAP is compared with (Sec. 7.1) and other known ones, at the level of virtual
 * devices. */
#include "balance/balance.h"
#include "experiments/planners/make.h"
#include "synth/synth.h"

#include <math.h>

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

static double memory_of(const Device *device)
{
    return (double)device->memory_bytes;
}

double *ratios_by_memory(const ClusterView *view)
{
    return normalised(view, memory_of);
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

/* What finding a strategy's best ratios needs. */
typedef struct {
    const Graph *graph;
    const ClusterView *view;
    Baseline baseline;
    uint64_t bucket_bytes;
    Plan *plan;
    double best_s; /* of the plan's program and ratios; infinite without */
} Rebalance;

/* The strategy's program at these ratios, then the best ratios of that program, in place: those
 * that fit the memory if any do. The plan gets the pair if it is the fastest so far. */
static bool rebalance(Rebalance *r, double *ratio, GError **error)
{
    SynthResult result;
    if (!synth_baseline(r->graph, r->view, ratio, r->baseline, &result, error))
        return false;
    g_autoptr(Program) program = result.program;
    g_autoptr(SimLinear) linear =
        sim_linear(program, r->graph, r->view, NULL, r->bucket_bytes);
    g_autoptr(SimMemory) memory = sim_memory(program, r->graph, linear, NULL);
    BalanceReport report;
    gint64 start = g_get_monotonic_time();
    if (!balance_ratios(linear, memory, r->view, 1, ratio, &report, NULL) &&
        !balance_ratios(linear, NULL, r->view, 1, ratio, &report, error))
        return false;
    r->plan->balance_time_s += (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    r->plan->search_time_s += result.search_s;
    if (report.time_s < r->best_s) {
        r->best_s = report.time_s;
        plan_set(r->plan, r->graph, r->view, g_steal_pointer(&program), ratio);
    }
    return true;
}

/* From both ends, since the strategy's collectives depend on the ratios; twice, so that they are
 * those of the ratios found. */
static bool make_best(Rebalance *r, GError **error)
{
    for (uint32_t choice = RATIOS_EVEN; choice <= RATIOS_PROPORTIONAL; choice++) {
        g_autofree double *ratio = ratios_pinned(r->view, choice);
        if (!rebalance(r, ratio, error) || !rebalance(r, ratio, error))
            return false;
    }
    return true;
}

/* `own`: the strategy's ratios, which the options may replace; taken over. */
static bool make(const Graph *graph, const ClusterView *view,
                 const PlannerOptions *options, Baseline baseline, double *own,
                 Plan *plan, GError **error)
{
    g_autofree double *ratio = own;
    if (options->ratios == RATIOS_BEST) {
        Rebalance r = {.graph = graph,
                       .view = view,
                       .baseline = baseline,
                       .bucket_bytes = options->bucket_bytes,
                       .plan = plan,
                       .best_s = INFINITY};
        return make_best(&r, error);
    }
    if (options->ratios != RATIOS_OWN) {
        g_free(ratio);
        ratio = ratios_pinned(view, options->ratios);
    }
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

bool plan_make_gshard(const Graph *graph, const ClusterView *view,
                      const PlannerOptions *options, Plan *plan, GError **error)
{
    return make(graph, view, options, BASELINE_GSHARD, ratios_even(view), plan, error);
}

bool plan_make_tensor_parallel(const Graph *graph, const ClusterView *view,
                               const PlannerOptions *options, Plan *plan, GError **error)
{
    return make(graph, view, options, BASELINE_MEGATRON, ratios_even(view), plan, error);
}

/* Expert parallelism as GShard's; the capacity of experts is the model's, where FastMoE has no
 * limit. */
bool plan_make_fastmoe(const Graph *graph, const ClusterView *view,
                       const PlannerOptions *options, Plan *plan, GError **error)
{
    return make(graph, view, options, BASELINE_GSHARD, ratios_even(view), plan, error);
}

/* Data parallelism that fuses gradients up to a size unless the options name one. */
static bool make_fused(const Graph *graph, const ClusterView *view,
                       const PlannerOptions *options, uint64_t bucket_bytes, Plan *plan,
                       GError **error)
{
    if (options->bucket_bytes == 0)
        plan->bucket_bytes = bucket_bytes;
    return make(graph, view, options, BASELINE_DATA_PARALLEL, ratios_even(view), plan,
                error);
}

bool plan_make_ddp(const Graph *graph, const ClusterView *view,
                   const PlannerOptions *options, Plan *plan, GError **error)
{
    enum { BUCKET_MIB = 25 }; /* PyTorch's default, bucket_cap_mb */
    return make_fused(graph, view, options, (uint64_t)BUCKET_MIB << 20, plan, error);
}

bool plan_make_horovod(const Graph *graph, const ClusterView *view,
                       const PlannerOptions *options, Plan *plan, GError **error)
{
    enum { BUCKET_MIB = 64 }; /* Horovod's default, HOROVOD_FUSION_THRESHOLD */
    return make_fused(graph, view, options, (uint64_t)BUCKET_MIB << 20, plan, error);
}
