/* The tools that all ONNX nodes are built with: names, ops, weights, views made into tensors. */
#include "data/formats/onnx/build.h"

#include "data/base/error.h"
#include "data/base/text.h"
#include "data/graph/check.h"

#include <ctype.h>
#include <string.h>

enum { LONGEST_NAME = 150 };

bool builder_refuse(Builder *b, const char *format, ...)
{
    if (b->failed)
        return false;
    TEXT_OF_ARGUMENTS(reason, format);
    b->failed = true;
    if (!b->node)
        return refuse(b->error, "%s: %s", b->model->file, reason);
    return refuse(b->error, "%s: no op stands for node %u, %s '%s': %s", b->model->file,
                  (uint32_t)(b->node - onnx_node(b->model, 0)), b->node->op,
                  b->node->name, reason);
}

void builder_count(json_t *counts, const char *op)
{
    const json_int_t before = json_integer_value(json_object_get(counts, op));
    json_object_set_new(counts, op, json_integer(before + 1));
}

/* --- names and layers --- */

char *builder_name(const Builder *b, const char *name)
{
    const size_t length = strlen(name);
    const char *tail = name + (length > LONGEST_NAME ? length - LONGEST_NAME : 0);
    g_autofree char *valid = g_utf8_make_valid(*tail ? tail : "value", -1);
    g_autoptr(GString) text = g_string_new(valid);
    for (uint32_t i = 0; graph_find(b->graph, text->str) != GRAPH_NONE ||
                         graph_name_is_reserved(text->str);
         i++) {
        g_string_assign(text, valid);
        g_string_append_printf(text, "_%u", i);
    }
    return g_string_free(g_steal_pointer(&text), false);
}

/* The beginning of a name, up to the first part that has a number: "h.3" of
 * "h.3.attn.c_attn.weight", "b.0" of "/b.0/MatMul_1". NULL: there is no such part. Caller frees. */
static char *numbered_part(const char *name, char separator)
{
    for (const char *part = name; part; part = strchr(part, separator)) {
        part += *part == separator;
        const char *end = strchr(part, separator);
        if (!end)
            return NULL;
        for (const char *c = part; c < end; c++)
            if (isdigit((unsigned char)*c))
                return g_strndup(name, (gsize)(end - name));
    }
    return NULL;
}

/* The layer that a weight's name says; else what the node's says; else a matrix begins one of its
 * own. NULL: the one before goes on. Caller frees. */
static char *onnx_layer_of(const Builder *b, const char *weight, uint32_t rank)
{
    const bool named = strchr(weight, '.') && !strstr(weight, "::");
    const char *node = b->node ? b->node->name : "";
    node += *node == '/';
    char *layer = named ? numbered_part(weight, '.') : numbered_part(node, '/');
    if (!layer && named)
        return g_strndup(weight, (gsize)(strrchr(weight, '.') - weight));
    return layer || rank < 2 ? layer : g_strdup(weight);
}

/* Ops from here on belong to the weight's layer. */
static void enter_layer(Builder *b, const char *weight, uint32_t rank)
{
    char *layer = onnx_layer_of(b, weight, rank);
    if (!layer)
        return;
    if (g_strcmp0(layer, b->layer) != 0)
        graph_layer(b->graph, layer);
    put_block(b->layer, layer);
}

/* --- ops --- */

TensorId builder_op(Builder *b, OpKind kind, OpAttr attr, uint32_t n_in,
                    const TensorId *in, const char *extents)
{
    Shape shape[OP_MAX_IN];
    if (b->failed)
        return GRAPH_NONE;
    for (uint32_t i = 0; i < n_in; i++) {
        if (in[i] == GRAPH_NONE)
            return builder_refuse(b, "an input is missing") ? 0 : GRAPH_NONE;
        const Tensor *tensor = graph_tensor(b->graph, in[i]);
        shape[i].rank = tensor->rank;
        memcpy(shape[i].dim, tensor->dim, sizeof shape[i].dim);
    }
    g_autofree char *wrong = op_check(kind, &attr, n_in, shape, extents);
    if (wrong) {
        builder_refuse(b, "%s: %s", op_kind_name(kind), wrong);
        return GRAPH_NONE;
    }
    if (!b->layer) {
        b->layer = g_strdup("input");
        graph_layer(b->graph, b->layer);
    }
    g_autofree char *plain = g_strdup_printf("%s.%u", op_kind_name(kind), b->op++);
    g_autofree char *name = builder_name(b, plain);
    return graph_op(b->graph, kind, name, attr, n_in, in, extents);
}

TensorId builder_weight(Builder *b, uint32_t value, uint32_t rank, const uint32_t *dim)
{
    return builder_part(b, value, "", rank, dim);
}

TensorId builder_part(Builder *b, uint32_t value, const char *part, uint32_t rank,
                      const uint32_t *dim)
{
    if (b->failed)
        return GRAPH_NONE;
    const uint32_t origin = onnx_value(b->model, value)->origin;
    g_autofree char *key = g_strconcat(
        onnx_value(b->model, origin == ONNX_NONE ? value : origin)->name, part, NULL);
    Weight *weight = g_hash_table_lookup(b->weight, key);
    if (weight) {
        weight->reads++;
        const Tensor *known = graph_tensor(b->graph, weight->parameter);
        if (known->rank == rank && memcmp(known->dim, dim, rank * sizeof *dim) == 0)
            return weight->read;
        builder_refuse(b, "the weight '%s' is read in two shapes", key);
        return GRAPH_NONE;
    }
    enter_layer(b, key, rank);
    g_autofree char *name = builder_name(b, key);
    weight = g_new0(Weight, 1);
    weight->reads = 1;
    weight->parameter = graph_parameter(b->graph, name, rank, dim);
    weight->read = weight->parameter;
    const Weight *before = b->reads ? g_hash_table_lookup(b->reads, key) : NULL;
    g_hash_table_insert(b->weight, g_steal_pointer(&key), weight);
    if (before && before->reads > 1)
        weight->read = builder_op(b, OP_TIED, (OpAttr){0}, 1, &weight->parameter, NULL);
    return weight->read;
}

/* --- views --- */

Product *builder_product(Builder *b, const View *view)
{
    return view->product == VIEW_NO_PRODUCT || !view_is_plain(view)
               ? NULL
               : &g_array_index(b->product, Product, view->product);
}

uint32_t builder_add_product(Builder *b, const Product *product)
{
    g_array_append_vals(b->product, product, 1);
    return b->product->len - 1;
}

static TensorId make_product(Builder *b, const Product *product)
{
    const Tensor x = *graph_tensor(b->graph, product->x);
    const uint32_t shared = product->kind == OP_LINEAR     ? 1
                            : product->kind == OP_OUT_PROJ ? 2
                                                           : 3;
    uint32_t dim[TENSOR_MAX_RANK] = {product->n};
    for (uint32_t d = 0; d < shared; d++)
        dim[1 + d] = x.dim[x.rank - shared + d];
    TensorId in[3] = {product->x, builder_weight(b, product->weight, 1 + shared, dim),
                      GRAPH_NONE};
    if (product->bias != ONNX_NONE)
        in[2] = builder_weight(b, product->bias, 1, dim);
    return builder_op(b, product->kind, (OpAttr){0}, product->bias != ONNX_NONE ? 3 : 2,
                      in, NULL);
}

/* The tensor of a product, made once. */
static TensorId product_out(Builder *b, uint32_t index)
{
    Product product = g_array_index(b->product, Product, index);
    if (product.out != GRAPH_NONE)
        return product.out;
    if (product.function == ONNX_SCALED)
        product.out = make_product(b, &product);
    else {
        const TensorId x = product_out(b, product.inner);
        product.out = builder_op(b, product.function == ONNX_GELU ? OP_GELU : OP_SILU,
                                 (OpAttr){0}, 1, &x, NULL);
    }
    g_array_index(b->product, Product, index).out = product.out;
    return product.out;
}

TensorId builder_base(Builder *b, View *view)
{
    if (!b->failed && !view_is_plain(view))
        builder_refuse(b,
                       "its input is turned by its place, normed by heads or repeated, "
                       "as only queries and keys are");
    if (b->failed || view->product == VIEW_NO_PRODUCT)
        return b->failed ? GRAPH_NONE : view->base;
    view->base = product_out(b, view->product);
    view->product = VIEW_NO_PRODUCT;
    return view->base;
}

/* A token that was taken alone: all of the base's second dim is fixed. */
static bool take_token(Builder *b, View *view)
{
    bool fixed = false, token = view->base_rank == 3;
    for (uint32_t a = 0; a < view->n_atoms; a++) {
        fixed |= view->atom[a].fixed;
        token &= view->atom[a].fixed == (view->atom[a].dim == 1);
    }
    if (!fixed)
        return true;
    if (!token)
        return builder_refuse(b, "only a part of its input is read");
    TensorId base = builder_base(b, view);
    base = builder_op(b, OP_TAKE_TOKEN, (OpAttr){0}, 1, &base, NULL);
    view_drop_fixed(view);
    view->base = base;
    view->base_rank = 2;
    items_each (Atom, atom, view->atom, view->n_atoms)
        atom->dim = atom->dim == 0 ? 0 : 1;
    return base != GRAPH_NONE;
}

/* The extents of a step: sizes of the tensor, those of the cut from the atoms. */
static char *step_extents(Builder *b, const View *view, ViewStep step)
{
    const Tensor *x = graph_tensor(b->graph, view->base);
    const uint32_t d = step.kind == OP_SPLIT_CHANNELS || step.kind == OP_MERGE_CHANNELS
                           ? 1
                           : x->rank - 1;
    if (step.kind == OP_TRANSPOSE)
        return NULL;
    if (step.kind == OP_MERGE || step.kind == OP_MERGE_CHANNELS) {
        const uint32_t first = step.kind == OP_MERGE ? d - 1 : 1;
        const uint64_t n = (uint64_t)x->dim[first] * x->dim[first + 1];
        if (n > INT32_MAX)
            builder_refuse(b, "a dim of %" G_GUINT64_FORMAT, n);
        return g_strdup_printf("%c=%u", step.kind == OP_MERGE ? 'n' : 'c',
                               (uint32_t)MIN(n, INT32_MAX));
    }
    uint64_t outer = 1;
    for (uint32_t a = 0, i = 0; a < view->n_atoms; a++)
        if (view->atom[a].dim == d && i++ < step.cut)
            outer *= view->atom[a].size;
    return g_strdup_printf("%c=%u,D=%u", step.kind == OP_SPLIT ? 'n' : 'c',
                           (uint32_t)outer, (uint32_t)(x->dim[d] / MAX(outer, 1)));
}

TensorId builder_settle(Builder *b, View *view, bool last)
{
    ViewStep step[VIEW_MOST_STEPS];
    if (b->failed || !take_token(b, view) || builder_base(b, view) == GRAPH_NONE)
        return GRAPH_NONE;
    const int n = view_steps(view, last, step);
    if (n < 0) {
        builder_refuse(b, "no ops bring the elements of its input in the order it wants");
        return GRAPH_NONE;
    }
    for (int i = 0; i < n; i++) {
        g_autofree char *extents = step_extents(b, view, step[i]);
        const TensorId base =
            builder_op(b, step[i].kind, (OpAttr){0}, 1, &view->base, extents);
        if (base == GRAPH_NONE)
            return GRAPH_NONE;
        view_step(view, step[i], base);
    }
    return view->base;
}

/* An input of the model, or of indices. */
static bool open_input(Builder *b, uint32_t value)
{
    const OnnxValue *v = onnx_value(b->model, value);
    uint32_t dim[TENSOR_MAX_RANK];
    if (!v->known || v->rank == 0 || v->rank > TENSOR_MAX_RANK)
        return builder_refuse(b, "the input '%s' has %u dims, expected 1 to %d", v->name,
                              v->rank, TENSOR_MAX_RANK);
    for (uint32_t d = 0; d < v->rank; d++)
        dim[d] = (uint32_t)v->dim[d];
    const bool batch = v->dim[0] == b->model->batch;
    if (batch)
        dim[0] = (uint32_t)b->sizes->batch;
    g_autofree char *name = builder_name(b, v->name);
    const DType dtype = onnx_dtype_is_float(v->dtype)
                            ? precision_compute(graph_precision(b->graph))
                            : DTYPE_I64;
    b->view[value] =
        view_of(graph_input(b->graph, name, dtype, v->rank, dim), v->rank, v->dim, batch);
    return true;
}

View *builder_view(Builder *b, uint32_t value)
{
    if (b->failed)
        return NULL;
    if (value == ONNX_NONE) {
        builder_refuse(b, "an input is missing");
        return NULL;
    }
    if (!b->view[value].known && onnx_value(b->model, value)->input &&
        !onnx_value(b->model, value)->constant && !open_input(b, value))
        return NULL;
    if (b->view[value].known)
        return &b->view[value];
    builder_refuse(b, "its input '%s' is a constant or cannot be had",
                   onnx_value(b->model, value)->name);
    return NULL;
}

void builder_put(Builder *b, uint32_t value, const View *like, TensorId base)
{
    if (value == ONNX_NONE || b->failed)
        return;
    b->view[value] = *like;
    b->view[value].base = base;
    b->view[value].product = VIEW_NO_PRODUCT;
}

void builder_give(Builder *b, uint32_t value, TensorId base)
{
    const OnnxValue *v = onnx_value(b->model, value);
    if (b->failed)
        return;
    if (!v->known) {
        builder_refuse(b, "the sizes of '%s' do not follow from the inputs'", v->name);
        return;
    }
    const bool batch = v->rank > 0 && v->dim[0] == b->model->batch &&
                       graph_tensor(b->graph, base)->dim[0] == b->sizes->batch;
    b->view[value] = view_of(base, v->rank, v->dim, batch);
}

void builder_drop_scale(Builder *b, View *view)
{
    static const double TOLERANCE = 1e-6;
    if (b->taken && (view->scale < 1 - TOLERANCE || view->scale > 1 + TOLERANCE))
        builder_count(b->taken->approximated, "Mul by a number");
    view->scale = 1;
}
