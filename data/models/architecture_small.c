/* Tiny versions of a transformer, op for op: what `kilter verify` runs in float64. */
#include "data/models/architecture.h"

/* Sizes differ from one another where they can, so that mixed-up dims do not fit. */
enum {
    HEAD = 4,
    VALUE = 3,
    WIDTH = 5,
    TABLE_WIDTH = 3,
    RANK = 3,
    SHARED = 2,
    PATCH = 2,
    EDGE = 3,
    MOST_HEADS = 4,
    MOST_FFN = 11,
    MOST_VOCAB = 17,
    MOST_EXPERTS = 6,
    MOST_ROWS = 64,
    MOST_CHOSEN = 3,
    MOST_CONV = 3,
};

static void shrink_layer(const Architecture *a, LayerFacts *l, uint32_t small,
                         uint32_t seq)
{
    const uint32_t group = MIN(l->heads / MAX(l->kv_heads, 1), 2);
    const bool whole = l->rotary == l->head_size;
    l->kv_heads = MIN(l->kv_heads, MAX(MIN(1 + small, MOST_HEADS), small / 1000));
    l->heads = l->kv_heads * MAX(group, 1);
    if (l->mixer == MIXER_LATENT) {
        l->rotary = MIN(l->rotary, SHARED);
        l->head_size = HEAD + MIN(a->shared_key, SHARED);
        l->value_size = VALUE;
    } else {
        l->head_size = l->value_size = HEAD;
        l->rotary = whole ? HEAD : MIN(l->rotary, HEAD / 2);
    }
    l->window = l->window < seq ? MIN(l->window, 2) : 0;
    l->chosen_keys = MIN(l->chosen_keys, MOST_CHOSEN);
    l->ffn = MIN(l->ffn, MIN(2 + 3 * small, MOST_FFN));
}

static void shrink_scan(Architecture *a, uint32_t small)
{
    const uint32_t group = a->scan_groups ? MIN(a->scan_heads / a->scan_groups, 2) : 0;
    a->scan_groups = MIN(a->scan_groups, MIN(1 + small, MOST_HEADS));
    a->scan_heads = a->scan_groups * group;
    a->scan_keys = MIN(a->scan_keys, RANK);
    a->scan_values = MIN(a->scan_values, VALUE + 1);
    a->conv = MIN(a->conv, MOST_CONV);
    a->decay_rank = MIN(a->decay_rank, 2);
    a->gate_rank = MIN(a->gate_rank, 2);
    a->mix_rank = MIN(a->mix_rank, 2);
    a->value_rank = MIN(a->value_rank, 2);
    a->distances = MIN(a->distances, 6);
    a->far = MIN(a->far, 9);
}

void architecture_shrink(Architecture *a, uint32_t small, uint32_t seq)
{
    const bool projected = a->embedding_size != a->hidden;
    for (uint32_t i = 0; i < a->layers; i++)
        shrink_layer(a, &a->layer[i], small, a->patch ? UINT32_MAX : seq);
    shrink_scan(a, small);
    a->shared_key = MIN(a->shared_key, SHARED);
    a->kv_rank = MIN(a->kv_rank, RANK);
    a->q_rank = MIN(a->q_rank, RANK + 1);
    a->index_heads = MIN(a->index_heads, 2);
    a->index_size = MIN(a->index_size, HEAD);
    a->hidden = MIN(a->hidden, WIDTH + small % 3);
    a->embedding_size = projected ? TABLE_WIDTH : a->hidden;
    a->vocab = MIN(a->vocab, MIN(3 + 4 * small, MOST_VOCAB));
    a->positions = MIN(a->positions, MOST_ROWS);
    a->token_types = MIN(a->token_types, 2);
    a->experts = MIN(a->experts, MAX(MIN(2 + small, MOST_EXPERTS), small / 1000));
    a->top = MIN(a->top, 2);
    if (a->expert_groups > 1) { /* two groups of two experts or three */
        a->experts = MAX(a->experts + a->experts % 2, 4);
        a->expert_groups = 2;
    } else {
        a->expert_groups = 0;
    }
    a->top_groups = MIN(a->top_groups, 1);
    a->expert_ffn = MIN(a->expert_ffn, 3);
    a->shared_ffn = MIN(a->shared_ffn, 4);
    a->latent = MIN(a->latent, RANK);
    a->frames = MIN(a->frames, 2 * EDGE);
    a->memory = MIN(a->memory, EDGE);
    a->memory_width = MIN(a->memory_width, RANK);
    a->moments = MIN(a->moments, RANK);
    a->pooled = MIN(a->pooled, 2);
    a->guidance = MIN(a->guidance, 2);
    a->labels = MIN(a->labels, RANK + 1);
    a->noise = MIN(a->noise, VALUE);
    a->patch_numbers = MIN(a->patch_numbers, RANK);
    a->projector = MIN(a->projector, WIDTH + 1);
    if (a->frames)
        a->channels = MIN(a->channels, 2);
    if (a->encoder)
        architecture_shrink(a->encoder, small, seq);
    if (a->patch) {
        a->patch = MIN(a->patch, PATCH);
        a->image = a->patch * MIN(a->image / a->patch, EDGE);
        a->channels = MIN(a->channels, 2);
        a->classes = MIN(a->classes, 3 + 2 * MIN(small, 4));
    }
}
