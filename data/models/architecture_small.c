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
};

static void shrink_attention(Architecture *a, uint32_t small)
{
    const uint32_t group = MIN(a->heads / a->kv_heads, 2);
    const bool whole = a->rotary == a->head_size;
    a->kv_heads = MIN(a->kv_heads, MIN(1 + small, MOST_HEADS));
    a->heads = a->kv_heads * group;
    if (a->kv_rank) {
        a->shared_key = a->rotary = SHARED;
        a->head_size = HEAD + SHARED;
        a->kv_rank = MIN(a->kv_rank, RANK);
        a->q_rank = MIN(a->q_rank, RANK + 1);
        a->value_size = VALUE;
    } else {
        a->head_size = a->value_size = HEAD;
        a->rotary = whole ? HEAD : MIN(a->rotary, HEAD / 2);
    }
    for (uint32_t i = 0; i < a->layers; i++)
        a->window[i] = MIN(a->window[i], 2);
}

void architecture_shrink(Architecture *a, uint32_t small)
{
    const bool projected = a->embedding_size != a->hidden;
    shrink_attention(a, small);
    a->hidden = MIN(a->hidden, WIDTH + small % 3);
    a->embedding_size = projected ? TABLE_WIDTH : a->hidden;
    a->ffn = MIN(a->ffn, MIN(2 + 3 * small, MOST_FFN));
    a->vocab = MIN(a->vocab, MIN(3 + 4 * small, MOST_VOCAB));
    a->positions = MIN(a->positions, MOST_ROWS);
    a->token_types = MIN(a->token_types, 2);
    a->experts = MIN(a->experts, MIN(2 + small, MOST_EXPERTS));
    a->top = MIN(a->top, 2);
    a->expert_ffn = MIN(a->expert_ffn, 3);
    a->shared_ffn = MIN(a->shared_ffn, 4);
    if (a->patch) {
        a->patch = MIN(a->patch, PATCH);
        a->image = a->patch * MIN(a->image / a->patch, EDGE);
        a->channels = MIN(a->channels, 2);
        a->classes = MIN(a->classes, 3 + 2 * MIN(small, 4));
    }
}
