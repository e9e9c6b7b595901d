/* An iteration of GPT-3 (96 layers of 12288) on 16,384 GPUs, 2,048 replicas of 8 tensor-parallel
 * ones, in the flow fidelity: at most 2 s and 1 GB. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "data/data.h"
#include "synth/synth.h"

enum { MACHINES = 2048, GPUS = 8 };

#define MODEL "gpt2:layers=96,hidden=12288,heads=96,ffn=49152,seq=2048,global_batch=2048"

static void check(const GError *error)
{
    if (!error)
        return;
    fprintf(stderr, "%s\n", error->message);
    exit(1);
}

/* Processor time of this process, in which one thread does all the work. */
static double now_s(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* Megatron's program for the GPUs of one machine. */
static Program *inner_program(const Graph *graph, const ClusterView *view)
{
    double ratio[GPUS];
    ClusterView machine = *view;
    GError *error = NULL;
    SynthResult result = {0};
    machine.n_devices = GPUS;
    for (uint32_t j = 0; j < GPUS; j++)
        ratio[j] = 1.0 / GPUS;
    synth_baseline(graph, &machine, ratio, BASELINE_MEGATRON, &result, &error);
    check(error);
    Program *program = g_steal_pointer(&result.program);
    synth_result_clear(&result);
    return program;
}

static Plan *make_plan(const Graph *graph, const ClusterView *view)
{
    const uint32_t n = view->n_devices;
    g_autofree uint32_t *device = g_new(uint32_t, n);
    g_autofree uint16_t *stage = g_new0(uint16_t, graph_n_ops(graph));
    GError *error = NULL;
    for (uint32_t j = 0; j < n; j++)
        device[j] = j;
    const DeviceGroup group = {
        .n_replicas = MACHINES, .n_devices = GPUS, .device = device};
    const SynthPipeline pipeline = {.n_stages = 1,
                                    .n_microbatches = 1,
                                    .stage = stage,
                                    .n_groups = 1,
                                    .group = &group,
                                    .schedule = SCHEDULE_GPIPE};
    g_autoptr(Program) inner = inner_program(graph, view);
    Plan *plan = plan_new();
    plan->program = synth_pipeline(inner, graph, &pipeline, &error);
    check(error);
    plan->n_devices = n;
    plan->n_segments = 1;
    plan->ratio = g_new(double, n);
    for (uint32_t j = 0; j < n; j++)
        plan->ratio[j] = 1.0 / n;
    plan->n_ops = graph_n_ops(graph);
    plan->segment = g_new0(uint16_t, plan->n_ops);
    plan->bucket_bytes = 25 << 20;
    plan_round(plan, graph, &error);
    check(error);
    return plan;
}

int main(void)
{
    GError *error = NULL;
    g_autofree char *spec = g_strdup_printf(
        "tree:hosts=%d,gpus=%d,leaf=32,oversubscription=1,bandwidth=200Gb/s,"
        "latency=5us,inner_bandwidth=300GB/s,inner_latency=5us",
        MACHINES, GPUS);
    g_autoptr(Cluster) cluster = cluster_load(spec, &error);
    check(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Graph) graph = model_build(MODEL, MACHINES * GPUS, NULL, &error);
    check(error);
    const double start_s = now_s();
    g_autoptr(Plan) plan = make_plan(graph, view);
    const double planned_s = now_s();
    static const char *const fidelity[] = {"stage", "flow"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(fidelity); i++) {
        const double before_s = now_s();
        g_autoptr(SimReport) report =
            sim_evaluate(plan, graph, view, fidelity[i], &error);
        check(error);
        printf("%s: %.4f s an iteration, simulated in %.2f s\n", fidelity[i],
               report->iteration_time_s, now_s() - before_s);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%u GPUs, %u instructions; planned in %.2f s; %.0f MB\n", view->n_devices,
           plan->program->n, planned_s - start_s, usage.ru_maxrss / 1024.0);
    return 0;
}
