/* Reverse-mode differentiation, op by op (graph_differentiate).
 *
 * Ops are visited in reverse order; when one is reached the gradients of its outputs are complete,
 * as all of their consumers came later. The first contribution to an input's gradient becomes that
 * gradient, further ones are added to it. Inputs that no parameter feeds get none. */
#include <stdlib.h>
#include <string.h>

#include "data/graph/autodiff.h"

static Op op_of(const Backward *b)
{
    return *graph_get_op(b->graph, b->op); /* a copy, since the array grows */
}

static TensorId gradient_of(const Backward *b, TensorId tensor)
{
    return graph_gradient(b->graph, tensor);
}

static bool wants(const Backward *b, uint32_t input)
{
    return input < op_of(b).n_in && b->needed[op_of(b).in[input]];
}

/* "x.grad", or "x.grad.2" if that name is taken. The caller frees it. */
static char *gradient_name(const Backward *b, TensorId of, const char *suffix)
{
    const char *base = graph_tensor(b->graph, of)->name;
    char *name = g_strdup_printf("%s.%s", base, suffix);
    for (uint32_t i = 2; graph_find(b->graph, name) != GRAPH_NONE; i++)
        put_block(name, g_strdup_printf("%s.%s.%u", base, suffix, i));
    return name;
}

/* Appends a backward op whose outputs are (contributions to) the gradients of `of`. */
static OpId autodiff_append(Backward *b, OpKind kind, const char *suffix, uint32_t n_in,
                            const TensorId *in, uint32_t n_out, const TensorId *of,
                            const char *extents)
{
    Op forward = op_of(b);
    g_autofree char *name = g_strdup_printf("%s.%s", forward.name, suffix);
    OpSpec spec = {.kind = kind,
                   .name = name,
                   .attr = forward.attr,
                   .pass = PASS_BACKWARD,
                   .of = b->op,
                   .n_in = n_in,
                   .extents = extents,
                   .role = ROLE_GRADIENT};
    memcpy(spec.in, in, n_in * sizeof *in);
    char *names[OP_MAX_OUT] = {0};
    for (uint32_t o = 0; o < n_out; o++) {
        spec.out_of[o] = of[o];
        spec.out_name[o] = names[o] = gradient_name(b, of[o], "grad");
    }
    OpId id = graph_append(b->graph, &spec);
    for (uint32_t o = 0; o < n_out; o++)
        g_free(names[o]);
    return id;
}

/* Adds `contribution` to the gradient of the op's input. */
static void contribute(Backward *b, uint32_t input, TensorId contribution)
{
    TensorId x = op_of(b).in[input];
    TensorId sum = gradient_of(b, x);
    OpGradient *record = &g_array_index(b->graph->op_gradients, OpGradient, b->op);
    record->contribution[input] = contribution;
    if (sum != GRAPH_NONE) {
        g_autofree char *suffix = g_strdup_printf("accumulate%u", input);
        g_autofree char *name = g_strdup_printf("%s.%s", op_of(b).name, suffix);
        g_autofree char *out = gradient_name(b, x, "grad_sum");
        OpSpec spec = {.kind = OP_ADD,
                       .name = name,
                       .pass = PASS_BACKWARD,
                       .of = b->op,
                       .n_in = 2,
                       .in = {sum, contribution},
                       .role = ROLE_GRADIENT,
                       .out_of = {x},
                       .out_name = {out}};
        OpId add = graph_append(b->graph, &spec);
        g_array_index(b->graph->op_gradients, OpGradient, b->op).accumulation[input] =
            add;
        contribution = graph_get_op(b->graph, add)->out[0];
    }
    g_array_index(b->graph->gradients, TensorId, x) = contribution;
}

/* Appends one backward op for one input: contribution = kind(in...). */
static void chain(Backward *b, uint32_t input, OpKind kind, const char *suffix,
                  uint32_t n_in, const TensorId *in, const char *extents)
{
    if (!wants(b, input))
        return;
    TensorId of = op_of(b).in[input];
    OpId id = autodiff_append(b, kind, suffix, n_in, in, 1, &of, extents);
    contribute(b, input, graph_get_op(b->graph, id)->out[0]);
}

#define CHAIN(input, kind, suffix, extents, ...)                             \
    chain(b, input, kind, suffix, G_N_ELEMENTS(((TensorId[]){__VA_ARGS__})), \
          (TensorId[]){__VA_ARGS__}, extents)

/* The tensors that `reads` names: d is the gradient of the first output, y that output, k the
 * second one, a digit an input of the op. Returns their number. */
static uint32_t read_tensors(const Op *op, TensorId dy, const char *reads,
                             TensorId in[OP_MAX_IN])
{
    uint32_t n = 0;
    for (; reads[n]; n++)
        in[n] = reads[n] == 'd'   ? dy
                : reads[n] == 'y' ? op->out[0]
                : reads[n] == 'k' ? op->out[1]
                                  : op->in[reads[n] - '0'];
    return n;
}

/* One backward op makes the gradients of `n` inputs from `first` on. */
static void differentiate_several(Backward *b, const Op *op, OpKind kind,
                                  const char *suffix, TensorId dy, const char *reads,
                                  uint32_t first, uint32_t n)
{
    TensorId in[OP_MAX_IN];
    const uint32_t n_in = read_tensors(op, dy, reads, in);
    const OpId id = autodiff_append(b, kind, suffix, n_in, in, n, op->in + first, NULL);
    const TensorId gradient = graph_get_op(b->graph, id)->out[0];
    for (uint32_t i = 0; i < n; i++) /* a choice of frozen layers has no gradient */
        if (kind != OP_SPARSE_ATTENTION_DX || wants(b, first + i))
            contribute(b, first + i, gradient + i);
}

static void differentiate_norm(Backward *b, const Op *op, TensorId dy)
{
    CHAIN(0, OP_LAYER_NORM_DX, "dx", NULL, dy, op->in[0], op->in[1]);
    differentiate_several(b, op, OP_LAYER_NORM_DW, "dw", dy, "d0", 1, 2);
}

/* y = attention(q, kv) with its probabilities or statistics, op.out[1]: one backward op makes the
 * gradients of q and kv; the gradient of the sinks is made from y and the statistics. */
static void differentiate_attention(Backward *b, const Op *op, TensorId dy)
{
    const bool fused = op->kind == OP_FUSED_ATTENTION;
    differentiate_several(b, op, fused ? OP_FUSED_ATTENTION_DX : OP_GROUPED_ATTENTION_DX,
                          "dx", dy, "d01k", 0, 2);
    CHAIN(2, OP_ATTENTION_SINK_DW, "dsink", NULL, dy, op->out[0], op->in[2], op->out[1]);
}

/* y = batch_norm(x, moments of x, gamma, beta): the gradient of the moments goes on to x through
 * the op that made them. A gamma that is not a parameter is a constant. */
static void differentiate_batch_norm(Backward *b, const Op *op, TensorId dy)
{
    const TensorId *x = op->in;
    CHAIN(0, OP_BATCH_NORM_DX, "dx", NULL, dy, x[1], x[2]);
    CHAIN(1, OP_BATCH_NORM_DM, "dm", NULL, dy, x[0], x[1], x[2]);
    if (!wants(b, 2)) {
        CHAIN(3, OP_CHANNEL_SUM, "db", NULL, dy);
        return;
    }
    differentiate_several(b, op, OP_BATCH_NORM_DW, "dw", dy, "d01", 2, 2);
}

/* Each input's gradient is its part of dy: its channels, or its last elements. */
static void differentiate_concat(Backward *b, const Op *op, TensorId dy)
{
    const bool last = op->kind == OP_JOIN;
    const uint32_t dim = last ? graph_tensor(b->graph, dy)->rank - 1 : 1;
    for (uint32_t i = 0; i < 2; i++) {
        if (!wants(b, i))
            continue;
        const uint32_t before = i ? graph_tensor(b->graph, op->in[0])->dim[dim] : 0;
        g_autofree char *extents =
            g_strdup_printf("A=%u", graph_tensor(b->graph, op->in[i])->dim[dim]);
        g_autofree char *suffix = g_strdup_printf("d%u", i);
        const OpId id = autodiff_append(b, last ? OP_JOIN_PART : OP_CONCAT_PART, suffix,
                                        1, &dy, 1, &op->in[i], extents);
        g_array_index(b->graph->ops, Op, id).attr.first = before;
        contribute(b, i, graph_get_op(b->graph, id)->out[0]);
    }
}

/* The gradient of each input from dy and what was kept, op.out[1]; weights are a first one. */
static void differentiate_opaque(Backward *b, const Op *op, TensorId dy)
{
    const bool whole = op->kind == OP_OPAQUE_WHOLE || op->kind == OP_OPAQUE_WHOLE_WEIGHTS;
    for (uint32_t i = 0; i < op->n_in; i++) {
        const Tensor *x = graph_tensor(b->graph, op->in[i]);
        const bool weights = x->rank == 1;
        const OpKind kind = weights ? whole ? OP_OPAQUE_WHOLE_DW : OP_OPAQUE_DW
                            : whole ? OP_OPAQUE_WHOLE_DX
                                    : OP_OPAQUE_DX;
        g_autofree char *extents =
            g_strdup_printf(weights ? "P=%u" : "A=%u", x->dim[x->rank - 1]);
        g_autofree char *suffix = weights ? g_strdup("dw") : g_strdup_printf("d%u", i);
        CHAIN(i, kind, suffix, extents, dy, op->out[1]);
    }
}

/* The op that makes a tensor, if it has that kind; else NULL. */
static const Op *made_by(const Graph *graph, TensorId tensor, OpKind kind)
{
    const OpId producer = graph_tensor(graph, tensor)->producer;
    const Op *op = producer == GRAPH_NONE ? NULL : graph_get_op(graph, producer);
    return op && op->kind == kind ? op : NULL;
}

/* Whether x[2] is the log-sum-exp of the logits x[0], shifted by the logits of the labels x[1]. */
static bool normalises(const Graph *graph, const TensorId *x)
{
    const Op *log = made_by(graph, x[2], OP_LOG_SUM_EXP);
    const Op *sum = log ? made_by(graph, log->in[0], OP_SUM_EXP) : NULL;
    const Op *shift = log ? made_by(graph, log->in[1], OP_LABEL_LOGIT) : NULL;
    return sum && shift && sum->in[0] == x[0] && sum->in[1] == log->in[1] &&
           shift->in[0] == x[0] && shift->in[1] == x[1];
}

/* --- gradients that are one op for each input --- */

/* The op that makes the gradient of an input, from the tensors that `reads` names. Its extents, by
 * the letters of its space, are dims of inputs: "H=0.2" is dim 2 of input 0, and -1 the last
 * dim. */
typedef struct {
    OpKind kind;
    const char *suffix; /* NULL: the input's gradient is d itself */
    const char *reads;  /* NULL: the input has no gradient */
    const char *extents;
} Gradient;

enum { GRADIENTS = 3 };

/* [op kind][input]. Of some inputs: masks, and where tokens go, are held fixed. */
/* clang-format off */
static const Gradient GRADIENT[OP_KINDS][GRADIENTS] = {
    [OP_LINEAR] = {{OP_LINEAR_DX, "dx", "d1", NULL}, {OP_LINEAR_DW, "dw", "d0", NULL}, {OP_BIAS_GRAD, "db", "d", NULL}},
    [OP_QKV] = {{OP_QKV_DX, "dx", "d1", NULL}, {OP_QKV_DW, "dw", "d0", NULL}, {OP_QKV_DB, "db", "d", NULL}},
    [OP_OUT_PROJ] = {{OP_OUT_PROJ_DX, "dx", "d1", NULL}, {OP_OUT_PROJ_DW, "dw", "d0", NULL}, {OP_BIAS_GRAD, "db", "d", NULL}},
    [OP_ATTENTION] = {{OP_ATTENTION_DX, "dx", "d0k", "T=3"}},
    [OP_EMBEDDING] = {[1] = {OP_EMBEDDING_DW, "dw", "d0", "v=1.0"}},
    [OP_GELU] = {{OP_GELU_DX, "dx", "d0", NULL}},
    [OP_RELU] = {{OP_RELU_DX, "dx", "dy", NULL}}, /* y > 0 where x > 0, so x need not be kept */
    [OP_DROPOUT] = {{OP_DROPOUT, "dx", "d", NULL}},
    [OP_ADD] = {{.reads = "d"}, {.reads = "d"}},
    [OP_ADD_ROWS] = {{.reads = "d"}, {OP_SUM_ROWS, "dw", "d", NULL}},
    [OP_SPLIT] = {{OP_MERGE, "dx", "d", "n=0.-1"}},
    [OP_MERGE] = {{OP_SPLIT, "dx", "d", "n=0.-2,D=0.-1"}},
    [OP_RESHAPE] = {{OP_RESHAPE, "dx", "d", "b=0.0,T=0.1,D=0.2"}},
    [OP_TRANSPOSE] = {{OP_TRANSPOSE, "dx", "d", NULL}},
    [OP_CONV2D] = {{OP_CONV2D_DX, "dx", "d1", "H=0.2,W=0.3,R=1.2,S=1.3"},
                   {OP_CONV2D_DW, "dw", "d0", "H=0.2,W=0.3,R=1.2,S=1.3"}, {OP_CHANNEL_SUM, "db", "d", NULL}},
    [OP_MAX_POOL2D] = {{OP_MAX_POOL2D_DX, "dx", "d0", NULL}},
    [OP_AVG_POOL2D] = {{OP_AVG_POOL2D_DX, "dx", "d", "H=0.2,W=0.3"}},
    [OP_APPEND_TOKEN] = {{OP_DROP_TOKEN, "dx", "d", "S=0.1"}, {OP_SUM_TOKEN, "dw", "d", NULL}},
    [OP_TAKE_TOKEN] = {{OP_PAD_TOKEN, "dx", "d", "T=0.1"}},
    [OP_GATE_TOP1] = {{OP_GATE_TOP1_DX, "dx", "d0", NULL}},
    [OP_GATE_TOP2] = {{OP_GATE_TOP2_DX, "dx", "d0", NULL}},
    [OP_MOE_DISPATCH] = {[1] = {OP_MOE_COMBINE, "dx", "d0", NULL}},
    [OP_MOE_COMBINE] = {{OP_MOE_DISPATCH, "dx", "1d", NULL}, {OP_MOE_COMBINE_DW, "dw", "d0", NULL}},
    [OP_EXPERT] = {{OP_EXPERT_DX, "dx", "d1", NULL}, {OP_EXPERT_DW, "dw", "d0", NULL}},
    [OP_MOMENTS] = {{OP_MOMENTS_DX, "dx", "d0", NULL}},
    [OP_SPLIT_CHANNELS] = {{OP_MERGE_CHANNELS, "dx", "d", "c=0.1"}},
    [OP_MERGE_CHANNELS] = {{OP_SPLIT_CHANNELS, "dx", "d", "c=0.1,D=0.2"}},
    [OP_GROUP_CONV2D] = {{OP_GROUP_CONV2D_DX, "dx", "d1", "H=0.3,W=0.4,R=1.3,S=1.4"},
                         {OP_GROUP_CONV2D_DW, "dw", "d0", "H=0.3,W=0.4,R=1.3,S=1.4"},
                         {OP_GROUP_CHANNEL_SUM, "db", "d", NULL}},
    [OP_SIGMOID_LOSS] = {{OP_SIGMOID_LOSS_DX, "dx", "d01", NULL}},
    [OP_SMOOTH_NLL_SUM] = {{OP_SMOOTH_NLL_SUM_DX, "dx", "d1", "v=0.-1"}},
    [OP_TIED] = {{OP_TIED_DX, "dx", "d", NULL}},
    [OP_RMS_NORM] = {{OP_RMS_NORM_DX, "dx", "d01", NULL}, {OP_RMS_NORM_DW, "dw", "d0", NULL}},
    [OP_KEY_NORM] = {{OP_KEY_NORM_DX, "dx", "d01", NULL}, {OP_KEY_NORM_DW, "dw", "d0", "D=1.0"}},
    [OP_SILU] = {{OP_SILU_DX, "dx", "d0", NULL}},
    [OP_LINEAR_PAIR] = {{OP_LINEAR_PAIR_DX, "dx", "d1", NULL}, {OP_LINEAR_PAIR_DW, "dw", "d0", NULL},
                        {OP_LINEAR_PAIR_DB, "db", "d", NULL}},
    [OP_SWIGLU] = {{OP_SWIGLU_DX, "dx", "d0", NULL}},
    [OP_GEGLU] = {{OP_GEGLU_DX, "dx", "d0", NULL}},
    [OP_ROTARY] = {{OP_ROTARY_DX, "dx", "d", NULL}},
    [OP_Q_PROJ] = {{OP_Q_PROJ_DX, "dx", "d1", NULL}, {OP_Q_PROJ_DW, "dw", "d0", NULL}, {OP_Q_PROJ_DB, "db", "d", NULL}},
    [OP_KV_PROJ] = {{OP_KV_PROJ_DX, "dx", "d1", NULL}, {OP_KV_PROJ_DW, "dw", "d0", NULL}, {OP_KV_PROJ_DB, "db", "d", NULL}},
    [OP_GROUPED_OUT] = {{OP_GROUPED_OUT_DX, "dx", "d1", NULL}, {OP_GROUPED_OUT_DW, "dw", "d0", NULL}, {OP_BIAS_GRAD, "db", "d", NULL}},
    [OP_JOIN_KEYS] = {{OP_JOIN_KEYS_DX, "dx", "d", "D=0.3,R=1.2"}, {OP_JOIN_KEYS_DR, "dr", "d", "D=0.3,R=1.2"}},
    [OP_GATE_TOPK] = {{OP_GATE_TOPK_DX, "dx", "d0", NULL}},
    [OP_ROUTE] = {[1] = {OP_UNROUTE, "dx", "d0", NULL}},
    [OP_UNROUTE] = {{OP_ROUTE, "dx", "1d", "C=0.2"}},
    [OP_ROUTE_WEIGH] = {{OP_ROUTE_WEIGH, "dx", "d1", NULL}, {OP_ROUTE_WEIGH_DW, "dw", "dy1", NULL}},
    [OP_EXPERT_PAIR] = {{OP_EXPERT_PAIR_DX, "dx", "d1", NULL}, {OP_EXPERT_PAIR_DW, "dw", "d0", NULL}},
    [OP_EXPERT_BIAS] = {{.reads = "d"}, {OP_EXPERT_BIAS_DB, "db", "d", NULL}},
    [OP_RELU2] = {{OP_RELU2_DX, "dx", "d0", NULL}},
    [OP_MULTIPLY] = {{OP_MULTIPLY, "d0", "d1", NULL}, {OP_MULTIPLY, "d1", "d0", NULL}},
    [OP_GATE] = {{OP_GATE, "dx", "d1", NULL}, {OP_GATE_DG, "dg", "d01", NULL}},
    [OP_HEAD_SCALE] = {{OP_HEAD_SCALE, "dx", "d1", NULL}, {OP_HEAD_SCALE_DW, "dw", "d0", NULL}},
    [OP_SHORT_CONV] = {{OP_SHORT_CONV_DX, "dx", "d1", NULL}, {OP_SHORT_CONV_DW, "dw", "d0", "R=1.-1"}, {OP_SHORT_CONV_DB, "db", "d", NULL}},
    [OP_GROUP_NORM] = {{OP_GROUP_NORM_DX, "dx", "d01", NULL}, {OP_GROUP_NORM_DW, "dw", "d0", NULL}},
    [OP_SQUARES] = {{OP_SQUARES_DX, "dx", "d0", NULL}},
    [OP_NORM_BY] = {{OP_NORM_BY, "dx", "d12", NULL}, {OP_NORM_BY_DM, "dm", "d012", NULL}, {OP_NORM_BY_DW, "dw", "d01", NULL}},
    [OP_TOKEN_SHIFT] = {{OP_TOKEN_SHIFT_DX, "dx", "d", NULL}},
    [OP_CHANNEL_SCALE] = {{OP_CHANNEL_SCALE, "dx", "d1", NULL}, {OP_CHANNEL_SCALE_DW, "dw", "d0", NULL}},
    [OP_CHANNEL_BIAS] = {{.reads = "d"}, {OP_SHORT_CONV_DB, "db", "d", NULL}},
    [OP_TANH] = {{OP_TANH_DX, "dx", "dy", NULL}},
    [OP_SCALE] = {{OP_SCALE, "dx", "d", NULL}},
    [OP_SAMPLE_SCALE] = {{OP_SAMPLE_SCALE, "dx", "d1", NULL}, {OP_SAMPLE_SCALE_DG, "dg", "d0", NULL}},
    [OP_SAMPLE_BIAS] = {{.reads = "d"}, {OP_SAMPLE_BIAS_DB, "db", "d", NULL}},
    [OP_PLAIN_NORM] = {{OP_PLAIN_NORM_DX, "dx", "d0", NULL}},
    [OP_PART] = {{OP_PART_DX, "dx", "d", "C=0.1"}},
    [OP_SQUARE_LOSS] = {{OP_SQUARE_LOSS_DX, "dx", "d01", NULL}},
    [OP_OPAQUE_LOSS] = {{OP_OPAQUE_LOSS_DX, "dx", "d0", NULL}},
    [OP_LOG_SOFTMAX] = {{OP_LOG_SOFTMAX_DX, "dx", "dy", NULL}},
    [OP_NLL_SUM] = {{OP_NLL_SUM_DX, "dx", "d1", "v=0.-1"}},
    [OP_CROSS_ENTROPY] = {{OP_CROSS_ENTROPY_DX, "dx", "d012", NULL}}, /* through x[2], too, which is made from x[0] */
};
/* clang-format on */

/* "H=0.2,W=0.3" with the sizes of these dims; other numbers ("T=3") stand for themselves. NULL for
 * NULL. */
static char *sizes(const Backward *b, const Op *op, const char *extents)
{
    enum { MOST = 64 }; /* four sizes of ten digits, with their letters */
    char text[MOST];
    size_t length = 0;
    for (const char *at = extents; at && *at;) {
        char *end;
        unsigned long number = strtoul(at + 2, &end, 10);
        if (*end == '.') {
            const Tensor *x = graph_tensor(b->graph, op->in[number]);
            const long dim = strtol(end + 1, &end, 10);
            number = x->dim[dim < 0 ? (long)x->rank + dim : dim];
        }
        length +=
            (size_t)g_snprintf(text + length, MOST - length, "%.2s%lu%s", at, number,
                               *end == ',' ? "," : ""); /* the letter and = */
        g_assert(length < MOST);
        at = *end == ',' ? end + 1 : end;
    }
    return extents ? g_strndup(text, length) : NULL;
}

static void differentiate_by_table(Backward *b, const Op *op, TensorId dy)
{
    bool any = false;
    for (uint32_t i = 0; i < GRADIENTS; i++) {
        const Gradient *g = &GRADIENT[op->kind][i];
        any |= g->reads != NULL;
        if (!g->reads || !wants(b, i))
            continue;
        if (!g->suffix) {
            contribute(b, i, dy);
            continue;
        }
        TensorId in[OP_MAX_IN];
        const uint32_t n = read_tensors(op, dy, g->reads, in);
        g_autofree char *extents = sizes(b, op, g->extents);
        chain(b, i, g->kind, g->suffix, n, in, extents);
    }
    g_assert(any); /* else a forward kind without a gradient */
}

void differentiate_op(Backward *b)
{
    const Op op = op_of(b);
    const TensorId dy = gradient_of(b, op.out[0]);
    switch (op.kind) {
    case OP_LAYER_NORM:
        differentiate_norm(b, &op, dy);
        break;
    case OP_BATCH_NORM:
        differentiate_batch_norm(b, &op, dy);
        break;
    case OP_CONCAT:
    case OP_JOIN:
        differentiate_concat(b, &op, dy);
        break;
    case OP_SCAN:
    case OP_DELTA_SCAN:
    case OP_LINEAR_ATTENTION:
    case OP_SELECTIVE_SCAN:
    case OP_WKV:
    case OP_DELTA_WKV:
    case OP_BONUS:
    case OP_RELATIVE_ATTENTION:
    case OP_TOP_KEYS: /* all inputs at once, by the table's next row or a named one */
        differentiate_several(
            b, &op, op.kind == OP_TOP_KEYS ? OP_TOP_KEYS_DX : op.kind + 1, "dx", dy,
            op.n_in == 2   ? "d01"
            : op.n_in == 3 ? "d012"
                           : "d0123",
            0, op.n_in);
        break;
    case OP_SCAN_GATES:
        CHAIN(0, OP_SCAN_GATES_DX, "dx", NULL, dy, op.in[0], op.in[1], op.in[2]);
        differentiate_several(b, &op, OP_SCAN_GATES_DW, "dw", dy, "d012", 1, 2);
        break;
    case OP_SPARSE_ATTENTION: /* that of the chosen keys is 0 */
        differentiate_several(b, &op, OP_SPARSE_ATTENTION_DX, "dx", dy, "d012k", 0, 3);
        break;
    case OP_GROUPED_ATTENTION:
    case OP_FUSED_ATTENTION:
        differentiate_attention(b, &op, dy);
        break;
    case OP_OPAQUE:
    case OP_OPAQUE_WEIGHTS:
    case OP_OPAQUE_WHOLE:
    case OP_OPAQUE_WHOLE_WEIGHTS:
        differentiate_opaque(b, &op, dy);
        break;
    default:
        g_assert(op.kind != OP_CROSS_ENTROPY || normalises(b->graph, op.in));
        differentiate_by_table(b, &op, dy);
    }
}
