/* A transformer by its facts, to which configuration files of model families reduce, and from which
 * the named models of 2022 and later are built (private to data).
 *
 * Tensors: x [batch, seq, hidden]; queries [batch, seq, kv heads, queries to a key, head], keys
 * with values [batch, seq, kv heads, head + value]; see data/graph/op.h. */
#ifndef KILTER_DATA_MODELS_ARCHITECTURE_H
#define KILTER_DATA_MODELS_ARCHITECTURE_H

#include "data/graph/graph.h"

typedef enum { NORM_LAYER, NORM_RMS } NormKind;

typedef enum { ACTIVATION_GELU, ACTIVATION_RELU, ACTIVATION_SILU } Activation;

/* Where a layer's norms lie. f: attention or the feed-forward network. */
typedef enum {
    ARRANGEMENT_PRE,          /* x += f(norm(x)) */
    ARRANGEMENT_POST,         /* x = norm(x + f(x)) */
    ARRANGEMENT_SANDWICH,     /* x += norm(f(norm(x))) */
    ARRANGEMENT_PARALLEL,     /* x += attention(norm(x)) + ffn(norm(x)), one norm, */
    ARRANGEMENT_PARALLEL_TWO, /* or two */
} Arrangement;

typedef struct {
    uint32_t layers, hidden, heads, kv_heads;
    uint32_t head_size, value_size; /* elements of a key, and of a value */
    uint32_t ffn, vocab;
    /* elements of a row of the table; projected if not `hidden` */
    uint32_t embedding_size;
    uint32_t positions;      /* rows of a table of learned positions, 0: none */
    uint32_t token_types;    /* rows of a table of token types, 0: none */
    uint32_t limit;          /* longest sequence by the family's file, 0: none */
    NormKind norm;
    Arrangement arrangement;
    Activation activation;
    bool gated; /* the activation multiplies a second projection */
    bool qkv_bias, out_bias, ffn_bias, head_bias;
    bool tied; /* the head is the embedding's table */
    bool embedding_norm, final_norm;
    bool qk_norm; /* RMS norms of each query and each key */
    bool causal, alibi, sinks;
    /* elements of a head that turn with the position; the last ones for MLA */
    uint32_t rotary;
    uint32_t *window; /* [layers]: keys that a query sees; 0: all */

    /* low-rank attention (MLA): ranks of the latent vectors of queries and of keys with values,
     * and elements of a key that all heads share. kv_rank 0: no MLA; q_rank 0: queries are made
     * from x */
    uint32_t q_rank, kv_rank, shared_key;
    bool rank_bias;

    /* mixture of experts */
    bool *sparse; /* [layers]: the layer has experts in place of a feed-forward network */
    uint32_t experts, top, expert_ffn, shared_ffn;
    bool sigmoid, normalised, router_bias, expert_bias;
    double scale;

    /* images in place of text */
    uint32_t image, patch, channels, classes;

    bool spans; /* the head finds begin and end of an answer (SQuAD) instead of a token */
    bool host_words; /* the host looks up the words: their vectors are an input, in place of ids */
    double embedding_dropout, dropout, attention_dropout;
    bool fused; /* attention keeps its statistics only; else its probabilities */
} Architecture;

/* The first function allocates the arrays for `layers`, all 0; the second frees them. */
void architecture_layers(Architecture *architecture, uint32_t layers);
void architecture_clear(Architecture *architecture);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Architecture, architecture_clear)

/* The same structure with sizes of a few elements, for proofs by running it: dims that can be cut
 * have about `small` pieces. */
void architecture_shrink(Architecture *architecture, uint32_t small);

/* A text that names the value that does not fit, or NULL. `seq` as in ArchitectureRun. */
const char *architecture_check(const Architecture *architecture, uint32_t seq);

/* The forward graph and its loss: sequences of `seq` tokens (images have a length of their own). An
 * expert has capacity_factor x top x tokens / experts slots per sequence: with 1 no token is
 * dropped as long as the load is even. */
typedef struct {
    uint32_t batch, seq;
    double capacity_factor;
} ArchitectureSizes;
TensorId architecture_build(Graph *graph, const Architecture *architecture,
                            const ArchitectureSizes *sizes);

#endif
