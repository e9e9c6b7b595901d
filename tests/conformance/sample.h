/* Random instances of any row of the op table, for tests that run ops: shapes that fit the
 * signature, and operands. A new row needs a case here only if its extents depend on one another.
 *
 *     Graph *graph = graph_new("one op");
 *     OpId op = sample_op(graph, OP_LINEAR, 2, false, random);
 *     graph_seal(graph);
 *     ExecTensor *value = exec_values_new(graph, seed);
 *     exec_run_graph(graph, value);
 *     exec_values_free(graph, value);
 */
#ifndef KILTER_TESTS_CONFORMANCE_SAMPLE_H
#define KILTER_TESTS_CONFORMANCE_SAMPLE_H

#include <ctype.h>

#include "exec/exec.h"
#include "tests/test.h"

/* The extents of one instance, by letter of the signature. `out`: those of output dimensions, where
 * they differ. */
typedef struct {
    uint32_t extent[128], out[128];
    uint32_t n_star, star[2];
    OpAttr attr;
} SampleShape;

static inline uint32_t sample_between(GRand *random, uint32_t low, uint32_t high)
{
    return (uint32_t)g_rand_int_range(random, (gint32)low, (gint32)high + 1);
}

/* The output edge for windows of size `window` at steps of `stride`. */
static inline uint32_t sample_windows(uint32_t edge, uint32_t window, uint32_t stride)
{
    return (edge - window) / stride + 1;
}

/* The dependent extents and the constants of a kind. */
static inline void sample_constrain(OpKind kind, SampleShape *s, GRand *random)
{
    uint32_t *e = s->extent, *out = s->out;
    switch (kind) {
    case OP_DROPOUT:
        s->attr = (OpAttr){.seed = g_rand_int(random), .rate = 0.4};
        break;
    case OP_SPLIT:
        out['n'] = e['n'];
        e['n'] *= out['D'] = e['D'];
        break;
    case OP_MERGE:
        out['n'] = e['n'] * e['D'];
        break;
    case OP_RESHAPE: /* each sample becomes two */
        out['b'] = 2 * e['b'];
        out['T'] = e['S'];
        out['D'] = e['H'];
        e['H'] *= 2;
        break;
    case OP_ATTENTION:
    case OP_ATTENTION_DX:
        s->attr.causal = g_rand_boolean(random);
        s->attr.rate = s->attr.causal ? 0.4 : 0;
        s->attr.seed = e['Q'];
        e['T'] = 3;
        e['K'] = e['Q'];
        break;
    case OP_QKV:
    case OP_QKV_DX:
    case OP_QKV_DW:
    case OP_QKV_DB:
        e['T'] = 3;
        break;
    case OP_LAYER_NORM_DW:
        e['W'] = e['h'];
        break;
    case OP_RMS_NORM_DW:
        e['W'] = e['h'];
        break;
    case OP_KEY_NORM:
    case OP_KEY_NORM_DX:
    case OP_KEY_NORM_DW:
        e['E'] += e['D'];
        break;
    case OP_LINEAR_PAIR:
    case OP_LINEAR_PAIR_DX:
    case OP_LINEAR_PAIR_DW:
    case OP_LINEAR_PAIR_DB:
    case OP_SWIGLU:
    case OP_SWIGLU_DX:
    case OP_GEGLU:
    case OP_GEGLU_DX:
    case OP_EXPERT_PAIR:
    case OP_EXPERT_PAIR_DX:
    case OP_EXPERT_PAIR_DW:
        e['T'] = 2;
        break;
    case OP_ROTARY:
    case OP_ROTARY_DX: /* a part of each vector turns */
        s->attr.first = sample_between(random, 0, 2);
        s->attr.span = 2 * sample_between(random, 1, 2);
        e['D'] += s->attr.first + s->attr.span - 1;
        break;
    case OP_JOIN_KEYS:
    case OP_JOIN_KEYS_DX:
    case OP_JOIN_KEYS_DR:
        s->attr.first = sample_between(random, 0, e['D']);
        e['E'] = e['D'] + e['R'];
        break;
    case OP_GROUPED_ATTENTION:
    case OP_GROUPED_ATTENTION_DX:
    case OP_FUSED_ATTENTION:
    case OP_FUSED_ATTENTION_DX:
        e['E'] = e['D'] + e['V'];
        s->attr.seed = e['Q'];
        s->attr.rate = g_rand_boolean(random) ? 0.4 : 0;
        s->attr.causal = g_rand_boolean(random);
        if (s->attr.causal) { /* within one sequence; else across two */
            e['K'] = e['Q'];
            s->attr.span = sample_between(random, 0, 3);
            s->attr.alibi = g_rand_boolean(random);
        }
        break;
    case OP_GATE_TOPK:
    case OP_GATE_TOPK_DX:
        s->attr.top = sample_between(random, 1, 2);
        e['E'] += s->attr.top;
        if (g_rand_boolean(random)) {
            s->attr.groups = sample_between(random, 2, 4);
            s->attr.top_groups = sample_between(random, 1, s->attr.groups);
            e['E'] *= s->attr.groups;
        }
        s->attr.scale = 1.5;
        s->attr.sigmoid = g_rand_boolean(random);
        s->attr.normalised = s->attr.top > 1 && g_rand_boolean(random);
        break;
    case OP_GATE:
    case OP_GATE_DG:
        s->attr.sigmoid = g_rand_boolean(random);
        e['G'] = g_rand_boolean(random) ? 1 : e['V'];
        break;
    case OP_SCAN_GATES:
    case OP_SCAN_GATES_DX:
    case OP_SCAN_GATES_DW:
        s->attr.sigmoid = g_rand_boolean(random);
        e['B'] = s->attr.sigmoid ? e['B'] : 1;
        e['R'] = e['B'] + s->attr.sigmoid;
        e['G'] = e['B'] + 1;
        break;
    case OP_SCAN:
    case OP_SCAN_DX:
    case OP_DELTA_SCAN:
    case OP_DELTA_SCAN_DX:
    case OP_LINEAR_ATTENTION:
    case OP_LINEAR_ATTENTION_DX:
        s->attr.scale = 0.5;
        for (const char *c = "bhgV"; *c; c++) /* few outputs: the loss is their sum */
            e[(int)*c] = MIN(e[(int)*c], 2);
        e['G'] = g_rand_boolean(random) ? 2 : e['E'] + 1;
        e['E'] *= 2;
        break;
    case OP_SELECTIVE_SCAN:
    case OP_SELECTIVE_SCAN_DX:
    case OP_WKV:
    case OP_WKV_DX:
    case OP_DELTA_WKV:
    case OP_DELTA_WKV_DX:
    case OP_BONUS:
    case OP_BONUS_DX:
        for (const char *c = "bhgV"; *c; c++)
            e[(int)*c] = MIN(e[(int)*c], 2);
        e['R'] = 1;
        e['E'] = 2 * e['D'];
        break;
    case OP_RELATIVE_ATTENTION:
    case OP_RELATIVE_ATTENTION_DX:
        e['C'] = 1;
        e['K'] = e['Q'];
        e['E'] = e['D'] + e['V'];
        e['R'] = 2 * sample_between(random, 1, 4);
        s->attr.first = sample_between(random, 0, 7);
        s->attr.seed = e['Q'];
        s->attr.rate = g_rand_boolean(random) ? 0.4 : 0;
        break;
    case OP_PART:
    case OP_PART_DX:
        s->attr.first = sample_between(random, 0, 2);
        e['C'] = s->attr.first + e['A'] + 1;
        break;
    case OP_TANH:
    case OP_TANH_DX:
        s->attr.sigmoid = g_rand_boolean(random);
        break;
    case OP_SCALE:
        s->attr.scale = -0.7;
        break;
    case OP_NORM_BY:
    case OP_NORM_BY_DM:
    case OP_NORM_BY_DW:
        s->attr.span = 7;
        break;
    case OP_JOIN:
        e['C'] = e['A'] + e['B'];
        break;
    case OP_JOIN_PART:
        s->attr.first = sample_between(random, 0, 2);
        e['C'] = s->attr.first + e['A'];
        break;
    case OP_TOP_KEYS:
        s->attr.causal = g_rand_boolean(random);
        e['K'] = s->attr.causal ? e['Q'] : e['K'];
        break;
    case OP_SPARSE_ATTENTION:
    case OP_SPARSE_ATTENTION_DX:
        e['E'] = e['D'] + e['V'];
        break;
    case OP_APPEND_TOKEN:
    case OP_DROP_TOKEN:
        e['T'] = e['S'] + 1;
        break;
    case OP_CONV2D:
    case OP_CONV2D_DX:
    case OP_CONV2D_DW:
    case OP_GROUP_CONV2D:
    case OP_GROUP_CONV2D_DX:
    case OP_GROUP_CONV2D_DW: /* padding of both sides may differ */
        s->attr.stride = sample_between(random, 1, 2);
        s->attr.padding = sample_between(random, 0, 1);
        s->attr.padding_columns = sample_between(random, 0, 2);
        e['H'] += e['R'];
        e['W'] += e['S'];
        e['P'] = sample_windows(e['H'] + s->attr.padding + sample_between(random, 0, 1),
                                e['R'], s->attr.stride);
        e['Q'] = sample_windows(e['W'] + s->attr.padding_columns, e['S'], s->attr.stride);
        break;
    case OP_MOMENTS:
    case OP_MOMENTS_DX:
    case OP_BATCH_NORM:
    case OP_BATCH_NORM_DX:
    case OP_BATCH_NORM_DM:
    case OP_BATCH_NORM_DW:
        e['T'] = 2;
        break;
    case OP_CONCAT:
        e['C'] = e['A'] + e['B'];
        break;
    case OP_CONCAT_PART:
        s->attr.first = sample_between(random, 0, 2);
        e['C'] = s->attr.first + e['A'];
        break;
    case OP_SPLIT_CHANNELS:
        out['c'] = e['c'];
        e['c'] *= out['D'] = e['D'];
        break;
    case OP_MERGE_CHANNELS:
        out['c'] = e['c'] * e['D'];
        break;
    case OP_SMOOTH_NLL_SUM:
    case OP_SMOOTH_NLL_SUM_DX:
        s->attr.scale = 0.1;
        break;
    case OP_AVG_POOL2D:
    case OP_AVG_POOL2D_DX:
        if (g_rand_boolean(random)) /* even parts */
            break;
        s->attr.stride = sample_between(random, 1, 3);
        s->attr.window = sample_between(random, 2, 3);
        s->attr.padding = sample_between(random, 0, 1);
        e['H'] += s->attr.window;
        e['W'] += s->attr.window;
        e['P'] = sample_windows(e['H'] + s->attr.padding, s->attr.window, s->attr.stride);
        e['Q'] = sample_windows(e['W'], s->attr.window, s->attr.stride);
        break;
    case OP_MAX_POOL2D:
    case OP_MAX_POOL2D_DX:
        s->attr.stride = sample_between(random, 1, 2);
        s->attr.window = sample_between(random, 1, 3);
        s->attr.padding_columns = s->attr.window / 2;
        e['H'] += s->attr.window;
        e['W'] += s->attr.window;
        e['P'] = sample_windows(e['H'], s->attr.window, s->attr.stride);
        e['Q'] = sample_windows(e['W'] + s->attr.padding_columns, s->attr.window,
                                s->attr.stride);
        break;
    default:
        break;
    }
}

/* Whether input `i` of a kind holds integers: indices into a vocabulary. */
static inline bool sample_is_index(OpKind kind, uint32_t i)
{
    return i == op_kind_index(kind);
}

/* Whether input `i` is a constant to differentiation. */
static inline bool sample_is_constant(OpKind kind, uint32_t i)
{
    return sample_is_index(kind, i) ||
           ((kind == OP_MOE_DISPATCH || kind == OP_ROUTE) && i == 0) ||
           (kind == OP_UNROUTE && i == 1) ||
           ((kind == OP_SIGMOID_LOSS || kind == OP_SQUARE_LOSS) && i == 1) ||
           (kind == OP_SPARSE_ATTENTION && i == 2);
}

/* Dims of the operand `letters` ("*k", "+n?"). Returns the rank. */
static inline uint32_t sample_dims(const SampleShape *s, const char *letters,
                                   uint32_t dim[TENSOR_MAX_RANK])
{
    uint32_t rank = 0;
    for (; *letters; letters++) {
        for (uint32_t i = 0; *letters == '*' && i < s->n_star; i++)
            dim[rank++] = s->star[i];
        if (isalpha(*letters))
            dim[rank++] = s->extent[(int)*letters];
    }
    return rank;
}

/* The third input of cross_entropy, whose gradient combines all of its ops. */
static inline TensorId sample_log_sum_exp(Graph *graph, TensorId x, TensorId labels)
{
    const OpAttr none = {0};
    const TensorId t =
        graph_op(graph, OP_LABEL_LOGIT, "t", none, 2, (TensorId[]){x, labels}, NULL);
    const TensorId s =
        graph_op(graph, OP_SUM_EXP, "s", none, 2, (TensorId[]){x, t}, NULL);
    return graph_op(graph, OP_LOG_SUM_EXP, "z", none, 2, (TensorId[]){s, t}, NULL);
}

/* Gates [b,S,h,g,G] of a scan, whose decays are below 1 as in a model. */
static inline TensorId sample_gates(Graph *graph, const SampleShape *s)
{
    const uint32_t *e = s->extent, decays = e['G'] - 1;
    const TensorId in[] = {
        graph_parameter(graph, "gates.x", 5,
                        (uint32_t[]){e['b'], e['S'], e['h'], e['g'], e['G']}),
        graph_parameter(graph, "gates.rate", 2, (uint32_t[]){e['h'], e['g']}),
        graph_parameter(graph, "gates.bias", 3, (uint32_t[]){e['h'], e['g'], decays})};
    g_autofree char *extents = g_strdup_printf("G=%u", e['G']);
    return graph_op(graph, OP_SCAN_GATES, "gates", (OpAttr){.sigmoid = true}, 3, in,
                    extents);
}

/* Random extents, each at least `low`. */
static inline SampleShape sample_shape(OpKind kind, uint32_t low, GRand *random)
{
    SampleShape s = {.n_star = sample_between(random, 1, 2)};
    for (uint32_t i = 0; i < s.n_star; i++)
        s.star[i] = sample_between(random, low, 5);
    for (uint32_t c = 0; c < G_N_ELEMENTS(s.extent); c++)
        s.extent[c] = sample_between(random, low, 5);
    sample_constrain(kind, &s, random);
    return s;
}

/* Small random extents, and n for one letter of the signature that can be cut. */
static inline SampleShape sample_shape_with(OpKind kind, char letter, uint32_t n,
                                            GRand *random)
{
    SampleShape s = {.n_star = sample_between(random, 1, 2)};
    uint32_t *extent = letter == '*' ? s.star : &s.extent[(int)letter];
    for (uint32_t i = 0; i < s.n_star; i++)
        s.star[i] = sample_between(random, 1, 3);
    for (uint32_t c = 0; c < G_N_ELEMENTS(s.extent); c++)
        s.extent[c] = sample_between(random, 1, 3);
    *extent = n;
    sample_constrain(kind, &s, random);
    *extent = MAX(*extent, n); /* some are made small there */
    return s;
}

/* Appends one op of `kind` with these extents to a graph without an op of that name. Its inputs are
 * new: parameters where `parameters` says so and a gradient exists, input tensors otherwise. */
static inline OpId sample_shaped_op(Graph *graph, OpKind kind, SampleShape s,
                                    bool parameters, GRand *random)
{
    g_auto(GStrv) side = g_strsplit(op_kind_signature(kind), "->", 2);
    g_auto(GStrv) operand = g_strsplit(side[0], ",", -1);
    TensorId in[OP_MAX_IN];
    uint32_t n_in = 0;
    for (; operand[n_in]; n_in++) {
        if (strchr(operand[n_in], '?') && g_rand_boolean(random))
            break;
        g_autofree char *name = g_strdup_printf("%s.in%u", op_kind_name(kind), n_in);
        uint32_t dim[TENSOR_MAX_RANK], rank = sample_dims(&s, operand[n_in], dim);
        if (parameters && kind == OP_CROSS_ENTROPY && n_in == 2)
            in[n_in] = sample_log_sum_exp(graph, in[0], in[1]);
        else if (parameters && (kind == OP_SCAN || kind == OP_DELTA_SCAN) && n_in == 2)
            in[n_in] = sample_gates(graph, &s);
        else if (parameters && kind == OP_NORM_BY && n_in == 1)
            in[n_in] = graph_op(graph, OP_SQUARES, "squares", (OpAttr){0}, 1, in, NULL);
        else if (parameters && kind == OP_BATCH_NORM && n_in == 1)
            in[n_in] = graph_op(graph, OP_MOMENTS, "moments", (OpAttr){0}, 1, in, "T=2");
        else if (parameters && !sample_is_constant(kind, n_in))
            in[n_in] = graph_parameter(graph, name, rank, dim);
        else
            in[n_in] = graph_input(graph, name,
                                   sample_is_index(kind, n_in) ? DTYPE_I64 : DTYPE_F32,
                                   rank, dim);
    }

    g_autoptr(GString) extents = g_string_new("");
    for (const char *c = side[1]; *c; c++)
        if (isalpha(*c))
            g_string_append_printf(extents, "%s%c=%u", extents->len ? "," : "", *c,
                                   s.out[(int)*c] ? s.out[(int)*c] : s.extent[(int)*c]);
    TensorId out =
        graph_op(graph, kind, op_kind_name(kind), s.attr, n_in, in, extents->str);
    return graph_tensor(graph, out)->producer;
}

/* The same with random extents, each at least `low`. */
static inline OpId sample_op(Graph *graph, OpKind kind, uint32_t low, bool parameters,
                             GRand *random)
{
    return sample_shaped_op(graph, kind, sample_shape(kind, low, random), parameters,
                            random);
}

/* Tiny models that together have every kind of layer. */
static const char *const SAMPLE_MODELS[] = {
    "vgg19:global_batch=2,width=1,fc=6,classes=5,pool=2",
    "vit:global_batch=3,layers=2,hidden=8,heads=2,ffn=12,image=8,patch=4,classes=5",
    "bert-base:global_batch=3,layers=2,hidden=8,heads=4,ffn=12,seq=4,vocab=11,optimizer="
    "sgd",
    "bert-moe:global_batch=3,layers=2,hidden=8,heads=2,ffn=12,seq=6,vocab=11,experts=4",
    "vit-switch:global_batch=3,layers=2,hidden=8,heads=2,ffn=12,image=8,patch=4,classes="
    "5,experts=4",
    "gpt2:global_batch=3,layers=2,hidden=8,heads=2,ffn=12,seq=4,vocab=11",
    "gpt2:global_batch=3,layers=1,hidden=8,heads=2,ffn=12,seq=4,vocab=11,precision=mixed",
    "gpt2:global_batch=3,layers=1,hidden=8,heads=2,ffn=12,seq=4,vocab=11,optimizer="
    "adafactor",
    "gpt2:global_batch=3,layers=1,hidden=8,heads=2,ffn=12,seq=4,vocab=11,optimizer=lion",
    "gpt2:global_batch=3,layers=1,hidden=8,heads=2,ffn=12,seq=4,vocab=11,optimizer=muon,"
    "precision=mixed",
    "mixtral:global_batch=3,layers=1,hidden=8,heads=2,kv_heads=2,ffn=12,seq=6,vocab=11,"
    "experts=4,top=2,train=lora:2,target=all",
    "bert-moe:global_batch=3,layers=2,hidden=8,heads=2,ffn=12,seq=6,vocab=11,experts=4,"
    "train=layers:2-3",
    "vit:global_batch=3,layers=1,hidden=8,heads=2,ffn=12,image=8,patch=4,classes=5,"
    "optimizer=sgd,precision=mixed-fp32-grads",
    "llama:global_batch=3,layers=2,hidden=8,heads=4,kv_heads=2,ffn=12,seq=4,vocab=11",
    "llama:global_batch=2,layers=1,hidden=8,heads=2,kv_heads=1,ffn=12,seq=4,vocab=11,"
    "attention=materialized,precision=mixed",
    "mixtral:global_batch=3,layers=1,hidden=8,heads=2,kv_heads=2,ffn=12,seq=6,vocab=11,"
    "experts=4,top=2",
    "vit-l:global_batch=3,layers=1,hidden=8,heads=2,ffn=12,image=8,patch=4,classes=5",
    "tag-transformer:global_batch=3,layers=1,hidden=8,heads=2,ffn=12,seq=4,vocab=11,"
    "vocab_out=9",
    "tag-bert-small:global_batch=3,layers=1,hidden=8,heads=2,ffn=12,seq=4,vocab=11,"
    "positions=6",
    "tag-bert-small:global_batch=3,layers=1,hidden=8,heads=2,ffn=12,seq=4,positions=6,"
    "host_words=1",
    "transgan:global_batch=3,layers=1,bottom=2,channels=4,heads=2,windows=2,group=3,"
    "upsample=2",
};

#endif
