/* VGG19 (Simonyan and Zisserman 2015, configuration E) on CIFAR-10 shapes: 16 convolutions of 3x3,
 * pooled to 7x7, and three fully connected layers, as torchvision builds it. `width` is the first
 * stage's channel count. */
#include "data/models/models.h"

/* A convolution of 3x3, and relu. */
static TensorId vgg19_conv(Graph *graph, const char *name, TensorId x, uint32_t channels)
{
    g_autofree char *relu = g_strdup_printf("%s.relu", name);
    const ModelConv conv = {.channels = channels,
                            .rows = 3,
                            .columns = 3,
                            .stride = 1,
                            .padding = PAD_EVEN,
                            .bias = true};
    return model_unary(graph, OP_RELU, relu, model_conv(graph, name, x, &conv));
}

static TensorId merge(Graph *graph, const char *name, TensorId x)
{
    const Tensor in = *graph_tensor(graph, x);
    g_autofree char *extents =
        g_strdup_printf("n=%u", in.dim[in.rank - 2] * in.dim[in.rank - 1]);
    return graph_op(graph, OP_MERGE, name, (OpAttr){0}, 1, &x, extents);
}

TensorId model_vgg19(Graph *graph, const ModelParams *params)
{
    static const uint32_t depth[] = {2, 2, 4, 4, 4}, multiple[] = {1, 2, 4, 8, 8};
    uint32_t batch = model_size(params, "global_batch"),
             image = model_size(params, "image");
    TensorId x =
        graph_input(graph, "x", DTYPE_F32, 4, (uint32_t[]){batch, 3, image, image});
    TensorId labels = graph_input(graph, "labels", DTYPE_I64, 1, &batch);
    for (uint32_t stage = 0; stage < G_N_ELEMENTS(depth); stage++) {
        for (uint32_t i = 0; i < depth[stage]; i++) {
            g_autofree char *name = g_strdup_printf("features.%u.%u", stage, i);
            graph_layer(graph, name);
            x = vgg19_conv(graph, name, x, model_size(params, "width") * multiple[stage]);
        }
        g_autofree char *name = g_strdup_printf("features.%u.pool", stage);
        x = model_pool(graph, OP_MAX_POOL2D, name, x, 2, 2, PAD_NONE);
    }
    graph_layer(graph, "avgpool");
    const uint32_t pool = model_size(params, "pool");
    g_autofree char *pooled = g_strdup_printf("P=%u,Q=%u", pool, pool);
    x = graph_op(graph, OP_AVG_POOL2D, "avgpool", (OpAttr){0}, 1, &x, pooled);
    x = merge(graph, "flatten.spatial", x);
    x = merge(graph, "flatten", x);
    for (uint32_t i = 0; i < 2; i++) {
        g_autofree char *name = g_strdup_printf("classifier.%u", i);
        g_autofree char *relu = g_strdup_printf("classifier.%u.relu", i);
        g_autofree char *dropout = g_strdup_printf("classifier.%u.dropout", i);
        graph_layer(graph, name);
        x = model_linear(graph, name, x, model_size(params, "fc"), true);
        x = model_unary(graph, OP_RELU, relu, x);
        x = model_dropout(graph, dropout, x, model_param(params, "dropout"));
    }
    graph_layer(graph, "classifier.2");
    x = model_linear(graph, "classifier.2", x, model_size(params, "classes"), true);
    return model_loss(graph, x, labels);
}

const char *model_vgg19_check(const ModelParams *params)
{
    return model_size(params, "image") % 32
               ? "image must be a multiple of 32 (five poolings by 2)"
               : NULL;
}
