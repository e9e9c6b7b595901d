/* Many runs of the `flow` fidelity under noise, on several threads. A sample is a
 * function of its number and the seed, so the number of threads changes nothing. */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

#include "sim/flow/flow.h"

typedef struct {
    const SimFlowCase *flow;
    uint32_t n;
    gint next; /* sample that nobody has taken yet; atomic */
    double *time_s;
    GError **error; /* [sample] */
} Work;

static gpointer work(gpointer data)
{
    Work *w = data;
    const SimTasks *tasks = w->flow->tasks;
    g_autoptr(SimTimeline) timeline =
        sim_tasks_timeline(tasks, w->flow->sim->plan->program->n);

    for (;;) {
        const uint32_t i = (uint32_t)g_atomic_int_add(&w->next, 1);
        if (i >= w->n)
            return NULL;
        if (sim_flow_run(w->flow, i, false, timeline, &w->error[i]))
            w->time_s[i] = timeline->lost_s + sim_timeline_end_s(timeline);
    }
}

static void run_all(Work *w, uint32_t jobs)
{
    g_autofree GThread **thread = g_new(GThread *, jobs);

    for (uint32_t t = 1; t < jobs; t++)
        thread[t] = g_thread_new("sample", work, w);
    work(w);
    for (uint32_t t = 1; t < jobs; t++)
        g_thread_join(thread[t]);
}

/* Moves the error of the first sample that failed to *error; true if none did. */
static bool take_error(const Work *w, GError **error)
{
    bool good = true;

    for (uint32_t i = 0; i < w->n; i++) {
        if (!w->error[i])
            continue;
        if (good)
            g_propagate_prefixed_error(error, w->error[i], "sample %u: ", i);
        else
            g_error_free(w->error[i]);
        good = false;
    }
    return good;
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
    g_auto(SimFlowCase) flow = {0};
    if (!sim_flow_prepare(sim, &flow, error))
        return NULL;

    g_autoptr(SimSamples) samples = g_new0(SimSamples, 1);
    g_autofree GError **errors = g_new0(GError *, n);
    samples->n = n;
    samples->time_s = g_new0(double, n);
    Work w = {&flow, n, 0, samples->time_s, errors};
    run_all(&w, MAX(1, MIN(jobs, n)));
    if (!take_error(&w, error))
        return NULL;
    summarize(samples);
    return g_steal_pointer(&samples);
}

SimSamples *sim_samples(const Plan *plan, const Graph *graph, const ClusterView *view,
                        const SimOptions *options, uint32_t n, uint32_t jobs,
                        GError **error)
{
    g_assert(n > 0);
    if (!sim_check_plan(plan, graph, view, error))
        return NULL;
    g_autoptr(SimParts) parts = sim_parts_new(plan, graph, error);
    if (!parts)
        return NULL;
    const SimCase sim = {
        .plan = plan, .graph = graph, .view = view, .parts = parts, .options = options};

    return run_samples(&sim, n, jobs, error);
}

void sim_samples_free(SimSamples *samples)
{
    if (!samples)
        return;
    g_free(samples->time_s);
    g_free(samples);
}
