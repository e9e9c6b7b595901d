/* Classes of ops that the backward computes again, as rows over the kinds and names of ops. */
#include <string.h>

#include "data/base/names.h"
#include "data/strategy/strategy.h"

/* Patterns as of a shell, alternatives separated by spaces; `beside`: a pattern of another op of
 * the layer, without which there is no such op; NULL: any. */
typedef struct {
    const char *name;
    Recompute bit;
    const char *kinds, *names, *not_names, *beside;
    RecomputeWay way;
    bool products; /* only every second product is kept, and attention */
} RecomputeClass;

/* The first row that an op matches has it. Megatron-LM's modules are checkpoints of their own:
 * core_attn, mlp, shared_experts and moe run again as a whole and keep their outputs, the others'
 * outputs are made again where they are used. torchtitan's policy `op` keeps every second product
 * of a layer, from the first one on, and attention. */
static const RecomputeClass CLASS[] = {
    {"selective", RECOMPUTE_SELECTIVE, "*attention", NULL, NULL, NULL, RECOMPUTE_KEEPS,
     false},
    {"core_attn", RECOMPUTE_CORE_ATTN, "*attention", NULL, NULL, NULL, RECOMPUTE_KEEPS,
     false},
    {"layernorm", RECOMPUTE_LAYERNORM, "layer_norm rms_norm", NULL, NULL, NULL,
     RECOMPUTE_DROPS, false},
    {"moe_act", RECOMPUTE_MOE_ACT, "gelu relu* silu swiglu geglu", "*moe* *expert*", NULL,
     NULL, RECOMPUTE_DROPS, false},
    {"mla_up_proj", RECOMPUTE_MLA_UP_PROJ, "q_proj kv_proj rotary join_keys",
     "*attention.*", NULL, "*kv_low", RECOMPUTE_DROPS, false},
    {"mlp", RECOMPUTE_MLP, NULL, "*.ffn.* *.mlp.*", "*.residual *.norm *.sum *.dropout",
     NULL, RECOMPUTE_MODULE, false},
    {"shared_experts", RECOMPUTE_SHARED_EXPERTS, NULL, "*.moe.shared.*", NULL, NULL,
     RECOMPUTE_MODULE, false},
    {"moe", RECOMPUTE_MOE, NULL, "*.moe.*", NULL, NULL, RECOMPUTE_MODULE, false},
    {"alternate", RECOMPUTE_ALTERNATE, NULL, NULL, NULL, NULL, RECOMPUTE_DROPS, true},
};

static bool recompute_matches(const char *patterns, const char *text)
{
    g_auto(GStrv) item = g_strsplit(patterns ? patterns : "*", " ", -1);
    bool any = false;
    for (uint32_t i = 0; item[i] && !any; i++)
        any = g_pattern_match_simple(item[i], text);
    return any;
}

/* Whether the layer has an op that the class wants beside its own. */
static bool recompute_has_beside(const Graph *graph, const RecomputeClass *class,
                                 uint32_t layer)
{
    bool has = !class->beside;
    for (OpId id = 0; id < graph_n_ops(graph) && !has; id++) {
        const Op *op = graph_get_op(graph, id);
        has = op->layer == layer && op->pass == PASS_FORWARD &&
              recompute_matches(class->beside, op->name);
    }
    return has;
}

/* Whether an op is of a class; *products counts the products of its layer that came before. */
static bool recompute_has(const Graph *graph, const RecomputeClass *class, const Op *op,
                          uint32_t *products)
{
    if (class->products) {
        const bool product = strcmp(op_kind_linear(op->kind), "0|1") == 0 &&
                             !op_kind_is_attention(op->kind);
        *products += product;
        return product ? *products % 2 == 0 : !op_kind_is_attention(op->kind);
    }
    return recompute_matches(class->kinds, op_kind_name(op->kind)) &&
           recompute_matches(class->names, op->name) &&
           !(class->not_names && recompute_matches(class->not_names, op->name)) &&
           recompute_has_beside(graph, class, op->layer);
}

RecomputeWay *recompute_ways(const Graph *graph, const Recompute *mode)
{
    RecomputeWay *way = g_new0(RecomputeWay, graph_n_ops(graph) + 1);
    g_autofree uint32_t *products = g_new0(uint32_t, graph_n_layers(graph) + 1);
    ops_each (op, id, graph) {
        if (op->pass != PASS_FORWARD || mode[op->layer] & RECOMPUTE_FULL)
            continue;
        for (uint32_t c = 0; c < G_N_ELEMENTS(CLASS) && way[id] == RECOMPUTE_STAYS; c++)
            if (mode[op->layer] & CLASS[c].bit &&
                recompute_has(graph, &CLASS[c], op, &products[op->layer]))
                way[id] = CLASS[c].way;
    }
    return way;
}

bool *recompute_kept(const Graph *graph, const RecomputeWay *way, const Recompute *mode)
{
    bool *kept = g_new0(bool, graph_n_tensors(graph) + 1);
    ops_each (op, id, graph) {
        for (uint32_t k = 0; k < op->n_in && op->pass == PASS_FORWARD; k++) {
            const OpId by = graph_tensor(graph, op->in[k])->producer;
            const uint32_t layer = by != GRAPH_NONE ? graph_get_op(graph, by)->layer : 0;
            const bool made = way && by != GRAPH_NONE;
            kept[op->in[k]] |=
                !made ||
                (mode[layer] != RECOMPUTE_FULL &&
                 (op->layer != layer ||
                  (way[by] != RECOMPUTE_DROPS &&
                   (way[by] != RECOMPUTE_MODULE || way[id] != RECOMPUTE_MODULE))));
        }
    }
    return kept;
}

Recompute recompute_read(const char *words)
{
    uint32_t mode = 0;
    if (!*words)
        return RECOMPUTE_UNKNOWN;
    g_auto(GStrv) word = g_strsplit(words, "+", -1);
    const bool alone = g_strv_length(word) == 1;
    for (uint32_t w = 0; word[w]; w++) {
        const uint32_t c = NAME_PLACE(CLASS, G_N_ELEMENTS(CLASS), name, word[w]);
        const uint32_t bit = c < G_N_ELEMENTS(CLASS)                 ? CLASS[c].bit
                             : alone && strcmp(word[w], "full") == 0 ? RECOMPUTE_FULL
                                                                     : 0;
        if (bit == 0 && !(alone && strcmp(word[w], "none") == 0))
            return RECOMPUTE_UNKNOWN;
        mode |= bit;
    }
    return (Recompute)mode;
}

char *recompute_words(Recompute mode)
{
    g_autoptr(GString) words = g_string_new(mode == RECOMPUTE_FULL ? "full" : "");
    for (uint32_t c = 0; c < G_N_ELEMENTS(CLASS); c++)
        if (mode & CLASS[c].bit)
            g_string_append_printf(words, "%s%s", words->len ? "+" : "", CLASS[c].name);
    return words->len ? g_string_free(g_steal_pointer(&words), FALSE) : g_strdup("none");
}

char *recompute_names(void)
{
    g_autoptr(GString) names = g_string_new("none, full");
    for (uint32_t c = 0; c < G_N_ELEMENTS(CLASS); c++)
        g_string_append_printf(names, ", %s", CLASS[c].name);
    return g_string_free(g_steal_pointer(&names), FALSE);
}
