/* AMP's search, all degrees and microbatch sizes of GPT-2 with 24 layers and a global batch of 32,
 * by cluster size (the paper's Table 2: 58, 326, 890 and 1627 s), and the layer assignment alone as
 * layers grow. */
#include "data/data.h"
#include "synth/synth.h"
#include "tests/bench/bench.h"

typedef struct {
    const AmpModel *model;
    const AmpCluster *cluster;
    AmpOptions options;
    AmpMethod method;
    uint32_t found;
} Job;

static void run(void *data)
{
    Job *job = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) found = synth_amp_search(job->model, job->cluster, &job->options,
                                               job->method, NULL, &error);
    if (!found)
        g_error("%s", error->message);
    job->found = found->len;
}

static void search(uint32_t side)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *spec = g_strdup_printf(
        "star:hosts=%u,gpus=%u,bandwidth=50Gb/s,latency=5us,inner_bandwidth=170Gb/s,"
        "inner_latency=1us",
        side, side);
    g_autoptr(Cluster) cluster = cluster_load(spec, &error);
    if (!cluster)
        g_error("%s", error->message);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Graph) graph =
        model_build("gpt2:global_batch=32", side * side, NULL, &error);
    g_autoptr(AmpCluster) devices = synth_amp_cluster(view, &error);
    g_autoptr(AmpModel) model = graph ? synth_amp_model(graph, view, NULL, &error) : NULL;
    if (!devices || !model || !synth_amp_connect(devices, view, &error))
        g_error("%s", error->message);
    for (uint32_t d = 0; d < devices->n_devices; d++)
        devices->memory[d] = 1e12; /* no strategy is left out for memory */
    static const char *const name[] = {"all", "annealing", "all, faithful"};
    static const AmpMethod method[] = {AMP_SEARCH, AMP_ANNEAL, AMP_SEARCH};
    for (uint32_t i = 0; i < G_N_ELEMENTS(name); i++) {
        Job job = {model,
                   devices,
                   {.faithful = i == 2, .schedule = SCHEDULE_1F1B, .seed = 1},
                   method[i],
                   0};
        g_autofree char *line = g_strdup_printf("%ux%u %s", side, side, name[i]);
        bench_run(line, run, &job);
        printf("%-36s %u strategies\n", "", job.found);
    }
}

typedef struct {
    AmpAssignment problem;
    uint32_t *first;
} Cuts;

static void assign(void *data)
{
    Cuts *cuts = data;
    double cost;
    synth_amp_assign(&cuts->problem, cuts->first, &cost);
}

static void assignment(uint32_t layers, uint32_t stages)
{
    GRand *random = g_rand_new_with_seed(layers);
    const size_t n = (size_t)layers * stages;
    g_autofree double *time = g_new(double, n), *transfer = g_new(double, n),
                      *sync = g_new(double, n);
    g_autofree uint32_t *first = g_new(uint32_t, stages + 1);
    for (size_t i = 0; i < n; i++) {
        time[i] = g_rand_double(random);
        transfer[i] = 0.1 * g_rand_double(random);
        sync[i] = g_rand_double(random);
    }
    Cuts cuts = {{.n_layers = layers,
                  .n_stages = stages,
                  .repeats = 15,
                  .time = time,
                  .transfer = transfer,
                  .sync = sync},
                 first};
    g_autofree char *line = g_strdup_printf("%u layers in %u stages", layers, stages);
    bench_run(line, assign, &cuts);
    g_rand_free(random);
}

int main(void)
{
    bench_print_header("AMP, GPT-2 24 layers");
    for (uint32_t side = 2; side <= 16; side *= 2)
        search(side);
    bench_print_header("layer assignment, uneven stages");
    for (uint32_t layers = 25; layers <= 800; layers *= 2)
        assignment(layers, 16);
    return 0;
}
