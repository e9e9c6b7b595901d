/* Small models of the same structure: a spec's sizes, each by its row of MODEL_SMALL_TABLE. */
#include "data/base/names.h"
#include "data/models/models.h"

#include <string.h>

/* Edge lengths derived from other keys: elements a head, patches an edge; VGG's five poolings leave
 * one pixel. */
enum { HEAD_SIZE = 3, PATCHES = 3, POOLED_EDGE = 32 };

/* Of a synthetic gradient. */
enum { ELEMENT_BYTES = 4 };

typedef struct {
    uint32_t n_devices, n_microbatches, even;
    GRand *random;
    /* as they were; 0: the model has none */
    uint64_t old_heads, old_keys, old_patch;
    /* as they become */
    uint64_t heads, patch, head_size, patches, group;
} Shrink;

static const ModelSmall *row_of(const char *key)
{
    return NAME_ROW(MODEL_SMALL_TABLE, MODEL_SMALL_TABLE_SIZE, key, key);
}

/* The text of a key's value; NULL: the key is not there. */
static const char *shrink_text_of(char **pairs, const char *key)
{
    const size_t n = strlen(key);
    while (*pairs && !(g_str_has_prefix(*pairs, key) && (*pairs)[n] == '='))
        pairs++;
    return *pairs ? *pairs + n + 1 : NULL;
}

static uint64_t shrink_value_of(char **pairs, const char *key)
{
    const char *text = shrink_text_of(pairs, key);
    return text ? g_ascii_strtoull(text, NULL, 10) : 0;
}

static uint64_t vary(GRand *random, uint64_t size)
{
    return random ? size + (uint64_t)g_rand_int_range(random, 0, 3) : size;
}

/* The size that a row says, varied if `random` is not NULL. */
static uint64_t size_of(const ModelSmall *row, uint32_t n_devices, GRand *random)
{
    const uint64_t size = row->base + (uint64_t)row->step * n_devices;
    return MAX(2, vary(random, MIN(size, row->cap)));
}

/* The smallest multiple that is not below `size`. */
static uint64_t round_up(uint64_t size, uint64_t multiple)
{
    return (size + multiple - 1) / multiple * multiple;
}

/* Finds the sizes that several parameters follow. */
static void find_common(Shrink *s, char **pairs)
{
    s->old_heads = shrink_value_of(pairs, "heads");
    s->old_patch = shrink_value_of(pairs, "patch");
    s->old_keys = shrink_value_of(pairs, "kv_heads");
    const uint64_t several =
        MIN(size_of(row_of("heads"), s->n_devices, s->random), s->old_heads);
    /* Where queries share keys, two of each do. */
    s->heads =
        s->old_keys > 0 && s->old_keys < s->old_heads
            ? MIN(MAX(MAX(2 * 2, several + several % 2), 2 * s->even), s->old_heads)
        : s->even > 0 ? MIN(s->even, s->old_heads)
                      : several;
    s->patch = MIN(size_of(row_of("patch"), s->n_devices, NULL), s->old_patch);
    s->head_size = vary(s->random, HEAD_SIZE);
    s->patches = vary(s->random, PATCHES);
    s->group = MIN(size_of(row_of("moe_group"), s->n_devices, NULL),
                   MAX(1, shrink_value_of(pairs, "moe_group")));
}

/* The value that a parameter gets. */
static uint64_t shrunk(const Shrink *s, const ModelSmall *row, uint64_t value)
{
    switch (row->way) {
    case SMALL_STAYS:
        return value;
    case SMALL_SIZE:
        return MIN(size_of(row, s->n_devices, s->random), value);
    case SMALL_EXPERTS:
        return MIN(s->even ? s->even : size_of(row, s->n_devices, s->random), value);
    case SMALL_FACTOR:
        return MIN(size_of(row, s->n_devices, NULL), value);
    case SMALL_BATCH:
        return MIN(
            round_up(size_of(row, s->n_devices, s->random), s->n_microbatches * s->group),
            value);
    case SMALL_HEADS:
        return s->heads;
    case SMALL_KEYS:
        return s->old_keys == s->old_heads ? s->heads : s->heads / 2;
    case SMALL_BY_HEADS:
        return s->heads > 0 ? s->heads * MIN(s->head_size, value / s->old_heads) : value;
    case SMALL_PATCH:
        return s->patch;
    case SMALL_IMAGE:
        return s->patch > 0 ? s->patch * MIN(s->patches, value / s->old_patch)
                            : POOLED_EDGE;
    case SMALL_BYTES:
        return ELEMENT_BYTES * vary(s->random, 1 + 2 * s->n_devices);
    case SMALL_DEVICES:
        return value > 0       ? value
               : !s->n_devices ? 1000 * s->even + SMALL_LEAST
               : s->even       ? 1000 * s->even + vary(s->random, MIN(s->n_devices, 900))
                               : vary(s->random, MAX(s->n_devices, SMALL_LEAST + 1));
    case SMALL_ROOM:
        return row->base;
    }
    g_assert_not_reached();
}

char *model_shrink(const char *canonical, uint32_t n_devices, uint32_t n_microbatches,
                   uint32_t even, GRand *random)
{
    const char *list = model_spec_list(canonical);
    if (!*list)
        return g_strdup(canonical);
    g_auto(GStrv) pairs = g_strsplit(list, ",", -1);
    Shrink s = {n_devices, n_microbatches, even, .random = random};
    find_common(&s, pairs);
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_append_len(text, canonical, list - canonical);
    for (uint32_t i = 0; pairs[i]; i++) {
        const char *equals = strchr(pairs[i], '=');
        const bool number = equals && g_ascii_isdigit(equals[1]);
        g_autofree char *key =
            g_strndup(pairs[i], (gsize)(equals ? equals - pairs[i] : 0));
        /* a model in a file shrinks its sequence itself, as its windows depend on it */
        const bool own = strcmp(key, "seq") == 0 && shrink_text_of(pairs, "small");
        const ModelSmall *row = number && !own ? row_of(key) : NULL;
        g_string_append(text, i ? "," : "");
        if (!row || row->way == SMALL_STAYS ||
            (row->way == SMALL_ROOM && g_ascii_strtod(equals + 1, NULL) > 0)) {
            g_string_append(text, pairs[i]);
            continue;
        }
        const uint64_t value = g_ascii_strtoull(equals + 1, NULL, 10);
        g_string_append_printf(text, "%s=%" G_GUINT64_FORMAT "%s", key,
                               shrunk(&s, row, value),
                               row->way == SMALL_BYTES ? "B" : "");
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}
