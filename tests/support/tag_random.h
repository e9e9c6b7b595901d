/* Small random cases of TAG's searches: networks of linear layers on machines of a few speeds. */
#ifndef KILTER_TESTS_SUPPORT_TAG_RANDOM_H
#define KILTER_TESTS_SUPPORT_TAG_RANDOM_H

#include "synth/synth.h"
#include "tests/test.h"

typedef struct {
    Graph *graph;
    Cluster *cluster;
    ClusterView *view;
    BatchForms *batch;
    TagSpace *space;
    SimQuick *quick;
    uint16_t *group;
    double *time_s;
    TagWork work;
} Case;

static inline void case_clear(Case *c)
{
    sim_quick_free(c->quick);
    synth_tag_space_free(c->space);
    batch_forms_free(c->batch);
    cluster_view_free(c->view);
    cluster_free(c->cluster);
    graph_free(c->graph);
    g_free(c->group);
    g_free(c->time_s);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Case, case_clear)

static inline uint32_t draw(GRand *rand, uint32_t low, uint32_t high)
{
    return (uint32_t)g_rand_int_range(rand, (gint32)low, (gint32)high + 1);
}

/* A chain of linear layers of random widths, some with a branch. */
static inline Graph *random_graph(GRand *rand, uint32_t n_layers)
{
    Graph *graph = graph_new("random");
    const uint32_t batch = 24;
    uint32_t width = 16 * draw(rand, 1, 40);
    TensorId x = graph_input(graph, "x", DTYPE_F32, 2, (uint32_t[]){batch, width});
    const TensorId labels =
        graph_input(graph, "labels", DTYPE_I64, 1, (uint32_t[]){batch});
    for (uint32_t i = 0; i < n_layers; i++) {
        g_autofree char *layer = g_strdup_printf("fc%u", i);
        g_autofree char *name = g_strdup_printf("w%u", i);
        g_autofree char *relu = g_strdup_printf("relu%u", i);
        const uint32_t next = 16 * draw(rand, 1, 40);
        graph_layer(graph, layer);
        const TensorId w = graph_parameter(graph, name, 2, (uint32_t[]){next, width});
        x = graph_op(graph, OP_LINEAR, layer, (OpAttr){0}, 2, (TensorId[]){x, w}, NULL);
        x = graph_op(graph, OP_RELU, relu, (OpAttr){0}, 1, &x, NULL);
        width = next;
    }
    x = graph_op(graph, OP_LOG_SOFTMAX, "log_p", (OpAttr){0}, 1, &x, NULL);
    x = graph_op(graph, OP_NLL_SUM, "loss", (OpAttr){0}, 2, (TensorId[]){x, labels},
                 NULL);
    graph_differentiate(graph, x, OPTIMIZER_SGD);
    graph_seal(graph);
    return graph;
}

/* Machines with GPUs of a few speeds, and little or much memory. */
static inline Cluster *random_cluster_of(GRand *rand, uint32_t n_machines,
                                         double memory_kib)
{
    g_autoptr(GString) text = g_string_new("name: random\ndevice_types:\n");
    for (uint32_t t = 0; t < 3; t++)
        g_string_append_printf(text,
                               "  - {name: t%u, rate: %u MFLOP/s, memory: %.0f KiB, "
                               "source: drawn}\n",
                               t, draw(rand, 20, 400), memory_kib);
    g_string_append(text, "machines:\n");
    for (uint32_t m = 0; m < n_machines; m++) {
        const uint32_t bandwidth = draw(rand, 50, 500), gpus = draw(rand, 1, 2),
                       type = draw(rand, 0, 2);
        g_string_append_printf(
            text,
            "  - {name: m%u, type: t%u, gpus: %u, inner: {latency: 5 us, bandwidth: %u "
            "MB/s}, source: drawn}\n",
            m, type, gpus, bandwidth);
    }
    g_string_append(text, "collectives:\n");
    static const char *const kind[] = {"all_reduce",
                                       "all_gather",
                                       "grouped_all_gather",
                                       "reduce_scatter",
                                       "grouped_reduce_scatter",
                                       "all_to_all"};
    const uint32_t speed = draw(rand, 5, 300), latency = draw(rand, 1, 400);
    for (uint32_t k = 0; k < G_N_ELEMENTS(kind); k++)
        g_string_append_printf(text, "  %s: {latency: %u us, bandwidth: %u MB/s}\n",
                               kind[k], k == 0 ? latency : 12, speed);
    g_string_append(text, "  source: drawn\n");
    g_autoptr(GError) error = NULL;
    Cluster *cluster = cluster_parse("random", text->str, text->len, &error);
    assert_no_error(error);
    return cluster;
}

/* Takes the graph and the cluster over. */
static inline Case case_of(Graph *graph, Cluster *cluster)
{
    Case c = {.graph = graph, .cluster = cluster};
    g_autoptr(GError) error = NULL;
    c.view = cluster_view(c.cluster, GRANULARITY_GPU);
    c.batch = batch_forms_new(c.graph, &error);
    assert_no_error(error);
    c.space = synth_tag_space(c.view, false, &error);
    assert_no_error(error);
    g_autofree double *ratio = g_new(double, c.view->n_devices);
    for (uint32_t j = 0; j < c.view->n_devices; j++)
        ratio[j] = 1.0 / c.view->n_devices;
    c.quick =
        sim_quick_new(c.graph, c.view, ratio, c.space->n_groups, c.space->group, &error);
    assert_no_error(error);
    c.group = g_new0(uint16_t, graph_n_ops(c.graph));
    c.time_s = g_new0(double, graph_n_ops(c.graph));
    for (OpId id = 0; id < graph_n_ops(c.graph); id++)
        c.time_s[id] = 1e-12 + sim_quick_place_s(c.quick, c.space->single[0], id, 0);
    c.work = (TagWork){.graph = c.graph,
                       .batch = c.batch,
                       .n_groups = 1,
                       .group = c.group,
                       .time_s = c.time_s};
    return c;
}

/* Some of the actions, data parallelism first. */
static inline void keep_actions(TagSpace *space, GRand *rand, uint32_t n_actions)
{
    for (uint32_t s = 1; s < space->n_actions; s++) {
        const uint32_t other = draw(rand, 1, space->n_actions - 1);
        const TagAction kept = space->action[s];
        space->action[s] = space->action[other];
        space->action[other] = kept;
    }
    space->n_actions = MIN(space->n_actions, n_actions);
}

/* Random groups of ops, and some of the actions, data parallelism first. memory_kib: of a device;
 * 0: room for everything. */
static inline Case case_within(GRand *rand, uint32_t n_groups, uint32_t n_machines,
                               uint32_t n_actions, double memory_kib)
{
    enum { MUCH = 1 << 14, MORE = 1 << 20 };
    Graph *graph = random_graph(rand, draw(rand, 2, 4));
    const double room = draw(rand, 0, 1) ? MUCH : MORE;
    Case c = case_of(
        graph, random_cluster_of(rand, n_machines, memory_kib > 0 ? memory_kib : room));
    keep_actions(c.space, rand, n_actions);
    for (OpId id = 0; id < graph_n_ops(c.graph); id++)
        c.group[id] = (uint16_t)(id < n_groups ? id : draw(rand, 0, n_groups - 1));
    c.work.n_groups = n_groups;
    return c;
}

static inline Case case_new(GRand *rand, uint32_t n_groups, uint32_t n_machines,
                            uint32_t n_actions)
{
    return case_within(rand, n_groups, n_machines, n_actions, 0);
}

static inline TagResult run_search(const Case *c, TagMethod method,
                                   TagObjective objective, uint32_t evaluations,
                                   uint64_t seed)
{
    const TagSearch search = {.method = method,
                              .objective = objective,
                              .evaluations = evaluations,
                              .leave = true,
                              .seed = seed};
    TagResult result = {0};
    synth_tag_search(c->space, &c->work, c->quick, &search, NULL, 0, &result);
    return result;
}

#endif
