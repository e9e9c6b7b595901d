/* The generator of TransGAN (Jiang et al. 2021) as AMP trains it (NeurIPS'22, Sec. 4.3): `layers`
 * wide transformer layers, then as many narrow ones.
 *
 * Noise becomes bottom x bottom tokens of channels * windows * group (16 * 4 * 16 = 1024). After
 * the wide layers each token is unfolded (pixel shuffle) into `windows` windows of `group` tokens
 * of `channels`, and each token of a window is interpolated to `upsample`: 324 windows of 256
 * tokens of 16, an image of 288 x 288. The narrow layers attend within a window. With `whole_heads`
 * their heads are never sharded: AMP's tensor parallelism seems not to shard them, as in its
 * profile a narrow layer takes as long on 4 devices as on one. A cross-entropy over the three
 * colours stands for the discriminator's loss. */
#include "data/models/models.h"

enum { COLOURS = 3 };

static TensorId layers(Graph *graph, const ModelParams *params, const char *prefix,
                       uint32_t hidden, bool whole_heads, TensorId x)
{
    TransformerLayer layer = {.base.graph = graph,
                              .hidden = hidden,
                              .heads = model_size(params, "heads"),
                              .ffn = 4 * hidden,
                              .whole_heads = whole_heads,
                              .dropout = model_param(params, "dropout")};
    for (uint32_t i = 0; i < model_size(params, "layers"); i++) {
        g_autofree char *name = g_strdup_printf("%s.%u", prefix, i);
        layer.base.name = name;
        graph_layer(graph, name);
        x = transformer_pre_norm_layer(&layer, x);
    }
    return x;
}

static TensorId add_positions(Graph *graph, const char *name, TensorId x)
{
    const Tensor in = *graph_tensor(graph, x);
    g_autofree char *weight = g_strdup_printf("%s.weight", name);
    TensorId position =
        graph_parameter(graph, weight, 2, (uint32_t[]){in.dim[1], in.dim[2]});
    return graph_op(graph, OP_ADD_ROWS, name, (OpAttr){0}, 2, (TensorId[]){x, position},
                    NULL);
}

/* [batch, tokens, hidden] -> [batch * tokens * windows, group * upsample, channels]. The
 * interpolation is a constant matrix. */
static TensorId upsample(Graph *graph, const ModelParams *params, TensorId x)
{
    const Tensor in = *graph_tensor(graph, x);
    const uint32_t group = model_size(params, "group");
    const uint32_t wide = group * model_size(params, "upsample");
    TensorId interpolation =
        graph_input(graph, "interpolation", DTYPE_F32, 2, (uint32_t[]){wide, group});
    g_autofree char *extents = g_strdup_printf(
        "b=%u,T=%u,D=%u", in.dim[0] * in.dim[1] * model_size(params, "windows"), group,
        model_size(params, "channels"));
    x = graph_op(graph, OP_RESHAPE, "windows", (OpAttr){0}, 1, &x, extents);
    x = model_unary(graph, OP_TRANSPOSE, "upsample.channels", x);
    x = graph_op(graph, OP_LINEAR, "upsample", (OpAttr){0}, 2,
                 (TensorId[]){x, interpolation}, NULL);
    return model_unary(graph, OP_TRANSPOSE, "upsample.tokens", x);
}

TensorId model_transgan(Graph *graph, const ModelParams *params)
{
    const uint32_t batch = model_size(params, "global_batch"),
                   edge = model_size(params, "bottom"),
                   channels = model_size(params, "channels"),
                   latent = model_size(params, "latent");
    const uint32_t hidden =
        channels * model_size(params, "windows") * model_size(params, "group");
    const uint32_t tokens = edge * edge;
    TensorId noise =
        graph_input(graph, "noise", DTYPE_F32, 2, (uint32_t[]){batch, latent});
    graph_layer(graph, "embedding");
    TensorId x = model_linear(graph, "embedding", noise, tokens * hidden, true);
    g_autofree char *extents = g_strdup_printf("n=%u,D=%u", tokens, hidden);
    x = graph_op(graph, OP_SPLIT, "embedding.tokens", (OpAttr){0}, 1, &x, extents);
    x = add_positions(graph, "position", x);
    x = layers(graph, params, "wide", hidden, false, x);
    graph_layer(graph, "upsample");
    x = upsample(graph, params, x);
    x = add_positions(graph, "window.position", x);
    x = layers(graph, params, "narrow", channels, model_param(params, "whole_heads") > 0,
               x);
    graph_layer(graph, "image");
    x = model_linear(graph, "image", x, COLOURS, true);
    const Tensor image = *graph_tensor(graph, x);
    TensorId target = graph_input(graph, "target", DTYPE_I64, 2, image.dim);
    return model_loss(graph, x, target);
}

const char *model_transgan_check(const ModelParams *params)
{
    return model_size(params, "channels") % model_size(params, "heads")
               ? "heads must divide channels"
               : NULL;
}
