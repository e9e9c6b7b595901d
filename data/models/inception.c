/* InceptionV3 (Szegedy et al. 2016) without its auxiliary head: in torchvision's version, with
 * batch norm after each convolution, and in TAG's (INFOCOM'22, Table 3), which is TF-Slim's without
 * its argument scope: no batch norm, biases, and a sigmoid for each class. */
#include "data/base/assert.h"
#include "data/models/models.h"

typedef struct {
    Graph *graph;
    const char *name; /* name of the block */
    uint32_t width;   /* channels are the paper's times width / 64 */
    bool norm;
    ModelBatchNorm kind; /* of its batch norms */
} Block;

enum { PAPER_WIDTH = 64 };

/* A convolution with its norm and activation. */
static TensorId conv(const Block *b, const char *part, TensorId x, uint32_t channels,
                     uint32_t rows, uint32_t columns, uint32_t stride,
                     ModelPadding padding)
{
    KILTER_ASSERT(channels > 0 && rows > 0 && columns > 0);
    g_autofree char *name = g_strdup_printf("%s.%s", b->name, part);
    g_autofree char *norm = g_strdup_printf("%s.norm", name);
    g_autofree char *relu = g_strdup_printf("%s.relu", name);
    const ModelConv what = {.channels = MAX(2, channels * b->width / PAPER_WIDTH),
                            .rows = rows,
                            .columns = columns,
                            .stride = stride,
                            .padding = padding,
                            .bias = !b->norm};
    x = model_conv(b->graph, name, x, &what);
    if (b->norm)
        x = model_batch_norm(b->graph, norm, x, b->kind);
    return model_unary(b->graph, OP_RELU, relu, x);
}

/* The same within a block, with windows that keep the image's size. */
static TensorId same(const Block *b, const char *part, TensorId x, uint32_t channels,
                     uint32_t rows, uint32_t columns)
{
    return conv(b, part, x, channels, rows, columns, 1, PAD_SAME);
}

/* A convolution of 3x3 with stride 2, without padding. */
static TensorId halve(const Block *b, const char *part, TensorId x, uint32_t channels)
{
    return conv(b, part, x, channels, 3, 3, 2, PAD_NONE);
}

static TensorId pool(const Block *b, OpKind kind, TensorId x)
{
    g_autofree char *name = g_strdup_printf("%s.pool", b->name);
    return kind == OP_MAX_POOL2D ? model_pool(b->graph, kind, name, x, 3, 2, PAD_NONE)
                                 : model_pool(b->graph, kind, name, x, 3, 1, PAD_SAME);
}

static TensorId join(const Block *b, const char *part, TensorId x, TensorId y)
{
    g_autofree char *name = g_strdup_printf("%s.%s", b->name, part);
    g_autofree char *extents = g_strdup_printf(
        "C=%u", graph_tensor(b->graph, x)->dim[1] + graph_tensor(b->graph, y)->dim[1]);
    return graph_op(b->graph, OP_CONCAT, name, (OpAttr){0}, 2, (TensorId[]){x, y},
                    extents);
}

/* Block A: each branch is concatenated as soon as it is built. */
static TensorId block_a(const Block *b, TensorId x, uint32_t pooled)
{
    TensorId y = same(b, "b1", x, 64, 1, 1), z = same(b, "b2.1", x, 48, 1, 1);
    y = join(b, "join2", y, same(b, "b2.2", z, 64, 5, 5));
    z = same(b, "b3.2", same(b, "b3.1", x, 64, 1, 1), 96, 3, 3);
    y = join(b, "join3", y, same(b, "b3.3", z, 96, 3, 3));
    return join(b, "join4", y, same(b, "b4", pool(b, OP_AVG_POOL2D, x), pooled, 1, 1));
}

static TensorId reduction_a(const Block *b, TensorId x)
{
    TensorId y = halve(b, "b1", x, 384);
    TensorId z = same(b, "b2.2", same(b, "b2.1", x, 64, 1, 1), 96, 3, 3);
    y = join(b, "join2", y, halve(b, "b2.3", z, 96));
    return join(b, "join3", y, pool(b, OP_MAX_POOL2D, x));
}

static TensorId block_b(const Block *b, TensorId x, uint32_t middle)
{
    TensorId y = same(b, "b1", x, 192, 1, 1), z = same(b, "b2.1", x, middle, 1, 1);
    z = same(b, "b2.2", z, middle, 1, 7);
    y = join(b, "join2", y, same(b, "b2.3", z, 192, 7, 1));
    z = same(b, "b3.1", x, middle, 1, 1);
    z = same(b, "b3.2", z, middle, 7, 1);
    z = same(b, "b3.3", z, middle, 1, 7);
    z = same(b, "b3.4", z, middle, 7, 1);
    y = join(b, "join3", y, same(b, "b3.5", z, 192, 1, 7));
    return join(b, "join4", y, same(b, "b4", pool(b, OP_AVG_POOL2D, x), 192, 1, 1));
}

static TensorId reduction_b(const Block *b, TensorId x)
{
    TensorId y = halve(b, "b1.2", same(b, "b1.1", x, 192, 1, 1), 320);
    TensorId z = same(b, "b2.2", same(b, "b2.1", x, 192, 1, 1), 192, 1, 7);
    z = same(b, "b2.3", z, 192, 7, 1);
    y = join(b, "join2", y, halve(b, "b2.4", z, 192));
    return join(b, "join3", y, pool(b, OP_MAX_POOL2D, x));
}

static TensorId block_c(const Block *b, TensorId x)
{
    TensorId y = same(b, "b1", x, 320, 1, 1), z = same(b, "b2", x, 384, 1, 1);
    y = join(b, "join2a", y, same(b, "b2.a", z, 384, 1, 3));
    y = join(b, "join2b", y, same(b, "b2.b", z, 384, 3, 1));
    z = same(b, "b3.2", same(b, "b3.1", x, 448, 1, 1), 384, 3, 3);
    y = join(b, "join3a", y, same(b, "b3.a", z, 384, 1, 3));
    y = join(b, "join3b", y, same(b, "b3.b", z, 384, 3, 1));
    return join(b, "join4", y, same(b, "b4", pool(b, OP_AVG_POOL2D, x), 192, 1, 1));
}

static TensorId stem(const Block *b, TensorId x)
{
    x = conv(b, "1", x, 32, 3, 3, 2, PAD_NONE);
    x = conv(b, "2", x, 32, 3, 3, 1, PAD_NONE);
    x = pool(b, OP_MAX_POOL2D, same(b, "3", x, 64, 3, 3));
    x = conv(b, "4", x, 80, 1, 1, 1, PAD_NONE);
    x = conv(b, "5", x, 192, 3, 3, 1, PAD_NONE);
    return model_pool(b->graph, OP_MAX_POOL2D, "stem.pool2", x, 3, 2, PAD_NONE);
}

static TensorId inception(Graph *graph, const ModelParams *params, bool norm)
{
    static const uint32_t POOLED[] = {32, 64, 64}, MIDDLE[] = {128, 160, 160, 192};
    enum { A = G_N_ELEMENTS(POOLED), B = G_N_ELEMENTS(MIDDLE), C = 2 };
    const uint32_t batch = model_size(params, "global_batch"),
                   edge = model_size(params, "edge");
    const bool own = norm && model_size(params, "own_moments");
    Block b = {graph, "stem", model_size(params, "width"), norm,
               own ? BATCH_NORM_SCALED_GIVEN : BATCH_NORM_SCALED};
    TensorId x =
        graph_input(graph, "x", DTYPE_F32, 4, (uint32_t[]){batch, 3, edge, edge});
    graph_layer(graph, "stem");
    x = stem(&b, x);
    for (uint32_t i = 0; i < A + 1 + B + 1 + C; i++) {
        g_autofree char *name = g_strdup_printf("mixed.%u", i);
        graph_layer(graph, name);
        b.name = name;
        x = i < A            ? block_a(&b, x, POOLED[i])
            : i == A         ? reduction_a(&b, x)
            : i < A + 1 + B  ? block_b(&b, x, MIDDLE[i - A - 1])
            : i == A + 1 + B ? reduction_b(&b, x)
                             : block_c(&b, x);
    }
    graph_layer(graph, "head");
    x = model_dropout(graph, "dropout", model_features(graph, x),
                      model_param(params, "dropout"));
    x = model_linear(graph, "head", x, model_size(params, "classes"), true);
    return norm ? model_loss(graph, x, graph_input(graph, "labels", DTYPE_I64, 1, &batch))
                : model_sigmoid_loss(graph, x);
}

TensorId model_inceptionv3(Graph *graph, const ModelParams *params)
{
    return inception(graph, params, true);
}

TensorId model_tag_inceptionv3(Graph *graph, const ModelParams *params)
{
    return inception(graph, params, false);
}

const char *model_inception_check(const ModelParams *params)
{
    return model_size(params, "edge") < 75 ? "edge must be at least 75" : NULL;
}
