/* ONNX nodes of convolutional models: convolutions, pooling, batch norm, concatenation. */
#include "data/formats/onnx/ops.h"

#include <string.h>

/* Windows along two edges. */
typedef struct {
    uint32_t stride, padding[2], out[2];
} Windows;

/* The padding before an edge, of the padding by SAME at both ends. */
static uint64_t same_padding(const char *automatic, uint64_t size, uint64_t out,
                             uint64_t window, uint64_t stride)
{
    const uint64_t covered = (out - 1) * stride + window;
    const uint64_t around = covered > size ? covered - size : 0;
    return strcmp(automatic, "SAME_LOWER") == 0 ? (around + 1) / 2 : around / 2;
}

/* Of [n, c, edges...] to `out`; an image of one edge has a second one of 1. */
static bool images_windows_of(Builder *b, const OnnxNode *node, const OnnxValue *x,
                              const OnnxValue *out, const uint64_t *window, Windows *w)
{
    int64_t stride[2] = {1, 1}, dilation[2] = {1, 1}, pad[4] = {0};
    const uint32_t n = x->rank - 2;
    const char *automatic = onnx_text(node, "auto_pad", "NOTSET");
    onnx_ints(node, "strides", n, stride);
    onnx_ints(node, "dilations", n, dilation);
    onnx_ints(node, "pads", 2 * n, pad);
    *w = (Windows){.stride = (uint32_t)CLAMP(stride[0], 0, INT32_MAX), .out = {1, 1}};
    for (uint32_t e = 0; e < n; e++) {
        if (dilation[e] != 1)
            return builder_refuse(b, "dilations: expected 1");
        if (stride[e] != stride[0])
            return builder_refuse(b, "strides: expected one for all edges");
        const uint64_t before =
            g_str_has_prefix(automatic, "SAME")
                ? same_padding(automatic, x->dim[2 + e], out->dim[2 + e], window[e],
                               (uint64_t)stride[e])
                : (uint64_t)MAX(pad[e], 0);
        if (before > INT32_MAX || out->dim[2 + e] == 0)
            return builder_refuse(b, "no windows of it fit");
        w->padding[e] = (uint32_t)before;
        w->out[e] = (uint32_t)out->dim[2 + e];
    }
    return true;
}

/* The image as [n, c, rows, columns]; a line of elements gets columns of 1. */
static TensorId image_of(Builder *b, const OnnxNode *node)
{
    View *view = builder_view(b, onnx_in(b->model, node, 0));
    const OnnxValue *x = view ? onnx_value(b->model, onnx_in(b->model, node, 0)) : NULL;
    if (!view || !onnx_value(b->model, onnx_out(b->model, node, 0))->known || !x->known ||
        x->rank < 3 || x->rank > 4) {
        builder_refuse(b, "expected images of one or two edges, whose sizes follow from "
                          "the inputs'");
        return GRAPH_NONE;
    }
    builder_drop_scale(b, view);
    const TensorId base = builder_settle(b, view, false);
    if (base == GRAPH_NONE || x->rank == 4)
        return base;
    g_autofree char *extents =
        g_strdup_printf("n=%u,D=1", graph_tensor(b->graph, base)->dim[2]);
    return builder_op(b, OP_SPLIT, (OpAttr){0}, 1, &base, extents);
}

/* An op's output, without the columns of 1 that image_of gave. */
static bool give_image(Builder *b, const OnnxNode *node, TensorId y)
{
    const uint32_t out = onnx_out(b->model, node, 0);
    if (y == GRAPH_NONE)
        return false;
    if (onnx_value(b->model, out)->rank == 3) {
        g_autofree char *extents =
            g_strdup_printf("n=%u", graph_tensor(b->graph, y)->dim[2]);
        y = builder_op(b, OP_MERGE, (OpAttr){0}, 1, &y, extents);
    }
    if (y != GRAPH_NONE)
        builder_give(b, out, y);
    return !b->failed;
}

/* Channels in groups are a dim of their own. */
static TensorId group_conv(Builder *b, TensorId x, const OnnxNode *node, OpAttr attr,
                           const uint32_t *kernel, const char *windows)
{
    const uint32_t groups = (uint32_t)onnx_int(node, "group", 1),
                   bias = onnx_in(b->model, node, 2),
                   channels = graph_tensor(b->graph, x)->dim[1];
    g_autofree char *split = g_strdup_printf("c=%u,D=%u", groups, channels / groups);
    g_autofree char *merge = g_strdup_printf("c=%u", kernel[0]);
    const uint32_t dim[] = {groups, kernel[0] / groups, kernel[1], kernel[2], kernel[3]};
    TensorId in[3] = {builder_op(b, OP_SPLIT_CHANNELS, (OpAttr){0}, 1, &x, split),
                      builder_weight(b, onnx_in(b->model, node, 1), TENSOR_MAX_RANK, dim),
                      GRAPH_NONE};
    if (bias != ONNX_NONE)
        in[2] = builder_weight(b, bias, 2, dim);
    x = builder_op(b, OP_GROUP_CONV2D, attr, bias != ONNX_NONE ? 3 : 2, in, windows);
    return builder_op(b, OP_MERGE_CHANNELS, (OpAttr){0}, 1, &x, merge);
}

bool builder_conv(Builder *b, const OnnxNode *node)
{
    const uint32_t weight = onnx_in(b->model, node, 1), bias = onnx_in(b->model, node, 2);
    const TensorId x = image_of(b, node);
    Windows windows;
    if (x == GRAPH_NONE)
        return false;
    const OnnxValue *w = onnx_value(b->model, weight),
                    *in = onnx_value(b->model, onnx_in(b->model, node, 0)),
                    *out = onnx_value(b->model, onnx_out(b->model, node, 0));
    const int64_t groups = onnx_int(node, "group", 1);
    if (!w->constant || !w->known || w->rank != in->rank ||
        (bias != ONNX_NONE && !builder_is_constant(b, bias)))
        return builder_refuse(b, "expected constant weights");
    if (groups < 1 || w->dim[0] % (uint64_t)groups != 0 ||
        w->dim[1] * (uint64_t)groups != in->dim[1])
        return builder_refuse(b, "group: expected a divisor of the channels");
    if (!images_windows_of(b, node, in, out, w->dim + 2, &windows))
        return false;
    const uint32_t dim[] = {(uint32_t)w->dim[0], (uint32_t)w->dim[1], (uint32_t)w->dim[2],
                            w->rank == 4 ? (uint32_t)w->dim[3] : 1};
    const OpAttr attr = {.stride = windows.stride,
                         .padding = windows.padding[0],
                         .padding_columns = windows.padding[1]};
    g_autofree char *extents =
        g_strdup_printf("P=%u,Q=%u", windows.out[0], windows.out[1]);
    if (groups > 1)
        return give_image(b, node, group_conv(b, x, node, attr, dim, extents));
    TensorId operand[3] = {x, builder_weight(b, weight, 4, dim), GRAPH_NONE};
    if (bias != ONNX_NONE)
        operand[2] = builder_weight(b, bias, 1, dim);
    return give_image(
        b, node,
        builder_op(b, OP_CONV2D, attr, bias != ONNX_NONE ? 3 : 2, operand, extents));
}

/* --- pooling --- */

bool builder_pool(Builder *b, const OnnxNode *node)
{
    const TensorId x = image_of(b, node);
    int64_t kernel[2] = {0, 0};
    uint64_t window[2];
    Windows windows;
    if (x == GRAPH_NONE)
        return false;
    const OnnxValue *in = onnx_value(b->model, onnx_in(b->model, node, 0)),
                    *out = onnx_value(b->model, onnx_out(b->model, node, 0));
    const uint32_t n = in->rank - 2;
    const bool global = onnx_op_is(node, "GlobalMaxPool"),
               mean = onnx_op_is(node, "AveragePool");
    onnx_ints(node, "kernel_shape", 2, kernel);
    for (uint32_t e = 0; e < n; e++)
        window[e] = global ? in->dim[2 + e] : (uint64_t)MAX(kernel[e], 1);
    if (!images_windows_of(b, node, in, out, window, &windows))
        return false;
    const bool whole = mean && windows.out[0] == 1 && windows.out[1] == 1 &&
                       window[0] >= in->dim[2] && (n < 2 || window[1] >= in->dim[3]);
    if (!whole && (n < 2 || window[0] != window[1] || window[0] > INT32_MAX))
        return builder_refuse(b, "kernel_shape: expected a square");
    const OpAttr attr = {.window = whole ? 0 : (uint32_t)window[0],
                         .stride = whole ? 0 : windows.stride,
                         .padding = windows.padding[0],
                         .padding_columns = windows.padding[1]};
    g_autofree char *extents =
        g_strdup_printf("P=%u,Q=%u", windows.out[0], windows.out[1]);
    return give_image(b, node,
                      builder_op(b, mean ? OP_AVG_POOL2D : OP_MAX_POOL2D,
                                 whole ? (OpAttr){0} : attr, 1, &x, extents));
}

/* The mean over tokens, [n, s, h] to [n, h], as one over the columns of an image. */
static bool mean_of_tokens(Builder *b, const OnnxNode *node, View *view)
{
    TensorId x = builder_settle(b, view, false);
    if (x == GRAPH_NONE)
        return false;
    const Tensor t = *graph_tensor(b->graph, x);
    g_autofree char *columns = g_strdup_printf("n=%u,D=1", t.dim[1]);
    g_autofree char *merged = g_strdup_printf("n=%u", t.dim[2]);
    x = builder_op(b, OP_TRANSPOSE, (OpAttr){0}, 1, &x, NULL);
    x = builder_op(b, OP_SPLIT, (OpAttr){0}, 1, &x, columns);
    x = builder_op(b, OP_AVG_POOL2D, (OpAttr){0}, 1, &x, "P=1,Q=1");
    x = builder_op(b, OP_MERGE, (OpAttr){0}, 1, &x, "n=1");
    x = builder_op(b, OP_MERGE, (OpAttr){0}, 1, &x, merged);
    if (x != GRAPH_NONE)
        builder_give(b, onnx_out(b->model, node, 0), x);
    return !b->failed;
}

bool builder_mean(Builder *b, const OnnxNode *node)
{
    int64_t axes[ONNX_MAX_RANK];
    View *view = builder_view(b, onnx_in(b->model, node, 0));
    const OnnxValue *out = onnx_value(b->model, onnx_out(b->model, node, 0));
    if (!view)
        return false;
    const int n = onnx_ints_of(b->model, node, 1, "axes", axes);
    const uint32_t first = n > 0 ? onnx_axis(axes[0], view->rank) : 0,
                   second = n > 1 ? onnx_axis(axes[1], view->rank) : 0;
    const bool edges = onnx_op_is(node, "GlobalAveragePool") ||
                       (n == 2 && first + second == 5 && first != second);
    builder_drop_scale(b, view);
    if (out->known && n == 1 && first == 1 && view->rank == 3)
        return mean_of_tokens(b, node, view);
    if (!out->known || !edges || view->rank != 4)
        return builder_refuse(b,
                              "expected a mean over the edges of images or over tokens");
    const TensorId x = builder_settle(b, view, false);
    const TensorId y = builder_op(b, OP_AVG_POOL2D, (OpAttr){0}, 1, &x, "P=1,Q=1");
    if (y == GRAPH_NONE)
        return false;
    const uint64_t dim[] = {view_size(view, 0), view_size(view, 1), 1, 1};
    View mean = view_of(y, 4, dim, view->n_atoms > 0 && view->atom[0].batch);
    b->view[onnx_out(b->model, node, 0)] = mean;
    return view_reshape(&b->view[onnx_out(b->model, node, 0)], out->rank, out->dim) ||
           builder_refuse(b, "its sizes do not follow from those of the inputs");
}

/* --- batch norm and channels --- */

bool builder_batch_norm(Builder *b, const OnnxNode *node)
{
    const uint32_t weight = onnx_in(b->model, node, 1), bias = onnx_in(b->model, node, 2);
    const TensorId x = image_of(b, node);
    if (x == GRAPH_NONE)
        return false;
    const uint32_t channels = graph_tensor(b->graph, x)->dim[1];
    if (!builder_is_constant(b, weight) || !builder_is_constant(b, bias))
        return builder_refuse(b, "expected constant weights");
    const TensorId in[] = {x, builder_op(b, OP_MOMENTS, (OpAttr){0}, 1, &x, "T=2"),
                           builder_weight(b, weight, 1, &channels),
                           builder_weight(b, bias, 1, &channels)};
    return give_image(b, node, builder_op(b, OP_BATCH_NORM, (OpAttr){0}, 4, in, NULL));
}

/* A constant beside tokens is one more of them. */
static TensorId append_token(Builder *b, TensorId x, uint32_t constant)
{
    const Tensor t = *graph_tensor(b->graph, x);
    const OnnxValue *token = onnx_value(b->model, constant);
    const uint32_t origin = token->origin == ONNX_NONE ? constant : token->origin;
    if (t.rank != 3 || !token->known || token->rank != 3 || token->dim[1] != 1 ||
        onnx_elements(onnx_value(b->model, origin)) != t.dim[2]) {
        builder_refuse(b, "expected a constant of one token");
        return GRAPH_NONE;
    }
    g_autofree char *extents = g_strdup_printf("T=%u", t.dim[1] + 1);
    const TensorId in[] = {x, builder_weight(b, constant, 1, &t.dim[2])};
    return builder_op(b, OP_APPEND_TOKEN, (OpAttr){0}, 2, in, extents);
}

bool builder_concat(Builder *b, const OnnxNode *node)
{
    const OnnxValue *out = onnx_value(b->model, onnx_out(b->model, node, 0));
    TensorId all = GRAPH_NONE;
    if (!out->known || onnx_axis(onnx_int(node, "axis", 1), out->rank) != 1)
        return builder_refuse(b, "axis: expected the second one");
    for (uint32_t i = 0; i < node->n_in; i++) {
        const uint32_t index = onnx_in(b->model, node, i);
        if (builder_is_constant(b, index))
            continue;
        View *view = builder_view(b, index);
        if (!view)
            return false;
        builder_drop_scale(b, view);
        const TensorId part = builder_settle(b, view, false);
        if (part == GRAPH_NONE)
            return false;
        if (all == GRAPH_NONE) {
            all = part;
            continue;
        }
        g_autofree char *extents =
            g_strdup_printf("C=%u", graph_tensor(b->graph, all)->dim[1] +
                                        graph_tensor(b->graph, part)->dim[1]);
        all = builder_op(b, OP_CONCAT, (OpAttr){0}, 2, (TensorId[]){all, part}, extents);
    }
    for (uint32_t i = 0; i < node->n_in && all != GRAPH_NONE; i++) {
        const uint32_t index = onnx_in(b->model, node, i);
        if (builder_is_constant(b, index))
            all = append_token(b, all, index);
    }
    if (all == GRAPH_NONE)
        return builder_refuse(b, "expected a value that is not constant");
    builder_give(b, onnx_out(b->model, node, 0), all);
    return !b->failed;
}
