/* From an ONNX model to a graph: nodes that the output needs, one after the other, and the loss. */
#include "data/formats/onnx/ops.h"

#include "data/base/free.h"
#include "data/models/models.h"

#include <string.h>

/* --- what is needed --- */

/* Ops of which the first operand alone has elements of the output; the others say how. */
static bool reshapes(const OnnxNode *node)
{
    static const char *const names[] = {"Expand",    "Pad",   "ReduceMean", "Reshape",
                                        "Slice",     "Split", "Squeeze",    "Tile",
                                        "Unsqueeze", NULL};
    return g_strv_contains(names, node->op);
}

/* Values that a node's first output is made of, by its group; returns how many. */
static uint32_t sources(const Builder *b, uint32_t n, const uint32_t **list)
{
    const OnnxNode *node = onnx_node(b->model, n);
    const OnnxGroup *group = &b->group[n];
    *list = group->in;
    switch (group->kind) {
    case ONNX_FUNCTION:
    case ONNX_LAYER_NORM:
    case ONNX_RMS_NORM:
    case ONNX_ROTARY:
        return 1;
    case ONNX_ATTENTION:
        return 3;
    default:
        *list = &g_array_index(b->model->operand, uint32_t, node->first);
        /* indices are inputs of their own, whatever computes them */
        return onnx_op_is(node, "Gather") &&
                       builder_is_constant(b, onnx_in(b->model, node, 0))
                   ? 0
               : reshapes(node) ? MIN(node->n_in, 1)
                                : node->n_in;
    }
}

/* Marks the nodes that make a value. */
static void onnx_mark(const Builder *b, uint32_t value, bool *needed)
{
    g_autoptr(GArray) stack = g_array_new(false, false, sizeof value);
    g_array_append_val(stack, value);
    while (stack->len > 0) {
        const uint32_t v = g_array_index(stack, uint32_t, stack->len - 1);
        const uint32_t *list;
        g_array_set_size(stack, stack->len - 1);
        const uint32_t n = onnx_value(b->model, v)->producer;
        if (n == ONNX_NO_NODE || needed[n] || onnx_value(b->model, v)->constant)
            continue;
        needed[n] = true;
        const uint32_t n_sources = sources(b, n, &list);
        g_array_append_vals(stack, list, n_sources);
    }
}

/* Elements of the weights that the nodes read. */
static double weight_of(const Builder *b, const bool *needed)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    double sum = 0;
    for (uint32_t n = 0; n < b->model->node->len; n++) {
        const OnnxNode *node = onnx_node(b->model, n);
        for (uint32_t i = 0; needed[n] && i < node->n_in; i++) {
            const uint32_t origin =
                onnx_value(b->model, onnx_in(b->model, node, i))->origin;
            const OnnxValue *weight = onnx_value(b->model, origin);
            if (weight->known && g_hash_table_add(seen, GUINT_TO_POINTER(origin)))
                sum += (double)onnx_elements(weight);
        }
    }
    return sum;
}

/* The output that is trained: of those with samples the first that reads most weights. */
static uint32_t choose_output(const Builder *b, bool *needed)
{
    enum { MOST_OUTPUTS = 32 };
    uint32_t best = ONNX_NONE;
    double most = -1;
    g_autofree bool *some = g_new(bool, b->model->node->len);
    for (uint32_t i = 0; i < MIN(b->model->output->len, MOST_OUTPUTS); i++) {
        const uint32_t value = g_array_index(b->model->output, uint32_t, i);
        memset(some, 0, b->model->node->len);
        if (onnx_value(b->model, value)->constant)
            continue;
        onnx_mark(b, value, some);
        const double weight = weight_of(b, some);
        if (weight > most) {
            most = weight;
            best = value;
            memcpy(needed, some, b->model->node->len);
        }
    }
    return best;
}

/* A loss has the softmax in it: the value that a last one is of. */
static uint32_t logits_of(const Builder *b, uint32_t value)
{
    const uint32_t n = onnx_value(b->model, value)->producer;
    const OnnxNode *node = n == ONNX_NO_NODE ? NULL : onnx_node(b->model, n);
    const bool softmax = node && b->group[n].kind == ONNX_PLAIN &&
                         (onnx_op_is(node, "Softmax") || onnx_op_is(node, "LogSoftmax"));
    return softmax && onnx_in(b->model, node, 0) != ONNX_NONE ? onnx_in(b->model, node, 0)
                                                              : value;
}

/* --- the loss --- */

/* Labels of every place but along the classes, the last dim, or the second one of images. */
static TensorId onnx_build_loss(Builder *b, uint32_t value)
{
    static const uint32_t classes_last[] = {0, 2, 3, 1};
    View *view = builder_view(b, value);
    b->node = NULL;
    if (!view)
        return GRAPH_NONE;
    if (view->rank < 2 || view->rank > 4) {
        builder_refuse(b,
                       "the output '%s' has %u dims, expected 2 to 4: samples and "
                       "classes",
                       onnx_value(b->model, value)->name, view->rank);
        return GRAPH_NONE;
    }
    const bool tokens = view->rank == 3;
    if (view->rank == 4)
        view_permute(view, classes_last);
    const TensorId logits = builder_settle(b, view, true);
    if (logits == GRAPH_NONE)
        return GRAPH_NONE;
    const Tensor x = *graph_tensor(b->graph, logits);
    if (x.rank < 2) {
        builder_refuse(b, "the output '%s' has no samples",
                       onnx_value(b->model, value)->name);
        return GRAPH_NONE;
    }
    g_autofree char *name = builder_name(b, "labels");
    const TensorId labels = graph_input(b->graph, name, DTYPE_I64, x.rank - 1, x.dim);
    return tokens ? model_sharded_loss(b->graph, logits, labels)
                  : model_loss(b->graph, logits, labels);
}

/* --- all of it --- */

static OnnxBuild build_of(const OnnxNode *node)
{
    const OnnxOp *op = onnx_op_of(node);
    return op ? op->build : NULL;
}

static void note_unmapped(const Builder *b, const bool *needed)
{
    for (uint32_t n = 0; b->taken && n < b->model->node->len; n++)
        if (needed[n] && b->group[n].kind == ONNX_PLAIN &&
            !build_of(onnx_node(b->model, n)))
            builder_count(b->taken->unmapped, onnx_node(b->model, n)->op);
}

static bool onnx_build_node(Builder *b)
{
    const OnnxBuild build = build_of(b->node);
    return build ? build(b, b->node)
                 : builder_refuse(b, "none of the op table does the same");
}

/* One pass over the nodes that the output needs. */
static bool build(Builder *b, TensorId *loss)
{
    g_autofree bool *needed = g_new0(bool, b->model->node->len);
    uint32_t output = choose_output(b, needed);
    if (output == ONNX_NONE)
        return builder_refuse(b, "no output depends on an input");
    const uint32_t logits = logits_of(b, output);
    if (logits != output) {
        memset(needed, 0, b->model->node->len);
        onnx_mark(b, logits, needed);
        output = logits;
    }
    if (b->taken)
        note_unmapped(b, needed);
    for (uint32_t n = 0; n < b->model->node->len && !b->failed; n++) {
        if (!needed[n])
            continue;
        b->node = onnx_node(b->model, n);
        if (b->group[n].kind == ONNX_PLAIN)
            onnx_build_node(b);
        else
            builder_group(b, b->node, &b->group[n]);
    }
    *loss = b->failed ? GRAPH_NONE : onnx_build_loss(b, output);
    if (!b->failed && g_hash_table_size(b->weight) == 0)
        builder_refuse(b, "the output depends on no weight");
    return !b->failed;
}

static CLEAR_DEFINE(builder_clear, Builder, b, free_each(b->view, b->layer),
                    g_array_unref(b->product), g_hash_table_unref(b->weight));

static void builder_init(Builder *b, Graph *graph)
{
    b->graph = graph;
    b->view = g_new0(View, b->model->value->len + 1);
    b->product = g_array_new(false, true, sizeof(Product));
    b->weight = text_table(g_free);
    b->layer = NULL;
    b->op = 0;
}

void onnx_taken_clear(OnnxTaken *taken)
{
    json_decref(taken->approximated);
    json_decref(taken->unmapped);
    taken->approximated = taken->unmapped = NULL;
}

bool onnx_build(Graph *graph, OnnxModel *model, const OnnxSizes *sizes, TensorId *loss,
                OnnxTaken *taken, GError **error)
{
    OnnxTaken own = {0};
    g_autofree OnnxGroup *group = onnx_match(model);
    g_autoptr(Graph) draft = graph_new("draft");
    Builder first = {.model = model,
                     .group = group,
                     .sizes = sizes,
                     .taken = taken ? taken : &own,
                     .error = error};
    first.taken->approximated = json_object();
    first.taken->unmapped = json_object();
    Builder second = first;
    second.taken = NULL;
    graph_set_precision(draft, graph_precision(graph));
    builder_init(&first, draft);
    bool good = build(&first, loss);
    if (good) {
        builder_init(&second, graph);
        second.reads = first.weight;
        good = build(&second, loss);
        builder_clear(&second);
    }
    builder_clear(&first);
    if (!taken)
        onnx_taken_clear(&own);
    return good;
}
