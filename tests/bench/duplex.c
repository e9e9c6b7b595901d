/* HiDup's search by layers, on 4 GPUs, and on the graph with 24 layers for which its published
 * searcher takes 6.6 s on the same machine (2.04 s on the authors'). Then the ratios of its duplex
 * program, whose turns need cutting planes, on GPUs that all differ in speed. */
#include "balance/balance.h"
#include "data/data.h"
#include "synth/synth.h"
#include "tests/bench/bench.h"
#include "tests/support/hidup_artifact.h"

typedef struct {
    const Graph *graph;
    const ClusterView *view;
    const double *ratio;
} Job;

static void run_search(void *data)
{
    const Job *job = data;
    SynthResult result;
    GError *error = NULL;
    if (!synth_hidup(job->graph, job->view, job->ratio, NULL, &result, &error))
        g_error("%s", error->message);
    synth_result_clear(&result);
}

static void run_artifact(void *data)
{
    DuplexSolution solution;
    duplex_solve(artifact_problem(data), &solution);
    duplex_solution_clear(&solution);
}

/* --- ratios --- */

enum { DEVICES = 64 };

typedef struct {
    const SimLinear *linear;
    ClusterView *view;
} Ratios;

static void run_ratios(void *data)
{
    const Ratios *job = data;
    double ratio[DEVICES];
    BalanceReport report;
    GError *error = NULL;
    if (!balance_ratios(job->linear, NULL, job->view, 1, ratio, &report, &error))
        g_error("%s", error->message);
}

/* A tenth to a fifth of the rates, so that communication does not hide the computation. */
static void set_speeds(ClusterView *view, double rate, uint32_t n_speeds)
{
    for (uint32_t j = 0; j < DEVICES; j++)
        view->device[j].rate = rate * (0.1 + 0.1 * (j % n_speeds) / n_speeds);
}

static void bench_ratios(const char *model)
{
    g_autoptr(GError) error = NULL;
    Cluster *cluster = cluster_load("hidup-8x8", &error);
    ClusterView *view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Graph) graph = model_build(model, DEVICES, NULL, &error);
    double ratio[DEVICES];
    for (uint32_t j = 0; j < DEVICES; j++)
        ratio[j] = 1.0 / DEVICES;
    SynthResult result;
    if (!synth_hidup(graph, view, ratio, NULL, &result, &error))
        g_error("%s", error->message);
    g_autoptr(Program) doubled = synth_duplex(result.program, graph, 2, &error);
    g_autoptr(SimLinear) linear = sim_linear(doubled, graph, view, NULL, 0);
    const double rate = view->device[0].rate;
    for (uint32_t speeds = 4; speeds <= DEVICES; speeds *= 4) {
        Ratios job = {linear, view};
        g_autofree char *name =
            g_strdup_printf("%u stages, %u speeds", linear->n_stages, speeds);
        set_speeds(view, rate, speeds);
        bench_run(name, run_ratios, &job);
    }
    synth_result_clear(&result);
    cluster_view_free(view);
    cluster_free(cluster);
}

int main(void)
{
    g_autoptr(GError) error = NULL;
    Cluster *cluster = cluster_load("hidup-1x4", &error);
    if (!cluster)
        g_error("%s", error->message);
    ClusterView *view = cluster_view(cluster, GRANULARITY_GPU);
    const double ratio[] = {0.25, 0.25, 0.25, 0.25};
    bench_print_header("HiDup's search, BERT-SGMoE on 4 GPUs");
    for (uint32_t layers = 6; layers <= 24; layers *= 2) {
        g_autofree char *model = g_strdup_printf("bert-sgmoe:layers=%u", layers);
        g_autoptr(Graph) graph = model_build(model, 4, NULL, &error);
        Job job = {graph, view, ratio};
        bench_run(model, run_search, &job);
    }
    const char *shared = g_getenv("KILTER_SHARED");
    g_autofree char *file =
        g_build_filename(shared ? shared : KILTER_HOME "/../shared",
                         "reference/hidup/graphs/g_Rmoe_4_24_exp.txt", NULL);
    const ArtifactProfile profile = artifact_nvlink(4139214925014);
    g_autoptr(Artifact) artifact = artifact_read(file, &profile);
    if (artifact)
        bench_run("published graph, 24 layers", run_artifact, artifact);
    bench_print_header("ratios of doubled BERT-SGMoE, 64 GPUs");
    bench_ratios("bert-sgmoe");
    bench_ratios("bert-sgmoe:layers=24");
    cluster_view_free(view);
    cluster_free(cluster);
    return 0;
}
