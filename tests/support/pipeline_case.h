/* Pipelines of small models, for tests. */
#ifndef KILTER_TESTS_SUPPORT_PIPELINE_CASE_H
#define KILTER_TESTS_SUPPORT_PIPELINE_CASE_H

#include "synth/synth.h"
#include "tests/support/plan_of.h"

typedef struct {
    Graph *graph;
    Cluster *cluster;
    ClusterView *view;
    Plan *plan;
} Case;

static inline void case_clear(Case *c)
{
    plan_free(c->plan);
    cluster_view_free(c->view);
    cluster_free(c->cluster);
    graph_free(c->graph);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Case, case_clear)

/* Divides the forward ops into runs of equal length; the last two ops belong to the last stage.
 * stage[op]. */
static inline uint16_t *stages_of(const Graph *graph, uint32_t n_stages)
{
    uint16_t *stage = g_new0(uint16_t, graph_n_ops(graph));
    uint32_t n = 0;
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        n += graph_get_op(graph, id)->pass == PASS_FORWARD;
    for (OpId id = 0, k = 0; id < graph_n_ops(graph); id++)
        if (graph_get_op(graph, id)->pass == PASS_FORWARD) {
            stage[id] = (uint16_t)MIN(n_stages - 1, k * n_stages / (n - 2));
            k++;
        }
    return stage;
}

/* Groups of n_replicas x n_devices in the order of `device` (NULL: 0, 1, ...). */
static inline DeviceGroup *groups_new(uint32_t n_groups, uint32_t n_replicas,
                                      uint32_t n_devices, const uint32_t *device)
{
    DeviceGroup *group = g_new(DeviceGroup, n_groups);
    for (uint32_t g = 0; g < n_groups; g++) {
        const uint32_t n = n_replicas * n_devices;
        group[g] = (DeviceGroup){n_replicas, n_devices, g_new(uint32_t, n), 1, 0};
        for (uint32_t i = 0; i < n; i++)
            group[g].device[i] = device ? device[g * n + i] : g * n + i;
    }
    return group;
}

static inline Program *inner_program(const Graph *graph, const ClusterView *view,
                                     Baseline baseline)
{
    g_autofree double *ratio = g_new(double, view->n_devices);
    for (uint32_t j = 0; j < view->n_devices; j++)
        ratio[j] = 1.0 / view->n_devices;
    SynthResult result = {0};
    g_autoptr(GError) error = NULL;
    synth_baseline(graph, view, ratio, baseline, &result, &error);
    assert_no_error(error);
    Program *program = g_steal_pointer(&result.program);
    synth_result_clear(&result);
    return program;
}

/* A chain of `n_layers` linears that take 10 ms forward and 20 ms backward on the whole batch: the
 * time of the gradient of the input, or half of it for that of the weight; the first linear has no
 * gradient of the input and takes it all for that of the weight. */
static inline Graph *chain(uint32_t n_layers, bool halves)
{
    enum { BATCH = 64, WIDTH = 4 };
    Graph *graph = graph_new("chain");
    TensorId x = graph_input(graph, "x", DTYPE_F32, 2, (uint32_t[]){BATCH, WIDTH});
    TensorId labels = graph_input(graph, "labels", DTYPE_I64, 1, (uint32_t[]){BATCH});
    for (uint32_t i = 0; i < n_layers; i++) {
        g_autofree char *name = g_strdup_printf("fc%u", i);
        g_autofree char *weight = g_strdup_printf("w%u", i);
        const TensorId w = graph_parameter(graph, weight, 2, (uint32_t[]){WIDTH, WIDTH});
        x = graph_op(graph, OP_LINEAR, name, (OpAttr){0}, 2, (TensorId[]){x, w}, NULL);
    }
    x = graph_op(graph, OP_LOG_SOFTMAX, "log_p", (OpAttr){0}, 1, &x, NULL);
    x = graph_op(graph, OP_NLL_SUM, "loss", (OpAttr){0}, 2, (TensorId[]){x, labels},
                 NULL);
    graph_differentiate(graph, x, OPTIMIZER_SGD);
    graph_set_timed(graph);
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const Op *op = graph_get_op(graph, id);
        if (op->kind == OP_LINEAR)
            graph_set_seconds(graph, id, 10e-3);
        if (op->kind == OP_LINEAR_DX || (op->kind == OP_LINEAR_DW && op->of == 0))
            graph_set_seconds(graph, id, halves && op->of > 0 ? 10e-3 : 20e-3);
        else if (op->kind == OP_LINEAR_DW && halves)
            graph_set_seconds(graph, id, 10e-3);
    }
    graph_seal(graph);
    return graph;
}

typedef struct {
    const char *model; /* NULL: a chain of 8 layers; its gradients of weights take time
                          * where they are computed apart */
    const char *cluster;
    Baseline baseline; /* inside of a replica */
    uint32_t n_stages, n_groups, n_replicas, n_devices, n_microbatches;
    SynthSchedule schedule;
    Recompute recompute; /* of all layers */
    bool uneven;         /* uneven ratios */
} Setting;

static inline Case case_new(const Setting *s)
{
    Case c = {0};
    g_autoptr(GError) error = NULL;
    c.graph = s->model ? model_build(s->model, 1, NULL, &error)
                       : chain(8, schedule_splits(s->schedule));
    assert_no_error(error);
    c.cluster = cluster_load(s->cluster, &error);
    assert_no_error(error);
    c.view = cluster_view(c.cluster, GRANULARITY_GPU);
    g_autoptr(Program) inner = inner_program(c.graph, c.view, s->baseline);
    g_autofree uint16_t *stage = stages_of(c.graph, s->n_stages);
    DeviceGroup *group = groups_new(s->n_groups, s->n_replicas, s->n_devices, NULL);
    g_autofree Recompute *again = g_new(Recompute, graph_n_layers(c.graph) + 1);
    for (uint32_t i = 0; i < graph_n_layers(c.graph); i++)
        again[i] = s->recompute;
    const SynthPipeline pipeline = {.n_stages = s->n_stages,
                                    .n_microbatches = s->n_microbatches,
                                    .stage = stage,
                                    .n_groups = s->n_groups,
                                    .group = group,
                                    .schedule = s->schedule,
                                    .recompute = again};
    Program *program = synth_pipeline(inner, c.graph, &pipeline, &error);
    assert_no_error(error);
    program_groups_free(group, s->n_groups);
    c.plan = plan_of(c.graph, c.view->n_devices, s->uneven, program);
    return c;
}

/* --- settings of all kinds --- */

#define VIT "vit:layers=2,hidden=8,heads=2,ffn=12,image=8,global_batch=24,optimizer=sgd"
#define MOE \
    "bert-moe:layers=2,hidden=4,heads=2,ffn=6,seq=4,vocab=10,global_batch=24,experts=4"
#define STAR "star:hosts=12,bandwidth=1Gb/s,latency=5us"

static const Setting SETTINGS[] G_GNUC_UNUSED = {
    {VIT, STAR, BASELINE_DATA_PARALLEL, 1, 1, 1, 12, 2, SCHEDULE_GPIPE, RECOMPUTE_NONE,
     false},
    {VIT, STAR, BASELINE_DATA_PARALLEL, 1, 1, 4, 3, 1, SCHEDULE_GPIPE, RECOMPUTE_NONE,
     false},
    {VIT, STAR, BASELINE_DATA_PARALLEL, 2, 2, 3, 2, 4, SCHEDULE_1F1B, RECOMPUTE_NONE,
     false},
    {VIT, STAR, BASELINE_MEGATRON, 2, 2, 3, 2, 2, SCHEDULE_GPIPE, RECOMPUTE_NONE, false},
    {VIT, STAR, BASELINE_MEGATRON, 3, 3, 2, 2, 3, SCHEDULE_1F1B, RECOMPUTE_NONE, false},
    {VIT, STAR, BASELINE_MEGATRON, 4, 2, 3, 2, 4, SCHEDULE_INTERLEAVED, RECOMPUTE_NONE,
     false},
    {MOE, STAR, BASELINE_ZERO_EXPERT, 2, 2, 2, 2, 2, SCHEDULE_1F1B, RECOMPUTE_NONE,
     false},
    {MOE, STAR, BASELINE_DATA_PARALLEL, 3, 3, 1, 3, 3, SCHEDULE_GPIPE, RECOMPUTE_NONE,
     false},
    {MOE, STAR, BASELINE_DATA_PARALLEL, 2, 2, 6, 1, 2, SCHEDULE_1F1B, RECOMPUTE_FULL,
     false},
    {VIT, STAR, BASELINE_MEGATRON, 3, 3, 2, 2, 4, SCHEDULE_ZB_H1, RECOMPUTE_NONE, false},
    {MOE, STAR, BASELINE_DATA_PARALLEL, 4, 4, 3, 1, 4, SCHEDULE_ZB_H2, RECOMPUTE_NONE,
     false},
};

#endif
