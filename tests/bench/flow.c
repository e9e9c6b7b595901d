/* The time of iterations under the `flow` fidelity: data parallelism over many hosts, and samples
 * with noise. */
#include "sim/sim.h"
#include "synth/planners/planner.h"
#include "tests/bench/bench.h"

typedef struct {
    Cluster *cluster;
    ClusterView *view;
    Graph *graph;
    Plan *plan;
    SimOptions options;
    uint32_t samples;
    GError *error;
} Job;

static void check(const Job *job)
{
    if (job->error)
        g_error("%s", job->error->message);
}

static Job new_job(const char *model, const char *cluster)
{
    Job job = {.cluster = NULL};
    PlannerOptions options;

    planner_options_init(&options);
    options.bucket_bytes = 25 * 1024 * 1024;
    sim_options_init(&job.options);
    job.cluster = cluster_load(cluster, &job.error);
    check(&job);
    job.view = cluster_view(job.cluster, GRANULARITY_MACHINE);
    job.plan = planner_plan(planner_find("dp-ev", NULL), model, cluster, job.view,
                            &options, &job.graph, &job.error);
    check(&job);
    return job;
}

static void free_job(Job *job)
{
    plan_free(job->plan);
    graph_free(job->graph);
    cluster_view_free(job->view);
    cluster_free(job->cluster);
}

static void simulate(void *data)
{
    Job *job = data;
    SimReport *report = sim_evaluate_with(job->plan, job->graph, job->view, "flow",
                                          &job->options, &job->error);
    check(job);
    sim_report_free(report);
}

static void sample(void *data)
{
    Job *job = data;
    SimSamples *samples = sim_samples(job->plan, job->graph, job->view, &job->options,
                                      job->samples, g_get_num_processors(), &job->error);
    check(job);
    sim_samples_free(samples);
}

static void bench(const char *model, const char *cluster, uint32_t samples,
                  const char *name)
{
    Job job = new_job(model, cluster);

    job.samples = samples;
    if (samples > 0)
        sim_options_set(&job.options, "jitter", "0.05", &job.error);
    check(&job);
    bench_run(name, samples > 0 ? sample : simulate, &job);
    free_job(&job);
}

int main(void)
{
    bench_print_header("flow");
    bench("synthetic", "star:hosts=1024,bandwidth=10Gb/s,latency=5us", 0,
          "12 layers, 1,024 hosts");
    bench("synthetic:layers=96", "star:hosts=16384,bandwidth=100Gb/s,latency=5us", 0,
          "96 layers, 16,384 hosts");
    bench("bert-base", "hap-64", 0, "bert-base, hap-64");
    bench("bert-base", "hap-64", 1000, "bert-base, hap-64, 1,000 samples");
    return 0;
}
