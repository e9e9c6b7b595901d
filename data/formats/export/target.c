/* The table of what frameworks run: for each the conditions on a strategy that it cannot hold.
 * Both the exporters and the searches for their plans ask it. */
#include <string.h>

#include "data/base/error.h"
#include "data/formats/export/case.h"

/* Features, down to IMAGES of a model, then of a strategy. A target has the bit of each that it
 * runs. */
#define FEATURES(X)                                                              \
    X(FP16, precision_numbers(graph_precision(c->graph)) == NUMBERS_F16,         \
      "parameters in fp16")                                                      \
    X(FP8, precision_least_numbers(graph_precision(c->graph)) == NUMBERS_F8,     \
      "products in fp8")                                                         \
    X(FP4, precision_least_numbers(graph_precision(c->graph)) == NUMBERS_F4,     \
      "products in fp4")                                                         \
    X(FROZEN, has_frozen(c), "parameters that are not trained (train=)")         \
    X(IMAGES, c->seq == 0, "samples without tokens, in which it counts batches") \
    X(UNLIKE, l->stage != NULL, "stages with degrees of their own")              \
    X(PIPELINES, l->pp > 1, "pipelines")                                         \
    X(TENSOR, l->tp > 1, "tensor parallelism")                                   \
    X(CONTEXT, l->cp > 1, "context parallelism")                                 \
    X(EXCHANGED, l->cp > 1 && (l->cp_comm == CP_COMM_A2A || l->a2a_ranks),       \
      "cp_comm=a2a or a2a+p2p")                                                  \
    X(EXPERTS, l->ep > 1, "expert parallelism")                                  \
    X(VIRTUAL, l->n_stages > l->pp, "virtual stages")                            \
    X(SPLIT, l->pp > 1 && schedule_splits(l->schedule),                          \
      "a schedule that computes gradients of weights apart; expected 1f1b")      \
    X(PATTERN,                                                                   \
      l->schedule == SCHEDULE_V_HALF || l->schedule == SCHEDULE_V_MIN ||         \
          l->schedule == SCHEDULE_DUALPIPE,                                      \
      "schedule=v-half, v-min or dualpipe; expected zb-v or dualpipev")          \
    X(WHOLE, l->experts, "etp=1; expected experts divided as other layers")      \
    X(SHARES, !has_equal_shares(l), "replicas have unequal parts of the batch")  \
    X(ZERO_0, l->zero == 0, "zero=0; expected zero=2 or zero=3")                 \
    X(ZERO_1, l->zero == 1, "zero=1")                                            \
    X(ZERO_2, l->zero == 2, "zero=2")                                            \
    X(ZERO_3, l->zero == 3, "zero=3")                                            \
    X(PART_1, l->zero == 1 && in_part(l), "zero=1 among some of the replicas")   \
    X(PART_2, l->zero == 2 && in_part(l), "zero=2 among some of the replicas")   \
    X(PART_3, l->zero == 3 && in_part(l), "zero=3 among some of the replicas")   \
    X(CLASSES, has_classes(c, false), "recomputation of single ops (selective)") \
    X(ALTERNATE, has_classes(c, true), "recomputation of every second product")  \
    X(FULL, count_mode(c, RECOMPUTE_FULL) > 0, "recomputation of whole layers")  \
    X(SOME, !is_one_mode(c), "recomputation of some ops or layers")              \
    X(ENDS, c->ends && (l->recompute[0] || l->recompute[c->inner + 1]),          \
      "recomputation of the embedding or the head")                              \
    X(PADDED, export_padded(c) > 0, "a vocabulary that tp does not divide")      \
    X(MIXED, !has_one_type(c), "a stage on unlike devices; a mesh has one type")

#define FEATURE_ID(id, used, words) FEATURE_##id,
typedef enum { FEATURES(FEATURE_ID) } Feature;

/* --- what a strategy has --- */

static bool has_equal_shares(const StrategyLayout *l)
{
    bool equal = true;
    for (uint32_t r = 1; r < l->dp; r++)
        equal &= l->share[r] == l->share[0];
    return equal;
}

static bool in_part(const StrategyLayout *l)
{
    return l->zero_ranks < l->dp * l->cp;
}

/* The number of inner layers with this mode. */
static uint32_t count_mode(const ExportCase *c, Recompute mode)
{
    uint32_t n = 0;
    for (uint32_t k = c->ends; k < c->ends + c->inner; k++)
        n += c->layout.recompute[k] == mode;
    return n;
}

/* Whether layers compute classes of ops again; alternate: every second product. */
static bool has_classes(const ExportCase *c, bool alternate)
{
    const Recompute *mode = &c->layout.recompute[c->ends];
    const bool any = any_of(k, c->inner,
                            mode[k] != RECOMPUTE_NONE && mode[k] != RECOMPUTE_FULL &&
                                ((mode[k] & RECOMPUTE_ALTERNATE) != 0) == alternate);
    return any;
}

static bool is_one_mode(const ExportCase *c)
{
    return count_mode(c, c->layout.recompute[c->ends]) == c->inner;
}

static bool has_frozen(const ExportCase *c)
{
    const bool any =
        any_of(id, graph_n_tensors(c->graph), graph_tensor(c->graph, id)->frozen);
    return any;
}

static bool has_one_type(const ExportCase *c)
{
    const uint32_t n = export_stage_ranks(c);
    const bool one =
        all_of(i, c->layout.pp * n,
               strcmp(c->view->device[c->layout.device[i]].type_name,
                      c->view->device[c->layout.device[i / n * n]].type_name) == 0);
    return one;
}

static bool has_feature(const ExportCase *c, Feature feature)
{
    const StrategyLayout *l = &c->layout;
    switch (feature) {
#define X(id, used, words) \
    case FEATURE_##id:     \
        return used;
        FEATURES(X)
#undef X
    }
    g_assert_not_reached();
}

#define FEATURE_WORDS_OF(id, used, words) words,
static const char *const FEATURE_WORDS[] = {FEATURES(FEATURE_WORDS_OF)};

/* --- further conditions --- */

/* Embedding, layers.0, layers.1, ..., head. */
static bool need_layers(const ExportCase *c, GError **error)
{
    const uint32_t n = graph_n_layers(c->graph);
    for (uint32_t k = 0; k < n; k++) {
        g_autofree char *expected = g_strdup_printf("layers.%u", k - 1);
        if (n < 3 ||
            (k > 0 && k + 1 < n && strcmp(graph_layer_name(c->graph, k), expected) != 0))
            return export_refuse_layer(
                c, k, error,
                "layer %s; expected layers.0, layers.1, ... between an embedding and a "
                "head",
                graph_layer_name(c->graph, k));
    }
    return true;
}

static bool need_one_sequence(const ExportCase *c, GError **error)
{
    for (uint32_t k = 1; c->layout.tp > 1 && k < graph_n_layers(c->graph); k++)
        if (c->layout.sequence[k] != c->layout.sequence[0])
            return export_refuse_layer(c, k, error,
                                       "sequence parallelism in some stages only");
    return true;
}

bool export_block(const ExportCase *c, uint32_t stage, uint32_t *n)
{
    const uint32_t first = MAX(c->layout.first[stage], c->ends),
                   end = MIN(c->layout.first[stage + 1], c->ends + c->inner);
    bool block = true;
    *n = 0;
    for (uint32_t k = first; k < end; k++) {
        const Recompute mode = c->layout.recompute[k];
        block &= mode == RECOMPUTE_NONE || (mode == RECOMPUTE_FULL && k == first + *n);
        *n += mode == RECOMPUTE_FULL;
    }
    return block;
}

/* All layers in one mode, or in full the first N of every stage; a stage with fewer layers than N
 * computes all of them again. */
static bool need_blocks(const ExportCase *c, GError **error)
{
    const uint32_t stages = is_one_mode(c) ? 0 : c->layout.n_stages;
    uint32_t most = 0, n;
    for (uint32_t s = 0; s < stages; s++, most = MAX(most, n))
        if (!export_block(c, s, &n))
            return export_refuse_layer(
                c, c->layout.first[s], error,
                has_classes(c, false)
                    ? "selective recomputation of some layers"
                    : "recomputation that is not of a stage's first layers");
    for (uint32_t s = 0; s < stages; s++)
        if (export_block(c, s, &n) && n != MIN(most, export_inner_layers(c, s)))
            return export_refuse_layer(c, c->layout.first[s], error,
                                       "stage %u computes %u layers again, another one "
                                       "%u",
                                       s, n, most);
    return true;
}

/* Steps in Megatron-LM's order; with as many microbatches as ranks, versions that know layouts
 * begin interleaved backwards earlier than the plan does. */
static bool need_steps(const ExportCase *c, GError **error)
{
    const StrategyLayout *l = &c->layout;
    const bool chunks = l->n_stages > l->pp;
    if (l->schedule == SCHEDULE_GPIPE && l->n_microbatches > 1)
        return export_refuse_layer(c, 0, error,
                                   "schedule: expected the whole backward of stage 0 and "
                                   "microbatch 0, as in 1f1b");
    if (l->schedule == SCHEDULE_BREADTH_FIRST)
        return export_refuse_layer(c, 0, error,
                                   "schedule=%s; expected 1f1b or "
                                   "interleaved",
                                   schedule_name(l->schedule));
    if (l->schedule == SCHEDULE_INTERLEAVED &&
        (chunks ? l->n_microbatches <= l->pp || l->n_microbatches % l->pp != 0
                : l->pp > 1 && l->n_microbatches > 1))
        return export_refuse_layer(
            c, 0, error, "schedule=interleaved with %u microbatches on %u ranks%s",
            l->n_microbatches, l->pp,
            chunks ? "; expected a larger multiple, as in interleaved 1f1b"
                   : " of one stage each");
    return true;
}

static bool megatron_runs(const ExportCase *c, GError **error)
{
    const StrategyLayout *l = &c->layout;
    return need_layers(c, error) && need_blocks(c, error) && need_steps(c, error) &&
           need_one_sequence(c, error) &&
           (l->zero < 2 || l->pp == 1 ||
            export_refuse_layer(
                c, 1, error, "zero=%u with pipelines; its FSDP is without", l->zero)) &&
           ((l->ep == 1 && !l->experts) || l->tp == 1 || l->sequence[0] ||
            export_refuse_layer(c, 1, error,
                                "ep=%u with tp=%u without sequence_parallel, at which it "
                                "stops",
                                l->ep * (l->experts ? l->tp : 1), l->tp));
}

static bool flagscale_runs(const ExportCase *c, GError **error)
{
    for (uint32_t s = 0; s < c->layout.n_stages; s++)
        if (export_inner_layers(c, s) == 0)
            return export_refuse_layer(c, c->layout.first[s], error,
                                       "stage %u without a layer", s);
    return megatron_runs(c, error);
}

/* PyTorch's schedules keep what is computed again until the gradients of weights, which compute it
 * once more; where every second product was kept, this ends in an error. */
static bool need_kept(const ExportCase *c, GError **error)
{
    return !schedule_splits(c->layout.schedule) ||
           (count_mode(c, RECOMPUTE_NONE) == c->inner && !has_feature(c, FEATURE_ENDS)) ||
           export_refuse_layer(c, 1, error,
                               "recomputation where gradients of weights are "
                               "computed apart");
}

/* FSDP shards over the ranks that share a sequence as well, and experts' ranks are taken from
 * these. */
static bool titan_runs(const ExportCase *c, GError **error)
{
    const StrategyLayout *l = &c->layout;
    const uint32_t ranks = l->zero >= 2 ? l->zero_ranks : 1;
    if (ranks % l->cp != 0)
        return export_refuse_layer(c, 1, error,
                                   "cp=%u with zero=0; it divides states over these "
                                   "ranks",
                                   l->cp);
    if (l->ep > 1 && (l->tp > 1 || ranks % l->ep != 0))
        return export_refuse_layer(
            c, 1, error,
            "ep=%u; expected ranks that divide states (zero=2 or 3), without tensor "
            "parallelism",
            l->ep);
    const Recompute mode = l->recompute[c->ends];
    return need_layers(c, error) && need_one_sequence(c, error) && need_kept(c, error) &&
           (!(mode & RECOMPUTE_ALTERNATE) || mode == RECOMPUTE_ALTERNATE ||
            export_refuse_layer(c, 1, error,
                                "recomputation of other ops than every "
                                "second product"));
}

/* Its stages share nothing. */
static bool pytorch_runs(const ExportCase *c, GError **error)
{
    const StrategyLayout *l = &c->layout;
    for (OpId id = 0; id < graph_n_ops(c->graph) && l->pp > 1; id++)
        if (graph_get_op(c->graph, id)->kind == OP_TIED)
            return export_refuse_layer(c, 0, error, "parameters that stages share");
    return need_kept(c, error);
}

/* --- the table --- */

typedef struct {
    const char *name;
    uint32_t features;                                 /* bits of Feature */
    bool (*runs)(const ExportCase *c, GError **error); /* NULL: no further condition */
} Target;

#define HAS(id) (1u << FEATURE_##id)
#define MODES   (HAS(CLASSES) | HAS(FULL))
/* Megatron-LM and what shares its code; FlagScale's meshes stop at optimizer instances and context
 * parallelism. */
#define MEGATRON                                                                     \
    (HAS(PIPELINES) | HAS(TENSOR) | HAS(EXPERTS) | HAS(ZERO_1) | MODES | HAS(SOME) | \
     HAS(PADDED) | HAS(FP16) | HAS(FP8) | HAS(IMAGES) | HAS(ZERO_0))

static const Target TARGET[] = {
    {"megatron",
     MEGATRON | HAS(CONTEXT) | HAS(EXCHANGED) | HAS(WHOLE) | HAS(VIRTUAL) | HAS(PART_1) |
         HAS(ZERO_2) | HAS(ZERO_3) | HAS(MIXED),
     megatron_runs},
    {"flagscale", MEGATRON, flagscale_runs},
    {"torchtitan",
     HAS(PIPELINES) | HAS(TENSOR) | HAS(CONTEXT) | HAS(EXPERTS) | HAS(VIRTUAL) |
         HAS(SPLIT) | HAS(ZERO_0) | HAS(ZERO_2) | HAS(ZERO_3) | HAS(PART_2) |
         HAS(PART_3) | HAS(FULL) | HAS(ALTERNATE) | HAS(MIXED),
     titan_runs},
    {"deepspeed",
     HAS(ZERO_0) | HAS(ZERO_1) | HAS(ZERO_2) | HAS(ZERO_3) | HAS(PART_3) | HAS(FULL) |
         HAS(FP16) | HAS(IMAGES) | HAS(MIXED) | HAS(FROZEN),
     NULL},
    {"fsdp",
     HAS(ZERO_2) | HAS(ZERO_3) | HAS(PART_2) | HAS(PART_3) | HAS(FULL) | HAS(FP16) |
         HAS(IMAGES) | HAS(MIXED) | HAS(FROZEN),
     NULL},
    {"ddp",
     HAS(ZERO_0) | HAS(SHARES) | HAS(FP16) | HAS(FP8) | HAS(IMAGES) | HAS(MIXED) | MODES |
         HAS(SOME) | HAS(ENDS) | HAS(FROZEN),
     NULL},
    {"pytorch",
     HAS(PIPELINES) | HAS(VIRTUAL) | HAS(SPLIT) | HAS(SHARES) | HAS(ZERO_0) |
         HAS(ZERO_1) | HAS(FULL) | HAS(SOME) | HAS(ENDS) | HAS(FP16) | HAS(IMAGES) |
         HAS(MIXED) | HAS(FROZEN),
     pytorch_runs},
};

bool export_need_target(const ExportCase *c, GError **error)
{
    for (uint32_t t = 0; t < G_N_ELEMENTS(TARGET); t++) {
        if (strcmp(TARGET[t].name, c->target) != 0)
            continue;
        for (Feature f = 0; f < G_N_ELEMENTS(FEATURE_WORDS); f++)
            if (!(TARGET[t].features >> f & 1u) && has_feature(c, f))
                return f <= FEATURE_IMAGES
                           ? refuse(error, "%s cannot run this model: %s", c->target,
                                    FEATURE_WORDS[f])
                           : export_refuse_layer(c, f != FEATURE_MIXED, error, "%s",
                                                 FEATURE_WORDS[f]);
        return !TARGET[t].runs || TARGET[t].runs(c, error);
    }
    return true; /* json */
}
