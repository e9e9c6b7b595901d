/* Pieces of convolutional models: convolutions and pooling with the padding of PyTorch or
 * TensorFlow, batch norm. */
#include "data/base/assert.h"
#include "data/models/models.h"

/* How windows lie on an edge: the number of outputs, and the padding before the image. */
typedef struct {
    uint32_t out, before;
} Windows;

/* PAD_SAME: one output per step, with padding even on both sides and an odd element behind;
 * PAD_EVEN: (window - 1) / 2 on both sides; PAD_NONE: windows lie within the image. */
static Windows windows_of(ModelPadding padding, uint32_t edge, uint32_t window,
                          uint32_t stride)
{
    g_assert(window > 0 && stride > 0);
    if (padding == PAD_NONE)
        return (Windows){(edge - window) / stride + 1, 0};
    if (padding == PAD_EVEN) {
        const uint32_t before = (window - 1) / 2;
        return (Windows){(edge + 2 * before - window) / stride + 1, before};
    }
    const uint32_t out = (edge + stride - 1) / stride,
                   covered = (out - 1) * stride + window;
    return (Windows){out, covered > edge ? (covered - edge) / 2 : 0};
}

TensorId model_conv(Graph *graph, const char *name, TensorId x, const ModelConv *conv)
{
    const Tensor in = *graph_tensor(graph, x);
    g_autofree char *weight = g_strdup_printf("%s.weight", name);
    g_autofree char *bias = g_strdup_printf("%s.bias", name);
    const Windows p = windows_of(conv->padding, in.dim[2], conv->rows, conv->stride),
                  q = windows_of(conv->padding, in.dim[3], conv->columns, conv->stride);
    TensorId operand[] = {x,
                          graph_parameter(graph, weight, 4,
                                          (uint32_t[]){conv->channels, in.dim[1],
                                                       conv->rows, conv->columns}),
                          0};
    if (conv->bias)
        operand[2] = graph_parameter(graph, bias, 1, &conv->channels);
    g_autofree char *extents = g_strdup_printf("P=%u,Q=%u", p.out, q.out);
    return graph_op(graph, OP_CONV2D, name,
                    (OpAttr){.stride = conv->stride,
                             .padding = p.before,
                             .padding_columns = q.before},
                    conv->bias ? 3 : 2, operand, extents);
}

TensorId model_pool(Graph *graph, OpKind kind, const char *name, TensorId x,
                    uint32_t window, uint32_t stride, ModelPadding padding)
{
    KILTER_ASSERT(stride > 0);
    const Tensor in = *graph_tensor(graph, x);
    const Windows p = windows_of(padding, in.dim[2], window, stride),
                  q = windows_of(padding, in.dim[3], window, stride);
    g_autofree char *extents = g_strdup_printf("P=%u,Q=%u", p.out, q.out);
    return graph_op(graph, kind, name,
                    (OpAttr){.window = window,
                             .stride = stride,
                             .padding = p.before,
                             .padding_columns = q.before},
                    1, &x, extents);
}

TensorId model_features(Graph *graph, TensorId x)
{
    x = graph_op(graph, OP_AVG_POOL2D, "pool", (OpAttr){0}, 1, &x, "P=1,Q=1");
    x = graph_op(graph, OP_MERGE, "flatten.spatial", (OpAttr){0}, 1, &x, "n=1");
    const Tensor in = *graph_tensor(graph, x);
    g_autofree char *extents = g_strdup_printf("n=%u", in.dim[1]);
    return graph_op(graph, OP_MERGE, "flatten", (OpAttr){0}, 1, &x, extents);
}

TensorId model_batch_norm(Graph *graph, const char *name, TensorId x, ModelBatchNorm kind)
{
    enum { MOMENTS = 2 };
    const bool given = kind == BATCH_NORM_SCALED_GIVEN || kind == BATCH_NORM_OFFSET_GIVEN,
               scaled = kind == BATCH_NORM_SCALED || kind == BATCH_NORM_SCALED_GIVEN;
    const uint32_t channels = graph_tensor(graph, x)->dim[1];
    g_autofree char *weight = g_strdup_printf("%s.weight", name);
    g_autofree char *bias = g_strdup_printf("%s.bias", name);
    g_autofree char *moments = g_strdup_printf("%s.moments", name);
    const TensorId in[] = {
        x,
        given ? graph_input(graph, moments, DTYPE_F32, 2, (uint32_t[]){MOMENTS, channels})
              : graph_op(graph, OP_MOMENTS, moments, (OpAttr){0}, 1, &x, "T=2"),
        scaled ? graph_parameter(graph, weight, 1, &channels)
               : graph_input(graph, weight, DTYPE_F32, 1, &channels),
        graph_parameter(graph, bias, 1, &channels)};
    return graph_op(graph, OP_BATCH_NORM, name, (OpAttr){0}, 4, in, NULL);
}

TensorId model_sigmoid_loss(Graph *graph, TensorId logits)
{
    const Tensor in = *graph_tensor(graph, logits);
    const TensorId labels = graph_input(graph, "labels", DTYPE_F32, in.rank, in.dim);
    return graph_op(graph, OP_SIGMOID_LOSS, "loss", (OpAttr){0}, 2,
                    (TensorId[]){logits, labels}, NULL);
}
