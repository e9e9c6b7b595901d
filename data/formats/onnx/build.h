/* The common parts of the files that turn ONNX nodes into ops (private to data).
 *
 * A product with a weight stays pending until its elements are needed, since what follows decides
 * which op it is: a bias joins it; the queries, keys and values of attention are one op, as are a
 * gate and what it multiplies. */
#pragma once

#include "data/formats/onnx/view.h"

/* x w^T + b, for a weight and a bias of the file (ONNX_NONE: no bias); or a function of another
 * product. */
typedef struct {
    OpKind kind; /* LINEAR, OUT_PROJ or GROUPED_OUT */
    TensorId x;
    uint32_t weight, bias;
    uint32_t n;            /* features */
    OnnxFunction function; /* of another product, `inner`; ONNX_SCALED: this is none */
    uint32_t inner;
    TensorId out; /* GRAPH_NONE: pending */
} Product;

/* A parameter, and as what several ops read it. */
typedef struct {
    TensorId parameter, read;
    uint32_t reads;
} Weight;

typedef struct {
    Graph *graph;
    OnnxModel *model;
    const OnnxGroup *group; /* of each node */
    const OnnxSizes *sizes;
    OnnxTaken *taken;
    View *view;         /* of each value */
    GArray *product;    /* Product */
    GHashTable *weight; /* name of the first value -> Weight */
    /* the same -> how many ops read it, from a first pass; NULL in that one */
    GHashTable *reads;
    const OnnxNode *node; /* that is built */
    char *layer;
    uint32_t op; /* numbers names */
    GError **error;
    bool failed;
} Builder;

/* Says why no op stands for the node, unless something was said before. Returns false. */
bool builder_refuse(Builder *b, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* A name of its own, as near to `name` as graph files allow. Caller frees. */
char *builder_name(const Builder *b, const char *name);

/* Appends an op; GRAPH_NONE, and the node is refused, if it does not fit its inputs. */
TensorId builder_op(Builder *b, OpKind kind, OpAttr attr, uint32_t n_in,
                    const TensorId *in, const char *extents);

/* The parameter that a constant is, with the dims that an op asks for. GRAPH_NONE: refused. */
TensorId builder_weight(Builder *b, uint32_t value, uint32_t rank, const uint32_t *dim);

/* Of a constant that several parameters are made of, the one of that name. */
TensorId builder_part(Builder *b, uint32_t value, const char *part, uint32_t rank,
                      const uint32_t *dim);

/* Tensor of the view's base, for which a pending product is made. */
TensorId builder_base(Builder *b, View *view);

/* Makes the base's dims those of the view, or of its last dim. GRAPH_NONE: refused. */
TensorId builder_settle(Builder *b, View *view, bool last);

/* The view of a value; NULL: refused. */
View *builder_view(Builder *b, uint32_t value);

/* A view like `like` on a new base of the same dims. */
void builder_put(Builder *b, uint32_t value, const View *like, TensorId base);

Product *builder_product(Builder *b, const View *view);
uint32_t builder_add_product(Builder *b, const Product *product);

/* Counts a node for which another op stands. */
void builder_count(json_t *counts, const char *op);

static inline bool builder_is_constant(const Builder *b, uint32_t value)
{
    return onnx_value(b->model, value)->constant;
}

/* The output of an op that has the sizes of a value of the file, the samples first. */
void builder_give(Builder *b, uint32_t value, TensorId base);

/* Counts the factor that nothing stands for, if the value is the base's times one. */
void builder_drop_scale(Builder *b, View *view);

/* A chain; the rules of single nodes are declared by the table of ops (ops.h). */
bool builder_group(Builder *b, const OnnxNode *node, const OnnxGroup *group);
bool builder_rotary(Builder *b, const OnnxNode *node, const OnnxGroup *group);
/* Whether the last dim is that of the heads in a pending product's features. */
bool builder_is_head(Builder *b, const View *view);
bool builder_attention(Builder *b, const OnnxNode *node, const OnnxGroup *group);
/* The output becomes the input's view, to be changed; NULL: refused. */
View *builder_begin(Builder *b, const OnnxNode *node, uint32_t out);
