/* The Transformer (Vaswani et al. 2017) in TAG's version (INFOCOM'22, Table 3): encoder and
 * decoder, post-norm, constant sinusoids; attention applies relu to queries, keys and values and
 * does not project its output; the head is not tied, and labels are smoothed by 0.1. */
#include "data/models/models.h"

static const double SMOOTHING = 0.1;

/* relu(x w + b) by head. `out`: the dims of the weight before the features. */
static TensorId project(const Layer *l, OpKind kind, const char *part, TensorId x,
                        uint32_t rank, const uint32_t *out)
{
    g_autofree char *relu = g_strdup_printf("%s.relu", part);
    return layer_unary(l, OP_RELU, relu,
                       layer_project(l, kind, part, x, rank, out, true));
}

static TensorId add_norm(const TransformerLayer *l, const char *part, TensorId x,
                         TensorId y)
{
    g_autofree char *norm = g_strdup_printf("%s.norm", part);
    return layer_norm_as(&l->base, NORM_LAYER, norm, transformer_residual(l, part, x, y));
}

/* x attends to `memory`, which is x itself or the encoder's output. */
static TensorId attend(const TransformerLayer *l, const char *part, TensorId x,
                       TensorId memory, bool causal)
{
    g_autofree char *q = g_strdup_printf("%s.q", part);
    g_autofree char *kv = g_strdup_printf("%s.kv", part);
    g_autofree char *group = g_strdup_printf("%s.group", part);
    g_autofree char *merged = g_strdup_printf("%s.merge", part);
    const uint32_t size = l->hidden / l->heads;
    const TensorId in[] = {
        project(&l->base, OP_Q_PROJ, q, x, 3, (uint32_t[]){l->heads, 1, size}),
        project(&l->base, OP_KV_PROJ, kv, memory, 2, (uint32_t[]){l->heads, 2 * size})};
    g_autofree char *values =
        g_strdup_printf("V=%u,Q=%u,K=%u", size, graph_tensor(l->base.graph, x)->dim[1],
                        graph_tensor(l->base.graph, memory)->dim[1]);
    TensorId y = layer_op(&l->base, OP_GROUPED_ATTENTION, part,
                          (OpAttr){.causal = causal}, 2, in, values);
    g_autofree char *head = g_strdup_printf("n=%u", size);
    g_autofree char *all = g_strdup_printf("n=%u", l->hidden);
    y = layer_op(&l->base, OP_MERGE, group, (OpAttr){0}, 1, &y, head);
    y = layer_op(&l->base, OP_MERGE, merged, (OpAttr){0}, 1, &y, all);
    return add_norm(l, part, x, y);
}

static TensorId translation_feed_forward(const TransformerLayer *l, TensorId x)
{
    TensorId y = layer_linear(&l->base, "ffn.up", x, l->ffn, true);
    y = layer_unary(&l->base, OP_RELU, "ffn.relu", y);
    return add_norm(l, "ffn", x, layer_linear(&l->base, "ffn.down", y, l->hidden, true));
}

static TensorId embed(Graph *graph, const ModelParams *params, const char *side,
                      uint32_t vocab, double dropout)
{
    const uint32_t batch = model_size(params, "global_batch"),
                   seq = model_size(params, "seq"), hidden = model_size(params, "hidden");
    g_autofree char *ids = g_strdup_printf("%s.ids", side);
    g_autofree char *weight = g_strdup_printf("%s.embedding.weight", side);
    g_autofree char *name = g_strdup_printf("%s.embedding", side);
    g_autofree char *position = g_strdup_printf("%s.position", side);
    g_autofree char *placed = g_strdup_printf("%s.placed", side);
    g_autofree char *dropped = g_strdup_printf("%s.dropout", side);
    const TensorId in[] = {
        graph_input(graph, ids, DTYPE_I64, 2, (uint32_t[]){batch, seq}),
        graph_parameter(graph, weight, 2, (uint32_t[]){vocab, hidden})};
    TensorId x = graph_op(graph, OP_EMBEDDING, name, (OpAttr){0}, 2, in, NULL);
    const TensorId sinusoids =
        graph_input(graph, position, DTYPE_F32, 2, (uint32_t[]){seq, hidden});
    x = graph_op(graph, OP_ADD_ROWS, placed, (OpAttr){0}, 2, (TensorId[]){x, sinusoids},
                 NULL);
    return model_dropout(graph, dropped, x, dropout);
}

TensorId model_tag_transformer(Graph *graph, const ModelParams *params)
{
    const uint32_t layers = model_size(params, "layers"),
                   target = model_size(params, "vocab_out");
    TransformerLayer l = {.base.graph = graph,
                          .hidden = model_size(params, "hidden"),
                          .heads = model_size(params, "heads"),
                          .ffn = model_size(params, "ffn")};
    const double dropout = model_param(params, "dropout");
    graph_layer(graph, "embedding");
    TensorId memory =
        embed(graph, params, "source", model_size(params, "vocab"), dropout);
    for (uint32_t i = 0; i < layers; i++) {
        g_autofree char *name = g_strdup_printf("encoder.%u", i);
        graph_layer(graph, name);
        l.base.name = name;
        memory =
            translation_feed_forward(&l, attend(&l, "attention", memory, memory, false));
    }
    graph_layer(graph, "decoder");
    TensorId x = embed(graph, params, "target", target, dropout);
    for (uint32_t i = 0; i < layers; i++) {
        g_autofree char *name = g_strdup_printf("decoder.%u", i);
        graph_layer(graph, name);
        l.base.name = name;
        x = attend(&l, "attention", x, x, true);
        x = translation_feed_forward(&l, attend(&l, "memory", x, memory, false));
    }
    graph_layer(graph, "head");
    x = model_linear(graph, "head", x, target, true);
    const Tensor logits = *graph_tensor(graph, x);
    const TensorId labels = graph_input(graph, "labels", DTYPE_I64, 2, logits.dim);
    x = model_unary(graph, OP_LOG_SOFTMAX, "log_softmax", x);
    return graph_op(graph, OP_SMOOTH_NLL_SUM, "loss", (OpAttr){.scale = SMOOTHING}, 2,
                    (TensorId[]){x, labels}, NULL);
}
