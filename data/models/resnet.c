/* Residual networks of bottlenecks: as torchvision builds them (He et al. 2015, the stride in the
 * 3x3 convolution), with batch norm after each convolution; and TAG's ResNet-101 (INFOCOM'22, Table
 * 3), TF-Slim's second version (He et al. 2016) without its argument scope: convolutions have
 * biases, and the only batch norms, without a scale, are at the beginning of units. */
#include "data/base/assert.h"
#include "data/models/models.h"

enum { STAGES = 4, EXPANSION = 4 };

/* Units of each stage (the paper's term for units of equal image size). */
static const uint32_t UNITS50[STAGES] = {3, 4, 6, 3}, UNITS101[STAGES] = {3, 4, 23, 3};

/* A convolution, followed by a batch norm in the first version, and by relu if asked for. */
typedef struct {
    Graph *graph;
    const char *name; /* name of the unit */
    bool second;
    ModelBatchNorm kind; /* of its batch norms */
} Unit;

static TensorId convolve(const Unit *u, const char *part, TensorId x, uint32_t channels,
                         uint32_t window, uint32_t stride, bool relu)
{
    g_assert(window % 2 == 1); /* the padding before and behind is equal */
    g_autofree char *name = g_strdup_printf("%s.%s", u->name, part);
    g_autofree char *norm = g_strdup_printf("%s.norm", name);
    g_autofree char *active = g_strdup_printf("%s.relu", name);
    const ModelConv conv = {.channels = channels,
                            .rows = window,
                            .columns = window,
                            .stride = stride,
                            .padding = PAD_EVEN,
                            .bias = u->second};
    x = model_conv(u->graph, name, x, &conv);
    if (!u->second)
        x = model_batch_norm(u->graph, norm, x, u->kind);
    return relu ? model_unary(u->graph, OP_RELU, active, x) : x;
}

static TensorId bottleneck(const Unit *u, TensorId x, uint32_t width, uint32_t stride)
{
    KILTER_ASSERT(width > 0 && stride > 0);
    g_autofree char *before = g_strdup_printf("%s.before", u->name);
    g_autofree char *before_relu = g_strdup_printf("%s.before.relu", u->name);
    g_autofree char *skip = g_strdup_printf("%s.skip", u->name);
    g_autofree char *sum = g_strdup_printf("%s.residual", u->name);
    g_autofree char *after = g_strdup_printf("%s.relu", u->name);
    const uint32_t channels = EXPANSION * width;
    TensorId in = x, shortcut = x;
    if (u->second)
        in = model_unary(u->graph, OP_RELU, before_relu,
                         model_batch_norm(u->graph, before, x, u->kind));
    if (graph_tensor(u->graph, x)->dim[1] != channels)
        shortcut = convolve(u, "skip", in, channels, 1, stride, false);
    else if (stride > 1)
        shortcut = model_pool(u->graph, OP_MAX_POOL2D, skip, x, 1, stride, PAD_NONE);
    TensorId y = convolve(u, "conv1", in, width, 1, 1, true);
    y = convolve(u, "conv2", y, width, 3, stride, true);
    y = convolve(u, "conv3", y, channels, 1, 1, false);
    y = graph_op(u->graph, OP_ADD, sum, (OpAttr){0}, 2, (TensorId[]){shortcut, y}, NULL);
    return u->second ? y : model_unary(u->graph, OP_RELU, after, y);
}

/* A stage's stride is in its first unit; in the second version it is in the last unit of the stage
 * before. */
static uint32_t stride_of(bool second, uint32_t stage, uint32_t i, uint32_t units)
{
    g_assert(stage < STAGES && i < units);
    const bool strides =
        second ? i == units - 1 && stage + 1 < STAGES : i == 0 && stage > 0;
    return strides ? 2 : 1;
}

static TensorId resnet(Graph *graph, const ModelParams *params,
                       const uint32_t units[STAGES], bool second)
{
    const bool own = model_size(params, "own_moments");
    const ModelBatchNorm kind = second
                                    ? (own ? BATCH_NORM_OFFSET_GIVEN : BATCH_NORM_OFFSET)
                                    : (own ? BATCH_NORM_SCALED_GIVEN : BATCH_NORM_SCALED);
    const uint32_t batch = model_size(params, "global_batch"),
                   edge = model_size(params, "edge"),
                   classes = model_size(params, "classes");
    TensorId x =
        graph_input(graph, "x", DTYPE_F32, 4, (uint32_t[]){batch, 3, edge, edge});
    graph_layer(graph, "stem");
    Unit unit = {graph, "stem", second, kind};
    x = convolve(&unit, "conv", x, model_size(params, "width"), 7, 2, !second);
    x = model_pool(graph, OP_MAX_POOL2D, "stem.pool", x, 3, 2,
                   second ? PAD_NONE : PAD_EVEN);
    for (uint32_t stage = 0; stage < STAGES; stage++)
        for (uint32_t i = 0; i < units[stage]; i++) {
            g_autofree char *name = g_strdup_printf("stages.%u.%u", stage, i);
            graph_layer(graph, name);
            unit.name = name;
            x = bottleneck(&unit, x, model_size(params, "width") << stage,
                           stride_of(second, stage, i, units[stage]));
        }
    graph_layer(graph, "head");
    if (second)
        x = model_unary(graph, OP_RELU, "norm.relu",
                        model_batch_norm(graph, "norm", x, kind));
    x = model_linear(graph, "head", model_features(graph, x), classes, true);
    return second
               ? model_sigmoid_loss(graph, x)
               : model_loss(graph, x, graph_input(graph, "labels", DTYPE_I64, 1, &batch));
}

TensorId model_resnet50(Graph *graph, const ModelParams *params)
{
    return resnet(graph, params, UNITS50, false);
}

TensorId model_resnet101(Graph *graph, const ModelParams *params)
{
    return resnet(graph, params, UNITS101, false);
}

TensorId model_tag_resnet101(Graph *graph, const ModelParams *params)
{
    return resnet(graph, params, UNITS101, true);
}

const char *model_resnet_check(const ModelParams *params)
{
    return model_size(params, "edge") < 32 ? "edge must be at least 32" : NULL;
}
