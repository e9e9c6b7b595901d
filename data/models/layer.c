/* Pieces of layers: parameters, ops, norms, projections, each named by its layer. */
#include "data/base/assert.h"
#include "data/models/architecture.h"
#include "data/models/models.h"

static char *layer_named(const Layer *l, const char *part)
{
    return g_strdup_printf("%s.%s", l->name, part);
}

TensorId layer_parameter(const Layer *l, const char *part, uint32_t rank,
                         const uint32_t *dim)
{
    const uint32_t set = l->facts ? l->facts->shared : 0;
    g_autofree char *name = set ? g_strdup_printf("%sshared.%u.%s", l->side, set, part)
                                : layer_named(l, part);
    if (!set)
        return graph_parameter(l->graph, name, rank, dim);
    g_autofree char *tied = g_strdup_printf("%s.tied", name);
    const TensorId there = graph_find(l->graph, tied);
    return there != GRAPH_NONE ? there
                               : model_unary(l->graph, OP_TIED, tied,
                                             graph_parameter(l->graph, name, rank, dim));
}

TensorId layer_op(const Layer *l, OpKind kind, const char *part, OpAttr attr,
                  uint32_t n_in, const TensorId *in, const char *extents)
{
    g_autofree char *name = layer_named(l, part);
    return graph_op(l->graph, kind, name, attr, n_in, in, extents);
}

TensorId layer_unary(const Layer *l, OpKind kind, const char *part, TensorId x)
{
    return layer_op(l, kind, part, (OpAttr){0}, 1, &x, NULL);
}

TensorId layer_binary(const Layer *l, OpKind kind, const char *part, TensorId x,
                      TensorId y)
{
    return layer_op(l, kind, part, (OpAttr){0}, 2, (TensorId[]){x, y}, NULL);
}

TensorId layer_linear(const Layer *l, const char *part, TensorId x, uint32_t n, bool bias)
{
    return layer_project(l, OP_LINEAR, part, x, 1, &n, bias);
}

TensorId layer_dropout(const Layer *l, const char *part, TensorId x, double rate)
{
    g_autofree char *name = layer_named(l, part);
    return model_dropout(l->graph, name, x, rate);
}

TensorId layer_add(const Layer *l, const char *part, TensorId x, TensorId y)
{
    return layer_binary(l, OP_ADD, part, x, y);
}

/* An op on x and PART.weight [dim], and PART.bias with the first of these dims. */
static TensorId layer_weighted(const Layer *l, OpKind kind, const char *part, TensorId x,
                               uint32_t rank, const uint32_t *dim, uint32_t bias_rank)
{
    g_autofree char *weight = g_strdup_printf("%s.weight", part);
    g_autofree char *bias = g_strdup_printf("%s.bias", part);
    TensorId operand[] = {x, layer_parameter(l, weight, rank, dim), 0};
    if (bias_rank)
        operand[2] = layer_parameter(l, bias, bias_rank, dim);
    return layer_op(l, kind, part, (OpAttr){0}, bias_rank ? 3 : 2, operand, NULL);
}

TensorId layer_norm_as(const Layer *l, NormKind norm, const char *part, TensorId x)
{
    const bool rms = norm == NORM_RMS;
    const Tensor in = *graph_tensor(l->graph, x);
    return layer_weighted(l, rms ? OP_RMS_NORM : OP_LAYER_NORM, part, x, 1,
                          &in.dim[in.rank - 1], !rms);
}

TensorId layer_rms_norm(const Layer *l, const char *part, TensorId x)
{
    return layer_norm_as(l, NORM_RMS, part, x);
}

TensorId layer_norm(const Layer *l, const char *part, TensorId x)
{
    return layer_norm_as(l, l->a->norm, part, x);
}

TensorId layer_project(const Layer *l, OpKind kind, const char *part, TensorId x,
                       uint32_t rank, const uint32_t *out, bool bias)
{
    KILTER_ASSERT(rank < TENSOR_MAX_RANK);
    const Tensor in = *graph_tensor(l->graph, x);
    uint32_t dim[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        dim[d] = out[d];
    dim[rank] = in.dim[in.rank - 1];
    return layer_weighted(l, kind, part, x, rank + 1, dim, bias ? rank : 0);
}

TensorId layer_gate(const Layer *l, const char *part, TensorId y, TensorId g,
                    bool sigmoid)
{
    return layer_op(l, OP_GATE, part, (OpAttr){.sigmoid = sigmoid}, 2, (TensorId[]){y, g},
                    NULL);
}

TensorId layer_norm_of_all(const Layer *l, const char *part, TensorId x)
{
    const Tensor in = *graph_tensor(l->graph, x);
    const OpAttr attr = {.span = (uint32_t)dims_elements(in.dim, 2, in.rank)};
    g_autofree char *squares = g_strdup_printf("%s.squares", part);
    g_autofree char *weight = g_strdup_printf("%s.weight", part);
    const TensorId operand[] = {x, layer_unary(l, OP_SQUARES, squares, x),
                                layer_parameter(l, weight, in.rank - 2, in.dim + 2)};
    return layer_op(l, OP_NORM_BY, part, attr, 3, operand, NULL);
}

TensorId layer_join(const Layer *l, const char *part, TensorId x, TensorId y)
{
    const Tensor *a = graph_tensor(l->graph, x), *b = graph_tensor(l->graph, y);
    g_autofree char *extents =
        g_strdup_printf("C=%u", a->dim[a->rank - 1] + b->dim[b->rank - 1]);
    return layer_op(l, OP_JOIN, part, (OpAttr){0}, 2, (TensorId[]){x, y}, extents);
}

TensorId layer_concat(const Layer *l, const char *part, TensorId x, TensorId y)
{
    g_autofree char *extents = g_strdup_printf(
        "C=%u", graph_tensor(l->graph, x)->dim[1] + graph_tensor(l->graph, y)->dim[1]);
    return layer_op(l, OP_CONCAT, part, (OpAttr){0}, 2, (TensorId[]){x, y}, extents);
}

TensorId layer_out(const Layer *l, const char *part, TensorId y, uint32_t n, bool bias)
{
    const Tensor in = *graph_tensor(l->graph, y);
    const uint32_t dim[] = {n, in.dim[2], in.dim[3], in.dim[4]};
    return layer_weighted(l, OP_GROUPED_OUT, part, y, 4, dim, bias);
}
