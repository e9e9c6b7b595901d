/* The graph: one training iteration of a model on a single device, as a DAG of ops over tensors.
 *
 * A builder creates tensors and forward ops in execution order and ends in a scalar loss;
 * graph_differentiate() then appends, explicitly, the backward ops (in reverse order, gradients of
 * tensors with several consumers accumulated by `add` ops), and one update op per parameter. Every
 * op, forward, backward or update, is a row of the op table (data/graph/op.h), so planners need no
 * notion of a layer.
 *
 * graph_seal() ends construction: it links the dimensions that loops tie together and computes
 * `units`, the number of equal pieces into which a dimension may be cut so that every op that
 * touches it can be cut alike (768 features that are 12 heads x 64 somewhere have 12 units, not
 * 768).
 *
 * Invariants: ids are dense and in execution order (an op's inputs exist before its outputs); a
 * tensor has at most one producer; after sealing nothing changes, so a graph can be shared by
 * threads. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "data/base/assert.h"
#include "data/base/each.h"
#include "data/base/error.h"
#include "data/base/free.h"
#include "data/graph/op.h"
#include "data/graph/times.h"

typedef uint32_t TensorId;
typedef uint32_t OpId;
#define GRAPH_NONE UINT32_MAX

enum { TENSOR_MAX_RANK = 5 };

/* The elements over the dims from `begin` to before `end`. */
static inline uint64_t dims_elements(const uint32_t *dim, uint32_t begin, uint32_t end)
{
    uint64_t elements = 1;
    for (uint32_t d = begin; d < end; d++)
        elements *= dim[d];
    return elements;
}

/* Formats in which numbers are stored: id, name in graph files, bytes of an element. F16: either
 * format of two bytes, fp16 or bf16. Q8: blocks of 256 bytes with a float32 scale each (Dettmers et
 * al. 2022, as in bitsandbytes). MX8: bytes with a scale to every 32, by rows and once more by
 * columns, as products of both directions read them (OCP MX 1.0). NF4: four bits, a byte of scale
 * to every 64, and a float32 to every 256 of those (Dettmers et al. 2023). */
#define DTYPE_TABLE(X)                \
    X(F16, "f16", 2)                  \
    X(F32, "f32", 4)                  \
    X(F64, "f64", 8)                  \
    X(I64, "i64", 8)                  \
    X(Q8, "q8", 1 + 4 / 256.0)        \
    X(MX8, "mx8", 2 * (1 + 1 / 32.0)) \
    X(NF4, "nf4", .5 + 1 / 64.0 + 4 / 16384.0)

#define DTYPE_ID(id, name, bytes) DTYPE_##id,
typedef enum {
    DTYPE_TABLE(DTYPE_ID) DTYPES,
    DTYPE_NONE = DTYPES /* a state that there is not */
} DType;

/* The states of a parameter: its weights as the ops read them, its gradient, the master copy on
 * which the update works, and the update's moments. Weights NONE: they are made from the master
 * where they are gathered, as FSDP does. */
#define STATE_TABLE(X)        \
    X(WEIGHTS, "weights")     \
    X(GRADIENTS, "gradients") \
    X(MASTER, "master")       \
    X(MOMENT, "moments")      \
    X(SECOND, "second moment")
#define STATE_ID(id, name) STATE_##id,
typedef enum { STATE_TABLE(STATE_ID) STATE_KINDS } StateKind;
typedef struct {
    DType of[STATE_KINDS];
} StateFormats;

/* Recipes: id, name, numbers of most ops and of products with parameters, format of activations,
 * and those of weights, gradients, master and moments. Tensors made from logits are F32. The mixed
 * ones compute in fp16, or any two-byte format that is as fast (Micikevicius et al. 2018: with Adam
 * a parameter takes 2 + 2 + 4 + 4 + 4 = 16 bytes, its gradient included); bf16 and fp8 need devices
 * that have rates for these. `fp32-grads`: as Megatron-LM accumulates them, 18 bytes. bf16-fsdp:
 * FSDP's mixed precision, whose parameters at rest are float32. bf16-moments: DeepSeek-V3 (2024),
 * Sec. 3.3.3. mxfp8: weights of products lie there in MXFP8. */
#define PRECISION_TABLE(X)                                                        \
    X(SINGLE, "single", F32, F32, F32, F32, F32, NONE, F32)                       \
    X(MIXED, "mixed", F16, F16, F16, F16, F16, F32, F32)                          \
    X(MIXED_F32_GRADIENTS, "mixed-fp32-grads", F16, F16, F16, F16, F32, F32, F32) \
    X(BF16, "bf16", BF16, BF16, F16, F16, F16, F32, F32)                          \
    X(FP8, "fp8", BF16, F8, F16, F16, F16, F32, F32)                              \
    X(BF16_F32_GRADIENTS, "bf16-fp32-grads", BF16, BF16, F16, F16, F32, F32, F32) \
    X(FP8_F32_GRADIENTS, "fp8-fp32-grads", BF16, F8, F16, F16, F32, F32, F32)     \
    X(BF16_PURE, "bf16-pure", BF16, BF16, F16, F16, F16, NONE, F16)               \
    X(BF16_MOMENTS, "bf16-moments", BF16, BF16, F16, F16, F32, F32, F16)          \
    X(BF16_FSDP, "bf16-fsdp", BF16, BF16, F16, NONE, F32, F32, F32)               \
    X(MXFP8, "mxfp8", BF16, F8, F16, MX8, F32, F32, F32)                          \
    X(NVFP4, "nvfp4", BF16, F4, F16, F16, F16, F32, F32)
#define PRECISION_NAMES                                                             \
    "single, mixed, mixed-fp32-grads, bf16, fp8, bf16-fp32-grads, fp8-fp32-grads, " \
    "bf16-pure, bf16-moments, bf16-fsdp, mxfp8 or nvfp4"

#define PRECISION_ID(id, name, numbers, least, compute, weights, gradients, master, \
                     moments)                                                       \
    PRECISION_##id,
typedef enum { PRECISION_TABLE(PRECISION_ID) PRECISIONS } Precision;

/* Formats of the numbers that ops compute with; device types may have a rate for each
 * (DeviceType.rates): id, name. */
#define NUMBERS_TABLE(X) \
    X(F32, "fp32") X(F16, "fp16") X(BF16, "bf16") X(F8, "fp8") X(F4, "fp4")

#define NUMBERS_ID(id, name) NUMBERS_##id,
typedef enum { NUMBERS_TABLE(NUMBERS_ID) NUMBERS } Numbers;

const char *numbers_name(Numbers numbers);

/* The numbers that most ops of a model in this precision compute with, and the smallest that any op
 * computes with. */
Numbers precision_numbers(Precision precision);
Numbers precision_least_numbers(Precision precision);

const char *precision_name(Precision precision);
Precision precision_from_name(const char *name); /* PRECISIONS if unknown */
/* The format of activations, and those of parameters' states. */
DType precision_compute(Precision precision);
StateFormats precision_states(Precision precision);

/* Formats in a spec's words: fp32, fp16 or bf16, int8, mxfp8, nf4, none; `moments` may have two, as
 * in bf16/fp32. False if the word is none of the state's. `key`: weights, gradients, master or
 * moments. */
bool state_formats_set(StateFormats *states, const char *key, const char *value);
/* The value of a key again; the caller frees it. NULL: there is no such key. */
char *state_formats_get(const StateFormats *states, const char *key, Precision precision);
extern const char *const STATE_KEYS[]; /* ends with NULL */
#define STATE_FORMAT_NAMES "fp32, bf16, fp16, int8, mxfp8, nf4 or none"

typedef enum {
    ROLE_INPUT,      /* data, labels and constants: read, never differentiated */
    ROLE_PARAMETER,  /* has a gradient and an update, unless it is frozen */
    ROLE_ACTIVATION, /* the output of a forward op */
    ROLE_LOSS,       /* the differentiated scalar */
    ROLE_GRADIENT,   /* d loss / d `of` (or one consumer's contribution to it) */
    ROLE_OPTIMIZER,  /* state that the update reads: a moment of `of` */
    ROLE_UPDATED,    /* the next value of `of`, written by the update */
    ROLES
} Role;

typedef enum { PASS_FORWARD, PASS_BACKWARD, PASS_UPDATE } Pass;

typedef struct {
    const char *name; /* owned by the graph, unique */
    Role role;
    DType dtype;
    uint32_t rank;
    uint32_t dim[TENSOR_MAX_RANK];
    /* equal pieces into which a dim can be cut; 1: whole. Set by graph_seal */
    uint32_t units[TENSOR_MAX_RANK];
    uint8_t whole; /* bit d: graph_keep_whole was called for dim d */
    bool frozen;   /* a parameter that is not trained */
    OpId producer; /* GRAPH_NONE for inputs, parameters, optimizer states */
    TensorId of;   /* see Role; GRAPH_NONE otherwise */
} Tensor;

typedef struct {
    const char *name; /* owned by the graph */
    OpKind kind;
    OpAttr attr;
    const char *extents; /* as given; owned by the graph, may be NULL */
    Pass pass;
    OpId
        /* the forward op that a backward op differentiates (for an accumulating add the consumer
         * whose contribution it adds); forward and update ops: themselves */
        of;
    double seconds; /* in a timed graph: its time on every device */
    uint32_t layer; /* index in the model's own layer names, for reports and segments */
    uint32_t n_in, n_out;
    TensorId in[OP_MAX_IN], out[OP_MAX_OUT]; /* behind the last one: GRAPH_NONE */
} Op;

/* How parameters are updated: the op, the op for parameters with a master copy, on which it works,
 * the format of its moments (NONE: the recipe's), and the states that it reads and writes beside
 * parameter and gradient; the copy comes last. FLOPs are the ops'. Adafactor's states are R and C,
 * the parameter's dims without the last one and without the last but one; a parameter of one dim
 * has a state `v` of that dim. Muon updates the matrices of hidden layers, and AdamW the other
 * parameters (Jordan et al. 2024). */
#define OPTIMIZER_TABLE(X)                                                            \
    X(ADAM, "adam", OP_ADAM, OP_ADAM_MASTER, NONE, "m v")                             \
    X(SGD, "sgd", OP_SGD, OP_SGD_MASTER, NONE, "")                                    \
    X(ADAMW, "adamw", OP_ADAMW, OP_ADAMW_MASTER, NONE, "m v")                         \
    X(ADAFACTOR, "adafactor", OP_ADAFACTOR, OP_ADAFACTOR_MASTER, F32, "rows columns") \
    X(LION, "lion", OP_LION, OP_LION_MASTER, NONE, "m")                               \
    X(MUON, "muon", OP_MUON, OP_MUON_MASTER, NONE, "m")                               \
    X(ADAM_8BIT, "adam8bit", OP_ADAM, OP_ADAM_MASTER, Q8, "m v")
#define OPTIMIZER_ID(id, name, op, master, format, states) OPTIMIZER_##id,
typedef enum { OPTIMIZER_TABLE(OPTIMIZER_ID) OPTIMIZERS } Optimizer;

const char *optimizer_name(Optimizer optimizer);
/* The optimizer of that name; OPTIMIZERS if there is none. */
Optimizer optimizer_from_name(const char *name);
/* "adam, sgd or ..." */
#define OPTIMIZER_NAMES "adam, adamw, adam8bit, sgd, adafactor, lion or muon"

typedef struct Graph Graph;

Graph *graph_new(const char *name);
/* Takes another reference to a sealed graph, which never changes and can be shared by threads. */
Graph *graph_ref(Graph *graph);
/* Drops a reference; the last one frees the graph. */
AUTOPTR(graph_free, Graph)

Precision graph_precision(const Graph *graph);
/* The formats of its parameters' states. */
StateFormats graph_states(const Graph *graph);

/* --- building: programming errors (shapes that do not fit an op's signature) abort --- */

/* To be called before the first tensor; a new graph is PRECISION_SINGLE. */
void graph_set_precision(Graph *graph, Precision precision);
/* Likewise, after the precision, whose formats it replaces. */
void graph_set_states(Graph *graph, const StateFormats *states);

/* The trained part of a model: all; adapters of a rank beside the products whose weights' names
 * have one of some words (LoRA, Hu et al. 2022), whatever else there is being frozen; or the
 * parameters of some layers. */
typedef enum { TRAIN_ALL, TRAIN_LORA, TRAIN_LAYERS } TrainKind;
typedef struct {
    TrainKind kind;
    uint32_t rank; /* of adapters */
    /* words, separated by '+'; not owned, and not kept after the last op */
    const char *target;
    uint32_t first, last;  /* layers */
    const char *documents; /* of sequences, as OpAttr's, for fused causal attention */
} TrainedParts;

/* Before the first tensor. Parameters made from then on are frozen unless they are trained; of
 * products with adapters graph_op makes these, too, and returns the sum. */
void graph_set_training(Graph *graph, const TrainedParts *training);
/* Freezes a parameter. */
void graph_freeze(Graph *graph, TensorId id);

TensorId graph_input(Graph *graph, const char *name, DType dtype, uint32_t rank,
                     const uint32_t *dim);
TensorId graph_parameter(Graph *graph, const char *name, uint32_t rank,
                         const uint32_t *dim);

/* Keeps that dim, and all dims that ops tie to it, from being sharded. */
void graph_keep_whole(Graph *graph, TensorId id, uint32_t dim);

/* Starts a new named layer: ops added from here on belong to it. */
void graph_layer(Graph *graph, const char *name);

/* Appends an op. `extents` gives the letters of the signature that no input fixes, as in "P=7,Q=7".
 * Returns the first output; the others follow with consecutive ids. Outputs get role ACTIVATION
 * (LOSS if scalar). */
TensorId graph_op(Graph *graph, OpKind kind, const char *name, OpAttr attr, uint32_t n_in,
                  const TensorId *in, const char *extents);

/* Appends backward and update ops for `loss`. */
void graph_differentiate(Graph *graph, TensorId loss, Optimizer optimizer);

/* Makes the graph a timed one, whose ops take given times (0 until they are set) on every device,
 * whatever they compute and however they are cut: a workload given by its durations. */
void graph_set_timed(Graph *graph);
void graph_set_seconds(Graph *graph, OpId id, double seconds);

/* How long an opaque op (op_kind_is_opaque) takes on devices of that type: n points of rising
 * samples, of the whole batch. Before sealing, once for each type. */
void graph_set_times(Graph *graph, OpId id, const char *type, uint32_t n,
                     const TimePoint *point);

void graph_seal(Graph *graph);

/* --- reading --- */

const char *graph_name(const Graph *graph);
uint32_t graph_n_tensors(const Graph *graph);
uint32_t graph_n_ops(const Graph *graph);
const Tensor *graph_tensor(const Graph *graph, TensorId id);
const Op *graph_get_op(const Graph *graph, OpId id);
/* Walks all ops or tensors in their order, with their numbers. A break leaves the walk. */
#define ops_each(op, id, graph)                                              \
    for (OpId id = 0, id##_on = 1; id##_on && id < graph_n_ops(graph); id++) \
        for (const Op *op = (id##_on = 0, graph_get_op(graph, id)); !id##_on; id##_on = 1)
#define tensors_each(tensor, id, graph)                                               \
    for (TensorId id = 0, id##_on = 1; id##_on && id < graph_n_tensors(graph); id++)  \
        for (const Tensor *tensor = (id##_on = 0, graph_tensor(graph, id)); !id##_on; \
             id##_on = 1)
const char *graph_layer_name(const Graph *graph, uint32_t layer);
uint32_t graph_n_layers(const Graph *graph);
/* [tensor]: its layer. A tensor has the layer of the op that makes it, a parameter or an input the
 * first layer that reads it, optimizer states and updated values their parameter's layer. The
 * caller frees it. */
uint32_t *graph_tensor_layers(const Graph *graph);

/* The tensor or op of that name, or GRAPH_NONE. */
TensorId graph_find(const Graph *graph, const char *name);
OpId graph_find_op(const Graph *graph, const char *name);

/* The first input that has dims, and the samples of an iteration: its first dim. */
TensorId graph_first_input(const Graph *graph);
uint32_t graph_batch(const Graph *graph);

/* Whether the tensor is a parameter, or a tied parameter as its readers see it (OP_TIED). */
bool graph_is_weight(const Graph *graph, TensorId id);

Optimizer graph_optimizer(const Graph *graph);
bool graph_is_timed(const Graph *graph);
/* NULL: the op has no times of its own. */
const OpTimes *graph_op_times(const Graph *graph, OpId id);
/* Whether some op has; all opaque ones must. */
bool graph_has_times(const Graph *graph);
/* How many samples the whole op works on: the first dim of what it makes. */
uint32_t graph_op_samples(const Graph *graph, OpId id);
TensorId graph_loss(const Graph *graph);
/* d loss / d `tensor`, fully accumulated; GRAPH_NONE if there is none. The seed d loss / d loss is
 * an input tensor with the constant 1. */
TensorId graph_gradient(const Graph *graph, TensorId tensor);
/* The tensor whose memory a view shares, or the tensor itself. */
TensorId graph_viewed(const Graph *graph, TensorId id);

/* Whether it is a gradient of a parameter, or a contribution to one. */
bool graph_is_parameter_gradient(const Graph *graph, TensorId id);
/* The contribution of op `op` (forward) to the gradient of its input `input`: a tensor of its
 * backward ops, or the gradient of its output itself (residual add). GRAPH_NONE if the input needs
 * no gradient. */
TensorId graph_contribution(const Graph *graph, OpId op, uint32_t input);
/* The `add` that accumulates this contribution; GRAPH_NONE for the first contribution in backward
 * order. */
OpId graph_accumulation(const Graph *graph, OpId op, uint32_t input);
/* The next value of a parameter or optimizer state. */
TensorId graph_updated(const Graph *graph, TensorId tensor);

uint64_t graph_parameter_count(const Graph *graph);
uint64_t tensor_elements(const Tensor *tensor);
/* The same as a double, of tensors that nobody has checked: it does not overflow. */
double tensor_size(const Tensor *tensor);
uint64_t tensor_bytes(const Tensor *tensor);
double dtype_bytes(DType dtype);

/* --- facts about one op from its signature --- */

/* Letters whose loops mean the same in all signatures that plans divide by them. */
enum { LOOP_QUERY = 'Q', LOOP_EXPERT = 'e', LOOP_HEAD = 'h', LOOP_VOCABULARY = 'v' };

/* Loops of op `id` after * is expanded: extent, whether it can be sharded, its units. */
enum { OP_MAX_LOOPS = 12 };
typedef struct {
    char letter;  /* its letter in the signature; '*' for each loop of the star */
    uint8_t star; /* index among the loops of the star */
    bool shardable;
    /* loop of queries, which only shards cut; it is tied like a shardable loop */
    bool divided;
    uint32_t extent; /* extent of the first operand dim that it drives */
    uint32_t units;  /* equal pieces into which it can be cut (1 before graph_seal) */
} Loop;

typedef struct {
    uint32_t n_loops;
    Loop loop[OP_MAX_LOOPS];
    /* loop that drives the dim; operands: inputs, then outputs */
    int8_t dim_loop[OP_MAX_OPERANDS][TENSOR_MAX_RANK];
    uint8_t added;     /* bit i: input i is an added operand */
    uint8_t n_linear;  /* number of linear groups */
    uint8_t linear[4]; /* each group a set of inputs, bit i: input i */
    /* the part of the scores [Q, K] that the op computes, if it skips masked scores */
    double visible;
    bool divides_queries; /* op_kind_divides_queries */
} OpSpace;

/* The first dim of an operand that loop `l` drives; -1: none. */
int space_driven_dim(const OpSpace *space, uint32_t operand, uint32_t l);
void graph_op_space(const Graph *graph, OpId id, OpSpace *space);
/* The index of an op's class, equal for ops of equal kind, shapes and units; indices are dense. */
uint32_t graph_op_class_index(const Graph *graph, OpId id);

/* The first op of a sealed graph that takes as long as this one wherever both have equal forms: of
 * the same class, pass, formats and attributes, on operands of the same roles. */
OpId graph_op_alike(const Graph *graph, OpId id);
/* A number that no other graph of this process has. */
uint32_t graph_serial(const Graph *graph);

/* Bytes that forward op `id` keeps for its backward beside tensors, for each element of its output
 * *of; 0: none. Dropout keeps a mask of one byte per element, attention with dropout the mask and
 * the probabilities after it. */
uint32_t graph_op_kept_bytes(const Graph *graph, OpId id, TensorId *of);

/* The numbers that the op computes with: updates compute in F32, whatever the model's precision. */
Numbers graph_op_numbers(const Graph *graph, OpId id);

/* FLOPs of the whole op. */
double graph_op_flops(const Graph *graph, OpId id);

/* Bytes that the whole op reads or writes of an operand (inputs, then outputs): its tensor's bytes,
 * or for a tensor that is looked up (op_kind_looked_up) one entry per index. */
uint64_t graph_op_bytes(const Graph *graph, OpId id, uint32_t operand);
