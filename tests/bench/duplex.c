/* HiDup's search by layers, on 4 GPUs, and on the graph with 24 layers that its published searcher
 * takes 6.6 s for on the same machine (2.04 s on the authors'). */
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
    cluster_view_free(view);
    cluster_free(cluster);
    return 0;
}
