/* Named models of 2022 and later, and ViT as in its paper, by data/models/architecture.h. */
#include "data/models/architecture.h"
#include "data/models/models.h"

static void set_common(Architecture *a, const ModelParams *params)
{
    architecture_layers(a, model_size(params, "layers"));
    a->hidden = a->embedding_size = model_size(params, "hidden");
    a->layer->mixer = MIXER_ATTENTION;
    a->layer->network = NETWORK_DENSE;
    a->layer->heads = a->layer->kv_heads = model_size(params, "heads");
    a->layer->head_size = a->layer->value_size = a->hidden / a->layer->heads;
    a->layer->ffn = model_size(params, "ffn");
}

/* Llama (Touvron et al. 2023) with the grouped keys of Llama 2 and 3. */
static void set_llama(Architecture *a, const ModelParams *params)
{
    set_common(a, params);
    a->layer->kv_heads = model_size(params, "kv_heads");
    a->layer->rotary = a->layer->head_size / 2 * 2;
    a->vocab = model_size(params, "vocab");
    a->norm = NORM_RMS;
    a->activation = ACTIVATION_SILU;
    a->gated = a->causal = a->final_norm = true;
    a->fused = params->attention != ATTENTION_MATERIALIZED;
    a->scale = 1;
    architecture_repeat(a);
}

static TensorId build_text(Graph *graph, const Architecture *a, const ModelParams *params,
                           double capacity_factor)
{
    ArchitectureSizes sizes = {.batch = model_size(params, "global_batch"),
                               .seq = model_size(params, "seq"),
                               .capacity_factor = capacity_factor};
    architecture_separate(&sizes, params->target, false);
    return architecture_build(graph, a, &sizes);
}

TensorId model_llama(Graph *graph, const ModelParams *params)
{
    g_auto(Architecture) a = {0};
    set_llama(&a, params);
    return build_text(graph, &a, params, 1);
}

/* GPT-2 with attention that keeps no scores: its dropout draws the mask again. */
TensorId model_gpt2_fused(Graph *graph, const ModelParams *params)
{
    g_auto(Architecture) a = {0};
    set_common(&a, params);
    architecture_repeat(&a);
    a.vocab = model_size(params, "vocab");
    a.positions = model_size(params, "seq");
    a.qkv_bias = a.out_bias = a.ffn_bias = a.final_norm = a.causal = a.fused = true;
    a.dropout = a.embedding_dropout = a.attention_dropout =
        model_param(params, "dropout");
    return build_text(graph, &a, params, 1);
}

/* Mixtral (Jiang et al. 2024): experts in every layer, weighted by the softmax over the chosen
 * experts. */
TensorId model_mixtral(Graph *graph, const ModelParams *params)
{
    g_auto(Architecture) a = {0};
    set_llama(&a, params);
    a.experts = model_size(params, "experts");
    a.top = model_size(params, "top");
    a.expert_ffn = a.layer->ffn;
    a.normalised = true;
    a.layer->network = NETWORK_EXPERTS;
    architecture_repeat(&a);
    return build_text(graph, &a, params, model_param(params, "capacity_factor"));
}

/* ViT (Dosovitskiy et al. 2020): pre-norm layers, a norm before the head. */
TensorId model_vit_paper(Graph *graph, const ModelParams *params)
{
    g_auto(Architecture) a = {0};
    set_common(&a, params);
    architecture_repeat(&a);
    a.image = model_size(params, "image");
    a.patch = model_size(params, "patch");
    a.classes = model_size(params, "classes");
    a.channels = 3;
    a.qkv_bias = a.out_bias = a.ffn_bias = a.final_norm = true;
    a.dropout = a.embedding_dropout = model_param(params, "dropout");
    a.fused = params->attention == ATTENTION_FUSED;
    return architecture_build(
        graph, &a, &(ArchitectureSizes){.batch = model_size(params, "global_batch")});
}

/* BERT as TAG trains it (TPDS 2023, Table 3) on SQuAD. The word embedding is an ordinary parameter
 * or, with `host_words`, on the host, as TensorFlow places it: Table 3's sizes leave it out, and
 * its sparse gradient is not summed by all-reduces. */
TensorId model_tag_bert(Graph *graph, const ModelParams *params)
{
    g_auto(Architecture) a = {0};
    set_common(&a, params);
    architecture_repeat(&a);
    a.vocab = model_size(params, "vocab");
    a.positions = model_size(params, "positions");
    a.token_types = 2;
    a.arrangement = ARRANGEMENT_POST;
    a.qkv_bias = a.out_bias = a.ffn_bias = a.embedding_norm = a.spans = true;
    a.host_words = model_size(params, "host_words");
    a.dropout = a.embedding_dropout = a.attention_dropout =
        model_param(params, "dropout");
    return build_text(graph, &a, params, 1);
}

const char *model_llama_check(const ModelParams *params)
{
    if (model_size(params, "hidden") % model_size(params, "heads"))
        return "heads must divide hidden";
    return model_size(params, "heads") % model_size(params, "kv_heads")
               ? "kv_heads must divide heads"
               : NULL;
}

const char *model_mixtral_check(const ModelParams *params)
{
    return model_size(params, "top") > model_size(params, "experts")
               ? "top must not exceed experts"
               : model_llama_check(params);
}
