/* A transformer by its facts, to which configuration files of model families and models in YAML
 * reduce, and from which the named models of 2022 and later are built (private to data).
 *
 * Tensors: x [batch, seq, hidden]; queries [batch, seq, kv heads, queries to a key, head], keys
 * with values [batch, seq, kv heads, head + value]; see data/graph/op.h. */
#pragma once

#include "data/graph/graph.h"

/* The blocks and other choices: X(id, name in files). */
/* clang-format off */
#define NORM_NAMES(X) X(NORM_LAYER, "layer") X(NORM_RMS, "rms")
#define ACTIVATION_NAMES(X)                                                  \
    X(ACTIVATION_GELU, "gelu") X(ACTIVATION_RELU, "relu")                    \
    X(ACTIVATION_SILU, "silu") X(ACTIVATION_RELU2, "relu2")
/* Where a layer's norms lie; f: the mixer or the network. pre: x += f(norm(x)); post: x = norm(x +
 * f(x)); sandwich: x += norm(f(norm(x))); after: x += norm(f(x)); parallel: x += mixer(norm(x)) +
 * network(norm(x)) with one norm, or two */
#define ARRANGEMENT_NAMES(X)                                                 \
    X(ARRANGEMENT_PRE, "pre") X(ARRANGEMENT_POST, "post")                    \
    X(ARRANGEMENT_SANDWICH, "sandwich") X(ARRANGEMENT_AFTER, "after")        \
    X(ARRANGEMENT_PARALLEL, "parallel") X(ARRANGEMENT_PARALLEL_TWO, "parallel-two")
/* RMS norms of queries and of keys: of each head, by the same weights or (each) by its own, or of
 * all heads at once. */
#define QK_NORM_NAMES(X)                                                     \
    X(QK_NORM_NONE, "none") X(QK_NORM_HEAD, "head") X(QK_NORM_EACH, "each") X(QK_NORM_ALL, "all")
/* A sigmoid that multiplies attention's output: one for each element, or for each head. */
#define OUTPUT_GATE_NAMES(X) X(OUTPUT_GATE_NONE, "none") X(OUTPUT_GATE_ELEMENT, "element") X(OUTPUT_GATE_HEAD, "head")
/* Mixers of tokens: latent is low-rank attention (MLA: DeepSeek-AI 2024), mamba Mamba-2 (Dao and Gu
 * 2024), delta the gated delta net (Yang et al. 2024), kimi-delta the same with a decay of each
 * element (Kimi Team 2025), lightning linear attention with fixed decays (Qin et al. 2024), conv a
 * gated convolution of a few tokens (LFM2: Liquid AI 2025); attention-and-mamba adds up both.
 * mamba-1 has a decay of each channel and state (Gu and Dao 2023), rwkv-6 and rwkv-7 are those of
 * Peng et al. 2024 and 2025. */
#define MIXER_NAMES(X)                                                       \
    X(MIXER_NONE, "none") X(MIXER_ATTENTION, "attention")                    \
    X(MIXER_LATENT, "latent") X(MIXER_MAMBA, "mamba") X(MIXER_DELTA, "delta") \
    X(MIXER_KIMI_DELTA, "kimi-delta") X(MIXER_LIGHTNING, "lightning") X(MIXER_CONV, "conv") \
    X(MIXER_ATTENTION_AND_MAMBA, "attention-and-mamba") X(MIXER_MAMBA_1, "mamba-1") \
    X(MIXER_RWKV_6, "rwkv-6") X(MIXER_RWKV_7, "rwkv-7")
/* `both`: a feed-forward network and, beside it, experts; rwkv: RWKV's mixing of channels. */
#define NETWORK_NAMES(X)                                                     \
    X(NETWORK_NONE, "none") X(NETWORK_DENSE, "dense") X(NETWORK_EXPERTS, "experts") X(NETWORK_BOTH, "both") \
    X(NETWORK_RWKV_6, "rwkv-6") X(NETWORK_RWKV_7, "rwkv-7")
/* clang-format on */

#define X(id, name) id,
typedef enum { NORM_NAMES(X) NORMS } NormKind;
typedef enum { ACTIVATION_NAMES(X) ACTIVATIONS } Activation;
typedef enum { ARRANGEMENT_NAMES(X) ARRANGEMENTS } Arrangement;
typedef enum { QK_NORM_NAMES(X) QK_NORMS } QkNorm;
typedef enum { OUTPUT_GATE_NAMES(X) OUTPUT_GATES } OutputGate;
typedef enum { MIXER_NAMES(X) MIXERS } Mixer;
typedef enum { NETWORK_NAMES(X) NETWORKS } Network;
#undef X

/* The facts of a model, X(kind, name, least, most): members, what a family's row can say, and what
 * is read and checked. They are read in this order; an expression can use the facts above its
 * own. */
enum { FACT_MOST = 1 << 24, FACT_MOST_LAYERS = 4096 };
/* clang-format off */
#define MODEL_FACTS(X)                                                                                          \
    X(SIZE, layers, 1, FACT_MOST_LAYERS)                                                                        \
    X(SIZE, hidden, 1, FACT_MOST)                                                                               \
    X(SIZE, vocab, 1, FACT_MOST)                                                                                \
    X(SIZE, limit, 0, FACT_MOST)          /* longest sequence; 0: none */                                       \
    X(SIZE, embedding_size, 1, FACT_MOST) /* of a row of the table; projected if not `hidden` */                \
    X(SIZE, positions, 0, FACT_MOST)      /* rows of a table of learned positions; 0: none */                   \
    X(SIZE, token_types, 0, FACT_MOST)    /* rows of a table of token types; 0: none */                         \
    X(NORM, norm, 0, 0)                                                                                         \
    X(ARRANGEMENT, arrangement, 0, 0)                                                                           \
    X(FLAG, gated, 0, 1)                  /* the activation multiplies a second projection */                   \
    X(ACTIVATION, activation, 0, 0)                                                                             \
    X(FLAG, qkv_bias, 0, 1)                                                                                     \
    X(FLAG, out_bias, 0, 1)                                                                                     \
    X(FLAG, ffn_bias, 0, 1)                                                                                     \
    X(FLAG, head_bias, 0, 1)                                                                                    \
    X(FLAG, tied, 0, 1)                   /* the head is the embedding's table */                               \
    X(FLAG, embedding_norm, 0, 1)                                                                               \
    X(FLAG, projected_late, 0, 1)         /* rows get positions and norm before they are wide */ \
    X(FLAG, final_norm, 0, 1)                                                                                   \
    X(FLAG, causal, 0, 1)                                                                                       \
    X(FLAG, alibi, 0, 1)                                                                                        \
    X(QK_NORM, qk_norm, 0, 0)                                                                                   \
    X(OUTPUT_GATE, output_gate, 0, 0)                                                                           \
    /* ranks of the vectors that queries, and latent attention's keys with values, are made of; \
     * elements of a key that all heads share; q_rank 0: queries are made from x */ \
    X(SIZE, q_rank, 0, FACT_MOST)                                                                               \
    X(SIZE, kv_rank, 0, FACT_MOST)                                                                              \
    X(SIZE, shared_key, 0, FACT_MOST)                                                                           \
    X(FLAG, rank_bias, 0, 1)                                                                                    \
    /* the indexer of sparse attention */                                                                       \
    X(SIZE, index_heads, 0, FACT_MOST)                                                                          \
    X(SIZE, index_size, 0, FACT_MOST)                                                                           \
    /* experts: `latent` is the width on which they work, 0: the model's */                                     \
    X(SIZE, experts, 0, FACT_MOST)                                                                              \
    X(SIZE, top, 0, FACT_MOST)                                                                                  \
    /* equal groups of experts, and those of them that a token's experts are in; 0: any */ \
    X(SIZE, expert_groups, 0, MOST_EXPERT_GROUPS)                                                               \
    X(SIZE, top_groups, 0, MOST_EXPERT_GROUPS)                                                                  \
    X(SIZE, expert_ffn, 0, FACT_MOST)                                                                           \
    X(SIZE, shared_ffn, 0, FACT_MOST)                                                                           \
    X(SIZE, latent, 0, FACT_MOST)                                                                               \
    X(FLAG, latent_norm, 0, 1)                                                                                  \
    X(FLAG, shared_gate, 0, 1)            /* a sigmoid of each token multiplies the shared expert */            \
    X(FLAG, sigmoid, 0, 1)                                                                                      \
    X(FLAG, normalised, 0, 1)                                                                                   \
    X(FLAG, router_bias, 0, 1)                                                                                  \
    X(FLAG, expert_bias, 0, 1)                                                                                  \
    X(NUMBER, scale, 0, 1e6)                                                                                    \
    /* DeBERTa's table of distances: rows, and the end of those that are logarithms, 0: none */ \
    X(SIZE, distances, 0, FACT_MOST)                                                                            \
    X(SIZE, far, 0, FACT_MOST)                                                                                  \
    X(FLAG, distance_norm, 0, 1)                                                                                \
    /* mamba, delta, kimi-delta, lightning, rwkv: heads of values, groups that share keys,   \
     * elements of a key and of a value; tokens of the convolution (also of conv); ranks of  \
     * kimi-delta's decays and gates, 0: full. mamba-1: channels (heads), parts with keys of \
     * their own (groups), the rank of the steps (decay_rank). rwkv: ranks of decays, gates  \
     * (0: full), of what mixes tokens (6), of rates and of values (7) */                    \
    X(SIZE, scan_heads, 0, FACT_MOST)                                                                           \
    X(SIZE, scan_groups, 0, FACT_MOST)                                                                          \
    X(SIZE, scan_keys, 0, FACT_MOST)                                                                            \
    X(SIZE, scan_values, 0, FACT_MOST)                                                                          \
    X(SIZE, conv, 0, 64)                                                                                        \
    X(SIZE, decay_rank, 0, FACT_MOST)                                                                           \
    X(SIZE, gate_rank, 0, FACT_MOST)                                                                            \
    X(SIZE, mix_rank, 0, FACT_MOST)                                                                             \
    X(SIZE, value_rank, 0, FACT_MOST)                                                                           \
    X(FLAG, conv_bias, 0, 1)                                                                                    \
    X(FLAG, scan_bias, 0, 1)              /* of the projections */                                              \
    X(FLAG, scan_norm, 0, 1)              /* mamba's behind its gate; mamba-1's of keys and steps */ \
    /* sound in place of text: the spectrum of so many moments, of which two become a token */                  \
    X(SIZE, frames, 0, FACT_MOST)                                                                               \
    /* patches of images before the text: numbers of a patch, patches that the projector makes one token of, and  \
     * its inner width, 0: that of the text */                                                                  \
    X(SIZE, patch_numbers, 0, FACT_MOST)                                                                        \
    X(SIZE, merge, 0, FACT_MOST)                                                                                \
    X(FLAG, merge_norm, 0, 1)                                                                                   \
    X(FLAG, merge_mean, 0, 1)             /* a token is the mean of the patches of a square */                  \
    X(FLAG, projected_once, 0, 1)         /* by one product instead of two */                                   \
    X(SIZE, projector, 0, FACT_MOST)                                                                            \
    X(SIZE, memory, 0, FACT_MOST)         /* tokens of an encoder outside, which `cross` layers attend to */    \
    X(SIZE, mtp, 0, 64)                   /* modules for further tokens, which `mtp=` adds */                   \
    /* a diffusion transformer, which predicts the noise of patches: adaLN (Peebles and Xie) by  \
     * products of each layer, or by those of all and a table of its own; the condition's parts: \
     * numbers of an embedded moment, labels, numbers of a text; width of the encoder's tokens, if \
     * they are projected; numbers of a patch's noise */ \
    X(FLAG, modulated, 0, 1)                                                                                    \
    X(FLAG, modulation_table, 0, 1)                                                                             \
    X(SIZE, moments, 0, FACT_MOST)                                                                              \
    X(SIZE, labels, 0, FACT_MOST)                                                                               \
    X(SIZE, pooled, 0, FACT_MOST)                                                                               \
    X(SIZE, guidance, 0, FACT_MOST)       /* numbers of an embedded strength */ \
    X(SIZE, memory_width, 0, FACT_MOST)                                                                         \
    X(SIZE, noise, 0, FACT_MOST)                                                                                \
    X(FLAG, cross_norm, 0, 1)             /* before attention to the encoder's tokens */ \
    /* images in place of text */                                                                               \
    X(SIZE, image, 0, UINT16_MAX)                                                                               \
    X(SIZE, patch, 0, FACT_MOST)                                                                                \
    X(SIZE, channels, 0, FACT_MOST)                                                                             \
    X(SIZE, classes, 0, FACT_MOST)                                                                              \
    X(NUMBER, embedding_dropout, 0, 0.99)                                                                       \
    X(NUMBER, dropout, 0, 0.99)                                                                                 \
    X(NUMBER, attention_dropout, 0, 0.99)                                                                       \
    X(FLAG, fused, 0, 1)                  /* attention keeps its statistics only; else its probabilities */

/* The facts of each layer, which its number $layer may change. */
#define LAYER_FACTS(X)                                                                                          \
    X(MIXER, mixer, 0, 0)                                                                                       \
    X(FLAG, cross, 0, 1)                  /* after the mixer, attention to the encoder's tokens */              \
    X(NETWORK, network, 0, 0)                                                                                   \
    X(SIZE, heads, 1, FACT_MOST)                                                                                \
    X(SIZE, kv_heads, 1, FACT_MOST)                                                                             \
    X(SIZE, head_size, 1, FACT_MOST)                                                                            \
    X(SIZE, value_size, 1, FACT_MOST)                                                                           \
    X(SIZE, window, 0, FACT_MOST)         /* keys that a query sees; 0: all */                                  \
    X(SIZE, rotary, 0, FACT_MOST)         /* elements of a head that turn with the position; the last of latent */ \
    X(SIZE, ffn, 1, FACT_MOST)                                                                                  \
    X(SIZE, chosen_keys, 0, FACT_MOST)    /* keys that the indexer leaves; 0: all */                            \
    X(FLAG, indexer, 0, 1)                /* of its own; else the layer before chooses */                       \
    /* of adaLN: 2: tokens of a text and patches have own weights and attend to each other; */ \
    /* 1: both are one sequence, the network beside attention; 0: patches alone */ \
    X(SIZE, streams, 0, 2)                                                                                      \
    X(FLAG, silent, 0, 1)                 /* the text's tokens are read for the last time */ \
    X(FLAG, dual, 0, 1)                   /* patches attend to themselves, too */ \
    X(SIZE, shared, 0, FACT_MOST)         /* number of the parameters that layers share; 0: own */ \
    /* before the mixer: attention and a network on this and the first layer's input, with the parameters of \
     * that number, and a projection of the layer's own (Zamba: Glorioso et al. 2024); 0: none */ \
    X(SIZE, block, 0, FACT_MOST)                                                                                \
    X(FLAG, shared_values, 0, 1)          /* a value is its key, before norm and rotation */                    \
    X(FLAG, sinks, 0, 1)
/* clang-format on */

#define FACT_TYPE_SIZE        uint32_t
#define FACT_TYPE_FLAG        bool
#define FACT_TYPE_NUMBER      double
#define FACT_TYPE_NORM        NormKind
#define FACT_TYPE_ARRANGEMENT Arrangement
#define FACT_TYPE_ACTIVATION  Activation
#define FACT_TYPE_QK_NORM     QkNorm
#define FACT_TYPE_OUTPUT_GATE OutputGate
#define FACT_TYPE_MIXER       Mixer
#define FACT_TYPE_NETWORK     Network

#define X(kind, name, least, most) FACT_TYPE_##kind name;
typedef struct {
    LAYER_FACTS(X)
} LayerFacts;

typedef struct Architecture Architecture;
struct Architecture {
    MODEL_FACTS(X)
    LayerFacts *layer; /* [layers] */
    /* NULL: none. As wide as this one, with its table of words; or, if it has `patch_numbers`, of
     * images, whose tokens come before the text's where there are patches */
    Architecture *encoder;
    bool spans; /* the head finds begin and end of an answer (SQuAD) instead of a token */
    /* the host looks up the words: their vectors are an input, in place of ids */
    bool host_words;
    Precision precision; /* that the file names */
    char *unread; /* keys of the file that no fact was read from, "a, b"; NULL: none */
};
#undef X

/* The first function allocates the layers, all 0; the second makes all of them like the first one;
 * the third frees what the architecture holds. */
void architecture_layers(Architecture *architecture, uint32_t layers);
void architecture_repeat(Architecture *architecture);
AUTOCLEAR(architecture_clear, Architecture)

/* The same structure with sizes of a few elements, for proofs by running it: dims that can be cut
 * have about `small` pieces, heads and experts at least one for each thousand. Windows of fewer
 * than `seq` tokens stay ones; longer ones see all. */
void architecture_shrink(Architecture *architecture, uint32_t small, uint32_t seq);

/* A text that names the value that does not fit, or NULL. `seq` as in ArchitectureSizes. *fact gets
 * the fact's name. */
const char *architecture_check(const Architecture *architecture, uint32_t seq,
                               const char **fact);

/* The forward graph and its loss: sequences of `seq` tokens (images have a length of their own). An
 * expert has capacity_factor x top x tokens / experts slots per sequence: with 1 no token is
 * dropped as long as the load is even; 0: none ever is, and tensors have the mean's slots. `mtp`:
 * modules for further tokens that are trained, too. `patches`: of a sample's image, whose tokens
 * are the first of `seq`; 0: text only. */
typedef struct {
    uint32_t batch, seq, mtp, patches;
    double capacity_factor;
    /* keys and values, gates and what they gate have own weights */
    bool own_keys, own_gate;
} ArchitectureSizes;
/* Sets the last two: both, or by what adapters name (the spec's `target`; NULL: nothing). */
void architecture_separate(ArchitectureSizes *sizes, const char *target, bool both);
TensorId architecture_build(Graph *graph, const Architecture *architecture,
                            const ArchitectureSizes *sizes);

/* --- pieces of a layer: data/models/layer.c, mixer.c, feed_forward.c, arrangement.c --- */

typedef struct {
    Graph *graph;
    const Architecture *a;
    const LayerFacts *facts; /* of the layer */
    const ArchitectureSizes *sizes;
    const char *side; /* "encoder.", or "": begins `name` and the names of inputs */
    const char *name; /* prefix of names of ops and parameters */
    TensorId chosen;  /* the keys that the last indexer chose */
    TensorId first;   /* the first layer's input, and the first layer's values (rwkv-7) */
    TensorId first_values, distances; /* the table of distances */
    /* of adaLN: the condition, as it is and through silu, and what it makes for all layers */
    TensorId embedded, condition, modulation[6];
    TensorId text;   /* the text's stream, GRAPH_NONE: none, or joined to the other */
    TensorId memory; /* the encoder's tokens, GRAPH_NONE: none */
    bool crosses;    /* keys are made from them */
} Layer;

/* A parameter, an op, and ops of one kind, named PREFIX.part. */
TensorId layer_parameter(const Layer *l, const char *part, uint32_t rank,
                         const uint32_t *dim);
TensorId layer_op(const Layer *l, OpKind kind, const char *part, OpAttr attr,
                  uint32_t n_in, const TensorId *in, const char *extents);
TensorId layer_unary(const Layer *l, OpKind kind, const char *part, TensorId x);
TensorId layer_binary(const Layer *l, OpKind kind, const char *part, TensorId x,
                      TensorId y);
TensorId layer_add(const Layer *l, const char *part, TensorId x, TensorId y);
TensorId layer_linear(const Layer *l, const char *part, TensorId x, uint32_t n,
                      bool bias);
TensorId layer_dropout(const Layer *l, const char *part, TensorId x, double rate);
/* The norm that the architecture has, and one of a kind. */
TensorId layer_norm(const Layer *l, const char *part, TensorId x);
TensorId layer_norm_as(const Layer *l, NormKind norm, const char *part, TensorId x);
TensorId layer_rms_norm(const Layer *l, const char *part, TensorId x);
/* A projection whose weight has the dims `out` and then the features of x. */
TensorId layer_project(const Layer *l, OpKind kind, const char *part, TensorId x,
                       uint32_t rank, const uint32_t *out, bool bias);
/* y f(g), f the sigmoid or SiLU. */
TensorId layer_gate(const Layer *l, const char *part, TensorId y, TensorId g,
                    bool sigmoid);
/* RMS norm of all elements of a token at once. */
TensorId layer_norm_of_all(const Layer *l, const char *part, TensorId x);
/* Vectors one behind the other; tokens of x before those of y. */
TensorId layer_join(const Layer *l, const char *part, TensorId x, TensorId y);
TensorId layer_concat(const Layer *l, const char *part, TensorId x, TensorId y);
/* y [b,s,h,g,V] to [b,s,n]. */
TensorId layer_out(const Layer *l, const char *part, TensorId y, uint32_t n, bool bias);

/* x [b,s,hidden] in and out, by the layer's mixer, and by attention to the encoder's tokens. */
TensorId mixer_build(Layer *l, TensorId x);
TensorId mixer_cross(Layer *l, TensorId x);
/* Attention of two streams x[b,s,hidden] to both; in their places each stream's output, but for the
 * first one's if it is silent. */
void mixer_joint(Layer *const side[2], TensorId x[2]);
/* RWKV's network. */
TensorId mixer_channels(const Layer *l, TensorId x);

/* The layer's network: dense of width `ffn`, experts, both, or one that a mixer brings. Then the
 * dense one alone, its ops and parameters named by `part`. */
TensorId feed_forward_build(Layer *l, TensorId x);
TensorId feed_forward_dense(const Layer *l, const char *part, TensorId x, uint32_t ffn);

/* norm(x) (1 + scale) + shift, the norm without weights; the condition's projections number `first`
 * and the next make both. */
TensorId layer_modulated(const Layer *l, const char *part, TensorId x, uint32_t first);
/* A layer, with its norms and residuals. */
TensorId arrangement_build(Layer *l, TensorId x);
