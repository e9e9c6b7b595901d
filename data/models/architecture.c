/* Builds the graph of a transformer from its facts: data/models/architecture.h. */
#include "data/models/architecture.h"

#include "data/base/assert.h"
#include "data/models/models.h"

#include <math.h>
#include <string.h>

void architecture_layers(Architecture *architecture, uint32_t layers)
{
    architecture->layers = layers;
    architecture->window = g_new0(uint32_t, layers);
    architecture->sparse = g_new0(bool, layers);
}

void architecture_clear(Architecture *architecture)
{
    g_free(architecture->window);
    g_free(architecture->sparse);
}

const char *architecture_check(const Architecture *a, uint32_t seq)
{
    if (a->heads % a->kv_heads)
        return "key/value heads must divide heads";
    if (a->rotary > a->head_size || a->rotary % 2)
        return "an even number of at most a head's elements can turn";
    if (a->kv_rank && a->kv_heads != a->heads)
        return "low-rank attention has as many key/value heads as heads";
    if (a->patch && a->image % a->patch)
        return "patch must divide image";
    if (!a->patch && a->positions && seq > (a->limit ? a->limit : a->positions))
        return "seq is longer than the table of positions";
    if (a->experts && a->top > a->experts)
        return "a token goes to more experts than the layer has";
    if (a->sinks && !a->fused)
        return "attention with sinks is fused; attention=materialized has none";
    return NULL;
}

/* --- a layer --- */

typedef struct {
    Graph *graph;
    const Architecture *a;
    const ArchitectureSizes *sizes;
    const char *name; /* prefix of names of ops and parameters */
    uint32_t layer;
} Layer;

static char *named(const Layer *l, const char *part)
{
    return g_strdup_printf("%s.%s", l->name, part);
}

static TensorId parameter(const Layer *l, const char *part, uint32_t rank,
                          const uint32_t *dim)
{
    KILTER_ASSERT(rank <= TENSOR_MAX_RANK);
    g_autofree char *name = named(l, part);
    return graph_parameter(l->graph, name, rank, dim);
}

static TensorId op(const Layer *l, OpKind kind, const char *part, OpAttr attr,
                   uint32_t n_in, const TensorId *in, const char *extents)
{
    KILTER_ASSERT(n_in <= OP_MAX_IN);
    g_autofree char *name = named(l, part);
    return graph_op(l->graph, kind, name, attr, n_in, in, extents);
}

static TensorId unary(const Layer *l, OpKind kind, const char *part, TensorId x)
{
    return op(l, kind, part, (OpAttr){0}, 1, &x, NULL);
}

static TensorId linear(const Layer *l, const char *part, TensorId x, uint32_t n,
                       bool bias)
{
    KILTER_ASSERT(n > 0);
    g_autofree char *name = named(l, part);
    return model_linear(l->graph, name, x, n, bias);
}

static TensorId dropout(const Layer *l, const char *part, TensorId x, double rate)
{
    KILTER_ASSERT(rate >= 0 && rate < 1);
    g_autofree char *name = named(l, part);
    return model_dropout(l->graph, name, x, rate);
}

static TensorId add(const Layer *l, const char *part, TensorId x, TensorId y)
{
    return op(l, OP_ADD, part, (OpAttr){0}, 2, (TensorId[]){x, y}, NULL);
}

static TensorId rms_norm(const Layer *l, const char *part, TensorId x)
{
    const Tensor in = *graph_tensor(l->graph, x);
    g_autofree char *weight = g_strdup_printf("%s.weight", part);
    const TensorId gamma = parameter(l, weight, 1, &in.dim[in.rank - 1]);
    return op(l, OP_RMS_NORM, part, (OpAttr){0}, 2, (TensorId[]){x, gamma}, NULL);
}

static TensorId norm(const Layer *l, const char *part, TensorId x)
{
    const TransformerLayer layer = {.graph = l->graph, .name = l->name};
    return l->a->norm == NORM_RMS ? rms_norm(l, part, x)
                                  : transformer_norm(&layer, part, x);
}

/* A projection whose weight has the dims `out` and then the features of x. */
static TensorId project(const Layer *l, OpKind kind, const char *part, TensorId x,
                        uint32_t rank, const uint32_t *out, bool bias)
{
    KILTER_ASSERT(rank < TENSOR_MAX_RANK);
    const Tensor in = *graph_tensor(l->graph, x);
    uint32_t dim[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        dim[d] = out[d];
    dim[rank] = in.dim[in.rank - 1];
    g_autofree char *weight = g_strdup_printf("%s.weight", part);
    g_autofree char *bias_name = g_strdup_printf("%s.bias", part);
    TensorId operand[] = {x, parameter(l, weight, rank + 1, dim), 0};
    if (bias)
        operand[2] = parameter(l, bias_name, rank, out);
    return op(l, kind, part, (OpAttr){0}, bias ? 3 : 2, operand, NULL);
}

/* --- attention --- */

/* Turns the last `rotary` elements of MLA's heads, and the first `rotary` elements of other
 * heads. */
static TensorId turn(const Layer *l, const char *part, TensorId x, uint32_t first)
{
    const OpAttr attr = {.first = first, .span = l->a->rotary};
    return l->a->rotary ? op(l, OP_ROTARY, part, attr, 1, &x, NULL) : x;
}

static TensorId queries(const Layer *l, TensorId x)
{
    const Architecture *a = l->a;
    if (a->q_rank) {
        x = linear(l, "attention.q_low", x, a->q_rank, a->rank_bias);
        x = rms_norm(l, "attention.q_low.norm", x);
    }
    const uint32_t out[] = {a->kv_heads, a->heads / a->kv_heads, a->head_size};
    TensorId q = project(l, OP_Q_PROJ, "attention.q", x, 3, out, a->qkv_bias);
    if (a->qk_norm)
        q = rms_norm(l, "attention.q.norm", q);
    return turn(l, "attention.q.rotary", q, a->kv_rank ? a->head_size - a->rotary : 0);
}

/* MLA's keys and values: the part of each head is made from the latent vector, the part that all
 * heads share from x. */
static TensorId low_rank_keys(const Layer *l, TensorId x)
{
    const Architecture *a = l->a;
    const uint32_t own = a->head_size - a->shared_key;
    TensorId low = linear(l, "attention.kv_low", x, a->kv_rank, a->rank_bias);
    low = rms_norm(l, "attention.kv_low.norm", low);
    const uint32_t out[] = {a->kv_heads, own + a->value_size};
    const TensorId kv = project(l, OP_KV_PROJ, "attention.kv", low, 2, out, false);
    if (a->shared_key == 0)
        return kv;
    TensorId shared = linear(l, "attention.shared", x, a->shared_key, a->rank_bias);
    shared = turn(l, "attention.shared.rotary", shared, 0);
    g_autofree char *extents = g_strdup_printf("E=%u", a->head_size + a->value_size);
    return op(l, OP_JOIN_KEYS, "attention.keys", (OpAttr){.first = own}, 2,
              (TensorId[]){kv, shared}, extents);
}

static TensorId keys(const Layer *l, TensorId x)
{
    const Architecture *a = l->a;
    if (a->kv_rank)
        return low_rank_keys(l, x);
    const uint32_t out[] = {a->kv_heads, a->head_size + a->value_size};
    TensorId kv = project(l, OP_KV_PROJ, "attention.kv", x, 2, out, a->qkv_bias);
    if (a->qk_norm) {
        const TensorId gamma = parameter(l, "attention.k.norm.weight", 1, &a->head_size);
        kv = op(l, OP_KEY_NORM, "attention.k.norm", (OpAttr){0}, 2,
                (TensorId[]){kv, gamma}, NULL);
    }
    return turn(l, "attention.k.rotary", kv, 0);
}

static TensorId attention(const Layer *l, TensorId x)
{
    const Architecture *a = l->a;
    const uint32_t group = a->heads / a->kv_heads;
    TensorId in[] = {queries(l, x), keys(l, x), 0};
    const uint32_t window = a->window[l->layer];
    const OpAttr attr = {.causal = a->causal,
                         .alibi = a->alibi,
                         .span = window < graph_tensor(l->graph, x)->dim[1] ? window : 0,
                         .rate = a->attention_dropout,
                         .seed = graph_n_ops(l->graph)};
    if (a->sinks)
        in[2] = parameter(l, "attention.sinks", 2, (uint32_t[]){a->kv_heads, group});
    g_autofree char *extents = g_strdup_printf("V=%u", a->value_size);
    const TensorId y = op(l, a->fused ? OP_FUSED_ATTENTION : OP_GROUPED_ATTENTION,
                          "attention", attr, a->sinks ? 3 : 2, in, extents);
    const TensorId weight =
        parameter(l, "attention.out.weight", 4,
                  (uint32_t[]){a->hidden, a->kv_heads, group, a->value_size});
    TensorId operand[] = {y, weight, 0};
    if (a->out_bias)
        operand[2] = parameter(l, "attention.out.bias", 1, &a->hidden);
    return op(l, OP_GROUPED_OUT, "attention.out", (OpAttr){0}, a->out_bias ? 3 : 2,
              operand, NULL);
}

/* --- feed-forward networks --- */

static OpKind gate_kind(const Architecture *a)
{
    return a->activation == ACTIVATION_GELU ? OP_GEGLU : OP_SWIGLU;
}

static TensorId feed_forward(const Layer *l, const char *part, TensorId x, uint32_t ffn)
{
    static const OpKind kind[] = {[ACTIVATION_GELU] = OP_GELU,
                                  [ACTIVATION_RELU] = OP_RELU,
                                  [ACTIVATION_SILU] = OP_SILU};
    const Architecture *a = l->a;
    g_autofree char *up = g_strdup_printf("%s.up", part);
    g_autofree char *active = g_strdup_printf("%s.active", part);
    g_autofree char *down = g_strdup_printf("%s.down", part);
    if (a->gated) {
        x = project(l, OP_LINEAR_PAIR, up, x, 2, (uint32_t[]){2, ffn}, a->ffn_bias);
        x = unary(l, gate_kind(a), active, x);
    } else {
        x = linear(l, up, x, ffn, a->ffn_bias);
        x = unary(l, kind[a->activation], active, x);
    }
    return linear(l, down, x, a->hidden, a->ffn_bias);
}

static TensorId expert_bias(const Layer *l, const char *part, TensorId x, uint32_t rank,
                            const uint32_t *dim)
{
    if (!l->a->expert_bias)
        return x;
    g_autofree char *name = g_strdup_printf("%s.bias", part);
    const TensorId in[] = {x, parameter(l, name, rank, dim)};
    g_autofree char *added = g_strdup_printf("%s.biased", part);
    return op(l, OP_EXPERT_BIAS, added, (OpAttr){0}, 2, in, NULL);
}

static TensorId mixture(const Layer *l, TensorId x)
{
    const Architecture *a = l->a;
    const uint32_t e = a->experts, ffn = a->expert_ffn;
    const OpAttr choice = {.top = a->top,
                           .sigmoid = a->sigmoid,
                           .normalised = a->normalised,
                           .scale = a->scale};
    const uint32_t tokens = graph_tensor(l->graph, x)->dim[1];
    const double slots = ceil(l->sizes->capacity_factor * a->top * tokens / e - 1e-9);
    g_autofree char *extents =
        g_strdup_printf("C=%u", (uint32_t)fmin(fmax(1, slots), tokens));
    const TensorId logits = linear(l, "moe.router", x, e, a->router_bias);
    const TensorId weight = op(l, OP_GATE_TOPK, "moe.weights", choice, 1, &logits, NULL);
    TensorId y =
        op(l, OP_ROUTE, "moe.route", (OpAttr){0}, 2, (TensorId[]){weight, x}, extents);
    TensorId w = parameter(l, "moe.up.weight", 4, (uint32_t[]){e, 2, a->hidden, ffn});
    y = op(l, OP_EXPERT_PAIR, "moe.up", (OpAttr){0}, 2, (TensorId[]){y, w}, NULL);
    y = expert_bias(l, "moe.up", y, 3, (uint32_t[]){e, 2, ffn});
    y = unary(l, gate_kind(a), "moe.active", y);
    w = parameter(l, "moe.down.weight", 3, (uint32_t[]){e, ffn, a->hidden});
    y = op(l, OP_EXPERT, "moe.down", (OpAttr){0}, 2, (TensorId[]){y, w}, NULL);
    y = expert_bias(l, "moe.down", y, 2, (uint32_t[]){e, a->hidden});
    y = op(l, OP_UNROUTE, "moe.unroute", (OpAttr){0}, 2, (TensorId[]){y, weight}, NULL);
    if (a->shared_ffn == 0)
        return y;
    return add(l, "moe.sum", y, feed_forward(l, "moe.shared", x, a->shared_ffn));
}

static TensorId network(const Layer *l, TensorId x)
{
    return l->a->sparse[l->layer] ? mixture(l, x) : feed_forward(l, "ffn", x, l->a->ffn);
}

/* --- arrangement --- */

static TensorId parallel_layer(const Layer *l, TensorId x)
{
    const bool two = l->a->arrangement == ARRANGEMENT_PARALLEL_TWO;
    const TensorId normed = norm(l, "norm1", x);
    TensorId y = attention(l, normed);
    const TensorId z = network(l, two ? norm(l, "norm2", x) : normed);
    y = dropout(l, "sum.dropout", add(l, "sum", y, z), l->a->dropout);
    return add(l, "residual", x, y);
}

/* x + dropout(y) of one of a layer's parts. */
static TensorId residual(const Layer *l, const char *part, TensorId x, TensorId y)
{
    g_autofree char *dropped = g_strdup_printf("%s.dropout", part);
    g_autofree char *sum = g_strdup_printf("%s.residual", part);
    return add(l, sum, x, dropout(l, dropped, y, l->a->dropout));
}

static TensorId build_layer(const Layer *l, TensorId x)
{
    TensorId (*const part[])(const Layer *, TensorId) = {attention, network};
    static const char *const name[] = {"attention", "ffn"};
    static const char *const before[] = {"norm1", "norm2"};
    static const char *const after[] = {"norm1.after", "norm2.after"};
    const Arrangement arrangement = l->a->arrangement;
    if (arrangement >= ARRANGEMENT_PARALLEL)
        return parallel_layer(l, x);
    for (uint32_t i = 0; i < G_N_ELEMENTS(part); i++) {
        TensorId y = arrangement == ARRANGEMENT_POST ? x : norm(l, before[i], x);
        y = part[i](l, y);
        if (arrangement == ARRANGEMENT_SANDWICH)
            y = norm(l, after[i], y);
        x = residual(l, name[i], x, y);
        if (arrangement == ARRANGEMENT_POST)
            x = norm(l, before[i], x);
    }
    return x;
}

/* --- before and after the layers --- */

/* Looks up one row per token in a table of `rows` x `size`. */
static TensorId look_up(const Layer *l, const char *part, const char *ids, uint32_t rows,
                        uint32_t size, TensorId *table)
{
    g_autofree char *weight = g_strdup_printf("%s.weight", part);
    const uint32_t tokens[] = {l->sizes->batch, l->sizes->seq};
    const TensorId index = graph_input(l->graph, ids, DTYPE_I64, 2, tokens);
    *table = graph_parameter(l->graph, weight, 2, (uint32_t[]){rows, size});
    if (l->a->tied && strcmp(part, "embedding") == 0)
        *table = model_unary(l->graph, OP_TIED, "embedding.tied", *table);
    return graph_op(l->graph, OP_EMBEDDING, part, (OpAttr){0}, 2,
                    (TensorId[]){index, *table}, NULL);
}

static TensorId embed_text(const Layer *l, TensorId *table)
{
    const Architecture *a = l->a;
    g_assert(!a->host_words || (a->positions > 0 && a->embedding_size == a->hidden));
    TensorId x = GRAPH_NONE;
    if (!a->host_words)
        x = look_up(l, "embedding", "ids", a->vocab, a->embedding_size, table);
    if (a->embedding_size != a->hidden)
        x = linear(l, "project_in", x, a->hidden, false);
    if (a->positions) {
        TensorId rows;
        const TensorId y =
            look_up(l, "position", "positions", a->positions, a->hidden, &rows);
        /* Vectors come after indices: the first input says how the batch is cut. */
        if (a->host_words)
            x = graph_input(l->graph, "words", DTYPE_F32, 3,
                            (uint32_t[]){l->sizes->batch, l->sizes->seq, a->hidden});
        x = add(l, "with_position", x, y);
    }
    if (a->token_types) {
        TensorId rows;
        const TensorId y = look_up(l, "type", "types", a->token_types, a->hidden, &rows);
        x = add(l, "with_type", x, y);
    }
    return x;
}

static TensorId embed_image(const Layer *l)
{
    const Architecture *a = l->a;
    const uint32_t edge = a->image / a->patch;
    const uint32_t tokens = edge * edge + 1;
    TensorId x =
        graph_input(l->graph, "x", DTYPE_F32, 4,
                    (uint32_t[]){l->sizes->batch, a->channels, a->image, a->image});
    x = model_patches(l->graph, x, a->patch, a->hidden);
    const TensorId token = graph_parameter(l->graph, "class_token", 1, &a->hidden);
    g_autofree char *extents = g_strdup_printf("T=%u", tokens);
    x = graph_op(l->graph, OP_APPEND_TOKEN, "tokens", (OpAttr){0}, 2,
                 (TensorId[]){x, token}, extents);
    const TensorId position =
        graph_parameter(l->graph, "position", 2, (uint32_t[]){tokens, a->hidden});
    return graph_op(l->graph, OP_ADD_ROWS, "embedding", (OpAttr){0}, 2,
                    (TensorId[]){x, position}, NULL);
}

/* The loss for the positions where an answer begins and ends, each a choice among all tokens
 * (Devlin et al. 2018, Sec. 4.2). */
static TensorId loss_of_spans(const Layer *l, TensorId x)
{
    enum { ENDS = 2 };
    const TensorId labels = graph_input(l->graph, "labels", DTYPE_I64, 2,
                                        (uint32_t[]){l->sizes->batch, ENDS});
    x = model_linear(l->graph, "head", x, ENDS, true);
    return model_loss(l->graph, unary(l, OP_TRANSPOSE, "ends", x), labels);
}

/* The loss for the next token, or for the image's class. */
static TensorId loss_of(const Layer *l, TensorId x, TensorId table)
{
    const Architecture *a = l->a;
    if (a->patch) {
        const TensorId labels =
            graph_input(l->graph, "labels", DTYPE_I64, 1, &l->sizes->batch);
        x = graph_op(l->graph, OP_TAKE_TOKEN, "class", (OpAttr){0}, 1, &x, NULL);
        return model_loss(l->graph, model_linear(l->graph, "head", x, a->classes, true),
                          labels);
    }
    if (a->spans)
        return loss_of_spans(l, x);
    const TensorId labels = graph_input(l->graph, "labels", DTYPE_I64, 2,
                                        (uint32_t[]){l->sizes->batch, l->sizes->seq});
    if (a->embedding_size != a->hidden)
        x = linear(l, "project_out", x, a->embedding_size, false);
    if (a->tied) {
        TensorId operand[] = {x, table, 0};
        if (a->head_bias)
            operand[2] = graph_parameter(l->graph, "head.bias", 1, &a->vocab);
        x = graph_op(l->graph, OP_LINEAR, "head", (OpAttr){0}, a->head_bias ? 3 : 2,
                     operand, NULL);
    } else
        x = model_linear(l->graph, "head", x, a->vocab, a->head_bias);
    return model_sharded_loss(l->graph, x, labels);
}

TensorId architecture_build(Graph *graph, const Architecture *a,
                            const ArchitectureSizes *sizes)
{
    Layer l = {.graph = graph, .a = a, .sizes = sizes, .name = "embedding"};
    TensorId table = GRAPH_NONE;
    graph_layer(graph, "embedding");
    TensorId x = a->patch ? embed_image(&l) : embed_text(&l, &table);
    if (a->embedding_norm)
        x = norm(&l, "norm", x);
    x = dropout(&l, "dropout", x, a->embedding_dropout);
    for (l.layer = 0; l.layer < a->layers; l.layer++) {
        g_autofree char *name = g_strdup_printf("layers.%u", l.layer);
        l.name = name;
        graph_layer(graph, name);
        x = build_layer(&l, x);
    }
    l.name = "head";
    graph_layer(graph, "head");
    if (a->final_norm)
        x = norm(&l, "norm", x);
    return loss_of(&l, x, table);
}
