/* Transformer models: ViT (Dosovitskiy et al. 2020) and BERT (Devlin et al. 2018), also with
 * mixture-of-experts layers: GShard's (Lepikhin et al. 2020) and Switch Transformer's (Fedus et al.
 * 2021). Layers are post-norm encoder layers, as in the benchmarks of HAP and HiDup. */
#include "data/models/models.h"

#include <math.h>

TensorId transformer_residual(const TransformerLayer *layer, const char *part, TensorId x,
                              TensorId y)
{
    g_autofree char *dropout = g_strdup_printf("%s.dropout", part);
    g_autofree char *add = g_strdup_printf("%s.residual", part);
    return layer_add(&layer->base, add, x,
                     layer_dropout(&layer->base, dropout, y, layer->dropout));
}

/* dropout(y) + x, then layer norm. */
static TensorId residual(const TransformerLayer *layer, const char *part,
                         const char *norm, TensorId x, TensorId y)
{
    return layer_norm_as(&layer->base, NORM_LAYER, norm,
                         transformer_residual(layer, part, x, y));
}

/* `dropout` applies to the probabilities. */
static TensorId transformer_attention(const TransformerLayer *layer, TensorId x,
                                      double dropout)
{
    Graph *graph = layer->base.graph;
    uint32_t hidden = layer->hidden, heads = layer->heads;
    uint32_t size = hidden / heads, seq = graph_tensor(graph, x)->dim[1];
    TensorId w = layer_parameter(&layer->base, "attention.qkv.weight", 4,
                                 (uint32_t[]){3, heads, size, hidden});
    if (layer->whole_heads)
        graph_keep_whole(graph, w, 1);
    TensorId b = layer_parameter(&layer->base, "attention.qkv.bias", 3,
                                 (uint32_t[]){3, heads, size});
    TensorId y = layer_op(&layer->base, OP_QKV, "attention.qkv", (OpAttr){0}, 3,
                          (TensorId[]){x, w, b}, NULL);
    g_autofree char *extents = g_strdup_printf("K=%u", seq);
    const OpAttr attr = {
        .causal = layer->causal, .rate = dropout, .seed = graph_n_ops(graph)};
    y = layer_op(&layer->base, OP_ATTENTION, "attention", attr, 1, &y, extents);
    w = layer_parameter(&layer->base, "attention.out.weight", 3,
                        (uint32_t[]){hidden, heads, size});
    b = layer_parameter(&layer->base, "attention.out.bias", 1, &hidden);
    return layer_op(&layer->base, OP_OUT_PROJ, "attention.out", (OpAttr){0}, 3,
                    (TensorId[]){y, w, b}, NULL);
}

/* `dropout` applies after the activation. */
static TensorId transformer_feed_forward(const TransformerLayer *layer, TensorId x,
                                         double dropout)
{
    x = layer_linear(&layer->base, "ffn.up", x, layer->ffn, true);
    x = layer_unary(&layer->base, OP_GELU, "ffn.gelu", x);
    x = layer_dropout(&layer->base, "ffn.gelu.dropout", x, dropout);
    return layer_linear(&layer->base, "ffn.down", x, layer->hidden, true);
}

TensorId transformer_pre_norm_layer(const TransformerLayer *layer, TensorId x)
{
    TensorId y = transformer_attention(
        layer, layer_norm_as(&layer->base, NORM_LAYER, "norm1", x), layer->dropout);
    x = transformer_residual(layer, "attention", x, y);
    y = transformer_feed_forward(layer,
                                 layer_norm_as(&layer->base, NORM_LAYER, "norm2", x), 0);
    return transformer_residual(layer, "ffn", x, y);
}

/* The number of slots of an expert for one group of tokens: top-2 routing sends two copies of each
 * (GShard Sec. 2.2). */
static uint32_t expert_capacity(const ModelParams *params, OpKind gate, uint32_t tokens)
{
    const double copies = gate == OP_GATE_TOP2 ? 2 : 1;
    double slots = model_param(params, "capacity_factor") * copies * tokens /
                   model_size(params, "experts");
    return (uint32_t)fmax(1, ceil(slots - 1e-9));
}

/* Reshapes the tokens of `batch` sequences or groups to `groups` groups. */
static TensorId regroup(const TransformerLayer *layer, const char *part, TensorId x,
                        uint32_t groups)
{
    const Tensor in = *graph_tensor(layer->base.graph, x);
    g_autofree char *extents =
        g_strdup_printf("b=%u,T=%u,D=%u", groups,
                        (uint32_t)((uint64_t)in.dim[0] * in.dim[1] / groups), in.dim[2]);
    return in.dim[0] == groups
               ? x
               : layer_op(&layer->base, OP_RESHAPE, part, (OpAttr){0}, 1, &x, extents);
}

/* Tokens are routed in groups of `moe_group` sequences, which share the experts' slots: GShard's
 * groups (Sec. 2.2). In DeepSpeed all tokens of a GPU are one group. */
static TensorId mixture_of_experts(const TransformerLayer *layer,
                                   const ModelParams *params, OpKind gate_kind,
                                   TensorId x)
{
    Graph *graph = layer->base.graph;
    uint32_t hidden = layer->hidden, ffn = layer->ffn;
    uint32_t experts = model_size(params, "experts");
    const uint32_t batch = graph_tensor(graph, x)->dim[0];
    x = regroup(layer, "moe.group", x, batch / model_size(params, "moe_group"));
    TensorId logits = layer_linear(&layer->base, "moe.gate", x, experts, false);
    g_autofree char *extents = g_strdup_printf(
        "C=%u", expert_capacity(params, gate_kind, graph_tensor(graph, x)->dim[1]));
    TensorId weights = layer_op(&layer->base, gate_kind, "moe.routing", (OpAttr){0}, 1,
                                &logits, extents);
    TensorId mask = weights + 1;
    TensorId y = layer_binary(&layer->base, OP_MOE_DISPATCH, "moe.dispatch", mask, x);
    TensorId w = layer_parameter(&layer->base, "moe.up.weight", 3,
                                 (uint32_t[]){experts, hidden, ffn});
    y = layer_binary(&layer->base, OP_EXPERT, "moe.up", y, w);
    y = layer_unary(&layer->base, OP_RELU, "moe.relu", y);
    w = layer_parameter(&layer->base, "moe.down.weight", 3,
                        (uint32_t[]){experts, ffn, hidden});
    y = layer_binary(&layer->base, OP_EXPERT, "moe.down", y, w);
    y = layer_binary(&layer->base, OP_MOE_COMBINE, "moe.combine", y, weights);
    return regroup(layer, "moe.ungroup", y, batch);
}

/* Encoder layers; with a gate every `moe_every`-th has experts for the feed-forward network. */
static TensorId encoder(Graph *graph, const ModelParams *params, TensorId x, OpKind gate)
{
    const uint32_t moe_every = gate == OP_KINDS ? 0 : model_size(params, "moe_every");
    for (uint32_t i = 0; i < model_size(params, "layers"); i++) {
        g_autofree char *name = g_strdup_printf("layers.%u", i);
        const TransformerLayer layer = {.base = {.graph = graph, .name = name},
                                        .hidden = model_size(params, "hidden"),
                                        .heads = model_size(params, "heads"),
                                        .ffn = model_size(params, "ffn"),
                                        .dropout = model_param(params, "dropout")};
        graph_layer(graph, name);
        x = residual(&layer, "attention", "norm1", x,
                     transformer_attention(&layer, x, 0));
        if (moe_every && i % moe_every == moe_every - 1)
            x = residual(&layer, "moe", "norm2", x,
                         mixture_of_experts(&layer, params, gate, x));
        else
            x = residual(&layer, "ffn", "norm2", x,
                         transformer_feed_forward(&layer, x, layer.dropout));
    }
    return x;
}

static TensorId vit(Graph *graph, const ModelParams *params, OpKind gate)
{
    uint32_t batch = model_size(params, "global_batch"),
             image = model_size(params, "image");
    TensorId x =
        graph_input(graph, "x", DTYPE_F32, 4, (uint32_t[]){batch, 3, image, image});
    TensorId labels = graph_input(graph, "labels", DTYPE_I64, 1, &batch);
    graph_layer(graph, "embedding");
    x = model_image_tokens(graph, x, model_size(params, "patch"),
                           model_size(params, "hidden"));
    x = model_dropout(graph, "embedding.dropout", x, model_param(params, "dropout"));
    x = encoder(graph, params, x, gate);
    graph_layer(graph, "head");
    x = graph_op(graph, OP_TAKE_TOKEN, "class", (OpAttr){0}, 1, &x, NULL);
    x = model_linear(graph, "head", x, model_size(params, "classes"), true);
    return model_loss(graph, x, labels);
}

/* The positional encoding is a constant, as in HAP's benchmark. */
static TensorId bert(Graph *graph, const ModelParams *params, OpKind gate)
{
    uint32_t batch = model_size(params, "global_batch"), seq = model_size(params, "seq");
    uint32_t hidden = model_size(params, "hidden"), vocab = model_size(params, "vocab");
    TensorId ids = graph_input(graph, "ids", DTYPE_I64, 2, (uint32_t[]){batch, seq});
    TensorId labels =
        graph_input(graph, "labels", DTYPE_I64, 2, (uint32_t[]){batch, seq});
    TensorId position =
        graph_input(graph, "position", DTYPE_F32, 2, (uint32_t[]){seq, hidden});
    graph_layer(graph, "embedding");
    TensorId table =
        graph_parameter(graph, "embedding.weight", 2, (uint32_t[]){vocab, hidden});
    TensorId x = graph_op(graph, OP_EMBEDDING, "embedding", (OpAttr){0}, 2,
                          (TensorId[]){ids, table}, NULL);
    x = graph_op(graph, OP_ADD_ROWS, "embedding.position", (OpAttr){0}, 2,
                 (TensorId[]){x, position}, NULL);
    x = model_dropout(graph, "embedding.dropout", x, model_param(params, "dropout"));
    x = encoder(graph, params, x, gate);
    graph_layer(graph, "decoder");
    x = model_linear(graph, "decoder", x, vocab, true);
    return model_loss(graph, x, labels);
}

/* The models by name: HAP's, and HiDup's with experts in every other layer. */
#define MODEL(name, build, gate)                                   \
    TensorId model_##name(Graph *graph, const ModelParams *params) \
    {                                                              \
        return build(graph, params, gate);                         \
    }
MODEL(bert_base, bert, OP_KINDS)
MODEL(bert_sgmoe, bert, OP_GATE_TOP2)
MODEL(bert_switch, bert, OP_GATE_TOP1)
MODEL(vit, vit, OP_KINDS)
MODEL(vit_sgmoe, vit, OP_GATE_TOP2)
MODEL(vit_switch, vit, OP_GATE_TOP1)

const char *model_transformer_check(const ModelParams *params)
{
    return model_size(params, "hidden") % model_size(params, "heads")
               ? "heads must divide hidden"
               : NULL;
}

static bool groups_fit(const ModelParams *params)
{
    return model_size(params, "global_batch") % model_size(params, "moe_group") == 0;
}

static const char GROUPS[] = "moe_group must divide the batch of all GPUs";

const char *model_bert_moe_check(const ModelParams *params)
{
    return groups_fit(params) ? model_transformer_check(params) : GROUPS;
}

const char *model_vit_moe_check(const ModelParams *params)
{
    return groups_fit(params) ? model_vit_check(params) : GROUPS;
}

const char *model_vit_check(const ModelParams *params)
{
    if (model_size(params, "image") % model_size(params, "patch"))
        return "patch must divide image";
    return model_transformer_check(params);
}
