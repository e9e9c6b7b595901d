/* Nanoseconds to price an op by its kernels: all ops of a layer of a large model, forward and
 * backward. */
#include "data/data.h"
#include "sim/cost/op_kernels.h"

#include <string.h>

#include "tests/bench/bench.h"

typedef struct {
    const Graph *graph;
    const KernelPricing *pricing;
    double seconds;
} Pricing;

static void price(void *data)
{
    static const double WHOLE[OP_MAX_LOOPS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    Pricing *p = data;
    for (OpId id = 0; id < graph_n_ops(p->graph); id++)
        p->seconds += op_kernels_s(p->pricing, p->graph, id, WHOLE);
}

int main(void)
{
    static const char CLUSTER[] =
        "{name: one, machines: [{device: h100-sxm, gpus: 1, nic: ib-ndr}]}";
    static const char *const MODEL[] = {
        "llama:layers=1,hidden=4096,heads=32,ffn=14336,seq=4096,precision=bf16",
        "gpt2:layers=1,hidden=4096,heads=32,seq=2048,precision=single"};
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_parse("one", CLUSTER, strlen(CLUSTER), &error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(ClusterView) priced = cluster_view_priced(view, true, NULL);
    bench_print_header("all ops of a model, by kernels");
    for (uint32_t i = 0; i < G_N_ELEMENTS(MODEL); i++) {
        g_autoptr(Graph) graph = model_build(MODEL[i], 1, NULL, &error);
        Pricing pricing = {graph, priced->device[0].kernels, 0};
        bench_run(MODEL[i], price, &pricing);
        const gint64 start = g_get_monotonic_time();
        enum { TIMES = 200 };
        for (uint32_t k = 0; k < TIMES; k++)
            price(&pricing);
        printf("  %.0f ns per op of %u\n",
               1e3 * (double)(g_get_monotonic_time() - start) / TIMES /
                   graph_n_ops(graph),
               graph_n_ops(graph));
    }
    return 0;
}
