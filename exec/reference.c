/* The reference: a single device runs a graph op by op. */
#include <string.h>

#include "exec/kernels/kernels.h"

void exec_run_op(const Graph *graph, OpId id, const ExecTensor *in, ExecTensor *out)
{
    g_assert(id < graph_n_ops(graph));
    const Op *op = graph_get_op(graph, id);
    for (uint32_t i = 0; i < op->n_out; i++) {
        const bool in_place = any_of(k, op->n_in, in[k].data == out[i].data);
        if (!in_place)
            memset(out[i].data, 0, exec_tensor_elements(&out[i]) * sizeof(double));
    }
    kernel_of(op->kind)(
        &(KernelCall){.graph = graph, .id = id, .op = op, .in = in, .out = out});
}

void exec_run_one(const Graph *graph, OpId id, ExecTensor *value)
{
    const Op *op = graph_get_op(graph, id);
    ExecTensor in[OP_MAX_IN], out[OP_MAX_OUT];
    for (uint32_t i = 0; i < op->n_in; i++)
        in[i] = value[op->in[i]];
    for (uint32_t i = 0; i < op->n_out; i++) {
        const Tensor *tensor = graph_tensor(graph, op->out[i]);
        out[i] = value[op->out[i]] = exec_tensor_new(tensor->rank, tensor->dim);
    }
    exec_run_op(graph, id, in, out);
}

void exec_run_graph(const Graph *graph, ExecTensor *value)
{
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        exec_run_one(graph, id, value);
}
