/* The exact search beside HAP's own, Fig. 10, on the same inputs: ViT with 24 layers and the other models of HAP, ratios
 * proportional to speed. The exact search's space is larger. */
#include "synth/synth.h"
#include "tests/bench/bench.h"

static const char CLUSTER[] = "hap-8";

typedef struct {
    const Graph *graph;
    const ClusterView *view;
    const double *ratio;
    double time_s, search_s; /* of the fastest run */
} Job;

static void note(Job *job, bool done, SynthResult *result, const GError *error)
{
    if (!done)
        g_error("%s", error->message);
    job->time_s = result->time_s;
    if (job->search_s == 0 || result->search_s < job->search_s)
        job->search_s = result->search_s;
    synth_result_clear(result);
}

static void run_exact(void *data)
{
    Job *job = data;
    const SynthOptions options = {0};
    SynthResult result;
    GError *error = NULL;
    bool done =
        synth_search(job->graph, job->view, job->ratio, &options, &result, &error);
    note(job, done, &result, error);
}

static void run_reference(void *data)
{
    Job *job = data;
    SynthResult result;
    GError *error = NULL;
    bool done = synth_reference(job->graph, job->view, job->ratio, &result, &error);
    note(job, done, &result, error);
}

static void compare(const char *model, const ClusterView *view, const double *ratio)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph =
        model_build(model, cluster_gpus(view->cluster), NULL, &error);
    if (!graph)
        g_error("%s", error->message);
    Job exact = {.graph = graph, .view = view, .ratio = ratio}, reference = exact;
    g_autofree char *first = g_strdup_printf("%s exact", model);
    g_autofree char *second = g_strdup_printf("%s reference", model);
    bench_run(first, run_exact, &exact);
    bench_run(second, run_reference, &reference);
    printf("%-36s search %.3f, iteration %.4f (exact / reference, fastest runs)\n", "",
           exact.search_s / reference.search_s, exact.time_s / reference.time_s);
}

int main(void)
{
    static const char *const model[] = {"vit:layers=24", "vgg19", "bert-base",
                                        "bert-moe"};
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load(CLUSTER, &error);
    if (!cluster)
        g_error("%s", error->message);
    ClusterView *view = cluster_view(cluster, GRANULARITY_MACHINE);
    g_autofree double *ratio = g_new(double, view->n_devices);
    double rate = 0;
    for (uint32_t j = 0; j < view->n_devices; j++)
        rate += view->device[j].rate;
    for (uint32_t j = 0; j < view->n_devices; j++)
        ratio[j] = view->device[j].rate / rate;
    g_autofree char *what = g_strdup_printf("search on %s", CLUSTER);
    bench_print_header(what);
    for (uint32_t m = 0; m < G_N_ELEMENTS(model); m++)
        compare(model[m], view, ratio);
    cluster_view_free(view);
    return 0;
}
