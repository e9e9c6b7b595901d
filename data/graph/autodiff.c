/* Reverse-mode differentiation, op by op (graph_differentiate).
 *
 * Ops are visited in reverse order; when one is reached the gradients of its outputs are complete, as all of their
 * consumers came later. The first contribution to an input's gradient becomes that gradient, further ones are added
 * to it. Inputs that no parameter feeds get none. */
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
    for (uint32_t i = 2; graph_find(b->graph, name) != GRAPH_NONE; i++) {
        g_free(name);
        name = g_strdup_printf("%s.%s.%u", base, suffix, i);
    }
    return name;
}

/* Appends a backward op whose outputs are (contributions to) the gradients of `of`. */
static OpId append(Backward *b, OpKind kind, const char *suffix, uint32_t n_in,
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
    OpId id = append(b, kind, suffix, n_in, in, 1, &of, extents);
    contribute(b, input, graph_get_op(b->graph, id)->out[0]);
}

#define CHAIN(input, kind, suffix, extents, ...)                             \
    chain(b, input, kind, suffix, G_N_ELEMENTS(((TensorId[]){__VA_ARGS__})), \
          (TensorId[]){__VA_ARGS__}, extents)

static char *extents_text(const char *format, ...) G_GNUC_PRINTF(1, 2);
static char *extents_text(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = g_strdup_vprintf(format, args);
    va_end(args);
    return text;
}

static void differentiate_norm(Backward *b, const Op *op, TensorId dy)
{
    CHAIN(0, OP_LAYER_NORM_DX, "dx", NULL, dy, op->in[0], op->in[1]);
    TensorId of[] = {op->in[1], op->in[2]};
    OpId id =
        append(b, OP_LAYER_NORM_DW, "dw", 2, (TensorId[]){dy, op->in[0]}, 2, of, NULL);
    TensorId dgamma = graph_get_op(b->graph, id)->out[0];
    contribute(b, 1, dgamma);
    contribute(b, 2, dgamma + 1);
}

/* y = attention(q, kv) with its probabilities or statistics, op.out[1]: one backward op makes the
 * gradients of q and kv; the gradient of the sinks is made from y and the statistics. */
static void differentiate_attention(Backward *b, const Op *op, TensorId dy)
{
    const bool fused = op->kind == OP_FUSED_ATTENTION;
    const OpId id =
        append(b, fused ? OP_FUSED_ATTENTION_DX : OP_GROUPED_ATTENTION_DX, "dx", 4,
               (TensorId[]){dy, op->in[0], op->in[1], op->out[1]}, 2, op->in, NULL);
    const TensorId dq = graph_get_op(b->graph, id)->out[0];
    contribute(b, 0, dq);
    contribute(b, 1, dq + 1);
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
    const OpId id = append(b, OP_BATCH_NORM_DW, "dw", 3, (TensorId[]){dy, x[0], x[1]}, 2,
                           x + 2, NULL);
    const TensorId dgamma = graph_get_op(b->graph, id)->out[0];
    contribute(b, 2, dgamma);
    contribute(b, 3, dgamma + 1);
}

/* Each input's gradient is its channels of dy. */
static void differentiate_concat(Backward *b, const Op *op, TensorId dy)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (!wants(b, i))
            continue;
        const uint32_t before = i ? graph_tensor(b->graph, op->in[0])->dim[1] : 0;
        g_autofree char *extents =
            extents_text("A=%u", graph_tensor(b->graph, op->in[i])->dim[1]);
        g_autofree char *suffix = g_strdup_printf("d%u", i);
        const OpId id = append(b, OP_CONCAT_PART, suffix, 1, &dy, 1, &op->in[i], extents);
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
            extents_text(weights ? "P=%u" : "A=%u", x->dim[x->rank - 1]);
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

/* x: the op's inputs; dy: the gradient of its first output. */
void differentiate_op(Backward *b)
{
    Op op = op_of(b);
    const TensorId *x = op.in, y = op.out[0], dy = gradient_of(b, y);
    const Tensor x0 = *graph_tensor(b->graph, x[0]);
    const uint32_t *d = x0.dim;
    g_autofree char *extents = NULL;
    switch (op.kind) {
    case OP_LINEAR:
        CHAIN(0, OP_LINEAR_DX, "dx", NULL, dy, x[1]);
        CHAIN(1, OP_LINEAR_DW, "dw", NULL, dy, x[0]);
        CHAIN(2, OP_BIAS_GRAD, "db", NULL, dy);
        break;
    case OP_QKV:
        CHAIN(0, OP_QKV_DX, "dx", NULL, dy, x[1]);
        CHAIN(1, OP_QKV_DW, "dw", NULL, dy, x[0]);
        CHAIN(2, OP_QKV_DB, "db", NULL, dy);
        break;
    case OP_OUT_PROJ:
        CHAIN(0, OP_OUT_PROJ_DX, "dx", NULL, dy, x[1]);
        CHAIN(1, OP_OUT_PROJ_DW, "dw", NULL, dy, x[0]);
        CHAIN(2, OP_BIAS_GRAD, "db", NULL, dy);
        break;
    case OP_ATTENTION:
        extents = extents_text("T=3");
        CHAIN(0, OP_ATTENTION_DX, "dx", extents, dy, x[0], op.out[1]);
        break;
    case OP_EMBEDDING:
        extents = extents_text("v=%u", graph_tensor(b->graph, x[1])->dim[0]);
        CHAIN(1, OP_EMBEDDING_DW, "dw", extents, dy, x[0]);
        break;
    case OP_LAYER_NORM:
        differentiate_norm(b, &op, dy);
        break;
    case OP_GELU:
        CHAIN(0, OP_GELU_DX, "dx", NULL, dy, x[0]);
        break;
    case OP_RELU:
        CHAIN(0, OP_RELU_DX, "dx", NULL, dy,
              y); /* y > 0 where x > 0, so x need not be kept */
        break;
    case OP_DROPOUT:
        CHAIN(0, OP_DROPOUT, "dx", NULL, dy);
        break;
    case OP_ADD:
        for (uint32_t i = 0; i < 2; i++)
            if (wants(b, i))
                contribute(b, i, dy);
        break;
    case OP_ADD_ROWS:
        if (wants(b, 0))
            contribute(b, 0, dy);
        CHAIN(1, OP_SUM_ROWS, "dw", NULL, dy);
        break;
    case OP_SPLIT:
        extents = extents_text("n=%u", d[x0.rank - 1]);
        CHAIN(0, OP_MERGE, "dx", extents, dy);
        break;
    case OP_MERGE:
        extents = extents_text("n=%u,D=%u", d[x0.rank - 2], d[x0.rank - 1]);
        CHAIN(0, OP_SPLIT, "dx", extents, dy);
        break;
    case OP_RESHAPE:
        extents = extents_text("b=%u,T=%u,D=%u", d[0], d[1], d[2]);
        CHAIN(0, OP_RESHAPE, "dx", extents, dy);
        break;
    case OP_TRANSPOSE:
        CHAIN(0, OP_TRANSPOSE, "dx", NULL, dy);
        break;
    case OP_CONV2D:
        extents = extents_text("H=%u,W=%u,R=%u,S=%u", d[2], d[3],
                               graph_tensor(b->graph, x[1])->dim[2],
                               graph_tensor(b->graph, x[1])->dim[3]);
        CHAIN(0, OP_CONV2D_DX, "dx", extents, dy, x[1]);
        CHAIN(1, OP_CONV2D_DW, "dw", extents, dy, x[0]);
        CHAIN(2, OP_CHANNEL_SUM, "db", NULL, dy);
        break;
    case OP_MAX_POOL2D:
        CHAIN(0, OP_MAX_POOL2D_DX, "dx", NULL, dy, x[0]);
        break;
    case OP_AVG_POOL2D:
        extents = extents_text("H=%u,W=%u", d[2], d[3]);
        CHAIN(0, OP_AVG_POOL2D_DX, "dx", extents, dy);
        break;
    case OP_APPEND_TOKEN:
        extents = extents_text("S=%u", d[1]);
        CHAIN(0, OP_DROP_TOKEN, "dx", extents, dy);
        CHAIN(1, OP_SUM_TOKEN, "dw", NULL, dy);
        break;
    case OP_TAKE_TOKEN:
        extents = extents_text("T=%u", d[1]);
        CHAIN(0, OP_PAD_TOKEN, "dx", extents, dy);
        break;
    case OP_GATE_TOP1:
        CHAIN(0, OP_GATE_TOP1_DX, "dx", NULL, dy, x[0]);
        break;
    case OP_GATE_TOP2:
        CHAIN(0, OP_GATE_TOP2_DX, "dx", NULL, dy, x[0]);
        break;
    case OP_MOE_DISPATCH: /* the mask x[0] is a constant */
        CHAIN(1, OP_MOE_COMBINE, "dx", NULL, dy, x[0]);
        break;
    case OP_MOE_COMBINE:
        CHAIN(0, OP_MOE_DISPATCH, "dx", NULL, x[1], dy);
        CHAIN(1, OP_MOE_COMBINE_DW, "dw", NULL, dy, x[0]);
        break;
    case OP_EXPERT:
        CHAIN(0, OP_EXPERT_DX, "dx", NULL, dy, x[1]);
        CHAIN(1, OP_EXPERT_DW, "dw", NULL, dy, x[0]);
        break;
    case OP_MOMENTS:
        CHAIN(0, OP_MOMENTS_DX, "dx", NULL, dy, x[0]);
        break;
    case OP_BATCH_NORM:
        differentiate_batch_norm(b, &op, dy);
        break;
    case OP_CONCAT:
        differentiate_concat(b, &op, dy);
        break;
    case OP_SPLIT_CHANNELS:
        extents = extents_text("c=%u", d[1]);
        CHAIN(0, OP_MERGE_CHANNELS, "dx", extents, dy);
        break;
    case OP_MERGE_CHANNELS:
        extents = extents_text("c=%u,D=%u", d[1], d[2]);
        CHAIN(0, OP_SPLIT_CHANNELS, "dx", extents, dy);
        break;
    case OP_GROUP_CONV2D:
        extents = extents_text("H=%u,W=%u,R=%u,S=%u", d[3], d[4],
                               graph_tensor(b->graph, x[1])->dim[3],
                               graph_tensor(b->graph, x[1])->dim[4]);
        CHAIN(0, OP_GROUP_CONV2D_DX, "dx", extents, dy, x[1]);
        CHAIN(1, OP_GROUP_CONV2D_DW, "dw", extents, dy, x[0]);
        CHAIN(2, OP_GROUP_CHANNEL_SUM, "db", NULL, dy);
        break;
    case OP_SIGMOID_LOSS:
        CHAIN(0, OP_SIGMOID_LOSS_DX, "dx", NULL, dy, x[0], x[1]);
        break;
    case OP_SMOOTH_NLL_SUM:
        extents = extents_text("v=%u", d[x0.rank - 1]);
        CHAIN(0, OP_SMOOTH_NLL_SUM_DX, "dx", extents, dy, x[1]);
        break;
    case OP_TIED:
        CHAIN(0, OP_TIED_DX, "dx", NULL, dy);
        break;
    case OP_RMS_NORM:
        CHAIN(0, OP_RMS_NORM_DX, "dx", NULL, dy, x[0], x[1]);
        CHAIN(1, OP_RMS_NORM_DW, "dw", NULL, dy, x[0]);
        break;
    case OP_KEY_NORM:
        extents = extents_text("D=%u", graph_tensor(b->graph, x[1])->dim[0]);
        CHAIN(0, OP_KEY_NORM_DX, "dx", NULL, dy, x[0], x[1]);
        CHAIN(1, OP_KEY_NORM_DW, "dw", extents, dy, x[0]);
        break;
    case OP_SILU:
        CHAIN(0, OP_SILU_DX, "dx", NULL, dy, x[0]);
        break;
    case OP_LINEAR_PAIR:
        CHAIN(0, OP_LINEAR_PAIR_DX, "dx", NULL, dy, x[1]);
        CHAIN(1, OP_LINEAR_PAIR_DW, "dw", NULL, dy, x[0]);
        CHAIN(2, OP_LINEAR_PAIR_DB, "db", NULL, dy);
        break;
    case OP_SWIGLU:
        CHAIN(0, OP_SWIGLU_DX, "dx", NULL, dy, x[0]);
        break;
    case OP_GEGLU:
        CHAIN(0, OP_GEGLU_DX, "dx", NULL, dy, x[0]);
        break;
    case OP_ROTARY:
        CHAIN(0, OP_ROTARY_DX, "dx", NULL, dy);
        break;
    case OP_Q_PROJ:
        CHAIN(0, OP_Q_PROJ_DX, "dx", NULL, dy, x[1]);
        CHAIN(1, OP_Q_PROJ_DW, "dw", NULL, dy, x[0]);
        CHAIN(2, OP_Q_PROJ_DB, "db", NULL, dy);
        break;
    case OP_KV_PROJ:
        CHAIN(0, OP_KV_PROJ_DX, "dx", NULL, dy, x[1]);
        CHAIN(1, OP_KV_PROJ_DW, "dw", NULL, dy, x[0]);
        CHAIN(2, OP_KV_PROJ_DB, "db", NULL, dy);
        break;
    case OP_GROUPED_OUT:
        CHAIN(0, OP_GROUPED_OUT_DX, "dx", NULL, dy, x[1]);
        CHAIN(1, OP_GROUPED_OUT_DW, "dw", NULL, dy, x[0]);
        CHAIN(2, OP_BIAS_GRAD, "db", NULL, dy);
        break;
    case OP_JOIN_KEYS:
        extents = extents_text("D=%u,R=%u", d[3], graph_tensor(b->graph, x[1])->dim[2]);
        CHAIN(0, OP_JOIN_KEYS_DX, "dx", extents, dy);
        CHAIN(1, OP_JOIN_KEYS_DR, "dr", extents, dy);
        break;
    case OP_GROUPED_ATTENTION:
    case OP_FUSED_ATTENTION:
        differentiate_attention(b, &op, dy);
        break;
    case OP_GATE_TOPK:
        CHAIN(0, OP_GATE_TOPK_DX, "dx", NULL, dy, x[0]);
        break;
    case OP_ROUTE: /* the routing of tokens is held fixed */
        CHAIN(1, OP_ROUTE_DX, "dx", NULL, dy, x[0]);
        break;
    case OP_UNROUTE:
        extents = extents_text("C=%u", d[2]);
        CHAIN(0, OP_UNROUTE_DX, "dx", extents, dy, x[1]);
        CHAIN(1, OP_UNROUTE_DW, "dw", NULL, dy, x[0], x[1]);
        break;
    case OP_EXPERT_PAIR:
        CHAIN(0, OP_EXPERT_PAIR_DX, "dx", NULL, dy, x[1]);
        CHAIN(1, OP_EXPERT_PAIR_DW, "dw", NULL, dy, x[0]);
        break;
    case OP_EXPERT_BIAS:
        if (wants(b, 0))
            contribute(b, 0, dy);
        CHAIN(1, OP_EXPERT_BIAS_DB, "db", NULL, dy);
        break;
    case OP_OPAQUE:
    case OP_OPAQUE_WEIGHTS:
    case OP_OPAQUE_WHOLE:
    case OP_OPAQUE_WHOLE_WEIGHTS:
        differentiate_opaque(b, &op, dy);
        break;
    case OP_OPAQUE_LOSS:
        CHAIN(0, OP_OPAQUE_LOSS_DX, "dx", NULL, dy, x[0]);
        break;
    case OP_LOG_SOFTMAX:
        CHAIN(0, OP_LOG_SOFTMAX_DX, "dx", NULL, dy, y);
        break;
    case OP_NLL_SUM:
        extents = extents_text("v=%u", d[x0.rank - 1]);
        CHAIN(0, OP_NLL_SUM_DX, "dx", extents, dy, x[1]);
        break;
    case OP_CROSS_ENTROPY: /* x[2] is made from x[0]: dx is the gradient through both */
        g_assert(normalises(b->graph, x));
        CHAIN(0, OP_CROSS_ENTROPY_DX, "dx", NULL, dy, x[0], x[1], x[2]);
        break;
    default:
        g_assert_not_reached(); /* a forward kind without a gradient */
    }
}
