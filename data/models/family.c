/* Families of models by their configuration: the keys of each, their defaults, and their meaning.
 * Defaults are those of the families' own configuration classes; parameters follow from the graph
 * that data/models/architecture.c builds.
 *
 * Left out, as they have hardly any parameters or work: soft caps of logits, scales of embeddings,
 * groups that limit the choice of experts, and clamps; multi-token prediction layers, which
 * published counts exclude; towers for images. */
#include "data/models/family.h"

#include <string.h>

/* --- families, in the order of the table below --- */

static void read_llama(Config *c, Architecture *a)
{
    static const Defaults d = {32000, 4096, 11008, 32, 32, 0, 2048, 0};
    if (!family_read_llama_like(c, &d, "silu", false, a))
        return;
    family_set_attention_bias(c, config_flag(c, "bias", false), a);
    a->ffn_bias = config_flag(c, "mlp_bias", false);
}

static void read_mistral(Config *c, Architecture *a)
{
    static const Defaults d = {32000, 4096, 14336, 32, 32, 8, 131072, 0};
    enum { WINDOW = 4096 };
    if (!family_read_llama_like(c, &d, "silu", false, a))
        return;
    const bool given = json_object_get(c->root, "sliding_window") != NULL;
    family_set_windows(c, config_size(c, "sliding_window", 0, given ? 0 : WINDOW), 0, 0,
                       a);
}

static void read_mixtral(Config *c, Architecture *a)
{
    static const Defaults d = {32000, 4096, 14336, 32, 32, 8, 131072, 0};
    if (!family_read_llama_like(c, &d, "silu", false, a))
        return;
    family_set_windows(c, config_size(c, "sliding_window", 0, 0), 0, 0, a);
    a->experts = config_size(c, "num_local_experts", 1, 8);
    a->top = config_size(c, "num_experts_per_tok", 1, 2);
    a->expert_ffn = a->ffn;
    a->normalised = true;
    memset(a->sparse, true, a->layers * sizeof *a->sparse);
}

/* With use_sliding_window, layers from max_window_layers on have a sliding window, or those that
 * layer_types says. */
static void read_qwen_window(Config *c, Architecture *a)
{
    enum { WINDOW = 4096, FIRST = 28 };
    const uint32_t window = config_size(c, "sliding_window", 0, WINDOW),
                   first = config_size(c, "max_window_layers", 0, FIRST);
    const bool slides = config_flag(c, "use_sliding_window", false);
    family_set_windows(c, slides ? window : 0, 0, 0, a);
    for (uint32_t i = 0; !config_value(c, "layer_types") && i < MIN(first, a->layers);
         i++)
        a->window[i] = 0;
}

static void read_qwen2(Config *c, Architecture *a)
{
    static const Defaults d = {151936, 4096, 22016, 32, 32, 32, 32768, 0};
    if (!family_read_llama_like(c, &d, "silu", false, a))
        return;
    a->qkv_bias = true;
    read_qwen_window(c, a);
}

static void read_qwen3(Config *c, Architecture *a)
{
    static const Defaults d = {151936, 4096, 22016, 32, 32, 32, 32768, 128};
    if (!family_read_llama_like(c, &d, "silu", false, a))
        return;
    a->qk_norm = true;
    family_set_attention_bias(c, false, a);
    read_qwen_window(c, a);
}

/* Layers of mlp_only_layers have a feed-forward network in place of experts. */
static void clear_dense_layers(Config *c, Architecture *a)
{
    static const char KEY[] = "mlp_only_layers";
    const json_t *dense = config_value(c, KEY);
    if (dense && !json_is_array(dense))
        config_wrong(c, KEY, "expected an array of layers");
    for (size_t k = 0; k < json_array_size(dense); k++) {
        const json_t *layer = json_array_get(dense, k);
        const json_int_t i = json_integer_value(layer);
        if (!json_is_integer(layer))
            config_wrong(c, KEY, "expected an array of integers");
        else if (i >= 0 && i < a->layers)
            a->sparse[i] = false;
    }
}

static void read_qwen3_moe(Config *c, Architecture *a)
{
    static const Defaults d = {151936, 2048, 6144, 24, 32, 4, 32768, 0};
    if (!family_read_llama_like(c, &d, "silu", false, a))
        return;
    a->qk_norm = true;
    family_set_attention_bias(c, false, a);
    read_qwen_window(c, a);
    a->experts = config_size(c, "num_experts|num_local_experts", 0, 128);
    a->top = config_size(c, "num_experts_per_tok", 1, 8);
    a->expert_ffn = config_size(c, "moe_intermediate_size", 1, 768);
    a->normalised = config_flag(c, "norm_topk_prob", false);
    const uint32_t step = config_size(c, "decoder_sparse_step", 1, 1);
    for (uint32_t i = 0; i < a->layers; i++)
        a->sparse[i] = a->experts > 0 && (i + 1) % step == 0;
    clear_dense_layers(c, a);
}

static void read_phi3(Config *c, Architecture *a)
{
    static const Defaults d = {32064, 3072, 8192, 32, 32, 0, 4096, 0};
    if (!family_read_llama_like(c, &d, "silu", false, a))
        return;
    family_read_rotary(c, "partial_rotary_factor", 1, a);
    family_set_windows(c, config_size(c, "sliding_window", 0, 0), 0, 0, a);
    a->dropout = config_number(c, "resid_pdrop", 0.99, 0);
    a->embedding_dropout = config_number(c, "embd_pdrop", 0.99, 0);
}

static void read_gemma(Config *c, Architecture *a)
{
    static const Defaults d = {256000, 3072, 24576, 28, 16, 16, 8192, 256};
    if (!family_read_llama_like(c, &d, "gelu", true, a))
        return;
    family_set_attention_bias(c, false, a);
}

static void read_gemma3(Config *c, Architecture *a)
{
    static const Defaults d = {262208, 2304, 9216, 26, 8, 4, 131072, 256};
    enum { WINDOW = 4096, PERIOD = 6 };
    if (!family_read_llama_like(c, &d, "gelu_pytorch_tanh", true, a))
        return;
    a->arrangement = ARRANGEMENT_SANDWICH;
    a->qk_norm = true;
    family_set_attention_bias(c, false, a);
    const uint32_t period =
        config_size(c, "sliding_window_pattern|_sliding_window_pattern", 1, PERIOD);
    family_set_windows(c, config_size(c, "sliding_window", 0, WINDOW), period, period - 1,
                       a);
    a->causal = !config_flag(c, "use_bidirectional_attention", false);
}

static void read_gpt2(Config *c, Architecture *a)
{
    static const Defaults d = {50257, 768, 0, 12, 12, 0, 1024, 0};
    if (!family_read_gpt_like(c, &d, true, a))
        return;
    a->positions = a->limit;
    a->dropout = config_number(c, "resid_pdrop", 0.99, 0.1);
    a->embedding_dropout = config_number(c, "embd_pdrop", 0.99, 0.1);
    a->attention_dropout = config_number(c, "attn_pdrop", 0.99, 0.1);
    family_read_activation(c, "activation_function", "gelu_new", a);
    if (config_flag(c, "add_cross_attention", false))
        config_wrong(c, "add_cross_attention", "expected false");
}

static void read_gpt_neox(Config *c, Architecture *a)
{
    static const Defaults d = {50432, 6144, 24576, 44, 64, 0, 2048, 0};
    if (!family_read_gpt_like(c, &d, false, a))
        return;
    a->fused = true;
    family_set_attention_bias(c, true, a);
    family_read_rotary(c, "rotary_pct|partial_rotary_factor", 0.25, a);
    family_read_activation(c, "hidden_act", "gelu", a);
    if (config_flag(c, "use_parallel_residual", true))
        a->arrangement = ARRANGEMENT_PARALLEL_TWO;
}

static void read_opt(Config *c, Architecture *a)
{
    static const Defaults d = {50272, 768, 3072, 12, 12, 0, 2048, 0};
    enum { BEFORE = 2 }; /* rows of the table that no position uses */
    if (!family_read_gpt_like(c, &d, true, a))
        return;
    a->fused = true;
    a->positions = a->limit + BEFORE;
    a->qkv_bias = a->out_bias = a->ffn_bias = config_flag(c, "enable_bias", true);
    a->dropout = config_number(c, "dropout", 0.99, 0.1);
    a->embedding_size = config_size(c, "word_embed_proj_dim", 1, a->hidden);
    family_read_activation(c, "activation_function", "relu", a);
    if (!config_flag(c, "do_layer_norm_before", true)) {
        a->arrangement = ARRANGEMENT_POST;
        a->final_norm = false;
    }
    if (config_flag(c, "_remove_final_layer_norm", false))
        a->final_norm = false;
    if (!config_flag(c, "layer_norm_elementwise_affine", true))
        config_wrong(c, "layer_norm_elementwise_affine", "expected true");
}

static void read_bloom(Config *c, Architecture *a)
{
    static const Defaults d = {250880, 64, 0, 2, 8, 0, 2048, 0};
    if (!family_read_gpt_like(c, &d, true, a))
        return;
    a->ffn = 4 * a->hidden; /* whatever n_inner says */
    a->fused = a->embedding_norm = a->alibi = true;
}

/* Files of both generations: new_decoder_architecture has key/value heads, two norms and parallel
 * attention and feed-forward; in the older one `multi_query` means one key/value head. */
static void read_falcon(Config *c, Architecture *a)
{
    static const Defaults d = {65024, 4544, 0, 32, 71, 0, 2048, 0};
    if (!family_read_gpt_like(c, &d, true, a))
        return;
    const bool given = config_value(c, "n_head_kv") != NULL;
    const bool grouped = config_flag(c, "new_decoder_architecture", given);
    if (!grouped)
        a->kv_heads = config_flag(c, "multi_query", true) ? 1 : a->heads;
    a->fused = true;
    a->qkv_bias = a->out_bias = a->ffn_bias = config_flag(c, "bias", false);
    a->alibi = config_flag(c, "alibi", false);
    a->rotary = a->alibi ? 0 : a->head_size / 2 * 2;
    family_read_activation(c, "activation", "gelu", a);
    const uint32_t norms = config_size(c, "num_ln_in_parallel_attn", 1, grouped ? 2 : 1);
    if (grouped || config_flag(c, "parallel_attn", true))
        a->arrangement = norms == 2 ? ARRANGEMENT_PARALLEL_TWO : ARRANGEMENT_PARALLEL;
}

/* phi, and mixformer-sequential and phi-msft, the names in its first files. */
static void read_phi(Config *c, Architecture *a)
{
    static const Defaults d = {51200, 2048, 0, 24, 32, 0, 2048, 0};
    if (!family_read_gpt_like(c, &d, false, a))
        return;
    a->fused = a->head_bias = true;
    a->arrangement = ARRANGEMENT_PARALLEL;
    family_read_rotary(c, "partial_rotary_factor", 0.5, a);
    if (config_value(c, "rotary_dim"))
        a->rotary = MIN(config_size(c, "rotary_dim", 1, 0) / 2 * 2, a->head_size);
    family_read_activation(c, "hidden_act|activation_function", "gelu_new", a);
    if (config_flag(c, "qk_layernorm", false))
        config_wrong(c, "qk_layernorm", "expected false");
}

/* An encoder whose head is the embedding's table; poolers are not counted. */
static void read_bert(Config *c, Architecture *a)
{
    static const Defaults d = {30522, 768, 3072, 12, 12, 0, 512, 0};
    if (!family_read_gpt_like(c, &d, true, a))
        return;
    a->tied = a->embedding_norm = true;
    a->causal = config_flag(c, "is_decoder", false);
    a->final_norm = false;
    a->arrangement = ARRANGEMENT_POST;
    a->positions = a->limit;
    a->token_types = config_size(c, "type_vocab_size", 0, 2);
    a->dropout = a->embedding_dropout =
        config_number(c, "hidden_dropout_prob", 0.99, 0.1);
    a->attention_dropout = config_number(c, "attention_probs_dropout_prob", 0.99, 0.1);
    family_read_activation(c, "hidden_act", "gelu", a);
    const char *position = config_text(c, "position_embedding_type");
    if (position && strcmp(position, "absolute") != 0)
        config_wrong(c, "position_embedding_type", "expected \"absolute\", got \"%s\"",
                     position);
    if (config_flag(c, "add_cross_attention", false))
        config_wrong(c, "add_cross_attention", "expected false");
}

static void read_roberta(Config *c, Architecture *a)
{
    static const Defaults d = {50265, 768, 3072, 12, 12, 0, 512, 0};
    read_bert(c, a);
    a->vocab = config_size(c, "vocab_size", 1, d.vocab);
    /* the first token has the position after that of padding */
    const uint32_t first = config_size(c, "pad_token_id", 0, 1) + 1;
    a->limit = a->positions > first ? a->positions - first : 1;
}

static void read_vit(Config *c, Architecture *a)
{
    static const Defaults d = {1, 768, 3072, 12, 12, 0, 1, 0};
    enum { IMAGE = 224, PATCH = 16, CHANNELS = 3, CLASSES = 2 };
    if (!family_read_gpt_like(c, &d, false, a))
        return;
    a->causal = false;
    a->qkv_bias = config_flag(c, "qkv_bias", true);
    a->image = config_size(c, "image_size", 1, IMAGE);
    a->patch = config_size(c, "patch_size", 1, PATCH);
    a->channels = config_size(c, "num_channels", 1, CHANNELS);
    a->limit = 0;
    const uint32_t labels = (uint32_t)json_object_size(config_value(c, "id2label"));
    a->classes = config_size(c, "num_labels", 1, labels ? labels : CLASSES);
    family_read_activation(c, "hidden_act", "gelu", a);
    if (config_good(c) && a->image > UINT16_MAX)
        config_wrong(c, "image_size", "expected at most %d, got %u", UINT16_MAX,
                     a->image);
}

/* deepseek_v3, and kimi_k2, which has the same structure. */
static void read_deepseek(Config *c, Architecture *a)
{
    static const Defaults d = {129280, 7168, 18432, 61, 128, 128, 4096, 192};
    if (!family_read_llama_like(c, &d, "silu", false, a))
        return;
    const uint32_t own = config_size(c, "qk_nope_head_dim", 1, 128);
    a->shared_key = a->rotary = config_size(c, "qk_rope_head_dim", 1, 64);
    a->head_size = own + a->shared_key;
    a->value_size = config_size(c, "v_head_dim", 1, 128);
    a->q_rank = config_size_or_none(c, "q_lora_rank", 1, 1536);
    a->kv_rank = config_size(c, "kv_lora_rank", 1, 512);
    a->rank_bias = a->out_bias = config_flag(c, "attention_bias", false);
    a->experts = config_size_or_none(c, "n_routed_experts", 1, 256);
    a->top = config_size(c, "num_experts_per_tok", 1, 8);
    a->expert_ffn = config_size(c, "moe_intermediate_size", 1, 2048);
    a->shared_ffn = config_size_or_none(c, "n_shared_experts", 0, 1) * a->expert_ffn;
    a->normalised = config_flag(c, "norm_topk_prob", true);
    a->scale = config_number(c, "routed_scaling_factor", 1e6, 2.5);
    const char *method = config_text(c, "topk_method"),
               *score = config_text(c, "scoring_func");
    a->router_bias = !method || strcmp(method, "noaux_tc") == 0;
    a->sigmoid = !score || strcmp(score, "sigmoid") == 0;
    const uint32_t dense = config_size(c, "first_k_dense_replace", 0, 3),
                   every = config_size(c, "moe_layer_freq", 1, 1);
    for (uint32_t i = dense; i < a->layers; i++)
        a->sparse[i] = a->experts > 0 && i % every == 0;
}

static void read_gpt_oss(Config *c, Architecture *a)
{
    static const Defaults d = {201088, 2880, 2880, 36, 64, 8, 131072, 64};
    enum { WINDOW = 128, PERIOD = 2 };
    if (!family_read_llama_like(c, &d, "silu", false, a))
        return;
    family_set_attention_bias(c, true, a);
    a->sinks = true;
    a->experts = config_size(c, "num_local_experts|num_experts", 1, 128);
    a->top = config_size(c, "num_experts_per_tok|experts_per_token", 1, 4);
    a->expert_ffn = a->ffn;
    a->normalised = a->router_bias = a->expert_bias = true;
    memset(a->sparse, true, a->layers * sizeof *a->sparse);
    family_set_windows(c, config_size(c, "sliding_window", 0, WINDOW), PERIOD, PERIOD - 1,
                       a);
}

/* mimo also has a layer for multi-token prediction, which is left out. */
static const struct {
    const char *model_type;
    void (*read)(Config *c, Architecture *a);
} FAMILIES[] = {
    {"llama", read_llama},
    {"mistral", read_mistral},
    {"mixtral", read_mixtral},
    {"qwen2", read_qwen2},
    {"mimo", read_llama},
    {"internlm", read_llama},
    {"qwen3", read_qwen3},
    {"qwen3_moe", read_qwen3_moe},
    {"phi3", read_phi3},
    {"gemma", read_gemma},
    {"gemma3_text", read_gemma3},
    {"gemma3", read_gemma3},
    {"gpt2", read_gpt2},
    {"gpt_neox", read_gpt_neox},
    {"opt", read_opt},
    {"bloom", read_bloom},
    {"falcon", read_falcon},
    {"RefinedWeb", read_falcon},
    {"RefinedWebModel", read_falcon},
    {"phi", read_phi},
    {"mixformer-sequential", read_phi},
    {"phi-msft", read_phi},
    {"bert", read_bert},
    {"roberta", read_roberta},
    {"vit", read_vit},
    {"deepseek_v3", read_deepseek},
    {"kimi_k2", read_deepseek},
    {"gpt_oss", read_gpt_oss},
};

bool config_knows_family(const char *model_type)
{
    bool knows = false;
    for (uint32_t i = 0; i < G_N_ELEMENTS(FAMILIES); i++)
        knows |= strcmp(FAMILIES[i].model_type, model_type) == 0;
    return knows;
}

bool config_family(Config *config, const char *model_type, Architecture *architecture)
{
    g_autoptr(GString) known = g_string_new("");
    for (uint32_t i = 0; i < G_N_ELEMENTS(FAMILIES); i++) {
        if (strcmp(FAMILIES[i].model_type, model_type) == 0) {
            FAMILIES[i].read(config, architecture);
            return config_good(config);
        }
        g_string_append_printf(known, "%s%s", i ? ", " : "", FAMILIES[i].model_type);
    }
    config->nested = NULL;
    return config_wrong(config, "model_type", "expected one of %s, got \"%s\"",
                        known->str, model_type);
}
