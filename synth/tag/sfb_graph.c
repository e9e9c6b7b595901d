/* The problem of sufficient factor broadcasting that a training graph poses. Ops that the batch
 * cuts can be duplicated; inputs, parameters and tensors computed from parameters only are whole
 * everywhere. */
#include "synth/tag/sfb_graph.h"

#include "data/base/free.h"

#include <math.h>
#include <string.h>

/* Whether the op makes parts of the batch, or sums over the batch, from parts. */
static bool is_cut(const BatchForms *batch, OpId op)
{
    return batch->loop[op] >= 0;
}

/* The rule by which the batch cuts the op. */
static Rule rule_of(const Graph *graph, const BatchForms *batch, OpId op)
{
    Rule rule[OP_MAX_RULES];
    const uint32_t n = op_rules(graph, op, rule);
    for (uint32_t r = 0; r < n; r++)
        if (rule[r].loop == batch->loop[op])
            return rule[r];
    g_assert_not_reached();
}

/* Seconds of an op on the whole batch and on the shares, each on the slowest device. */
static void find_times(const Graph *graph, const BatchForms *batch, OpId op,
                       const ClusterView *view, const double *share, double *whole_s,
                       double *shared_s)
{
    const Rule rule = rule_of(graph, batch, op);
    SimWork work = {0};
    sim_work_op(NULL, graph, view, op, &rule, &work);
    *whole_s = *shared_s = 0;
    for (uint32_t j = 0; j < view->n_devices; j++) {
        *whole_s = fmax(*whole_s, sim_work_s(&work, &view->device[j], 1));
        if (share[j] > 0)
            *shared_s = fmax(*shared_s, sim_work_s(&work, &view->device[j], share[j]));
    }
}

static double all_reduce_s(const ClusterView *view, SfbPrices prices, double bytes,
                           double n)
{
    if (prices == SFB_KILTER)
        return sim_collective_s(view, COLLECTIVE_ALL_REDUCE, bytes, 1, 1);
    return 2 * (n - 1) / n * bytes / view->collective[COLLECTIVE_ALL_REDUCE].bandwidth;
}

static double broadcast_s(const ClusterView *view, SfbPrices prices, double bytes,
                          double most_share, double n)
{
    const double tau = view->collective[COLLECTIVE_ALL_REDUCE].bandwidth;
    if (prices == SFB_KILTER)
        return sim_collective_s(view, COLLECTIVE_ALL_GATHER, bytes, most_share, 1);
    return (prices == SFB_PAPER ? n - 1 : (n - 1) / n) * bytes / tau;
}

SfbCosts *synth_sfb_costs_new(const Graph *graph)
{
    SfbCosts *costs = g_new0(SfbCosts, 1);
    costs->compute_s = g_new0(double, graph_n_ops(graph) + 1);
    costs->saved_s = g_new0(double, graph_n_ops(graph) + 1);
    costs->broadcast_s = g_new0(double, graph_n_tensors(graph) + 1);
    return costs;
}

SfbCosts *synth_sfb_costs(const Graph *graph, const BatchForms *batch,
                          const ClusterView *view, const double *share, SfbPrices prices)
{
    SfbCosts *costs = synth_sfb_costs_new(graph);
    double most = 0, n = 0;
    for (uint32_t j = 0; j < view->n_devices; j++) {
        most = fmax(most, share[j]);
        n += share[j] > 0;
    }
    costs->each_reader = prices != SFB_KILTER;
    ops_each (op, id, graph) {
        double whole_s = INFINITY, shared_s = 0;
        if (is_cut(batch, id))
            find_times(graph, batch, id, view, share, &whole_s, &shared_s);
        costs->compute_s[id] = prices == SFB_KILTER
                                   ? whole_s - shared_s
                                   : (n - 1) * (is_cut(batch, id) ? shared_s : INFINITY);
        for (uint32_t o = 0; is_cut(batch, id) && o < op->n_out; o++)
            if (batch->form[op->out[o]] == FORM_REDUCE &&
                graph_is_parameter_gradient(graph, op->out[o]))
                costs->saved_s[id] += all_reduce_s(
                    view, prices, (double)tensor_bytes(graph_tensor(graph, op->out[o])),
                    n);
    }
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        costs->broadcast_s[t] = broadcast_s(
            view, prices, (double)tensor_bytes(graph_tensor(graph, t)), most, n);
    return costs;
}

FREE_DEFINE(synth_sfb_costs_free, SfbCosts, costs,
            free_each(costs->compute_s, costs->saved_s, costs->broadcast_s));

/* Solves the problem for each op's gradients alone; duplicated: out, the ops of all. */
static double solve_each(SfbProblem problem, bool *duplicated)
{
    const double *saved = problem.saved;
    g_autofree double *one_s = g_new0(double, problem.n_ops + 1);
    g_autofree bool *of_one = g_new(bool, problem.n_ops + 1);
    double value = 0;
    memset(duplicated, 0, problem.n_ops * sizeof *duplicated);
    problem.saved = one_s;
    for (uint32_t g = 0; g < problem.n_ops; g++) {
        if (saved[g] <= 0)
            continue;
        one_s[g] = saved[g];
        value += synth_sfb(&problem, of_one);
        one_s[g] = 0;
        for (uint32_t i = 0; i < problem.n_ops; i++)
            duplicated[i] |= of_one[i];
    }
    return value;
}

double synth_sfb_graph(const Graph *graph, const BatchForms *batch, const SfbCosts *costs,
                       bool *duplicated)
{
    g_autofree uint32_t *producer = g_new(uint32_t, graph_n_tensors(graph) + 1);
    g_autoptr(GArray) reads = g_array_new(FALSE, FALSE, sizeof(SfbRead));
    for (TensorId t = 0; t < graph_n_tensors(graph); t++) {
        const OpId made_by = graph_tensor(graph, t)->producer;
        producer[t] =
            made_by != GRAPH_NONE && is_cut(batch, made_by) ? made_by : SFB_NO_OP;
    }
    ops_each (op, id, graph) {
        for (uint32_t i = 0; is_cut(batch, id) && i < op->n_in; i++) {
            const SfbRead read = {id, op->in[i]};
            const bool again = any_of(k, i, op->in[k] == op->in[i]);
            if (!again)
                g_array_append_val(reads, read);
        }
    }
    const SfbProblem problem = {.n_ops = graph_n_ops(graph),
                                .n_tensors = graph_n_tensors(graph),
                                .n_reads = reads->len,
                                .compute = costs->compute_s,
                                .saved = costs->saved_s,
                                .producer = producer,
                                .broadcast = costs->broadcast_s,
                                .read = (const SfbRead *)(const void *)reads->data,
                                .each_reader = costs->each_reader};
    return -(costs->one_by_one ? solve_each(problem, duplicated)
                               : synth_sfb(&problem, duplicated));
}
