/* Pieces shared by builders. */
#include "data/base/assert.h"
#include "data/base/names.h"
#include "data/models/models.h"

#include "data/base/error.h"

double model_param(const ModelParams *params, const char *key)
{
    const ModelParam *param = NAME_ROW(params->param, params->n, key, key);
    return param->value;
}

uint32_t model_size(const ModelParams *params, const char *key)
{
    return (uint32_t)model_param(params, key);
}

TensorId model_unary(Graph *graph, OpKind kind, const char *name, TensorId x)
{
    return graph_op(graph, kind, name, (OpAttr){0}, 1, &x, NULL);
}

TensorId model_dropout(Graph *graph, const char *name, TensorId x, double rate)
{
    KILTER_ASSERT(rate >= 0 && rate < 1);
    if (rate == 0)
        return x;
    OpAttr attr = {.rate = rate, .seed = graph_n_ops(graph)};
    return graph_op(graph, OP_DROPOUT, name, attr, 1, &x, NULL);
}

TensorId model_linear(Graph *graph, const char *name, TensorId x, uint32_t n, bool bias)
{
    KILTER_ASSERT(n > 0);
    const Tensor in = *graph_tensor(graph, x);
    g_autofree char *weight_name = g_strdup_printf("%s.weight", name);
    g_autofree char *bias_name = g_strdup_printf("%s.bias", name);
    TensorId operand[3] = {
        x, graph_parameter(graph, weight_name, 2, (uint32_t[]){n, in.dim[in.rank - 1]})};
    if (bias)
        operand[2] = graph_parameter(graph, bias_name, 1, &n);
    return graph_op(graph, OP_LINEAR, name, (OpAttr){0}, bias ? 3 : 2, operand, NULL);
}

TensorId model_loss(Graph *graph, TensorId logits, TensorId labels)
{
    TensorId log_p = model_unary(graph, OP_LOG_SOFTMAX, "log_softmax", logits);
    return graph_op(graph, OP_NLL_SUM, "loss", (OpAttr){0}, 2,
                    (TensorId[]){log_p, labels}, NULL);
}

TensorId model_sharded_loss(Graph *graph, TensorId logits, TensorId labels)
{
    const OpAttr none = {0};
    TensorId t = graph_op(graph, OP_LABEL_LOGIT, "label_logit", none, 2,
                          (TensorId[]){logits, labels}, NULL);
    TensorId s =
        graph_op(graph, OP_SUM_EXP, "sum_exp", none, 2, (TensorId[]){logits, t}, NULL);
    TensorId z =
        graph_op(graph, OP_LOG_SUM_EXP, "log_sum_exp", none, 2, (TensorId[]){s, t}, NULL);
    return graph_op(graph, OP_CROSS_ENTROPY, "loss", none, 3,
                    (TensorId[]){logits, labels, z}, NULL);
}

/* Patches are a convolution whose windows do not overlap. */
TensorId model_image_tokens(Graph *graph, TensorId x, uint32_t patch, uint32_t hidden)
{
    KILTER_ASSERT(patch > 0);
    const Tensor image = *graph_tensor(graph, x);
    const uint32_t edge = image.dim[2] / patch;
    TensorId w = graph_parameter(graph, "patch.weight", 4,
                                 (uint32_t[]){hidden, image.dim[1], patch, patch});
    TensorId b = graph_parameter(graph, "patch.bias", 1, &hidden);
    g_autofree char *extents = g_strdup_printf("P=%u,Q=%u", edge, edge);
    x = graph_op(graph, OP_CONV2D, "patch", (OpAttr){.stride = patch}, 3,
                 (TensorId[]){x, w, b}, extents);
    g_autofree char *merged = g_strdup_printf("n=%u", edge * edge);
    x = graph_op(graph, OP_MERGE, "patch.flatten", (OpAttr){0}, 1, &x, merged);
    x = model_unary(graph, OP_TRANSPOSE, "patch.tokens", x);
    const uint32_t tokens[] = {edge * edge + 1, hidden};
    const TensorId token = graph_parameter(graph, "class_token", 1, &hidden);
    g_autofree char *all = g_strdup_printf("T=%u", *tokens);
    x = graph_op(graph, OP_APPEND_TOKEN, "tokens", (OpAttr){0}, 2, (TensorId[]){x, token},
                 all);
    const TensorId position = graph_parameter(graph, "position", 2, tokens);
    return graph_op(graph, OP_ADD_ROWS, "embedding", (OpAttr){0}, 2,
                    (TensorId[]){x, position}, NULL);
}

bool model_sizes_fit(const char *spec, const Graph *graph, const char *documents,
                     GError **error)
{
    double all = 0, packed = !documents;
    ops_each (op, id, graph) {
        if (documents && op_kind_is_attention(op->kind) && op->attr.causal && packed >= 0)
            packed = op->attr.documents ? 1 : -1;
    }
    if (packed <= 0)
        return refuse(error, "model '%s': documents: expected causal attention=fused",
                      spec);
    bool trains = false, any = false;
    tensors_each (tensor, t, graph) {
        any |= tensor->role == ROLE_PARAMETER;
        trains |= tensor->role == ROLE_PARAMETER && !tensor->frozen;
        const double elements = tensor_size(tensor);
        if (elements > 0x1p53)
            return refuse(
                error, "model '%s': %s would have %.3g elements, expected at most 2^53",
                spec, tensor->name, elements);
        all += elements;
    }
    if (any && !trains)
        return refuse(error,
                      "model '%s': train: expected layers of the model with parameters, "
                      "or a target that is part of the name of a product's weights",
                      spec);
    return all <= 0x1p58 || refuse(error,
                                   "model '%s': its tensors would have %.3g elements "
                                   "together, expected at most 2^58",
                                   spec, all);
}
