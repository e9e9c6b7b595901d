/* Shrunk models and the comparison of their structure. */
#include "exec/shrink.h"

#include <string.h>

/* Small sizes: base + step x devices, at most `cap`. Different keys get different sizes where they
 * can, so that mixed-up dims do not fit. Other keys (layers, rates, the optimizer, ...) stay as
 * they are. */
static const struct {
    const char *key;
    uint32_t base, step, cap;
} SIZES[] = {
    {"batch", 1, 0, 1},    {"global_batch", 1, 2, 11}, {"width", 2, 0, 2},
    {"pool", 2, 0, 2},     {"fc", 1, 3, 17},           {"classes", 3, 2, 11},
    {"seq", 9, 0, 9},      {"ffn", 2, 3, 19},          {"vocab", 3, 4, 23},
    {"heads", 1, 1, 5},    {"experts", 0, 2, 8},       {"patch", 2, 0, 2},
    {"bottom", 2, 0, 2},   {"windows", 2, 0, 2},       {"group", 2, 0, 2},
    {"upsample", 2, 0, 2}, {"latent", 3, 0, 3},        {"moe_group", 2, 0, 2},
    {"edge", 107, 0, 107}, {"vocab_out", 4, 4, 29},    {"positions", 16, 0, 16},
};

/* Edge lengths derived from other keys: elements per head, patches per edge; VGG's five poolings
 * leave one pixel. */
enum { HEAD_SIZE = 3, PATCHES = 3, POOLED_EDGE = 32 };

/* Bytes of an element of a synthetic gradient. */
enum { ELEMENT_BYTES = 4 };

static uint64_t value_of(char **pairs, const char *key)
{
    for (; *pairs; pairs++) {
        const char *equals = strchr(*pairs, '=');
        if (equals && strlen(key) == (size_t)(equals - *pairs) &&
            g_str_has_prefix(*pairs, key))
            return g_ascii_strtoull(equals + 1, NULL, 10);
    }
    return 0;
}

static uint64_t vary(GRand *random, uint64_t size)
{
    return random ? size + (uint64_t)g_rand_int_range(random, 0, 3) : size;
}

/* The small size of a key in the table; 0 if the key is not there. */
static uint64_t small_size(const char *key, uint32_t n_devices, GRand *random)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(SIZES); i++)
        if (strcmp(SIZES[i].key, key) == 0) {
            const uint64_t size = SIZES[i].base + (uint64_t)SIZES[i].step * n_devices;
            return MAX(2, vary(random, MIN(size, SIZES[i].cap)));
        }
    return 0;
}

/* Whether other sizes are multiples of this key's: such a size does not vary, or the others grow
 * large. */
static bool multiplies(const char *key)
{
    return strcmp(key, "windows") == 0 || strcmp(key, "group") == 0 ||
           strcmp(key, "moe_group") == 0;
}

static void append_pair(GString *text, const char *key, uint64_t value)
{
    g_string_append_printf(text, "%s=%" G_GUINT64_FORMAT, key, value);
}

/* The smallest multiple of `multiple` that is not below `size`. */
static uint64_t round_up(uint64_t size, uint64_t multiple)
{
    return (size + multiple - 1) / multiple * multiple;
}

char *exec_shrink(const char *canonical, uint32_t n_devices, uint32_t n_microbatches,
                  GRand *random)
{
    const char *colon = strrchr(canonical, ':');
    if (!colon)
        return g_strdup(canonical);
    g_auto(GStrv) pairs = g_strsplit(colon + 1, ",", -1);
    const uint64_t old_heads = value_of(pairs, "heads"),
                   old_patch = value_of(pairs, "patch");
    const uint64_t old_keys = value_of(pairs, "kv_heads");
    const uint64_t several = MIN(small_size("heads", n_devices, random), old_heads);
    /* Where queries share keys, two queries share each key. */
    const uint64_t heads = old_keys > 0 && old_keys < old_heads
                               ? MIN(MAX(2 * 2, several + several % 2), old_heads)
                               : several;
    const uint64_t patch = MIN(small_size("patch", n_devices, NULL), old_patch);
    const uint64_t head_size = vary(random, HEAD_SIZE), edge = vary(random, PATCHES);
    const uint64_t group = MIN(small_size("moe_group", n_devices, NULL),
                               MAX(1, value_of(pairs, "moe_group")));
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_append_len(text, canonical, colon + 1 - canonical);
    for (uint32_t i = 0; pairs[i]; i++) {
        const char *equals = strchr(pairs[i], '=');
        g_autofree char *key =
            g_strndup(pairs[i], (gsize)(equals ? equals - pairs[i] : 0));
        const uint64_t value = equals ? g_ascii_strtoull(equals + 1, NULL, 10) : 0;
        const bool number = equals && g_ascii_isdigit(equals[1]);
        g_string_append(text, i ? "," : "");
        if (number && strcmp(key, "heads") == 0)
            append_pair(text, key, heads);
        else if (number && strcmp(key, "kv_heads") == 0)
            append_pair(text, key, old_keys == old_heads ? heads : heads / 2);
        else if (number && strcmp(key, "patch") == 0)
            append_pair(text, key, patch);
        else if (number && heads > 0 &&
                 (strcmp(key, "hidden") == 0 || strcmp(key, "channels") == 0))
            append_pair(text, key, heads * MIN(head_size, value / old_heads));
        else if (number && strcmp(key, "image") == 0)
            append_pair(text, key,
                        patch > 0 ? patch * MIN(edge, value / old_patch) : POOLED_EDGE);
        else if (number && strcmp(key, "gradient") == 0)
            g_string_append_printf(text, "%s=%" G_GUINT64_FORMAT "B", key,
                                   ELEMENT_BYTES * vary(random, 1 + 2 * n_devices));
        else if (number && strcmp(key, "global_batch") == 0)
            append_pair(
                text, key,
                MIN(round_up(small_size(key, n_devices, random), n_microbatches * group),
                    value));
        else if (number &&
                 strcmp(key, "small") == 0) /* a model from a file shrinks itself */
            append_pair(text, key, value > 0 ? value : vary(random, n_devices));
        else if (number && small_size(key, n_devices, NULL) > 0)
            append_pair(
                text, key,
                MIN(small_size(key, n_devices, multiplies(key) ? NULL : random), value));
        else
            g_string_append(text, pairs[i]);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static bool same_operands(const Op *a, const Op *b)
{
    return a->n_in == b->n_in && a->n_out == b->n_out &&
           memcmp(a->in, b->in, a->n_in * sizeof *a->in) == 0 &&
           memcmp(a->out, b->out, a->n_out * sizeof *a->out) == 0;
}

bool exec_same_structure(const Graph *a, const Graph *b, GError **error)
{
    if (graph_n_ops(a) != graph_n_ops(b) || graph_n_tensors(a) != graph_n_tensors(b))
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "%s has %u ops on %u tensors, %s has %u on %u", graph_name(a),
                           graph_n_ops(a), graph_n_tensors(a), graph_name(b),
                           graph_n_ops(b), graph_n_tensors(b));
    for (OpId id = 0; id < graph_n_ops(a); id++) {
        const Op *x = graph_get_op(a, id), *y = graph_get_op(b, id);
        if (x->kind != y->kind || strcmp(x->name, y->name) != 0 || !same_operands(x, y))
            return kilter_fail(error, KILTER_ERROR_INPUT, "op %s is not op %s", x->name,
                               y->name);
    }
    return true;
}

bool exec_is_small(const Graph *graph, GError **error)
{
    const double most = 0x1p27;
    double elements = 0;
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        elements += (double)tensor_elements(graph_tensor(graph, t));
    return elements <= most ||
           kilter_fail(error, KILTER_ERROR_INPUT,
                       "%s cannot be shrunk, and has %.3g elements in all tensors: "
                       "expected at most %.3g to run it in float64",
                       graph_name(graph), elements, most);
}
