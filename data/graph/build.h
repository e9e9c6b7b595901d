/* The graph's inside, for construction (private to data). */
#pragma once

#include "data/graph/op_class.h"

/* The contributions of a forward op to its inputs' gradients; see graph_contribution,
 * graph_accumulation. */
typedef struct {
    TensorId contribution[OP_MAX_IN];
    OpId accumulation[OP_MAX_IN];
} OpGradient;

struct Graph {
    gatomicrefcount references;
    char *name;
    GStringChunk *names;
    GHashTable *by_name;    /* tensor name -> id + 1 */
    GHashTable *op_by_name; /* op name -> id + 1 */
    GArray *tensors;        /* Tensor */
    GArray *ops;            /* Op */
    GPtrArray *layers;      /* layer names */
    GArray *gradients; /* [tensor] TensorId of its accumulated gradient, or GRAPH_NONE */
    GArray *updated;   /* [tensor] TensorId of its next value, or GRAPH_NONE */
    GArray *op_gradients; /* OpGradient of each op */
    OpClasses *classes;
    GArray *op_class;  /* OpClass * of each op */
    OpId *alike;       /* [op]: graph_op_alike; NULL before the graph is sealed */
    GHashTable *times; /* op id -> OpTimes; NULL: no op has times */
    TensorId loss;
    Precision precision;
    StateFormats states;
    TrainedParts training;
    Optimizer optimizer;
    bool timed;
    bool sealed;
    uint32_t serial; /* graph_serial */
};

TensorId graph_add_tensor(Graph *graph, const char *name, Role role, DType dtype,
                          uint32_t rank, const uint32_t *dim, TensorId of);

/* graph_op for any pass. `out_name` has n_out names, or is NULL (names follow from the op's);
 * `role` and `of` are those of the outputs. */
typedef struct {
    OpKind kind;
    const char *name;
    OpAttr attr;
    Pass pass;
    OpId of; /* GRAPH_NONE: the op itself */
    uint32_t n_in;
    TensorId in[OP_MAX_IN];
    const char *extents;
    Role role;
    TensorId out_of[OP_MAX_OUT];
    const char *out_name[OP_MAX_OUT];
} OpSpec;
OpId graph_append(Graph *graph, const OpSpec *spec);

/* graph_parameter that the training does not freeze. */
TensorId graph_trained_parameter(Graph *graph, const char *name, uint32_t rank,
                                 const uint32_t *dim);

/* Whether a parameter's name has one of the words of the training's target; `whole`: of those with
 * a ! before them, whose weights are trained themselves beside the adapters. */
bool graph_targets(const Graph *graph, const char *name, bool whole);

const OpClass *graph_op_class(const Graph *graph, OpId id);
