/* ONNX nodes that give the same elements in other dims, a part of them, or rows of a table. */
#include "data/formats/onnx/ops.h"

View *builder_begin(Builder *b, const OnnxNode *node, uint32_t out)
{
    const View *x = builder_view(b, onnx_in(b->model, node, 0));
    if (!x || out == ONNX_NONE)
        return NULL;
    b->view[out] = *x;
    return &b->view[out];
}

/* The first output; NULL: refused, since its sizes are not known. */
static const OnnxValue *known_out(Builder *b, const OnnxNode *node)
{
    const OnnxValue *out = onnx_value(b->model, onnx_out(b->model, node, 0));
    if (!out->known)
        builder_refuse(b, "its sizes do not follow from those of the inputs");
    return out->known ? out : NULL;
}

bool builder_reshape(Builder *b, const OnnxNode *node)
{
    View *view = builder_begin(b, node, onnx_out(b->model, node, 0));
    const OnnxValue *out = view ? known_out(b, node) : NULL;
    return out && (view_reshape(view, out->rank, out->dim) ||
                   builder_refuse(b, "it cuts across the dims of its input"));
}

bool builder_expand(Builder *b, const OnnxNode *node)
{
    View *view = builder_begin(b, node, onnx_out(b->model, node, 0));
    const OnnxValue *out = view ? known_out(b, node) : NULL;
    if (!out)
        return false;
    for (; view->rank < out->rank; view->rank++) {
        for (uint32_t d = view->rank; d > 0; d--)
            view->dim[d] = view->dim[d - 1];
        view->dim[0].n = 0;
    }
    for (uint32_t d = 0; d < out->rank; d++)
        if (view_size(view, d) != out->dim[d] &&
            !(d == 0 && out->dim[0] == b->model->batch && view_set_batch(view)) &&
            !view_repeat(view, d, out->dim[d]))
            return builder_refuse(b, "it repeats a part of its input");
    return true;
}

/* Of no elements, as exporters write them before windows. */
bool builder_pad(Builder *b, const OnnxNode *node)
{
    const View *view = builder_begin(b, node, onnx_out(b->model, node, 0));
    const OnnxValue *out = view ? known_out(b, node) : NULL,
                    *in = out ? onnx_value(b->model, onnx_in(b->model, node, 0)) : NULL;
    return out && ((in->known && onnx_elements(in) == onnx_elements(out)) ||
                   builder_refuse(b, "it adds elements at the edges"));
}

bool builder_transpose(Builder *b, const OnnxNode *node)
{
    int64_t perm[ONNX_MAX_RANK];
    uint32_t from[ONNX_MAX_RANK];
    View *view = builder_begin(b, node, onnx_out(b->model, node, 0));
    if (!view || !known_out(b, node))
        return false;
    const uint32_t n = onnx_ints(node, "perm", ONNX_MAX_RANK, perm);
    for (uint32_t d = 0; d < view->rank; d++)
        from[d] = n == view->rank ? onnx_axis(perm[d], n) : view->rank - 1 - d;
    return view_permute(view, from);
}

/* --- parts --- */

static bool parts_take(Builder *b, View *view, uint32_t axis, uint64_t first, uint64_t n)
{
    return view_take(view, axis, first, n) ||
           builder_refuse(b,
                          "elements %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT
                          " are no even part of a dim",
                          first, first + n);
}

bool builder_split(Builder *b, const OnnxNode *node)
{
    uint64_t first = 0;
    for (uint32_t i = 0; i < node->n_out; i++) {
        const uint32_t index = onnx_out(b->model, node, i);
        View *view = builder_begin(b, node, index);
        const OnnxValue *out = onnx_value(b->model, index);
        if (!view || !out->known)
            return builder_refuse(b, "its sizes do not follow from those of the inputs");
        const uint32_t axis = onnx_axis(onnx_int(node, "axis", 0), view->rank);
        if (!parts_take(b, view, axis, first, out->dim[axis]))
            return false;
        first += out->dim[axis];
    }
    return true;
}

/* Of consecutive elements, whose first ones are the starts. */
bool builder_slice(Builder *b, const OnnxNode *node)
{
    int64_t start[ONNX_MAX_RANK], axes[ONNX_MAX_RANK], step[ONNX_MAX_RANK];
    View *view = builder_begin(b, node, onnx_out(b->model, node, 0));
    const OnnxValue *out = view ? known_out(b, node) : NULL,
                    *in = out ? onnx_value(b->model, onnx_in(b->model, node, 0)) : NULL;
    if (!out)
        return false;
    const int n = onnx_ints_of(b->model, node, 1, "starts", start),
              n_axes = onnx_ints_of(b->model, node, 3, "axes", axes);
    const int n_steps = onnx_constant_ints(b->model, onnx_in(b->model, node, 4), step);
    for (int i = 0; i < n; i++) {
        const uint32_t axis = onnx_axis(n_axes > 0 ? axes[i] : i, in->rank);
        if (n_steps > 0 && step[i] != 1)
            return builder_refuse(b, "it leaves out elements between others");
        const int64_t size = (int64_t)in->dim[axis];
        const int64_t first = CLAMP(start[i] < 0 ? start[i] + size : start[i], 0, size);
        if (!parts_take(b, view, axis, (uint64_t)first, out->dim[axis]))
            return false;
    }
    return n >= 0;
}

/* Rows of a table; indices that are no input are made one, since their makers are not trained. */
static bool onnx_embed(Builder *b, const OnnxNode *node)
{
    const uint32_t table = onnx_in(b->model, node, 0), at = onnx_in(b->model, node, 1);
    const OnnxValue *w = onnx_value(b->model, table), *index = onnx_value(b->model, at),
                    *out = known_out(b, node);
    uint32_t dim[TENSOR_MAX_RANK], rank = 0;
    if (!out)
        return false;
    if (!w->known || w->rank != 2 || onnx_axis(onnx_int(node, "axis", 0), 2) ||
        index->rank == 0 || index->rank > 2)
        return builder_refuse(b, "expected rows of a matrix");
    const bool shared = index->dim[0] != b->model->batch || index->constant;
    if (shared && index->rank == 1)
        dim[rank++] = (uint32_t)b->sizes->batch;
    for (uint32_t d = 0; d < index->rank; d++)
        dim[rank++] = d == 0 && (!shared || index->rank > 1) ? (uint32_t)b->sizes->batch
                                                             : (uint32_t)index->dim[d];
    if (shared && index->rank > 1 && index->dim[0] != 1)
        return builder_refuse(b, "its indices have no samples");
    TensorId in[2];
    if (index->input && !shared) {
        View *view = builder_view(b, at);
        in[0] = view ? view->base : GRAPH_NONE;
    } else {
        g_autofree char *name =
            g_strdup_printf("%s.index.%u", w->name, graph_n_tensors(b->graph));
        in[0] = graph_input(b->graph, name, DTYPE_I64, rank, dim);
    }
    in[1] = builder_weight(b, table, 2,
                           (uint32_t[]){(uint32_t)w->dim[0], (uint32_t)w->dim[1]});
    const TensorId y = builder_op(b, OP_EMBEDDING, (OpAttr){0}, 2, in, NULL);
    if (y == GRAPH_NONE)
        return false;
    /* The base has samples, also where the file's value has none. */
    uint64_t size[ONNX_MAX_RANK] = {b->model->batch};
    for (uint32_t d = 1; d < rank; d++)
        size[d] = dim[d];
    size[rank] = w->dim[1];
    View view = view_of(y, rank + 1, size, true);
    if (shared && index->rank == 1)
        view_drop(&view, 0);
    else if (shared)
        view.dim[0].n = 0;
    b->view[onnx_out(b->model, node, 0)] = view;
    return true;
}

bool builder_gather(Builder *b, const OnnxNode *node)
{
    if (builder_is_constant(b, onnx_in(b->model, node, 0)))
        return onnx_embed(b, node);
    View *view = builder_begin(b, node, onnx_out(b->model, node, 0));
    const OnnxValue *index = onnx_value(b->model, onnx_in(b->model, node, 1));
    if (!view)
        return false;
    const uint32_t axis = onnx_axis(onnx_int(node, "axis", 0), view->rank);
    if (!index->value || !index->known || index->rank > 1 || axis == view->rank ||
        onnx_elements(index) == 0)
        return builder_refuse(b, "expected indices that the file says");
    const double size = (double)view_size(view, axis), first = index->value[0];
    for (uint64_t i = 0; i < onnx_elements(index); i++)
        if (index->value[i] != first + (double)i)
            return builder_refuse(b, "it picks elements that are not in a row");
    const double from = first < 0 ? first + size : first;
    if (from < 0 || !parts_take(b, view, axis, (uint64_t)from, onnx_elements(index)))
        return builder_refuse(b, "its index lies outside");
    if (index->rank == 0)
        view_drop(view, axis);
    return true;
}
