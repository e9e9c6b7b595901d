/* A bound on the seconds of strategies with tensor parallelism inside machines.
 *
 * A device is busy with its part of the ops of each layer and microbatch, and, in the forward,
 * with messages among the devices that share the layer, for which later ops wait; those of the
 * backward may hide behind gradients of weights. Of each kind of devices a layer takes at least the
 * seconds of all of them, for the whole batch, with the microbatch and the number of devices that
 * take fewest. All devices divide these seconds (sim_divided_bound_s), whatever stages and replicas
 * are. Updates, other messages, waits and what runs again only add to them. */
#include <math.h>
#include <string.h>

#include "data/program/batch.h"
#include "synth/amp/steps.h"
#include "synth/spmd/spmd.h"

typedef struct {
    const Graph *graph;
    const ClusterView *view;
    const BatchForms *batch;
    DeviceKinds kinds;
    uint32_t ways, n_layers, n_sizes; /* ways: number of devices that share the layers */
    double *size; /* [n_sizes + 1]: of microbatches, rising; the last one is too many */
    double *pass; /* [(kind * n_layers + layer) * n_sizes + size]: of a microbatch */
    double *sent; /* [kind * n_layers + layer]: of the whole batch */
    const Instr **known; /* [op]: the last one like it that was added */
    double *rows;        /* [(op * kinds + kind) * n_sizes + size]: its seconds */
} Inside;

/* Seconds of all devices that share an op; parts of what they divide differ by a unit at most. */
static double inside_op_s(const Inside *in, const Instr *instr, const Rule *rule,
                          double samples, const Device *device)
{
    const Op *op = graph_get_op(in->graph, instr->op);
    double seconds = 0, units = in->ways;
    for (uint32_t k = 0; k < op->n_in + op->n_out; k++)
        if (form_is_gather(instr->form[k]))
            units =
                graph_tensor(in->graph, k < op->n_in ? op->in[k] : op->out[k - op->n_in])
                    ->units[form_dim(instr->form[k])];
    const double more = fmod(units, in->ways), n[] = {in->ways - more, more};
    for (uint32_t i = 0; i < 2; i++) {
        const SimOpShare has = {in->batch->form, samples / graph_batch(in->graph),
                                (floor(units / in->ways) + i) / units};
        if (n[i] > 0 && has.share > 0)
            seconds +=
                n[i] * sim_op_s(NULL, in->graph, in->view, instr->op, rule, has, device);
    }
    return seconds;
}

/* Adds an op to its layer. */
static void inside_add_op(const Inside *in, const Instr *instr)
{
    const Op *op = graph_get_op(in->graph, instr->op);
    const Instr **like = &in->known[graph_op_alike(in->graph, instr->op)];
    const uint32_t n = in->n_sizes;
    double *row = in->rows + (size_t)(like - in->known) * in->kinds.n * n;
    Rule rule;
    if (in->batch->loop[instr->op] < 0 || op->pass == PASS_UPDATE ||
        !op_rule_find(in->graph, instr->op, instr->form, &rule))
        return;
    const bool alike = *like && amp_computes_alike(in->graph, in->batch, *like, instr);
    for (uint32_t k = 0; k < in->kinds.n; k++, row += n) {
        double *pass = in->pass + ((size_t)k * in->n_layers + op->layer) * n;
        for (uint32_t i = 0; i < n; i++) {
            if (!alike)
                row[i] = inside_op_s(in, instr, &rule, in->size[i],
                                     &in->view->device[in->kinds.first[k]]);
            pass[i] += row[i];
        }
    }
    *like = instr;
}

/* Adds a message of the forward, with the bandwidth inside machines, if only the layer that makes
 * its tensor reads it. last: [tensor], the last layer that does. */
static void inside_add_message(const Inside *in, const Instr *instr, const uint32_t *last)
{
    const Tensor *tensor = graph_tensor(in->graph, instr->tensor);
    const Op *by =
        tensor->producer == GRAPH_NONE ? NULL : graph_get_op(in->graph, tensor->producer);
    if (!by || by->pass != PASS_FORWARD || last[instr->tensor] != by->layer ||
        !form_is_gather(in->batch->form[instr->tensor]) ||
        in->view->cluster->curves.n > 0)
        return;
    for (uint32_t k = 0; k < in->kinds.n; k++) {
        const Device *device = &in->view->device[in->kinds.first[k]];
        const LinkCost line = {
            0, in->view->cluster->machine[device->machine].inner.bandwidth};
        const double n = in->ways, all = n > 1 ? (double)tensor_bytes(tensor) : 0;
        in->sent[k * in->n_layers + by->layer] +=
            n * (1 - sim_overlap_part(device, instr->collective, in->ways)) *
            sim_collective_over(line, in->ways, instr->collective, all, 1 / n, 1 / n);
    }
}

/* Takes what layers cost in a program that shares them so, if it is less than the best [kind *
 * n_layers + layer]. Microbatches below the next size take no less than those of a size. */
static void inside_take(const Inside *in, const Program *program, const uint32_t *last,
                        double *best)
{
    const size_t n_rows = (size_t)in->kinds.n * in->n_layers;
    memset(in->pass, 0, n_rows * in->n_sizes * sizeof *in->pass);
    memset(in->sent, 0, n_rows * sizeof *in->sent);
    items_each (const Instr, instr, program->instr, program->n) {
        if (instr->kind == INSTR_COMPUTE)
            inside_add_op(in, instr);
        else if (instr->kind == INSTR_COLLECTIVE)
            inside_add_message(in, instr, last);
    }
    for (size_t i = 0; i < n_rows * in->n_sizes; i++) {
        const size_t row = i / in->n_sizes;
        const double most = in->size[i % in->n_sizes + 1] - 1;
        best[row] =
            fmin(best[row], graph_batch(in->graph) / most * in->pass[i] + in->sent[row]);
    }
}

double synth_amp_inside_bound_s(const Graph *graph, const ClusterView *view)
{
    enum { MOST = 128 }; /* all sizes up to it, then fewer */
    const uint32_t n = graph_batch(graph), n_layers = graph_n_layers(graph);
    g_autoptr(BatchForms) batch = batch_forms_of_microbatches(graph, NULL);
    g_auto(DeviceKinds) kinds = amp_kinds(view);
    const size_t n_rows = (size_t)kinds.n * n_layers;
    g_autofree double *size = g_new(double, n + 1), *best = g_new(double, n_rows),
                      *pass = g_new(double, n_rows *n), *sent = g_new(double, n_rows);
    g_autofree uint32_t *last = g_new0(uint32_t, graph_n_tensors(graph));
    g_autofree bool *sequence = g_new(bool, n_layers);
    const size_t n_ops = graph_n_ops(graph);
    g_autofree const Instr **known = g_new(const Instr *, n_ops);
    Inside in = {graph, view, batch, kinds, 1,     n_layers,
                 0,     size, pass,  sent,  known, NULL};
    for (uint32_t i = 1; i <= n; i += MAX(i / MOST, 1))
        size[in.n_sizes++] = i;
    size[in.n_sizes] = n + 1;
    g_autofree double *rows = in.rows = g_new(double, n_ops *kinds.n *in.n_sizes);
    for (size_t i = 0; i < n_rows; i++)
        best[i] = INFINITY;
    ops_each (op, id, graph) {
        for (uint32_t i = 0; op->pass == PASS_FORWARD && i < op->n_in; i++)
            last[op->in[i]] = MAX(last[op->in[i]], op->layer);
    }
    memset(sequence, true, n_layers);
    bool good = batch && !graph_is_timed(graph) && !graph_has_times(graph) &&
                !cluster_mixed(view->cluster);
    uint32_t most = 1; /* GPUs of a machine */
    items_each (const Machine, m, view->cluster->machine, view->cluster->n_machines)
        most = MAX(most, m->gpus);
    for (; good && in.ways <= most; in.ways++) {
        const uint32_t ways = MAX(in.ways, 2);
        g_autoptr(Program) plain = synth_megatron(graph, view, ways, NULL, false, NULL);
        g_autoptr(Program) along =
            in.ways > 1 ? synth_megatron(graph, view, ways, sequence, false, NULL) : NULL;
        memset(known, 0, n_ops * sizeof *known);
        good = plain != NULL;
        if (good)
            inside_take(&in, plain, last, best);
        if (along)
            inside_take(&in, along, last, best);
    }
    return good ? sim_divided_bound_s(&kinds, n_layers, best) : 0;
}
