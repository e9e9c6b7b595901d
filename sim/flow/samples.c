/* Many runs of the `flow` fidelity under noise, on several threads. A sample is a
 * function of its number and the seed, so the number of threads changes nothing. */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

#include "data/base/free.h"
#include "data/base/parallel.h"
#include "sim/flow/flow.h"

typedef struct {
    const SimFlowCase *flow;
    double *time_s; /* [sample] */
} Work;

static void *timeline_new(void *context)
{
    const Work *work = context;
    const SimTasks *tasks = work->flow->tasks;
    return sim_tasks_timeline(tasks, work->flow->sim->plan->program->n);
}

static bool run_one(void *context, void *own, uint32_t i, GError **error)
{
    KILTER_ASSERT(own && error);
    const Work *work = context;
    const SimTimeline *timeline = own;
    if (!sim_flow_run(work->flow, i, false, own, error))
        return false;
    uint32_t slowest;
    const Program *program = work->flow->sim->plan->program;
    work->time_s[i] = timeline->lost_s + sim_timeline_time_s(timeline, program, &slowest);
    return true;
}

static void summarize(SimSamples *samples)
{
    g_assert(samples->n > 0);
    const uint32_t n = samples->n;
    g_autofree double *sorted = g_memdup2(samples->time_s, n * sizeof *sorted);
    gsl_sort(sorted, 1, n);
    samples->mean_s = gsl_stats_mean(sorted, 1, n);
    samples->median_s = gsl_stats_median_from_sorted_data(sorted, 1, n);
    samples->p95_s = gsl_stats_quantile_from_sorted_data(sorted, 1, n, 0.95);
    samples->low_s = samples->high_s = samples->mean_s;
    if (n == 1)
        return;
    samples->deviation_s = gsl_stats_sd_m(sorted, 1, n, samples->mean_s);
    const double half_s =
        gsl_cdf_tdist_Pinv(0.975, n - 1) * samples->deviation_s / sqrt(n);
    samples->low_s -= half_s;
    samples->high_s += half_s;
}

static SimSamples *run_samples(const SimCase *sim, uint32_t n, uint32_t jobs,
                               GError **error)
{
    KILTER_ASSERT(n > 0 && jobs > 0);
    g_auto(SimFlowCase) flow = {0};
    if (!sim_flow_prepare(sim, &flow, error))
        return NULL;
    g_autoptr(SimSamples) samples = g_new0(SimSamples, 1);
    samples->n = n;
    samples->time_s = g_new0(double, n);
    Work work = {&flow, samples->time_s};
    const Parallel all = {.n = n,
                          .threads = MAX(1, jobs),
                          .context = &work,
                          .begin = timeline_new,
                          .end = (GDestroyNotify)sim_timeline_free,
                          .round = run_one};
    uint32_t failed;
    if (!parallel_run(&all, &failed, error)) {
        g_prefix_error(error, "sample %u: ", failed);
        return NULL;
    }
    summarize(samples);
    return g_steal_pointer(&samples);
}

SimSamples *sim_samples(const Plan *plan, const Graph *graph, const ClusterView *view,
                        const SimOptions *options, uint32_t n, uint32_t jobs,
                        GError **error)
{
    g_assert(n > 0);
    g_auto(SimPrepared) prepared = {0};
    return sim_check_steps(plan, error) &&
                   sim_prepare(&prepared, plan, graph, view, options, error)
               ? run_samples(&prepared.sim, n, jobs, error)
               : NULL;
}

FREE_DEFINE(sim_samples_free, SimSamples, samples, g_free(samples->time_s));
