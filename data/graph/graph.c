/* Building and reading a graph. */
#include "data/graph/graph.h"

#include "data/base/assert.h"
#include "data/base/free.h"
#include "data/graph/build.h"

#include <math.h>
#include <string.h>

Graph *graph_new(const char *name)
{
    Graph *graph = g_new0(Graph, 1);
    g_atomic_ref_count_init(&graph->references);
    graph->name = g_strdup(name);
    graph->names = g_string_chunk_new(4096);
    graph->by_name = g_hash_table_new(g_str_hash, g_str_equal);
    graph->op_by_name = g_hash_table_new(g_str_hash, g_str_equal);
    graph->tensors = g_array_new(FALSE, TRUE, sizeof(Tensor));
    graph->ops = g_array_new(FALSE, TRUE, sizeof(Op));
    graph->layers = g_ptr_array_new();
    graph->gradients = g_array_new(FALSE, FALSE, sizeof(TensorId));
    graph->updated = g_array_new(FALSE, FALSE, sizeof(TensorId));
    graph->op_gradients = g_array_new(FALSE, FALSE, sizeof(OpGradient));
    graph->classes = op_classes_new();
    graph->op_class = g_array_new(FALSE, FALSE, sizeof(OpClass *));
    graph->loss = GRAPH_NONE;
    graph->states = precision_states(PRECISION_SINGLE);
    return graph;
}

Graph *graph_ref(Graph *graph)
{
    g_assert(graph->sealed);
    g_atomic_ref_count_inc(&graph->references);
    return graph;
}

void graph_free(Graph *graph)
{
    if (!graph || !g_atomic_ref_count_dec(&graph->references))
        return;
    g_free(graph->name);
    g_string_chunk_free(graph->names);
    g_hash_table_destroy(graph->by_name);
    g_hash_table_destroy(graph->op_by_name);
    unref_arrays(graph->tensors, graph->ops);
    g_ptr_array_free(graph->layers, TRUE);
    unref_arrays(graph->gradients, graph->updated, graph->op_gradients);
    op_classes_free(graph->classes);
    g_array_free(graph->op_class, TRUE);
    g_free(graph->alike);
    g_clear_pointer(&graph->times, g_hash_table_destroy);
    g_free(graph);
}

void graph_set_precision(Graph *graph, Precision precision)
{
    g_assert(graph->tensors->len == 0);
    graph->precision = precision;
    graph->states = precision_states(precision);
}

void graph_set_states(Graph *graph, const StateFormats *states)
{
    g_assert(graph->tensors->len == 0);
    graph->states = *states;
}

StateFormats graph_states(const Graph *graph)
{
    return graph->states;
}

Precision graph_precision(const Graph *graph)
{
    return graph->precision;
}

static bool is_of_loss(OpKind kind)
{
    return kind == OP_SIGMOID_LOSS || kind == OP_SMOOTH_NLL_SUM ||
           kind == OP_LOG_SOFTMAX || kind == OP_NLL_SUM || kind == OP_LABEL_LOGIT ||
           kind == OP_SUM_EXP || kind == OP_LOG_SUM_EXP || kind == OP_CROSS_ENTROPY;
}

/* The dtype of an op's output: a gradient has the dtype of its tensor, except for parameters. */
static DType output_dtype(const Graph *graph, const OpSpec *spec, uint32_t output)
{
    KILTER_ASSERT(output < OP_MAX_OUT);
    const TensorId of = spec->out_of[output];
    const bool statistic =
        (op_kind_is_attention(spec->kind) && output == 1 && spec->kind != OP_ATTENTION &&
         spec->kind != OP_GROUPED_ATTENTION) ||
        spec->kind == OP_TOP_KEYS || spec->kind == OP_SQUARES;
    if (of == GRAPH_NONE)
        return is_of_loss(spec->kind) || statistic ? DTYPE_F32
                                                   : precision_compute(graph->precision);
    const Tensor *tensor = graph_tensor(graph, of);
    return spec->role == ROLE_GRADIENT && tensor->role == ROLE_PARAMETER
               ? graph->states.of[STATE_GRADIENTS]
               : tensor->dtype;
}

/* --- building --- */

TensorId graph_add_tensor(Graph *graph, const char *name, Role role, DType dtype,
                          uint32_t rank, const uint32_t *dim, TensorId of)
{
    g_assert(!graph->sealed && rank <= TENSOR_MAX_RANK);
    g_assert(!g_hash_table_contains(graph->by_name, name));
    Tensor tensor = {.name = g_string_chunk_insert(graph->names, name),
                     .role = role,
                     .dtype = dtype,
                     .rank = rank,
                     .producer = GRAPH_NONE,
                     .of = of};
    for (uint32_t d = 0; d < rank; d++) {
        tensor.dim[d] = tensor.units[d] = dim[d];
    }
    TensorId id = graph->tensors->len, none = GRAPH_NONE;
    g_array_append_val(graph->tensors, tensor);
    g_array_append_val(graph->gradients, none);
    g_array_append_val(graph->updated, none);
    g_hash_table_insert(graph->by_name, (char *)tensor.name, GUINT_TO_POINTER(id + 1));
    return id;
}

TensorId graph_input(Graph *graph, const char *name, DType dtype, uint32_t rank,
                     const uint32_t *dim)
{
    return graph_add_tensor(graph, name, ROLE_INPUT, dtype, rank, dim, GRAPH_NONE);
}

void graph_set_training(Graph *graph, const TrainedParts *training)
{
    g_assert(graph->tensors->len == 0);
    graph->training = *training;
}

void graph_freeze(Graph *graph, TensorId id)
{
    g_assert(!graph->sealed && graph_tensor(graph, id)->role == ROLE_PARAMETER);
    g_array_index(graph->tensors, Tensor, id).frozen = true;
}

TensorId graph_trained_parameter(Graph *graph, const char *name, uint32_t rank,
                                 const uint32_t *dim)
{
    const DType compute = precision_compute(graph->precision);
    const bool wide = graph->states.of[STATE_WEIGHTS] == DTYPE_F32;
    return graph_add_tensor(graph, name, ROLE_PARAMETER, wide ? DTYPE_F32 : compute, rank,
                            dim, GRAPH_NONE);
}

bool graph_targets(const Graph *graph, const char *name, bool whole)
{
    g_auto(GStrv) word = g_strsplit(graph->training.target, "+", 0);
    for (uint32_t i = 0; word[i]; i++)
        if (*word[i] && word[i][whole] && (*word[i] == '!') == whole &&
            strstr(name, word[i] + whole))
            return true;
    return false;
}

TensorId graph_parameter(Graph *graph, const char *name, uint32_t rank,
                         const uint32_t *dim)
{
    const TensorId id = graph_trained_parameter(graph, name, rank, dim);
    const TrainedParts *training = &graph->training;
    const uint32_t layer = MAX(graph->layers->len, 1) - 1;
    if ((training->kind == TRAIN_LORA && !graph_targets(graph, name, true)) ||
        (training->kind == TRAIN_LAYERS &&
         (layer < training->first || layer > training->last)))
        graph_freeze(graph, id);
    return id;
}

void graph_keep_whole(Graph *graph, TensorId id, uint32_t dim)
{
    g_assert(id < graph->tensors->len);
    g_assert(!graph->sealed && dim < graph_tensor(graph, id)->rank);
    Tensor *tensor = &g_array_index(graph->tensors, Tensor, id);
    tensor->units[dim] = 1;
    tensor->whole |= (uint8_t)(1u << dim);
}

void graph_layer(Graph *graph, const char *name)
{
    g_ptr_array_add(graph->layers, g_string_chunk_insert(graph->names, name));
}

static Shape shape_of(const Tensor *tensor)
{
    g_assert(tensor->rank <= TENSOR_MAX_RANK);
    Shape shape = {.rank = tensor->rank};
    memcpy(shape.dim, tensor->dim, sizeof shape.dim);
    return shape;
}

OpId graph_append(Graph *graph, const OpSpec *spec)
{
    g_assert(spec->n_in <= OP_MAX_IN && spec->kind < OP_KINDS);
    g_assert(!graph->sealed);
    if (graph->layers->len == 0)
        graph_layer(graph, "model");
    OpId id = graph->ops->len;
    Op op = {.name = g_string_chunk_insert(graph->names, spec->name),
             .kind = spec->kind,
             .attr = spec->attr,
             .extents = spec->extents
                            ? g_string_chunk_insert_const(graph->names, spec->extents)
                            : NULL,
             .pass = spec->pass,
             .of = spec->of == GRAPH_NONE ? id : spec->of,
             .n_in = spec->n_in};
    memset(op.in, 0xff, sizeof op.in); /* all GRAPH_NONE */
    memset(op.out, 0xff, sizeof op.out);
    op.layer = op.of == id ? graph->layers->len - 1 : graph_get_op(graph, op.of)->layer;
    Shape in[OP_MAX_IN];
    for (uint32_t i = 0; i < op.n_in; i++) {
        op.in[i] = spec->in[i];
        in[i] = shape_of(graph_tensor(graph, op.in[i]));
    }
    const OpClass *class =
        op_classes_bind(graph->classes, op.kind, &op.attr, op.n_in, in, spec->extents);
    g_array_append_val(graph->op_class, class);
    op.n_out = class->n_out;
    for (uint32_t o = 0; o < op.n_out; o++) {
        g_autofree char *name = spec->out_name[o] ? g_strdup(spec->out_name[o])
                                : o == 0          ? g_strdup(spec->name)
                                         : g_strdup_printf("%s.%u", spec->name, o);
        op.out[o] =
            graph_add_tensor(graph, name, spec->role, output_dtype(graph, spec, o),
                             class->out[o].rank, class->out[o].dim, spec->out_of[o]);
        g_array_index(graph->tensors, Tensor, op.out[o]).producer = id;
    }
    g_array_append_val(graph->ops, op);
    g_hash_table_insert(graph->op_by_name, (char *)op.name, GUINT_TO_POINTER(id + 1));
    OpGradient none;
    memset(&none, 0xff, sizeof none); /* all GRAPH_NONE */
    g_array_append_val(graph->op_gradients, none);
    return id;
}

void graph_set_timed(Graph *graph)
{
    graph->timed = true;
}

void graph_set_seconds(Graph *graph, OpId id, double seconds)
{
    g_assert(seconds >= 0 && id < graph->ops->len);
    g_assert(graph->timed && !graph->sealed);
    g_array_index(graph->ops, Op, id).seconds = seconds;
}

Optimizer graph_optimizer(const Graph *graph)
{
    return graph->optimizer;
}

bool graph_is_timed(const Graph *graph)
{
    return graph->timed;
}

/* --- reading --- */

const char *graph_name(const Graph *graph)
{
    return graph->name;
}

uint32_t graph_n_tensors(const Graph *graph)
{
    return graph->tensors->len;
}

uint32_t graph_n_ops(const Graph *graph)
{
    return graph->ops->len;
}

const Tensor *graph_tensor(const Graph *graph, TensorId id)
{
    KILTER_ASSERT(id < graph->tensors->len);
    return &g_array_index(graph->tensors, Tensor, id);
}

const Op *graph_get_op(const Graph *graph, OpId id)
{
    KILTER_ASSERT(id < graph->ops->len);
    return &g_array_index(graph->ops, Op, id);
}

const char *graph_layer_name(const Graph *graph, uint32_t layer)
{
    g_assert(layer < graph->layers->len);
    return graph->layers->pdata[layer];
}

uint32_t graph_n_layers(const Graph *graph)
{
    return graph->layers->len;
}

TensorId graph_find(const Graph *graph, const char *name)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(graph->by_name, name)) - 1;
}

OpId graph_find_op(const Graph *graph, const char *name)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(graph->op_by_name, name)) - 1;
}

TensorId graph_first_input(const Graph *graph)
{
    TensorId first = 0;
    while (graph_tensor(graph, first)->role != ROLE_INPUT ||
           graph_tensor(graph, first)->rank == 0)
        first++;
    return first;
}

uint32_t graph_batch(const Graph *graph)
{
    return graph_tensor(graph, graph_first_input(graph))->dim[0];
}

bool graph_is_weight(const Graph *graph, TensorId id)
{
    const Tensor *tensor = graph_tensor(graph, id);
    return tensor->role == ROLE_PARAMETER ||
           (tensor->producer != GRAPH_NONE &&
            graph_get_op(graph, tensor->producer)->kind == OP_TIED);
}

TensorId graph_loss(const Graph *graph)
{
    return graph->loss;
}

TensorId graph_gradient(const Graph *graph, TensorId tensor)
{
    KILTER_ASSERT(tensor < graph->gradients->len);
    return g_array_index(graph->gradients, TensorId, tensor);
}

TensorId graph_viewed(const Graph *graph, TensorId id)
{
    const OpId by = graph_tensor(graph, id)->producer;
    const Op *op = by == GRAPH_NONE ? NULL : graph_get_op(graph, by);
    return op && op_kind_is_view(op->kind) ? graph_viewed(graph, op->in[0]) : id;
}

bool graph_is_parameter_gradient(const Graph *graph, TensorId id)
{
    const Tensor *tensor = graph_tensor(graph, id);
    return tensor->role == ROLE_GRADIENT && tensor->of != GRAPH_NONE &&
           graph_tensor(graph, tensor->of)->role == ROLE_PARAMETER;
}

TensorId graph_contribution(const Graph *graph, OpId op, uint32_t input)
{
    KILTER_ASSERT(op < graph->ops->len && input < OP_MAX_IN);
    return g_array_index(graph->op_gradients, OpGradient, op).contribution[input];
}

OpId graph_accumulation(const Graph *graph, OpId op, uint32_t input)
{
    KILTER_ASSERT(op < graph->ops->len && input < OP_MAX_IN);
    return g_array_index(graph->op_gradients, OpGradient, op).accumulation[input];
}

TensorId graph_updated(const Graph *graph, TensorId tensor)
{
    KILTER_ASSERT(tensor < graph->updated->len);
    return g_array_index(graph->updated, TensorId, tensor);
}

uint64_t graph_parameter_count(const Graph *graph)
{
    return sum_over(uint64_t, t, graph->tensors->len,
                    graph_tensor(graph, t)->role == ROLE_PARAMETER
                        ? tensor_elements(graph_tensor(graph, t))
                        : 0);
}

uint64_t tensor_elements(const Tensor *tensor)
{
    KILTER_ASSERT(tensor->rank <= TENSOR_MAX_RANK);
    return dims_elements(tensor->dim, 0, tensor->rank);
}

double tensor_size(const Tensor *tensor)
{
    double elements = 1;
    for (uint32_t d = 0; d < tensor->rank; d++)
        elements *= tensor->dim[d];
    return elements;
}

double dtype_bytes(DType dtype)
{
    KILTER_ASSERT(dtype < DTYPES);
#define DTYPE_BYTES(id, name, bytes) bytes,
    static const double of[DTYPES] = {DTYPE_TABLE(DTYPE_BYTES)};
    return of[dtype];
}

uint64_t tensor_bytes(const Tensor *tensor)
{
    return (uint64_t)ceil((double)tensor_elements(tensor) * dtype_bytes(tensor->dtype));
}

const OpClass *graph_op_class(const Graph *graph, OpId id)
{
    KILTER_ASSERT(id < graph->op_class->len);
    return g_array_index(graph->op_class, const OpClass *, id);
}

uint32_t graph_op_class_index(const Graph *graph, OpId id)
{
    return graph_op_class(graph, id)->index;
}

OpId graph_op_alike(const Graph *graph, OpId id)
{
    KILTER_ASSERT(graph->sealed && id < graph->ops->len);
    return graph->alike[id];
}

uint32_t graph_serial(const Graph *graph)
{
    KILTER_ASSERT(graph->sealed);
    return graph->serial;
}

void graph_op_space(const Graph *graph, OpId id, OpSpace *space)
{
    *space = graph_op_class(graph, id)->space;
}

uint32_t graph_op_kept_bytes(const Graph *graph, OpId id, TensorId *of)
{
    enum { MASK_BYTES = 1 };
    const Op *op = graph_get_op(graph, id);
    if (op->pass != PASS_FORWARD || op->attr.rate == 0 || op->kind == OP_FUSED_ATTENTION)
        return 0; /* fused attention draws its mask anew */
    *of = op->out[op->n_out - 1];
    return op->kind == OP_DROPOUT
               ? MASK_BYTES
               : MASK_BYTES + (uint32_t)dtype_bytes(graph_tensor(graph, *of)->dtype);
}

double graph_op_flops(const Graph *graph, OpId id)
{
    const OpClass *class = graph_op_class(graph, id);
    return space_flops(class->kind, &class->space, -1);
}

uint64_t graph_op_bytes(const Graph *graph, OpId id, uint32_t operand)
{
    KILTER_ASSERT(operand <
                  graph_get_op(graph, id)->n_in + graph_get_op(graph, id)->n_out);
    const Op *op = graph_get_op(graph, id);
    const OpSpace *space = &graph_op_class(graph, id)->space;
    const Tensor *tensor = graph_tensor(
        graph, operand < op->n_in ? op->in[operand] : op->out[operand - op->n_in]);
    uint64_t elements = 1;
    if (operand != op_kind_looked_up(op->kind))
        return tensor_bytes(tensor);
    for (uint32_t l = 0; l < space->n_loops; l++)
        elements *= space->loop[l].letter == LOOP_VOCABULARY ? 1 : space->loop[l].extent;
    return (uint64_t)ceil((double)elements * dtype_bytes(tensor->dtype));
}

/* Whether the op, or the op that it differentiates, multiplies by a parameter. */
static bool is_product(const Graph *graph, const Op *op)
{
    const Op *forward = graph_get_op(graph, op->of);
    return strcmp(op_kind_linear(forward->kind), "0|1") == 0 &&
           graph_tensor(graph, forward->in[1])->role == ROLE_PARAMETER;
}

Numbers graph_op_numbers(const Graph *graph, OpId id)
{
    const Op *op = graph_get_op(graph, id);
    bool half = false;
    for (uint32_t i = 0; i < op->n_in && op->pass != PASS_UPDATE; i++)
        half |= graph_tensor(graph, op->in[i])->dtype == DTYPE_F16;
    if (!half)
        return NUMBERS_F32;
    return is_product(graph, op) ? precision_least_numbers(graph->precision)
                                 : precision_numbers(graph->precision);
}
