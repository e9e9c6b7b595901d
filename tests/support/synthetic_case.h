/* Cases of workloads given by durations: data parallelism with equal shares, for tests. */
#ifndef KILTER_TESTS_SUPPORT_SYNTHETIC_CASE_H
#define KILTER_TESTS_SUPPORT_SYNTHETIC_CASE_H

#include "data/data.h"
#include "sim/sim.h"
#include "tests/test.h"

typedef struct {
    Graph *graph;
    Cluster *cluster;
    ClusterView *view;
    Plan *plan;
    SimOptions options;
} Case;

/* Every input that has a batch sharded on it, every parameter replicated, gradients
 * reduced after the backward: data parallelism with equal shares. */
static inline Form form_of(const Graph *graph, const Op *op, uint32_t operand)
{
    const bool output = operand >= op->n_in;
    const Tensor *tensor =
        graph_tensor(graph, output ? op->out[operand - op->n_in] : op->in[operand]);

    if (op->pass == PASS_UPDATE || tensor->role == ROLE_PARAMETER)
        return FORM_IDENTITY;
    if (tensor->rank == 0)
        return output ? FORM_REDUCE : FORM_IDENTITY;
    return op->kind == OP_SUM_ROWS && output ? FORM_REDUCE : FORM_GATHER0;
}

static inline void add_ops(Program *program, const Graph *graph, bool updates)
{
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const Op *op = graph_get_op(graph, id);
        Form form[OP_MAX_OPERANDS];
        if ((op->pass == PASS_UPDATE) != updates)
            continue;
        for (uint32_t i = 0; i < op->n_in + op->n_out; i++)
            form[i] = form_of(graph, op, i);
        program_compute(program, id, form, op->n_in + op->n_out);
    }
}

/* Adds a conversion of each parameter's gradient. */
static inline void add_collectives(Program *program, const Graph *graph, Collective kind,
                                   Form from, Form to)
{
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        if (graph_tensor(graph, t)->role == ROLE_PARAMETER)
            program_collective(program, kind, graph_gradient(graph, t), from, to);
}

/* Gradients are all-reduced, or reduce-scattered and then gathered by the kind `then`. */
static inline Program *data_parallel(const Graph *graph, Collective kind, Collective then)
{
    Program *program = program_new();

    for (TensorId t = 0; t < graph_n_tensors(graph); t++) {
        const Tensor *tensor = graph_tensor(graph, t);
        const bool batch = tensor->role == ROLE_INPUT && tensor->rank > 0;
        if (tensor->producer == GRAPH_NONE)
            program_load(program, t, batch ? FORM_GATHER0 : FORM_IDENTITY);
    }
    add_ops(program, graph, false);
    const bool scatters = kind != COLLECTIVE_ALL_REDUCE;
    add_collectives(program, graph, kind, FORM_REDUCE,
                    scatters ? FORM_GATHER0 : FORM_IDENTITY);
    if (scatters)
        add_collectives(program, graph, then, FORM_GATHER0, FORM_IDENTITY);
    add_ops(program, graph, true);
    return program;
}

/* The case takes the cluster. */
static inline Case case_on(const char *model, Cluster *cluster, Granularity granularity)
{
    g_autoptr(GError) error = NULL;
    Case c;

    c.cluster = cluster;
    c.view = cluster_view(c.cluster, granularity);
    const uint32_t n = c.view->n_devices;
    c.graph = model_build(model, n, NULL, &error);
    assert_no_error(error);
    c.plan = plan_new();
    c.plan->program = data_parallel(c.graph, COLLECTIVE_ALL_REDUCE, COLLECTIVES);
    c.plan->n_devices = n;
    c.plan->n_segments = 1;
    c.plan->ratio = g_new(double, n);
    for (uint32_t j = 0; j < n; j++)
        c.plan->ratio[j] = 1.0 / n;
    c.plan->n_ops = graph_n_ops(c.graph);
    c.plan->segment = g_new0(uint16_t, c.plan->n_ops);
    sim_options_init(&c.options);
    return c;
}

static inline Case new_case(const char *model, const char *cluster)
{
    g_autoptr(GError) error = NULL;
    Cluster *loaded = cluster_load(cluster, &error);
    assert_no_error(error);
    return case_on(model, loaded, GRANULARITY_MACHINE);
}

static inline void free_case(Case *c)
{
    plan_free(c->plan);
    cluster_view_free(c->view);
    cluster_free(c->cluster);
    graph_free(c->graph);
}

static inline SimReport *evaluate(const Case *c)
{
    g_autoptr(GError) error = NULL;
    SimReport *report =
        sim_evaluate_with(c->plan, c->graph, c->view, "flow", &c->options, &error);

    assert_no_error(error);
    return report;
}

static inline void set(Case *c, const char *key, const char *value)
{
    g_autoptr(GError) error = NULL;

    sim_options_set(&c->options, key, value, &error);
    assert_no_error(error);
}

#endif
