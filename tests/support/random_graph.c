/* Random small training graphs. */
#include "tests/support/random_graph.h"

#include <stdbool.h>

typedef struct {
    Graph *graph;
    GRand *rand;
    uint32_t n_names;
    uint32_t batch, hidden, heads;
} Build;

uint32_t random_choice(GRand *rand, uint32_t n, const uint32_t *choice)
{
    return choice[g_rand_int_range(rand, 0, (gint32)n)];
}

/* A new unique name; lives as long as the program. */
static const char *name(Build *b, const char *part)
{
    g_autofree char *text = g_strdup_printf("%s%u", part, b->n_names++);
    return g_intern_string(text);
}

static const Tensor *shape(const Build *b, TensorId tensor)
{
    return graph_tensor(b->graph, tensor);
}

static TensorId op(Build *b, OpKind kind, OpAttr attr, uint32_t n_in, const TensorId *in,
                   const char *extents)
{
    return graph_op(b->graph, kind, name(b, op_kind_name(kind)), attr, n_in, in, extents);
}

static TensorId unary(Build *b, OpKind kind, TensorId x)
{
    const OpAttr attr = {.seed = b->n_names, .rate = kind == OP_DROPOUT ? 0.25 : 0};
    return op(b, kind, attr, 1, &x, NULL);
}

static TensorId parameter(Build *b, uint32_t rank, const uint32_t *dim)
{
    return graph_parameter(b->graph, name(b, "w"), rank, dim);
}

static TensorId linear(Build *b, TensorId x, uint32_t features)
{
    const Tensor in = *shape(b, x);
    const TensorId w = parameter(b, 2, (uint32_t[]){features, in.dim[in.rank - 1]});
    if (g_rand_boolean(b->rand))
        return op(b, OP_LINEAR, (OpAttr){0}, 2, (TensorId[]){x, w}, NULL);
    const TensorId bias = parameter(b, 1, &features);
    return op(b, OP_LINEAR, (OpAttr){0}, 3, (TensorId[]){x, w, bias}, NULL);
}

static TensorId activation(Build *b, TensorId x)
{
    x = unary(b, g_rand_boolean(b->rand) ? OP_GELU : OP_RELU, x);
    return g_rand_boolean(b->rand) ? unary(b, OP_DROPOUT, x) : x;
}

static TensorId residual(Build *b, TensorId x, TensorId y)
{
    return op(b, OP_ADD, (OpAttr){0}, 2, (TensorId[]){x, y}, NULL);
}

static TensorId layer_norm(Build *b, TensorId x)
{
    const uint32_t hidden = shape(b, x)->dim[shape(b, x)->rank - 1];
    const TensorId gamma = parameter(b, 1, &hidden), beta = parameter(b, 1, &hidden);
    return op(b, OP_LAYER_NORM, (OpAttr){0}, 3, (TensorId[]){x, gamma, beta}, NULL);
}

static TensorId feed_forward(Build *b, TensorId x)
{
    const TensorId y = activation(b, linear(b, x, RANDOM_CHOICE(b->rand, 8, 12, 18)));
    return residual(b, x, linear(b, y, b->hidden));
}

static TensorId attention(Build *b, TensorId x)
{
    const uint32_t size = b->hidden / b->heads, hidden = b->hidden;
    const TensorId w = parameter(b, 4, (uint32_t[]){3, b->heads, size, hidden});
    const TensorId bias = parameter(b, 3, (uint32_t[]){3, b->heads, size});
    const TensorId out = parameter(b, 3, (uint32_t[]){hidden, b->heads, size});
    g_autofree char *extents = g_strdup_printf("K=%u", shape(b, x)->dim[1]);

    TensorId y = op(b, OP_QKV, (OpAttr){0}, 3, (TensorId[]){x, w, bias}, NULL);
    y = op(b, OP_ATTENTION, (OpAttr){0}, 1, &y, extents);
    y = op(b, OP_OUT_PROJ, (OpAttr){0}, 2, (TensorId[]){y, out}, NULL);
    return residual(b, x, y);
}

static TensorId mixture_of_experts(Build *b, TensorId x)
{
    const uint32_t experts = RANDOM_CHOICE(b->rand, 2, 4, 6), hidden = b->hidden,
                   ffn = 12;
    const TensorId gate = parameter(b, 2, (uint32_t[]){experts, hidden});
    const TensorId up = parameter(b, 3, (uint32_t[]){experts, hidden, ffn});
    const TensorId down = parameter(b, 3, (uint32_t[]){experts, ffn, hidden});
    g_autofree char *extents = g_strdup_printf("C=%u", RANDOM_CHOICE(b->rand, 2, 4));

    const TensorId logits = op(b, OP_LINEAR, (OpAttr){0}, 2, (TensorId[]){x, gate}, NULL);
    const TensorId weights = op(b, OP_GATE_TOP2, (OpAttr){0}, 1, &logits, extents);
    TensorId y =
        op(b, OP_MOE_DISPATCH, (OpAttr){0}, 2, (TensorId[]){weights + 1, x}, NULL);
    y = op(b, OP_EXPERT, (OpAttr){0}, 2, (TensorId[]){y, up}, NULL);
    y = unary(b, OP_RELU, y);
    y = op(b, OP_EXPERT, (OpAttr){0}, 2, (TensorId[]){y, down}, NULL);
    y = op(b, OP_MOE_COMBINE, (OpAttr){0}, 2, (TensorId[]){y, weights}, NULL);
    return residual(b, x, y);
}

static TensorId add_position(Build *b, TensorId x)
{
    const TensorId position = parameter(b, 2, &shape(b, x)->dim[1]);
    return op(b, OP_ADD_ROWS, (OpAttr){0}, 2, (TensorId[]){x, position}, NULL);
}

/* A block on [batch, sequence, hidden]. */
static TensorId token_block(Build *b, TensorId x)
{
    switch (g_rand_int_range(b->rand, 0, 7)) {
    case 0:
        return feed_forward(b, x);
    case 1:
        return attention(b, x);
    case 2:
        return mixture_of_experts(b, x);
    case 3:
        return layer_norm(b, x);
    case 4:
        return activation(b, x);
    case 5:
        return linear(b, x, b->hidden);
    default:
        return add_position(b, x);
    }
}

/* Tokens [batch, sequence, hidden] from ids; *table is the embedding. */
static TensorId embed_ids(Build *b, uint32_t sequence, TensorId *table)
{
    const uint32_t vocabulary = RANDOM_CHOICE(b->rand, 8, 12, 24);
    const TensorId ids =
        graph_input(b->graph, "ids", DTYPE_I64, 2, (uint32_t[]){b->batch, sequence});

    *table = parameter(b, 2, (uint32_t[]){vocabulary, b->hidden});
    return op(b, OP_EMBEDDING, (OpAttr){0}, 2, (TensorId[]){ids, *table}, NULL);
}

/* Tokens from the patches of an image, with a class token after them. */
static TensorId embed_patches(Build *b)
{
    const uint32_t hidden = b->hidden, patch = 2, edge = 2;
    const TensorId x =
        graph_input(b->graph, "x", DTYPE_F32, 4, (uint32_t[]){b->batch, 3, 4, 4});
    const TensorId w = parameter(b, 4, (uint32_t[]){hidden, 3, patch, patch});
    const TensorId bias = parameter(b, 1, &hidden);
    const TensorId token = parameter(b, 1, &hidden);
    g_autofree char *merged = g_strdup_printf("n=%u", edge * edge);
    g_autofree char *tokens = g_strdup_printf("T=%u", edge * edge + 1);

    TensorId y = op(b, OP_CONV2D, (OpAttr){.stride = patch}, 3, (TensorId[]){x, w, bias},
                    "P=2,Q=2");
    y = op(b, OP_MERGE, (OpAttr){0}, 1, &y, merged);
    y = op(b, OP_TRANSPOSE, (OpAttr){0}, 1, &y, NULL);
    return op(b, OP_APPEND_TOKEN, (OpAttr){0}, 2, (TensorId[]){y, token}, tokens);
}

/* Logits [batch, classes] of a small convolutional network. */
static TensorId convolutions(Build *b, uint32_t blocks)
{
    TensorId x =
        graph_input(b->graph, "x", DTYPE_F32, 4, (uint32_t[]){b->batch, 3, 8, 8});

    for (uint32_t i = 0; i < blocks; i++) {
        const uint32_t channels = RANDOM_CHOICE(b->rand, 4, 6, 8);
        const TensorId w =
            parameter(b, 4, (uint32_t[]){channels, shape(b, x)->dim[1], 3, 3});
        const TensorId bias = parameter(b, 1, &channels);
        x = op(b, OP_CONV2D, (OpAttr){.stride = 1, .padding = 1, .padding_columns = 1}, 3,
               (TensorId[]){x, w, bias}, "P=8,Q=8");
        x = unary(b, OP_RELU, x);
    }
    x = op(b, OP_MAX_POOL2D, (OpAttr){.window = 2, .stride = 2}, 1, &x, "P=4,Q=4");
    x = op(b, OP_AVG_POOL2D, (OpAttr){0}, 1, &x, "P=2,Q=2");
    for (uint32_t i = 0; i < 2; i++) {
        const Tensor in = *shape(b, x);
        g_autofree char *merged =
            g_strdup_printf("n=%u", in.dim[in.rank - 2] * in.dim[in.rank - 1]);
        x = op(b, OP_MERGE, (OpAttr){0}, 1, &x, merged);
    }
    return linear(b, x, RANDOM_CHOICE(b->rand, 6, 10));
}

/* Logits of a network on tokens. */
static TensorId tokens(Build *b, uint32_t blocks)
{
    const uint32_t sequence = RANDOM_CHOICE(b->rand, 4, 6);
    TensorId table = GRAPH_NONE, x;

    switch (g_rand_int_range(b->rand, 0, 3)) {
    case 0:
        x = embed_ids(b, sequence, &table);
        break;
    case 1:
        x = embed_patches(b);
        break;
    default:
        x = graph_input(b->graph, "x", DTYPE_F32, 3, (uint32_t[]){b->batch, sequence, 6});
        x = linear(b, x, b->hidden);
    }
    for (uint32_t i = 0; i < blocks; i++) {
        graph_layer(b->graph, name(b, "block"));
        x = token_block(b, x);
    }
    if (table != GRAPH_NONE && g_rand_boolean(b->rand))
        return op(b, OP_LINEAR, (OpAttr){0}, 2, (TensorId[]){x, table}, NULL);
    if (g_rand_boolean(b->rand))
        x = op(b, OP_TAKE_TOKEN, (OpAttr){0}, 1, &x, NULL);
    return linear(b, x, RANDOM_CHOICE(b->rand, 6, 12));
}

/* The loss: by log-softmax, or for logits that may be sharded over the vocabulary. */
static TensorId append_loss(Build *b, TensorId logits)
{
    const Tensor out = *shape(b, logits);
    const TensorId labels =
        graph_input(b->graph, "labels", DTYPE_I64, out.rank - 1, out.dim);
    const OpAttr none = {0};
    if (g_rand_boolean(b->rand)) {
        const TensorId y = unary(b, OP_LOG_SOFTMAX, logits);
        return op(b, OP_NLL_SUM, none, 2, (TensorId[]){y, labels}, NULL);
    }
    const TensorId t = op(b, OP_LABEL_LOGIT, none, 2, (TensorId[]){logits, labels}, NULL);
    const TensorId s = op(b, OP_SUM_EXP, none, 2, (TensorId[]){logits, t}, NULL);
    const TensorId z = op(b, OP_LOG_SUM_EXP, none, 2, (TensorId[]){s, t}, NULL);
    return op(b, OP_CROSS_ENTROPY, none, 3, (TensorId[]){logits, labels, z}, NULL);
}

Graph *random_graph(GRand *rand, uint32_t max_blocks)
{
    const uint32_t heads = RANDOM_CHOICE(rand, 2, 3);
    Build b = {.graph = graph_new("random"),
               .rand = rand,
               .batch = RANDOM_CHOICE(rand, 4, 6, 8, 12),
               .heads = heads,
               .hidden = heads * RANDOM_CHOICE(rand, 2, 4)};
    const uint32_t blocks = (uint32_t)g_rand_int_range(rand, 1, (gint32)max_blocks + 1);
    const bool images = g_rand_int_range(rand, 0, 5) == 0;

    graph_set_precision(b.graph, (Precision)(b.batch % PRECISIONS));
    graph_layer(b.graph, "first");
    const TensorId logits =
        images ? convolutions(&b, MIN(blocks, 3)) : tokens(&b, blocks);
    const Optimizer optimizer = g_rand_boolean(rand) ? OPTIMIZER_ADAM : OPTIMIZER_SGD;
    graph_differentiate(b.graph, append_loss(&b, logits), optimizer);
    graph_seal(b.graph);
    return b.graph;
}
