/* ONNX files as models (private to data).
 *
 *     FILE.onnx  --onnx_load-->  JSON  --onnx_read-->  OnnxModel  --onnx_infer-->  shapes, constants
 *                                      --onnx_match-->  groups   --onnx_build-->  Graph
 *
 * The JSON is what the file says without its weights: a plan carries it, so that the plan can be
 * read where the file or protobuf-c is not. Files give no shapes but of their ends, so they are
 * inferred, and what is computed of shapes alone is folded (infer.c). Layer norms, activations
 * and attention come as chains of small ops; they are found by their form, activations by their
 * values (match.c). Then every node that the output needs becomes ops of the table
 * (build.c); transposes and reshapes are views as long as no op needs the elements in that
 * order (view.h). The output becomes the logits of a cross entropy.
 *
 * Numbers of elements are those at the file's own batch; the batch of the model replaces it in the
 * inputs. */
#pragma once

#include "data/graph/graph.h"

#include <jansson.h>

enum {
    ONNX_MAX_RANK = 8,
    ONNX_MOST_NODES = 1 << 16,
    ONNX_MOST_VALUES = 1 << 12, /* of a constant, in the JSON */
    ONNX_MOST_MASK = 1 << 22,   /* bytes of a mask that is looked at */
    ONNX_DEFAULT_SEQ = 512,
};

/* Value 0 of a model: an operand that is left out, of which nothing is known. */
#define ONNX_NONE    0U
#define ONNX_NO_NODE UINT32_MAX

/* ONNX's numbers of types that are told apart. */
enum {
    ONNX_FLOAT = 1,
    ONNX_UINT8,
    ONNX_INT8,
    ONNX_UINT16,
    ONNX_INT16,
    ONNX_INT32,
    ONNX_INT64,
    ONNX_BOOL = 9,
    ONNX_HALF,
    ONNX_DOUBLE,
    ONNX_UINT32,
    ONNX_UINT64,
    ONNX_BFLOAT = 16
};

/* --- the file as JSON (file.c, strip.c) --- */

/* The bytes of a file without weights; NULL: they are no protocol buffers, or more than a graph can
 * be. */
GByteArray *onnx_strip(const void *bytes, gsize length);

/* By its name, as is what torch.h reads. */
bool onnx_is(const char *path);

/* The content of the file. NULL: KILTER_ERROR_INPUT, or KILTER_ERROR_FAILED in a build without
 * protobuf-c. External data is never opened. */
json_t *onnx_load(const char *path, GError **error);

/* --- the model --- */

typedef struct {
    const char *name;
    uint32_t dtype; /* ONNX's number; 0: not known */
    bool known;     /* the shape is: */
    uint32_t rank;
    uint64_t dim[ONNX_MAX_RANK];
    uint32_t producer; /* node; ONNX_NO_NODE: an input or an initializer */
    uint32_t uses;     /* by nodes, and by the model as an output */
    bool input;
    bool stated; /* rank and dims are what the file says, also while they are not known */
    bool constant; /* the same in every iteration but for training */
    /* a constant, of which each query's row has the same for all later keys */
    bool triangular;
    /* of a constant: the weight that this is, perhaps transposed; ONNX_NONE: none */
    uint32_t origin;
    double *value; /* of a small constant; else NULL */
} OnnxValue;

typedef struct {
    const char *op, *name;
    const json_t *attr; /* an object */
    uint32_t n_in, n_out,
        first; /* in OnnxModel.operand: inputs (ONNX_NONE: left out), then outputs */
} OnnxNode;

typedef struct {
    const char *file;
    const json_t *root;
    json_t *nodes; /* of the graph, with its functions inlined */
    uint32_t opset;
    GArray *node;    /* OnnxNode */
    GArray *value;   /* OnnxValue */
    GArray *operand; /* uint32_t */
    GArray *input;   /* uint32_t: values that are fed, without initializers and weights */
    GArray *output;  /* uint32_t */
    uint64_t batch;  /* the file's own; */
    bool batch_fixed; /* and whether it says one */
    bool seq_fixed;
    uint64_t budget; /* elements that may still be folded */
} OnnxModel;

static inline OnnxNode *onnx_node(const OnnxModel *model, uint32_t index)
{
    g_assert(index < model->node->len);
    return &g_array_index(model->node, OnnxNode, index);
}

static inline OnnxValue *onnx_value(const OnnxModel *model, uint32_t index)
{
    g_assert(index < model->value->len);
    return &g_array_index(model->value, OnnxValue, index);
}

static inline uint32_t onnx_in(const OnnxModel *model, const OnnxNode *node, uint32_t i)
{
    return i < node->n_in ? g_array_index(model->operand, uint32_t, node->first + i)
                          : ONNX_NONE;
}

static inline uint32_t onnx_out(const OnnxModel *model, const OnnxNode *node, uint32_t i)
{
    return i < node->n_out
               ? g_array_index(model->operand, uint32_t, node->first + node->n_in + i)
               : ONNX_NONE;
}

bool onnx_op_is(const OnnxNode *node, const char *op);
bool onnx_dtype_is_float(uint32_t dtype);

/* The nodes of a file in which each call of one of its functions is replaced by the function's
 * nodes (inline.c). A new reference; NULL: KILTER_ERROR_INPUT. */
json_t *onnx_inline(const char *file, const json_t *root, GError **error);

/* `root` has to outlive it. NULL: KILTER_ERROR_INPUT names what does not fit. */
OnnxModel *onnx_read(const char *file, const json_t *root, GError **error);
AUTOPTR(onnx_free, OnnxModel)

int64_t onnx_int(const OnnxNode *node, const char *key, int64_t otherwise);
double onnx_number(const OnnxNode *node, const char *key, double otherwise);
const char *onnx_text(const OnnxNode *node, const char *key, const char *otherwise);
/* Integers of an attribute, at most `most`; returns how many. */
uint32_t onnx_ints(const OnnxNode *node, const char *key, uint32_t most, int64_t *list);

uint64_t onnx_elements(const OnnxValue *value);

/* Whether all of a matrix [.., rows, columns] above the diagonal is one number, and the rest
 * another one. */
bool onnx_is_triangular(const double *list, uint64_t n, uint64_t rows, uint64_t columns);
/* The only element of a constant; false if that is not known. */
bool onnx_scalar(const OnnxModel *model, uint32_t value, double *number);

/* Integers of a constant, at most ONNX_MAX_RANK; -1: not known. */
int onnx_constant_ints(const OnnxModel *model, uint32_t value,
                       int64_t list[ONNX_MAX_RANK]);

/* The same of input `i`, or where it is left out of the attribute that earlier opsets have in its
 * place. */
int onnx_ints_of(const OnnxModel *model, const OnnxNode *node, uint32_t i,
                 const char *key, int64_t list[ONNX_MAX_RANK]);

/* --- shapes and folding --- */

/* Where the file leaves the length of sequences open it becomes `seq`. */
void onnx_infer(OnnxModel *model, uint64_t seq);

/* The sizes as those of a value. False: some are too large. */
bool onnx_set_shape(OnnxValue *out, uint32_t rank, const uint64_t *dim);

/* The axis, counted from the front; `rank` if there is no such axis. */
uint32_t onnx_axis(int64_t axis, uint32_t rank);

/* --- chains that are one op (match.c) --- */

typedef enum {
    ONNX_PLAIN, /* a node as it is */
    ONNX_LAYER_NORM,
    ONNX_RMS_NORM,
    ONNX_ATTENTION,
    ONNX_ROTARY,   /* x turned by its place: x cos + (-b, a) sin, where x = (a, b) */
    ONNX_FUNCTION, /* of each element of one tensor */
} OnnxGroupKind;

/* Functions that a chain may be, by their values. */
typedef enum {
    ONNX_SCALED, /* c x */
    ONNX_RELU,
    ONNX_GELU,
    ONNX_SILU,
    ONNX_OTHER, /* a curve that the op table lacks */
} OnnxFunction;

/* How a value comes about. */
typedef struct {
    OnnxGroupKind kind;
    uint32_t in
        [3]; /* values: x, weight, bias of a norm; queries, keys (transposed: [.., D, K]), values
                     * of attention; x of a function */
    OnnxFunction function;
    double scale;   /* of a function: the factor */
    bool causal;    /* attention */
    uint32_t nodes; /* that it stands for */
} OnnxGroup;

/* One for each node: what its first output is. Caller frees. */
OnnxGroup *onnx_match(const OnnxModel *model);

/* --- building (build.c, builder.c) --- */

typedef struct {
    uint64_t batch; /* samples of an iteration */
    bool fused;     /* attention without the probabilities in memory */
} OnnxSizes;

/* How the file's nodes were taken. */
typedef struct {
    uint32_t layer_norms, activations, attentions; /* chains that became one op */
    json_t
        *approximated; /* op type -> nodes for which another op of the same size stands */
    json_t *unmapped;  /* op type -> nodes that the output needs and nothing stands for */
} OnnxTaken;

void onnx_taken_clear(OnnxTaken *taken);

/* The forward ops and the loss, which *loss gets. False: KILTER_ERROR_INPUT names the first node
 * that no op stands for. *taken is filled in either case; it may be NULL. */
bool onnx_build(Graph *graph, OnnxModel *model, const OnnxSizes *sizes, TensorId *loss,
                OnnxTaken *taken, GError **error);

/* Facts of a file: nodes, ops by type, opset, ir_version, inputs, outputs, float_parameters,
 * external_tensors, value_infos. A new reference. */
json_t *onnx_facts(const OnnxModel *model);
