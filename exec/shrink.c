/* The comparison of models by their structure, and what can be run in plain C. */
#include "exec/shrink.h"

#include <string.h>

/* Whether two ops compute the same but for extents. The step of a window and the slots of an expert
 * follow these. */
static bool same_meaning(const Op *a, const Op *b)
{
    const OpAttr *x = &a->attr, *y = &b->attr;
    return a->pass == b->pass && a->of == b->of && a->layer == b->layer &&
           x->causal == y->causal && x->alibi == y->alibi && x->sigmoid == y->sigmoid &&
           x->normalised == y->normalised && (x->rate > 0) == (y->rate > 0) &&
           (x->window > 0) == (y->window > 0) && (x->span > 0) == (y->span > 0) &&
           (x->top_groups > 0) == (y->top_groups > 0);
}

/* Muon of a tall matrix differs in its work only. */
static OpKind kind_of(const Op *op)
{
    return op->kind == OP_MUON_TALL          ? OP_MUON
           : op->kind == OP_MUON_TALL_MASTER ? OP_MUON_MASTER
                                             : op->kind;
}

static bool same_tensor(const Tensor *a, const Tensor *b)
{
    return a->role == b->role && a->dtype == b->dtype && a->rank == b->rank &&
           a->whole == b->whole && a->frozen == b->frozen && a->producer == b->producer &&
           a->of == b->of && strcmp(a->name, b->name) == 0;
}

bool exec_same_structure(const Graph *a, const Graph *b, GError **error)
{
    if (graph_n_ops(a) != graph_n_ops(b) || graph_n_tensors(a) != graph_n_tensors(b))
        return refuse(error, "%s has %u ops on %u tensors, %s has %u on %u",
                      graph_name(a), graph_n_ops(a), graph_n_tensors(a), graph_name(b),
                      graph_n_ops(b), graph_n_tensors(b));
    for (OpId id = 0; id < graph_n_ops(a); id++) {
        const Op *x = graph_get_op(a, id), *y = graph_get_op(b, id);
        if (kind_of(x) != kind_of(y) || strcmp(x->name, y->name) != 0 ||
            !(x->n_in == y->n_in && x->n_out == y->n_out &&
              memcmp(x->in, y->in, x->n_in * sizeof *x->in) == 0 &&
              memcmp(x->out, y->out, x->n_out * sizeof *x->out) == 0) ||
            !same_meaning(x, y))
            return refuse(error, "op %s is not op %s", x->name, y->name);
    }
    for (TensorId t = 0; t < graph_n_tensors(a); t++)
        if (!same_tensor(graph_tensor(a, t), graph_tensor(b, t)))
            return refuse(error, "tensor %s is not tensor %s", graph_tensor(a, t)->name,
                          graph_tensor(b, t)->name);
    return true;
}

bool exec_is_small(const Graph *graph, double most, GError **error)
{
    const double elements = sum_over(double, t, graph_n_tensors(graph),
                                     (double)tensor_elements(graph_tensor(graph, t)));
    return elements <= most ||
           refuse(error,
                  "%s has %.3g elements in all tensors, as small as it gets: expected "
                  "at most %.3g to run it in float64",
                  graph_name(graph), elements, most);
}
