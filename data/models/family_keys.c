/* Keys common to several families of models. */
#include "data/base/assert.h"
#include "data/models/family.h"

#include <string.h>

/* Alternative names of keys; a file has one of them. Where it has two, n_embed counts. */
static const char LAYERS[] = "num_hidden_layers|n_layer|num_layers";
static const char HIDDEN[] = "n_embed|hidden_size|n_embd|d_model";
static const char HEADS[] = "num_attention_heads|n_head|num_heads";
static const char KV_HEADS[] = "num_key_value_heads|num_kv_heads|n_head_kv";
static const char FFN[] = "intermediate_size|n_inner|ffn_dim|d_ff|ffn_hidden_size";
static const char POSITIONS[] = "max_position_embeddings|n_positions|n_ctx|seq_length";

/* Reads the sizes that all families have. ffn 0: four times the width. */
static bool family_read_sizes(Config *c, const Defaults *d, Architecture *a)
{
    const uint32_t layers = config_size(c, LAYERS, 1, d->layers);
    if (layers > CONFIG_MOST_LAYERS)
        return config_wrong(c, "num_hidden_layers", "expected at most %d layers, got %u",
                            CONFIG_MOST_LAYERS, layers);
    architecture_layers(a, layers);
    a->vocab = config_size(c, "vocab_size", 1, d->vocab);
    a->hidden = a->embedding_size = config_size(c, HIDDEN, 1, d->hidden);
    a->heads = config_size(c, HEADS, 1, d->heads);
    /* null is as good as "as many as heads", whatever the family's default */
    const bool each = json_is_null(json_object_get(c->root, "num_key_value_heads"));
    a->kv_heads =
        config_size(c, KV_HEADS, 1, d->kv_heads && !each ? d->kv_heads : a->heads);
    a->ffn = config_size(c, FFN, 1, d->ffn ? d->ffn : 4 * a->hidden);
    a->limit = config_size(c, POSITIONS, 1, d->positions);
    const bool apart = d->head_size || config_value(c, "head_dim");
    a->head_size =
        config_size(c, "head_dim", 1, d->head_size ? d->head_size : a->hidden / a->heads);
    if (config_good(c) && !apart && a->hidden % a->heads)
        return config_wrong(c, "num_attention_heads",
                            "expected a divisor of the width %u, got %u", a->hidden,
                            a->heads);
    if (config_good(c) && a->heads % a->kv_heads)
        return config_wrong(c, "num_key_value_heads",
                            "expected a divisor of the %u heads, got %u", a->heads,
                            a->kv_heads);
    a->value_size = a->head_size;
    a->scale = 1;
    return config_good(c);
}

void family_read_rotary(Config *c, const char *keys, double otherwise, Architecture *a)
{
    Config nested =
        *c; /* newer files have the keys of positions in an object of their own */
    nested.root = json_object_get(c->root, "rope_parameters");
    if (json_is_object(nested.root))
        otherwise = config_number(&nested, keys, 1, otherwise);
    c->failed = nested.failed;
    const double share = config_number(c, keys, 1, otherwise);
    a->rotary = (uint32_t)(share * a->head_size) / 2 * 2;
}

void family_read_activation(Config *c, const char *keys, const char *otherwise,
                            Architecture *a)
{
    const char *name = config_text(c, keys);
    name = name ? name : otherwise;
    if (g_str_has_prefix(name, "gelu") || strcmp(name, "quick_gelu") == 0)
        a->activation = ACTIVATION_GELU;
    else if (strcmp(name, "silu") == 0 || strcmp(name, "swish") == 0)
        a->activation = ACTIVATION_SILU;
    else if (strcmp(name, "relu") == 0 && !a->gated)
        a->activation = ACTIVATION_RELU;
    else
        config_wrong(
            c, "hidden_act", "expected %s, got \"%s\"",
            a->gated ? "silu or one of the gelu" : "relu, silu or one of the gelu", name);
}

void family_set_windows(Config *c, uint32_t window, uint32_t period, uint32_t full,
                        Architecture *a)
{
    KILTER_ASSERT(period == 0 || full < period);
    const json_t *types = config_value(c, "layer_types");
    if (types && (!json_is_array(types) || json_array_size(types) != a->layers)) {
        config_wrong(c, "layer_types", "expected an array of %u", a->layers);
        return;
    }
    for (uint32_t i = 0; i < a->layers; i++) {
        const json_t *item = json_array_get(types, i);
        const char *type = json_string_value(item);
        const bool slides = type ? strcmp(type, "sliding_attention") == 0
                                 : period == 0 || i % period != full;
        if (item && !slides && (!type || strcmp(type, "full_attention") != 0))
            config_wrong(c, "layer_types",
                         "expected full_attention or sliding_attention, got \"%s\"",
                         type ? type : "?");
        a->window[i] = slides ? window : 0;
    }
}

bool family_read_llama_like(Config *c, const Defaults *d, const char *activation,
                            bool tied, Architecture *a)
{
    if (!family_read_sizes(c, d, a))
        return false;
    a->norm = NORM_RMS;
    a->gated = a->causal = a->final_norm = a->fused = true;
    a->rotary = a->head_size / 2 * 2;
    a->attention_dropout = config_number(c, "attention_dropout", 0.99, 0);
    a->tied = config_flag(c, "tie_word_embeddings", tied);
    family_read_activation(c, "hidden_activation|hidden_act", activation, a);
    return config_good(c);
}

void family_set_attention_bias(Config *c, bool otherwise, Architecture *a)
{
    a->qkv_bias = a->out_bias = config_flag(c, "attention_bias", otherwise);
}

bool family_read_gpt_like(Config *c, const Defaults *d, bool tied, Architecture *a)
{
    if (!family_read_sizes(c, d, a))
        return false;
    a->qkv_bias = a->out_bias = a->ffn_bias = a->causal = a->final_norm = true;
    a->tied = config_flag(c, "tie_word_embeddings", tied);
    a->dropout = config_number(
        c, "resid_pdrop|hidden_dropout|hidden_dropout_prob|dropout", 0.99, 0);
    a->embedding_dropout = config_number(c, "embd_pdrop", 0.99, 0);
    a->attention_dropout = config_number(
        c, "attn_pdrop|attention_dropout|attention_probs_dropout_prob", 0.99, 0);
    return config_good(c);
}
