/* Differentiating a graph: the gradients that parameters need, then the updates. */
#include "data/base/assert.h"
#include "data/base/names.h"
#include "data/graph/autodiff.h"

#include <string.h>

/* [tensor]: whether some parameter's gradient needs its gradient. The gate's dispatch mask (second
 * output) is a constant. */
static bool *needed_tensors(const Graph *graph)
{
    bool *needed = g_new0(bool, graph_n_tensors(graph));
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        needed[t] = graph_tensor(graph, t)->role == ROLE_PARAMETER &&
                    !graph_tensor(graph, t)->frozen;
    ops_each (op, id, graph) {
        for (uint32_t i = 0; i < op->n_in; i++)
            needed[op->out[0]] |= needed[op->in[i]];
    }
    return needed;
}

typedef struct {
    const char *name;
    OpKind op, master;
    DType format;
    const char *states;
} Update;

#define OPTIMIZER_ENTRY(id, name, op, master, format, states) \
    {name, op, master, DTYPE_##format, states},
static const Update UPDATE[OPTIMIZERS] = {OPTIMIZER_TABLE(OPTIMIZER_ENTRY)};

NAMES_FUNCTION(optimizer_name, Optimizer, OPTIMIZERS, UPDATE[of].name)

Optimizer optimizer_from_name(const char *name)
{
    return NAME_PLACE(UPDATE, OPTIMIZERS, name, name);
}

/* Adafactor of parameters with one dim, whose second moment is not factored; Muon of a matrix with
 * more rows than columns. */
static const Update VECTOR = {"adafactor", OP_ADAFACTOR_VECTOR,
                              OP_ADAFACTOR_VECTOR_MASTER, DTYPE_F32, "v"};
static const Update TALL = {"muon", OP_MUON_TALL, OP_MUON_TALL_MASTER, DTYPE_NONE, "m"};

/* The parameter of the last product before the loss: the head, which frameworks leave in the format
 * of activations, and to Adam (bitsandbytes' llm_int8_skip_modules; Jordan et al. 2024). */
static TensorId head_of(const Graph *graph)
{
    for (TensorId t = graph->loss; graph_tensor(graph, t)->producer != GRAPH_NONE;) {
        const Op *op = graph_get_op(graph, graph_tensor(graph, t)->producer);
        if (strcmp(op_kind_linear(op->kind), "0|1") == 0 &&
            graph_tensor(graph, op->in[1])->role == ROLE_PARAMETER)
            return op->in[1];
        t = op->in[0];
    }
    return GRAPH_NONE;
}

/* [tensor]: whether products read the parameter as their weights, and nothing else reads it;
 * but for the head. */
static bool *find_of_products(const Graph *graph)
{
    bool *product = g_new0(bool, graph_n_tensors(graph));
    g_autofree bool *other = g_new0(bool, graph_n_tensors(graph));
    ops_each (op, id, graph) {
        for (uint32_t i = 0; i < op->n_in; i++) {
            const bool weights = i == 1 && strcmp(op_kind_linear(op->kind), "0|1") == 0;
            *(weights ? &product[op->in[i]] : &other[op->in[i]]) = true;
        }
    }
    const TensorId head = head_of(graph);
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        product[t] &=
            graph_tensor(graph, t)->role == ROLE_PARAMETER && !other[t] && t != head;
    return product;
}

/* The rule by which the optimizer updates a parameter. */
static const Update *find_update(const Graph *graph, const bool *product, TensorId p,
                                 Optimizer optimizer)
{
    const Tensor *parameter = graph_tensor(graph, p);
    const uint32_t rank = parameter->rank;
    if (optimizer == OPTIMIZER_ADAFACTOR && rank < 2)
        return &VECTOR;
    if (optimizer != OPTIMIZER_MUON)
        return &UPDATE[optimizer];
    if (rank < 2 || !product[p])
        return &UPDATE[OPTIMIZER_ADAMW];
    return parameter->dim[rank - 2] > parameter->dim[rank - 1] ? &TALL
                                                               : &UPDATE[optimizer];
}

/* The dims of state `s` of a parameter: the parameter's, or those of a factor. */
static uint32_t state_dims(const Update *by, const Tensor *parameter, uint32_t s,
                           uint32_t dim[TENSOR_MAX_RANK])
{
    memcpy(dim, parameter->dim, sizeof parameter->dim);
    if (by->op != OP_ADAFACTOR || s > 1)
        return parameter->rank;
    if (s == 1) /* columns */
        dim[parameter->rank - 2] = dim[parameter->rank - 1];
    return parameter->rank - 1;
}

/* Appends the update of a parameter: it reads gradient and optimizer states, and makes their next
 * values. */
static void append_update(Graph *graph, TensorId p, const Update *by)
{
    KILTER_ASSERT(graph_tensor(graph, p)->role == ROLE_PARAMETER);
    const Tensor parameter = *graph_tensor(graph, p);
    const StateFormats formats = graph->states;
    const bool master = formats.of[STATE_MASTER] != DTYPE_NONE;
    g_autofree char *states = g_strconcat(by->states, master ? " master" : "", NULL);
    g_auto(GStrv) state_name = g_strsplit(g_strstrip(states), " ", -1);
    const uint32_t n_states = *states ? g_strv_length(state_name) : 0;
    g_autofree char *name = g_strdup_printf("%s.update", parameter.name);
    OpSpec spec = {.kind = master ? by->master : by->op,
                   .name = name,
                   .pass = PASS_UPDATE,
                   .of = GRAPH_NONE,
                   .n_in = 2 + n_states,
                   .in = {p, graph_gradient(graph, p)},
                   .role = ROLE_UPDATED,
                   .out_of = {p}};
    for (uint32_t s = 0; s < n_states; s++) {
        g_autofree char *state = g_strdup_printf("%s.%s", parameter.name, state_name[s]);
        uint32_t dim[TENSOR_MAX_RANK];
        const uint32_t rank = state_dims(by, &parameter, s, dim);
        const DType format = s + master == n_states     ? formats.of[STATE_MASTER]
                             : by->format != DTYPE_NONE ? by->format
                                                        : formats.of[STATE_MOMENT + s];
        spec.in[2 + s] = spec.out_of[1 + s] =
            graph_add_tensor(graph, state, ROLE_OPTIMIZER, format, rank, dim, p);
    }
    char *out_name[OP_MAX_OUT] = {0};
    for (uint32_t o = 0; o < 1 + n_states; o++)
        spec.out_name[o] = out_name[o] =
            g_strdup_printf("%s.next", graph_tensor(graph, spec.out_of[o])->name);
    OpId id = graph_append(graph, &spec);
    for (uint32_t o = 0; o < 1 + n_states; o++) {
        g_array_index(graph->updated, TensorId, spec.out_of[o]) =
            graph_get_op(graph, id)->out[o];
        g_free(out_name[o]);
    }
}

/* Gives the weights of products, of frozen ones if any are, a format narrower than that of
 * activations. */
static void narrow_weights(Graph *graph, const bool *product)
{
    const DType format = graph->states.of[STATE_WEIGHTS];
    const bool lora = graph->training.kind == TRAIN_LORA;
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        if (product[t] && format != DTYPE_NONE && format != DTYPE_F32 &&
            (!lora || graph_tensor(graph, t)->frozen))
            g_array_index(graph->tensors, Tensor, t).dtype = format;
}

void graph_differentiate(Graph *graph, TensorId loss, Optimizer optimizer)
{
    graph->loss = loss;
    graph->optimizer = optimizer;
    g_autofree char *seed_name =
        g_strdup_printf("%s.grad", graph_tensor(graph, loss)->name);
    TensorId seed = graph_input(graph, seed_name, DTYPE_F32, 0, NULL);
    g_array_index(graph->gradients, TensorId, loss) = seed;
    g_autofree bool *needed = needed_tensors(graph);
    g_autofree bool *product = find_of_products(graph);
    narrow_weights(graph, product);
    Backward b = {.graph = graph, .needed = needed};
    for (OpId id = graph_n_ops(graph); id-- > 0;) {
        b.op = id;
        if (graph_gradient(graph, graph_get_op(graph, id)->out[0]) != GRAPH_NONE)
            differentiate_op(&b);
    }
    uint32_t n = graph_n_tensors(graph);
    for (TensorId t = n; t-- > 0;)
        if (graph_tensor(graph, t)->role == ROLE_PARAMETER &&
            graph_gradient(graph, t) != GRAPH_NONE)
            append_update(graph, t, find_update(graph, product, t, optimizer));
}
