/* Bundled models: the table of specs and the builders (private to data). */
#pragma once

#include "data/base/units.h"
#include "data/models/architecture.h"
#include "data/models/model.h"

typedef struct {
    const char *key;
    double value;    /* default, then the resolved value */
    double min, max; /* accepted range */
    bool integer;
    /* NULL: a number; else a quantity, and this is the unit of value, min and max */
    const char *unit;
    Quantity quantity;
} ModelParam;

enum { MODEL_MAX_PARAMS = 16 };

/* The second output of attention: all probabilities, or statistics only. */
typedef enum {
    ATTENTION_OF_MODEL,
    ATTENTION_MATERIALIZED,
    ATTENTION_FUSED
} AttentionKind;

typedef struct {
    ModelParam param[MODEL_MAX_PARAMS];
    uint32_t n;
    Optimizer optimizer;
    Precision precision;
    bool has_precision;         /* the spec says it */
    bool has_like;              /* the spec accepts like=... */
    char like[32];              /* the family that a file is read as; "": its own */
    const char *format[4];      /* by STATE_KEYS, interned; NULL: the precision's */
    const char *train, *target; /* interned; NULL: all */
    const char *documents; /* of documents_are, interned; NULL: one for each sequence */
    bool own_products;     /* as in ArchitectureSizes, keys and gates */
    bool has_attention;    /* the spec accepts attention=... */
    AttentionKind attention;
} ModelParams;

/* A graph has at most some tens of ops per layer, so a graph of this many layers fits in memory. */
enum { MODEL_MOST_LAYERS = 4096 };

/* Adds the forward graph and returns the loss; and checks that involve several parameters: NULL, or
 * a text saying what is wrong. */
typedef TensorId ModelBuild(Graph *graph, const ModelParams *params);
typedef const char *ModelCheck(const ModelParams *params);

typedef struct {
    ModelInfo info;
    ModelBuild *build;
    ModelCheck *check;                  /* may be NULL */
    ModelParam param[MODEL_MAX_PARAMS]; /* ends with key NULL */
    void (*finish)(Graph *graph,
                   const ModelParams *params); /* called before sealing; may be NULL */
    uint32_t gpu_experts; /* experts per GPU, if their number follows the cluster */
    bool attention;       /* specs accept attention=fused|materialized */
    bool like;            /* specs accept like=FAMILY */
} ModelEntry;

/* How a parameter changes in a small model of the same structure. */
typedef enum {
    SMALL_STAYS, /* as it is: it says which ops there are, or how long they take */
    SMALL_SIZE,  /* base + step x devices, at most `cap` */
    /* the same, never varied: others are multiples of it, and would grow large */
    SMALL_FACTOR,
    SMALL_BATCH,    /* the same, and a multiple of the microbatches */
    SMALL_HEADS,    /* the same, and even where queries share keys */
    SMALL_KEYS,     /* half of the heads, or as many as they are */
    SMALL_BY_HEADS, /* a few elements of each head */
    SMALL_PATCH,    /* elements of a patch's edge */
    /* a few patches; without any, the least that convolutions leave something of */
    SMALL_IMAGE,
    SMALL_BYTES,   /* of a few elements for each device */
    SMALL_ROOM,    /* `base` where it is 0, so that small models have room for all */
    SMALL_EXPERTS, /* as SMALL_SIZE, or as many as have to be even */
    /* the number of devices, and in thousands the even one of heads and experts: a model in a file
     * shrinks itself by it */
    SMALL_DEVICES
} SmallWay;

typedef struct {
    const char *key;
    SmallWay way;
    uint32_t base, step, cap;
} ModelSmall;

/* One row for each key of the models' parameters. */
extern const ModelSmall MODEL_SMALL_TABLE[];
extern const uint32_t MODEL_SMALL_TABLE_SIZE;
/* The parameter `small` of models in files that are as small as can be, but for thousands. */
enum { SMALL_LEAST = 1 };

extern const ModelEntry MODEL_TABLE[];
extern const uint32_t MODEL_TABLE_SIZE;
/* The entries of models in files, which have parameters but no builder. */
extern const ModelEntry MODEL_OF_TEXT, MODEL_OF_IMAGES, MODEL_OF_PROFILE, MODEL_OF_ONNX;

/* The first function returns the defaults of an entry, the second reads "key=value,..." of a spec,
 * which messages name. */
ModelParams model_params_new(const ModelEntry *entry);
bool model_params_parse(const char *spec, const char *list, ModelParams *params,
                        GError **error);
/* Gives a new graph the precision, the formats of states and the training of the parameters. */
void model_prepare(Graph *graph, const ModelParams *params);
/* The meaning of `train` and `target`; false if they say nothing. */
bool model_training(const ModelParams *params, TrainedParts *training);
/* Weak scaling: parameters that are 0 are set by the number of GPUs (HAP Sec. 7.1). */
bool model_params_follow(const char *spec, ModelParams *params, uint32_t gpu_experts,
                         uint32_t gpus, GError **error);
/* The spec with all parameters. The caller frees it. */
char *model_params_spec(const char *name, const ModelParams *params);
/* The parameter of that key, or NULL. */
ModelParam *model_params_find(ModelParams *params, const char *key);

/* The value of a key, which the model must have. */
double model_param(const ModelParams *params, const char *key);
uint32_t model_size(const ModelParams *params, const char *key);

/* A spec of a file, the object in the file, and what is wanted of them. */
typedef struct {
    const char *spec, *file, *list;
    struct json_t *root;
    uint32_t gpus;    /* 0: the values are only checked */
    Graph **graph;    /* gets the graph, differentiated and sealed; NULL: not wanted */
    char **canonical; /* gets the spec that says all parameters; NULL: not wanted */
} ModelOfFile;

/* In models with experts every `moe_every`-th layer has them, with top-2 (sgmoe) or top-1 gating
 * (switch). */
ModelBuild model_vgg19, model_vit, model_bert_base, model_bert_sgmoe, model_bert_switch,
    model_vit_sgmoe, model_vit_switch, model_gpt2, model_gpt2_fused, model_transgan,
    model_synthetic, model_vit_paper, model_llama, model_mixtral, model_resnet50,
    model_resnet101, model_inceptionv3, model_tag_resnet101, model_tag_inceptionv3,
    model_tag_transformer, model_tag_bert;
ModelCheck model_vgg19_check, model_vit_check, model_transformer_check,
    model_vit_moe_check, model_bert_moe_check, model_synthetic_check,
    model_transgan_check, model_llama_check, model_mixtral_check, model_resnet_check,
    model_inception_check;

/* Sets the times of the ops of the differentiated graph. */
void model_synthetic_times(Graph *graph, const ModelParams *params);

/* --- layers of the models of papers --- */

typedef struct {
    Layer base;
    uint32_t hidden, heads, ffn;
    double dropout;
    bool causal;      /* a token attends to no later token */
    bool whole_heads; /* heads are never sharded */
} TransformerLayer;

/* x [batch, seq, hidden] in and out: x + dropout(y). */
TensorId transformer_residual(const TransformerLayer *layer, const char *part, TensorId x,
                              TensorId y);
/* A pre-norm layer: x += attention(norm(x)), x += feed_forward(norm(x)), with dropout of the
 * probabilities and of the summands, as in GPT-2 and Megatron-LM. */
TensorId transformer_pre_norm_layer(const TransformerLayer *layer, TensorId x);

/* The sum of the negative log likelihoods of `labels`: by log-softmax of logits [..., classes], or
 * by the ops that accept logits sharded over the classes. */
TensorId model_loss(Graph *graph, TensorId logits, TensorId labels);
TensorId model_sharded_loss(Graph *graph, TensorId logits, TensorId labels);

/* x w^T + b with new parameters NAME.weight [n, k], NAME.bias [n] (none without `bias`). */
TensorId model_linear(Graph *graph, const char *name, TensorId x, uint32_t n, bool bias);

/* Images [batch, channels, edge, edge] as tokens [batch, 1 + patches, hidden] with their positions:
 * the class token, and one per patch. */
TensorId model_image_tokens(Graph *graph, TensorId x, uint32_t patch, uint32_t hidden);

/* --- the parts of convolutional models --- */

/* The padding of images: as TensorFlow's SAME, half a window on both sides, or none. */
typedef enum { PAD_SAME, PAD_EVEN, PAD_NONE } ModelPadding;

typedef struct {
    uint32_t channels, rows, columns, stride;
    ModelPadding padding;
    bool bias;
} ModelConv;

/* x [batch, channels, rows, columns] in and out, with new parameters NAME.weight and NAME.bias. */
TensorId model_conv(Graph *graph, const char *name, TensorId x, const ModelConv *conv);
TensorId model_pool(Graph *graph, OpKind kind, const char *name, TensorId x,
                    uint32_t window, uint32_t stride, ModelPadding padding);
/* Batch norm by the moments of the whole batch; without a scale only an offset is trained. */
typedef enum {
    BATCH_NORM_SCALED,
    BATCH_NORM_OFFSET,
    /* The same by moments that are given. This stands for replicas and microbatches that take the
     * moments of their own samples, as frameworks do: nothing is summed, and the moments' own work
     * is not counted. No single device computes what they compute. */
    BATCH_NORM_SCALED_GIVEN,
    BATCH_NORM_OFFSET_GIVEN
} ModelBatchNorm;

TensorId model_batch_norm(Graph *graph, const char *name, TensorId x,
                          ModelBatchNorm kind);
/* The mean of each channel, [batch, channels]. */
TensorId model_features(Graph *graph, TensorId x);
/* The sum over the classes of the cross entropies of sigmoids, each with a label of its own. */
TensorId model_sigmoid_loss(Graph *graph, TensorId logits);

/* Numbers of elements stay far from where 64 bits end: 2^53 elements of a tensor, and 2^58 of all
 * tensors together, are more than any machine has. All causal attention is by the documents. */
bool model_sizes_fit(const char *spec, const Graph *graph, const char *documents,
                     GError **error);

/* An op with one input, named PREFIX.suffix. */
TensorId model_unary(Graph *graph, OpKind kind, const char *name, TensorId x);
TensorId model_dropout(Graph *graph, const char *name, TensorId x, double rate);
