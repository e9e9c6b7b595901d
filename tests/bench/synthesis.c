/* The exact search.
 *
 * First whole plannings, program, ratios and bound, of HAP's models, of one of GPT-3's size (96
 * layers of 12,288 features), and over 8 to 4,096 equal devices; then on each of these inputs one
 * search beside HAP's own, Fig. 10, at ratios proportional to speed (the exact search's space is
 * larger). */
#include "data/data.h"
#include "synth/planners/planner.h"
#include "synth/synth.h"
#include "tests/bench/bench.h"

#include <sys/resource.h>

#define GPT3 \
    "bert-base:layers=96,hidden=12288,heads=96,ffn=49152,seq=2048,vocab=50257,batch=1"

#define GPT3_CLUSTER "star:hosts=64,bandwidth=100Gb/s,latency=5us,memory=4TiB"
#define VIT          "vit:layers=24"

typedef struct {
    const char *model, *cluster;
    ClusterView *view;
    Graph *graph;
    const double *ratio;
    double time_s, search_s; /* of the fastest run */
    bool optimal;
} Job;

static void check(bool done, const GError *error)
{
    if (!done)
        g_error("%s", error->message);
}

/* --- whole plannings --- */

static void run_planning(void *data)
{
    Job *job = data;
    PlannerOptions options;
    planner_options_init(&options);
    GError *error = NULL;
    g_autoptr(Plan) plan = planner_plan(planner_find("hap", NULL), job->model,
                                        job->cluster, job->view, &options, NULL, &error);
    check(plan != NULL, error);
    job->optimal = plan->optimal;
}

/* Most memory that the process had so far. */
static double peak_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static void plan(const char *name, const char *model, const char *cluster_name)
{
    GError *error = NULL;
    g_autoptr(Cluster) cluster = cluster_load(cluster_name, &error);
    check(cluster != NULL, error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    Job job = {.model = model, .cluster = cluster_name, .view = view};
    bench_run(name, run_planning, &job);
    printf("%-36s %soptimal for its ratios, %.0f MiB at most so far\n", "",
           job.optimal ? "" : "not proved ", peak_mib());
}

/* --- the search beside the reference --- */

static void note(Job *job, SynthResult *result)
{
    job->time_s = result->time_s;
    if (job->search_s == 0 || result->search_s < job->search_s)
        job->search_s = result->search_s;
    synth_result_clear(result);
}

static void run_exact(void *data)
{
    Job *job = data;
    const SynthOptions options = {0};
    g_autoptr(SynthSpace) space = synth_space_new(job->graph, NULL);
    SynthResult result;
    GError *error = NULL;
    check(synth_search(space, job->view, job->ratio, &options, &result, &error), error);
    note(job, &result);
}

static void run_reference(void *data)
{
    Job *job = data;
    SynthResult result;
    GError *error = NULL;
    check(synth_reference(job->graph, job->view, job->ratio, &result, &error), error);
    note(job, &result);
}

static void compare(const char *name, const char *model, ClusterView *view,
                    const double *ratio)
{
    GError *error = NULL;
    g_autoptr(Graph) graph =
        model_build(model, cluster_gpus(view->cluster), NULL, &error);
    check(graph != NULL, error);
    Job exact = {.graph = graph, .view = view, .ratio = ratio}, reference = exact;
    g_autofree char *first = g_strdup_printf("%s exact", name);
    g_autofree char *second = g_strdup_printf("%s reference", name);
    bench_run(first, run_exact, &exact);
    bench_run(second, run_reference, &reference);
    printf("%-36s search %.3f, iteration %.4f (exact / reference, fastest runs)\n", "",
           exact.search_s / reference.search_s, exact.time_s / reference.time_s);
}

/* `name`: the name to print; NULL: the model's own. */
static void compare_searches(const char *title, const char *cluster_name,
                             const char *name, const char *const *model)
{
    GError *error = NULL;
    g_autoptr(Cluster) cluster = cluster_load(cluster_name, &error);
    check(cluster != NULL, error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    g_autofree double *ratio = g_new(double, view->n_devices);
    double rate = 0;
    for (uint32_t j = 0; j < view->n_devices; j++)
        rate += view->device[j].rate;
    for (uint32_t j = 0; j < view->n_devices; j++)
        ratio[j] = view->device[j].rate / rate;
    bench_print_header(title);
    for (uint32_t m = 0; model[m]; m++)
        compare(name ? name : model[m], model[m], view, ratio);
}

static char *equal_devices(uint32_t hosts)
{
    return g_strdup_printf("star:hosts=%u,bandwidth=10Gb/s,latency=5us", hosts);
}

int main(void)
{
    static const char *const model[] = {VIT, "vgg19", "bert-base", "bert-moe", NULL};
    bench_print_header("planning");
    plan("vgg19 on hap-8", "vgg19", "hap-8");
    plan("vit, 24 layers, on hap-8", VIT, "hap-8");
    plan("GPT-3's size, 64 equal devices", GPT3, GPT3_CLUSTER);
    plan("bert-moe on hap-8", "bert-moe", "hap-8");
    plan("bert-moe on hap-64", "bert-moe", "hap-64");
    for (uint32_t hosts = 8; hosts <= 4096; hosts *= 8) {
        g_autofree char *cluster = equal_devices(hosts);
        g_autofree char *name =
            g_strdup_printf("vit, 24 layers, %u equal devices", hosts);
        plan(name, VIT, cluster);
    }
    compare_searches("search on hap-8", "hap-8", NULL, model);
    compare_searches("search on hap-64", "hap-64", NULL,
                     (const char *const[]){"bert-moe", NULL});
    for (uint32_t hosts = 8; hosts <= 4096; hosts *= 8) {
        g_autofree char *cluster = equal_devices(hosts);
        g_autofree char *title = g_strdup_printf("search, %u equal devices", hosts);
        compare_searches(title, cluster, NULL, (const char *const[]){VIT, NULL});
    }
    compare_searches("search, 64 equal devices", GPT3_CLUSTER, "GPT-3's size",
                     (const char *const[]){GPT3, NULL});
    return 0;
}
