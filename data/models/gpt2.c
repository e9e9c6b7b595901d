/* GPT-2 (Radford et al. 2019): a causal transformer of pre-norm layers, as AMP trains it with
 * Megatron (24 layers of 1024; NeurIPS'22, Sec. 4.3). Embedding and output have separate matrices,
 * as in a pipeline whose ends hold copies of the tied matrix; logits may stay sharded over the
 * vocabulary up to the loss, as in Megatron. */
#include "data/models/models.h"

TensorId model_gpt2(Graph *graph, const ModelParams *params)
{
    if (params->attention == ATTENTION_FUSED)
        return model_gpt2_fused(graph, params);
    const uint32_t batch = model_size(params, "global_batch"),
                   seq = model_size(params, "seq"), vocab = model_size(params, "vocab");
    TransformerLayer layer = {.base.graph = graph,
                              .hidden = model_size(params, "hidden"),
                              .heads = model_size(params, "heads"),
                              .ffn = model_size(params, "ffn"),
                              .dropout = model_param(params, "dropout"),
                              .causal = true};
    TensorId ids = graph_input(graph, "ids", DTYPE_I64, 2, (uint32_t[]){batch, seq});
    TensorId labels =
        graph_input(graph, "labels", DTYPE_I64, 2, (uint32_t[]){batch, seq});
    graph_layer(graph, "embedding");
    TensorId table =
        graph_parameter(graph, "embedding.weight", 2, (uint32_t[]){vocab, layer.hidden});
    TensorId position =
        graph_parameter(graph, "position", 2, (uint32_t[]){seq, layer.hidden});
    TensorId x = graph_op(graph, OP_EMBEDDING, "embedding", (OpAttr){0}, 2,
                          (TensorId[]){ids, table}, NULL);
    x = graph_op(graph, OP_ADD_ROWS, "embedding.position", (OpAttr){0}, 2,
                 (TensorId[]){x, position}, NULL);
    x = model_dropout(graph, "embedding.dropout", x, layer.dropout);
    for (uint32_t i = 0; i < model_size(params, "layers"); i++) {
        g_autofree char *name = g_strdup_printf("layers.%u", i);
        layer.base.name = name;
        graph_layer(graph, name);
        x = transformer_pre_norm_layer(&layer, x);
    }
    graph_layer(graph, "decoder");
    layer.base.name = "decoder";
    x = layer_norm_as(&layer.base, NORM_LAYER, "norm", x);
    x = model_linear(graph, "decoder", x, vocab, false);
    return model_sharded_loss(graph, x, labels);
}
