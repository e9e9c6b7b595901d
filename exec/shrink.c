/* The comparison of models by their structure, and what can be run in plain C. */
#include "exec/shrink.h"

#include <string.h>

static bool same_operands(const Op *a, const Op *b)
{
    return a->n_in == b->n_in && a->n_out == b->n_out &&
           memcmp(a->in, b->in, a->n_in * sizeof *a->in) == 0 &&
           memcmp(a->out, b->out, a->n_out * sizeof *a->out) == 0;
}

bool exec_same_structure(const Graph *a, const Graph *b, GError **error)
{
    if (graph_n_ops(a) != graph_n_ops(b) || graph_n_tensors(a) != graph_n_tensors(b))
        return refuse(error, "%s has %u ops on %u tensors, %s has %u on %u",
                      graph_name(a), graph_n_ops(a), graph_n_tensors(a), graph_name(b),
                      graph_n_ops(b), graph_n_tensors(b));
    for (OpId id = 0; id < graph_n_ops(a); id++) {
        const Op *x = graph_get_op(a, id), *y = graph_get_op(b, id);
        if (x->kind != y->kind || strcmp(x->name, y->name) != 0 || !same_operands(x, y))
            return refuse(error, "op %s is not op %s", x->name, y->name);
    }
    return true;
}

bool exec_is_small(const Graph *graph, GError **error)
{
    const double most = 0x1p27;
    double elements = 0;
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        elements += (double)tensor_elements(graph_tensor(graph, t));
    return elements <= most ||
           refuse(error,
                  "%s cannot be shrunk, and has %.3g elements in all tensors: expected "
                  "at most %.3g to run it in float64",
                  graph_name(graph), elements, most);
}
