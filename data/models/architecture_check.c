/* Facts of a model that do not go together. */
#include "data/models/architecture.h"

#include <string.h>

static bool is_scan(const LayerFacts *l)
{
    return l->mixer == MIXER_MAMBA || l->mixer == MIXER_DELTA ||
           l->mixer == MIXER_KIMI_DELTA || l->mixer == MIXER_LIGHTNING ||
           l->mixer == MIXER_ATTENTION_AND_MAMBA || l->mixer >= MIXER_MAMBA_1;
}

static const char *check_layer(const Architecture *a, uint32_t i, const char **fact)
{
    const LayerFacts *l = &a->layer[i];
    if (l->mixer == MIXER_ATTENTION || l->mixer == MIXER_LATENT ||
        l->mixer == MIXER_ATTENTION_AND_MAMBA || l->cross || l->block) {
        *fact = "kv_heads";
        if (l->heads % l->kv_heads)
            return "key/value heads must divide heads";
        if (l->mixer == MIXER_LATENT && l->kv_heads != l->heads)
            return "low-rank attention has as many key/value heads as heads";
        *fact = "rotary";
        if (l->rotary > l->head_size || l->rotary % 2)
            return "an even number of at most a head's elements can turn";
        *fact = "kv_rank";
        if (l->mixer == MIXER_LATENT && (!a->kv_rank || a->shared_key >= l->head_size))
            return "low-rank attention needs kv_rank, and shared_key below head_size";
        *fact = "value_size";
        if (l->shared_values && l->value_size != l->head_size)
            return "values that are keys have their size";
        *fact = "sinks";
        if (l->sinks && (!a->fused || l->chosen_keys))
            return "attention with sinks is fused; attention=materialized has none";
        *fact = "index_heads";
        if (l->chosen_keys && (!a->index_heads || !a->index_size))
            return "chosen keys need index_heads and index_size";
    }
    *fact = "scan_heads";
    if (is_scan(l) && (!a->scan_heads || !a->scan_groups || !a->scan_keys ||
                       !a->scan_values || a->scan_heads % a->scan_groups))
        return "scans need keys, values and heads, which their groups divide";
    *fact = "decay_rank";
    if (l->mixer >= MIXER_MAMBA_1 && !a->decay_rank)
        return "decays and steps have a rank";
    *fact = "scan_groups";
    if (l->mixer >= MIXER_RWKV_6 && a->scan_groups != a->scan_heads)
        return "each head of RWKV has keys of its own";
    *fact = l->mixer == MIXER_RWKV_7 ? "value_rank" : "mix_rank";
    if ((l->mixer >= MIXER_RWKV_6 && !a->mix_rank) ||
        (l->mixer == MIXER_RWKV_7 && (!a->value_rank || !a->gate_rank)))
        return "RWKV has ranks of what mixes tokens, of gates and of values";
    *fact = "shared";
    for (uint32_t j = 0; (l->shared || l->block) && j < i; j++)
        if (((l->shared && a->layer[j].shared == l->shared) ||
             (l->block && a->layer[j].block == l->block)) &&
            memcmp(l, &a->layer[j], sizeof *l) != 0)
            return "layers that share parameters are alike";
    *fact = "block";
    if (l->block && l->shared)
        return "a block is shared by layers with parameters of their own";
    *fact = "conv";
    if ((l->mixer == MIXER_CONV ||
         (is_scan(l) && l->mixer != MIXER_LIGHTNING && l->mixer <= MIXER_MAMBA_1)) &&
        !a->conv)
        return "the convolution has no tokens";
    *fact = "experts";
    return (l->network == NETWORK_EXPERTS || l->network == NETWORK_BOTH) &&
                   (!a->experts || !a->top || !a->expert_ffn)
               ? "layers with experts need experts, top and expert_ffn"
               : NULL;
}

const char *architecture_check(const Architecture *a, uint32_t seq, const char **fact)
{
    const char *unused;
    fact = fact ? fact : &unused;
    for (uint32_t i = 0; i < a->layers; i++) {
        const char *wrong = check_layer(a, i, fact);
        if (wrong)
            return wrong;
        *fact = "cross";
        if (a->layer[i].cross && !a->encoder && !a->memory)
            return "layers that attend to an encoder need one, or memory";
        if (!a->layer[i].indexer && a->layer[i].chosen_keys &&
            !(i > 0 && a->layer[i - 1].chosen_keys)) {
            *fact = "indexer";
            return "the first layer with chosen keys needs an indexer";
        }
    }
    *fact = "patch";
    if (a->image && (!a->patch || a->image % a->patch))
        return "patch must divide image";
    if (a->patch && (!a->image || !a->channels || !a->classes))
        return "a model of images needs image, channels and classes";
    if (!a->patch && a->vocab == 0)
        return "a model of text has a vocabulary";
    *fact = "positions";
    if (!a->patch && a->positions && seq > (a->limit ? a->limit : a->positions))
        return "seq is longer than the table of positions";
    *fact = "top";
    if (a->experts && a->top > a->experts)
        return "a token goes to more experts than the layer has";
    *fact = "expert_groups";
    if (a->experts && a->expert_groups > 1 &&
        (a->experts % a->expert_groups || a->top_groups > a->expert_groups ||
         a->top > (uint64_t)a->top_groups * (a->experts / a->expert_groups)))
        return "a token's experts are in top_groups of equal groups";
    *fact = "frames";
    if (a->frames && (a->frames % 2 || !a->channels))
        return "a model of sound needs channels and an even number of frames";
    *fact = "moments";
    if (a->modulated && (!a->moments || !a->noise || !a->patch_numbers))
        return "a diffusion transformer has moments, patch_numbers and noise";
    for (uint32_t i = 0; a->modulated && i < a->layers; i++)
        if (a->layer[i].mixer == MIXER_NONE || a->layer[i].network == NETWORK_NONE)
            return "adaLN has a mixer and a network in each layer";
    *fact = "streams";
    for (uint32_t i = 0; i < a->layers; i++)
        if (a->layer[i].streams &&
            (!a->modulated || !a->memory || a->layer[i].mixer != MIXER_ATTENTION ||
             (a->layer[i].streams == 2 && i > 0 &&
              (a->layer[i - 1].streams != 2 || a->layer[i - 1].silent))))
            return "two streams need adaLN, memory and attention; they come first";
    *fact = "hidden";
    if (a->encoder && a->encoder->hidden != a->hidden && !a->encoder->patch_numbers)
        return "an encoder is as wide as its decoder";
    *fact = "merge";
    if (a->patch_numbers && !a->merge)
        return "a projector makes a token of at least one patch";
    *fact = "activation";
    if (a->gated && a->activation == ACTIVATION_RELU)
        return "a gated network has silu, gelu or relu2";
    return !a->encoder ? NULL
                       : architecture_check(a->encoder,
                                            a->encoder->patch_numbers ? 0 : seq, fact);
}
