/* The strategy: the settings with which people launch a training run. It gives the numbers of
 * pipeline stages, of replicas, and of devices that share each layer, the ranks and layers of each
 * stage, the order of microbatches, the layers to recompute, and the states that replicas divide.
 *
 * A strategy is the same text everywhere: a YAML file of the keys below (strategy_read), `--set
 * KEY=VALUE` on the command line, and the object `strategy` of a plan. In YAML a list may be
 * written as [a, b, c]; as text its items are separated by spaces or commas, and lists of lists by
 * `;`:
 *
 *     pp: 4                      # dp follows from the number of devices
 *     layers: [7, 9, 9, 7]
 *     recompute: [full, full, none, none]      # or one word for all stages, or full@1-14
 *
 * Layers are the graph's (graph_layer_name). If `layers` adds up to two less than their number, the
 * first layer (an embedding) belongs to the first stage, and the last layer (the head) to the last
 * stage.
 *
 * Replicas whose stages differ are pipelines of their own (`pipeline_layers`): each has the whole
 * model, on GPUs of its own, and runs its share of the microbatches. `ranks`, `recompute` and
 * `sequence_parallel` list the stages of all pipelines, the first pipeline's first:
 *
 *     pipeline_layers: [[20, 4], [6, 6, 6, 6]]
 *     pipeline_shares: [3, 1]
 *     microbatches: 16
 *
 * In this folder a stage is a pipeline stage. Its ranks are listed with the devices that share
 * layers next to one another, then the devices that share sequences, then replica by replica: rank
 * ((replica * cp + shard) * tp + position). Unless they are given, stage s has the ranks from s *
 * dp * cp * tp on. That is Megatron-LM's order tp-cp-dp-pp. */
#pragma once

#include "data/base/options.h"
#include "data/graph/graph.h"

/* The schedules; synth/pipeline/pipeline.h has their steps. V: stages go to the last device and
 * back to the first one, so that each device has the k-th stage from the front and from the end;
 * else around. SPLITS: gradients of weights are computed apart from the rest of the backward.
 * SUCCESSIVE: no device waits for the others between two iterations, so that the next one begins
 * while this one ends.
 *
 *    schedule, word, stages per device: default, least, most, V, SPLITS, SUCCESSIVE */
#define SCHEDULE_TABLE(X, Y)                                                    \
    X(Y, GPIPE, "gpipe", 1, 1, 1, false, false, false)                          \
    X(Y, 1F1B, "1f1b", 1, 1, 1, false, false, false)                            \
    X(Y, INTERLEAVED, "interleaved", 2, 1, UINT16_MAX, false, false, false)     \
    X(Y, ZB_H1, "zb-h1", 1, 1, 1, false, true, false)                           \
    X(Y, ZB_H2, "zb-h2", 1, 1, 1, false, true, true)                            \
    X(Y, BREADTH_FIRST, "breadth-first", 2, 2, UINT16_MAX, false, false, false) \
    X(Y, ZB_V, "zb-v", 2, 2, 2, true, true, true)                               \
    X(Y, V_HALF, "v-half", 2, 2, 2, true, true, true)                           \
    X(Y, V_MIN, "v-min", 2, 2, 2, true, true, true)                             \
    X(Y, DUALPIPEV, "dualpipev", 2, 2, 2, true, true, false)                    \
    X(Y, DUALPIPE, "dualpipe", 1, 1, 1, false, true, false)

#define SCHEDULE_WORD(Y, id, word, ...) Y(SCHEDULE_##id, word)
#define SCHEDULE_WORDS(Y)               SCHEDULE_TABLE(SCHEDULE_WORD, Y)
typedef enum { SCHEDULE_WORDS(OPTION_ID) SCHEDULES } Schedule;

typedef struct {
    const char *name; /* in strategies and plans */
    uint32_t chunks, least_chunks, most_chunks;
    bool v, splits, successive;
} ScheduleRow;

const ScheduleRow *schedule_row(Schedule schedule);
/* Whether the iterations of such a pipeline overlap (Program.successive). */
static inline bool schedule_is_successive(Schedule schedule, uint32_t n_stages)
{
    return n_stages > 1 && schedule_row(schedule)->successive;
}
const char *schedule_name(Schedule schedule);
bool schedule_splits(Schedule schedule);
/* zb-h1 and zb-h2: after how many further microbatches gradients of weights are computed on the
 * stage with so many before it. */
uint32_t schedule_lag(Schedule schedule, uint32_t before);
/* The device group of a stage, and the stage of a group's k-th chunk. */
uint32_t schedule_group(Schedule schedule, uint32_t stage, uint32_t n_groups);
uint32_t schedule_stage(Schedule schedule, uint32_t chunk, uint32_t group,
                        uint32_t n_groups);

/* The ops of the forward that the backward computes again: none; whole layers, of which only the
 * inputs are kept; or classes of ops, as bits (data/strategy/recompute.c): attention's inner part,
 * whose intermediate values are the largest and whose FLOPs are few (Korthikanti et al. 2022, Sec.
 * 5), the modules that Megatron-LM names, or all but every second product. `selective` is also any
 * other op whose inner values only the backward reads. */
typedef enum {
    RECOMPUTE_NONE,
    RECOMPUTE_SELECTIVE = 1,
    RECOMPUTE_FULL = 2,
    RECOMPUTE_CORE_ATTN = 4,
    RECOMPUTE_LAYERNORM = 8,
    RECOMPUTE_MOE_ACT = 16,
    RECOMPUTE_MLA_UP_PROJ = 32,
    RECOMPUTE_MLP = 64,
    RECOMPUTE_ALTERNATE = 128,
    RECOMPUTE_SHARED_EXPERTS = 256,
    RECOMPUTE_MOE = 512,
    RECOMPUTE_UNKNOWN = 1024 /* no mode: a word that is none */
} Recompute;

/* How an op of a class runs again: not; by itself, right before the first use of an output that no
 * forward op reads, the others being kept; by itself, none of its outputs being kept; or with the
 * rest of its class in the layer, what others read being kept. */
typedef enum {
    RECOMPUTE_STAYS,
    RECOMPUTE_KEEPS,
    RECOMPUTE_DROPS,
    RECOMPUTE_MODULE
} RecomputeWay;

/* [op], by the modes of layers [layer]; ops of layers that run again whole stay. Caller frees. */
RecomputeWay *recompute_ways(const Graph *graph, const Recompute *mode);
/* [tensor]: whether it stays until the backward although its op may run again: of an op that runs
 * by itself or with its class what ops outside of it read, and of all but whole layers what another
 * layer reads, as each is a checkpoint of its own. way: of recompute_ways; NULL: no op runs again.
 * The caller frees it. */
bool *recompute_kept(const Graph *graph, const RecomputeWay *way, const Recompute *mode);
/* A mode from words such as core_attn+mlp, and back; the caller frees the words. */
Recompute recompute_read(const char *words);
char *recompute_words(Recompute mode);
/* All words, for messages. The caller frees them. */
char *recompute_names(void);

/* clang-format off */
#define CP_COMM_WORDS(X)                                                       \
    X(CP_COMM_ALLGATHER, "allgather") X(CP_COMM_A2A, "a2a") X(CP_COMM_P2P, "p2p")           \
    X(CP_COMM_A2A_P2P, "a2a+p2p")
OPTION_WORDS(CP_COMM_WORDS)

/*    type    member              key                  default */
#define STRATEGY_TABLE(X)                                                       \
    X(COUNT(0, 65535), pp, "pp", "0")                                           \
    X(COUNT(0, 65535), dp, "dp", "0")                                           \
    X(COUNT(0, 65535), tp, "tp", "0")                                           \
    X(COUNT(0, 65535), cp, "cp", "1")                                           \
    X(CHOICE(CP_COMM_WORDS), cp_comm, "cp_comm", "allgather")                   \
    X(COUNT(0, 65535), a2a_ranks, "a2a_ranks", "0")                             \
    X(COUNT(0, 65535), ep, "ep", "1")                                           \
    X(COUNT(0, 65535), etp, "etp", "0")                                         \
    X(NUMBER(1, 65535), imbalance, "imbalance", "1")                            \
    X(PARSED(strategy_tokens), expert_tokens, "expert_tokens", "")              \
    X(COUNT(0, 65535), micro_batch, "micro_batch", "0")                         \
    X(COUNT(0, 65534), microbatches, "microbatches", "1")                       \
    X(COUNT(0, 64), pieces, "pieces", "1")                                      \
    X(CHOICE(SCHEDULE_WORDS), schedule, "schedule", "1f1b")                     \
    X(COUNT(0, 65535), virtual_stages, "virtual_stages", "0")                   \
    X(PARSED(strategy_list), layers, "layers", "")                              \
    X(PARSED(strategy_list), cuts, "cuts", "")                                  \
    X(PARSED(strategy_list), stage_tp, "stage_tp", "")                          \
    X(PARSED(strategy_list), stage_dp, "stage_dp", "")                          \
    X(PARSED(strategy_list), stage_cp, "stage_cp", "")                          \
    X(PARSED(strategy_list), stage_ep, "stage_ep", "")                          \
    X(PARSED(strategy_list), stage_zero, "stage_zero", "")                      \
    X(PARSED(strategy_list), stage_micro_batch, "stage_micro_batch", "")        \
    X(PARSED(strategy_lists), ranks, "ranks", "")                               \
    X(PARSED(strategy_lists), pipeline_layers, "pipeline_layers", "")           \
    X(PARSED(strategy_shares), pipeline_shares, "pipeline_shares", "")          \
    X(PARSED(strategy_shares), shares, "shares", "")                            \
    X(PARSED(strategy_recompute), recompute, "recompute", "none")               \
    X(PARSED(strategy_switches), sequence_parallel, "sequence_parallel", "off") \
    X(COUNT(0, 3), zero, "zero", "0")                                           \
    X(COUNT(0, 65535), zero_ranks, "zero_ranks", "0")                           \
    X(COUNT(1, 65535), sync_every, "sync_every", "1")                           \
    X(PARSED(strategy_offload), offload, "offload", "none")
/* clang-format on */

/* Readers of the table's texts; each keeps its text in canonical form, interned. */
OptionReader strategy_list, strategy_lists, strategy_shares, strategy_recompute,
    strategy_switches, strategy_offload, strategy_tokens;

typedef struct {
    STRATEGY_TABLE(OPTION_MEMBER)
} Strategy;

/* Whether the strategy's `offload` names a part of what devices hold. */
typedef enum { OFFLOAD_OPTIMIZER, OFFLOAD_PARAMETERS, OFFLOAD_ACTIVATIONS } Offload;
bool strategy_offloads(const Strategy *strategy, Offload part);

extern const OptionTable strategy_table;

void strategy_init(Strategy *strategy);

/* Sets the keys of the file; other keys keep their values. KILTER_ERROR_INPUT names file, line and
 * key. */
bool strategy_read(const char *file, Strategy *strategy, GError **error);
/* The same from text; messages call it `file`. */
bool strategy_parse(const char *file, const char *text, size_t length, Strategy *strategy,
                    GError **error);

/* The keys that are not at their defaults, as a JSON object that the caller owns. */
struct json_t *strategy_json(const Strategy *strategy);

bool strategy_is_default(const Strategy *strategy);
/* Whether it lays out a program: pipelines of unlike stages only have states on hosts from it. */
bool strategy_lays_out(const Strategy *strategy);
/* The first key that is not at its default and not among `keys`, "a, b"; NULL: there is none. */
const char *strategy_beside(const Strategy *strategy, const char *keys);

/* How unevenly `imbalance` or `expert_tokens` say that dropless experts are chosen: of each layer
 * that has some [layer] the tokens of the experts before each one and of all over the mean
 * [experts + 1], else NULL. *tokens is NULL if they are chosen evenly. KILTER_ERROR_INPUT: the
 * model has no such experts, or the numbers do not suit them. */
bool strategy_expert_tokens(const Strategy *strategy, const Graph *graph,
                            GPtrArray **tokens, GError **error);

/* --- laid out over a graph and devices --- */

/* The degrees of a device group. */
typedef struct {
    uint32_t tp, dp, cp, ep, zero;
} StageDegrees;

typedef struct {
    uint32_t pp, dp, cp, tp, n_stages, n_microbatches;
    uint32_t pieces; /* of each microbatch, that take turns; 0: 1 */
    Schedule schedule;
    /* [n_stages + 1]: first layer of each stage; the last element is the number of layers */
    uint32_t *first;
    uint32_t *device; /* [((stage group * dp + replica) * cp + shard) * tp + position] */
    double *share;    /* [dp]: shares of the batch, sum to 1 */
    Recompute *recompute; /* [layer] */
    bool *sequence;       /* [layer] */
    /* replicas, or shards, that divide experts: ep over tp where `experts` */
    uint32_t ep;
    bool experts; /* the devices that tp joins have different experts, whole ones */
    uint32_t zero, zero_ranks;
    uint32_t cp_comm;   /* of the option's words */
    uint32_t a2a_ranks; /* with a2a+p2p; else 0 */
    /* [pp]: degrees of each device group, whose devices follow one another in `device`; NULL: all
     * are alike. tp and dp are then those of the first one; cp, ep and zero the largest */
    StageDegrees *stage;
} StrategyLayout;

/* The degrees of device group `p`. */
static inline StageDegrees layout_degrees(const StrategyLayout *l, uint32_t p)
{
    return l->stage ? l->stage[p] : (StageDegrees){l->tp, l->dp, l->cp, l->ep, l->zero};
}
/* The number of its devices. */
static inline uint32_t layout_devices(const StrategyLayout *l, uint32_t p)
{
    const StageDegrees of = layout_degrees(l, p);
    return of.dp * of.cp * of.tp;
}

/* Whether keys and values can come to the queries one part after the other (p2p, a2a+p2p), and
 * whether they do. */
bool strategy_takes_rings(const Graph *graph);
static inline bool strategy_has_rings(const Strategy *strategy)
{
    return strategy->cp_comm >= CP_COMM_P2P;
}

/* Lays a strategy out. KILTER_ERROR_INPUT gives the first reason why that is impossible. */
bool strategy_lay_out(const Strategy *strategy, const Graph *graph, uint32_t n_devices,
                      StrategyLayout *layout, GError **error);
/* Takes a stage's devices from its list, and marks those as seen [n_devices]. */
bool strategy_take_ranks(const char *ranks, uint32_t n_devices, bool *seen,
                         uint32_t *device, uint32_t *n, GError **error);
AUTOCLEAR(strategy_layout_clear, StrategyLayout)
/* The key `ranks` of stages with device[stage * stride + i], interned; NULL: they are the devices
 * in order. */
const char *strategy_ranks_text(const uint32_t *device, size_t stride, uint32_t n_stages,
                                uint32_t of_stage);

/* The layouts of a strategy's pipelines, which are one unless `pipeline_layers` says otherwise.
 * Their `device` are numbers of the whole cluster. */
typedef struct {
    uint32_t n;
    StrategyLayout *pipeline;
} StrategyPipelines;

/* The same for any strategy; strategy_lay_out refuses `pipeline_layers`. */
bool strategy_lay_out_pipelines(const Strategy *strategy, const Graph *graph,
                                uint32_t n_devices, StrategyPipelines *pipelines,
                                GError **error);
/* Fails with KILTER_ERROR_INPUT for a key that changes nothing beside the others. */
bool strategy_check_effects(const Strategy *strategy, const StrategyPipelines *pipelines,
                            GError **error);
AUTOCLEAR(strategy_pipelines_clear, StrategyPipelines)

/* *modes gets the mode of each layer [n_layers], allocated, for stages that begin at the layers
 * `first` [n_stages + 1]. KILTER_ERROR_INPUT. */
bool strategy_layer_modes(const Strategy *strategy, const Graph *graph, uint32_t n_stages,
                          const uint32_t *first, Recompute **modes, GError **error);
