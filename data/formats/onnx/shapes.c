/* Shapes of the outputs of ONNX nodes, a rule for each op. A node whose inputs do not fit, or whose
 * op is not known here, leaves its output with the shape that the file states, or unknown: that is
 * an error only where it is needed. */
#include "data/formats/onnx/shapes.h"

#include <math.h>
#include <string.h>

uint32_t onnx_axis(int64_t axis, uint32_t rank)
{
    const int64_t front = axis < 0 ? axis + rank : axis;
    return front >= 0 && front < rank ? (uint32_t)front : rank;
}

bool onnx_set_shape(OnnxValue *out, uint32_t rank, const uint64_t *dim)
{
    double n = 1;
    if (rank > ONNX_MAX_RANK)
        return false;
    for (uint32_t d = 0; d < rank; d++) {
        n *= (double)MAX(dim[d], 1);
        if (dim[d] > INT32_MAX || n > 0x1p53)
            return false;
    }
    out->rank = rank;
    for (uint32_t d = 0; d < rank; d++)
        out->dim[d] = dim[d];
    out->known = true;
    return true;
}

bool onnx_same_shape(const Inference *s)
{
    return s->in[0] && onnx_set_shape(s->out, s->in[0]->rank, s->in[0]->dim);
}

/* --- sizes by the rules of NumPy --- */

bool onnx_broadcast(OnnxValue *out, const OnnxValue *a, const OnnxValue *b)
{
    uint64_t dim[ONNX_MAX_RANK];
    const uint32_t rank = MAX(a->rank, b->rank);
    for (uint32_t d = 0; d < rank; d++) {
        const uint64_t x = d + a->rank < rank ? 1 : a->dim[d + a->rank - rank],
                       y = d + b->rank < rank ? 1 : b->dim[d + b->rank - rank];
        if (x != y && x != 1 && y != 1)
            return false;
        dim[d] = x == 1 ? y : x;
    }
    return onnx_set_shape(out, rank, dim);
}

static bool joint(const Inference *s)
{
    if (!s->in[0] || !onnx_set_shape(s->out, s->in[0]->rank, s->in[0]->dim))
        return false;
    for (uint32_t i = 1; i < s->node->n_in; i++) {
        const uint32_t index = onnx_in(s->model, s->node, i);
        const OnnxValue *next = index == ONNX_NONE ? NULL : onnx_value(s->model, index);
        const OnnxValue so_far = *s->out;
        if (!next || !next->known || !onnx_broadcast(s->out, &so_far, next))
            return false;
    }
    return true;
}

static bool where(const Inference *s)
{
    return joint(s) && (s->out->dtype = s->in[1]->dtype, true);
}

static bool compare(const Inference *s)
{
    return joint(s) && (s->out->dtype = ONNX_BOOL, true);
}

static bool matmul(const Inference *s)
{
    const OnnxValue *a = s->in[0], *b = s->in[1];
    if (!a || !b || a->rank < 1 || b->rank < 2 ||
        a->dim[a->rank - 1] != b->dim[b->rank - 2])
        return false;
    OnnxValue x = *a, y = *b;
    if (a->rank == 1)
        return b->rank == 2 && onnx_set_shape(s->out, 1, &b->dim[1]);
    x.rank -= 2;
    y.rank -= 2;
    if (!onnx_broadcast(s->out, &x, &y) || s->out->rank + 2 > ONNX_MAX_RANK)
        return false;
    uint64_t dim[ONNX_MAX_RANK];
    memcpy(dim, s->out->dim, sizeof dim);
    dim[s->out->rank] = a->dim[a->rank - 2];
    dim[s->out->rank + 1] = b->dim[b->rank - 1];
    return onnx_set_shape(s->out, s->out->rank + 2, dim);
}

static bool gemm(const Inference *s)
{
    const OnnxValue *a = s->in[0], *b = s->in[1];
    if (!a || !b || a->rank != 2 || b->rank != 2)
        return false;
    const bool ta = onnx_int(s->node, "transA", 0), tb = onnx_int(s->node, "transB", 0);
    return a->dim[ta ? 0 : 1] == b->dim[tb ? 1 : 0] &&
           onnx_set_shape(s->out, 2,
                          (uint64_t[]){a->dim[ta ? 1 : 0], b->dim[tb ? 0 : 1]});
}

/* --- windows --- */

/* How many windows lie on an edge; 0: none. */
static uint64_t windows(const Inference *s, uint32_t edge, uint32_t n, uint64_t size,
                        uint64_t window)
{
    int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[6] = {0};
    onnx_ints(s->node, "strides", n, stride);
    onnx_ints(s->node, "dilations", n, dilation);
    onnx_ints(s->node, "pads", 2 * n, pad);
    const char *automatic = onnx_text(s->node, "auto_pad", "NOTSET");
    const int64_t step = stride[edge];
    if (step < 1 || dilation[edge] < 1 || step > INT32_MAX || dilation[edge] > INT32_MAX)
        return 0;
    if (g_str_has_prefix(automatic, "SAME"))
        return (size + (uint64_t)step - 1) / (uint64_t)step;
    const double covered = (double)dilation[edge] * ((double)window - 1) + 1,
                 room =
                     (double)size + (double)pad[edge] + (double)pad[edge + n] - covered,
                 last = room / (double)step;
    if (!(room >= 0) || room > INT32_MAX)
        return 0;
    return 1 + (uint64_t)(onnx_int(s->node, "ceil_mode", 0) ? ceil(last) : floor(last));
}

/* [n, c, edges...] and windows to [n, channels, windows...]. */
static bool slide(const Inference *s, uint64_t channels, const uint64_t *window)
{
    const OnnxValue *x = s->in[0];
    const uint32_t n = x->rank - 2;
    uint64_t dim[ONNX_MAX_RANK] = {x->dim[0], channels};
    for (uint32_t e = 0; e < n; e++)
        if ((dim[2 + e] = windows(s, e, n, x->dim[2 + e], window[e])) == 0)
            return false;
    return onnx_set_shape(s->out, x->rank, dim);
}

static bool conv(const Inference *s)
{
    const OnnxValue *x = s->in[0], *w = s->in[1];
    return x && w && x->rank >= 3 && x->rank <= 5 && w->rank == x->rank &&
           slide(s, w->dim[0], w->dim + 2);
}

static bool pool(const Inference *s)
{
    int64_t kernel[3] = {1, 1, 1};
    uint64_t window[3];
    const OnnxValue *x = s->in[0];
    if (!x || x->rank < 3 || x->rank > 5 ||
        onnx_ints(s->node, "kernel_shape", 3, kernel) != x->rank - 2)
        return false;
    for (uint32_t e = 0; e < x->rank - 2; e++)
        window[e] = (uint64_t)MAX(kernel[e], 1);
    return slide(s, x->dim[1], window);
}

static bool global_pool(const Inference *s)
{
    const OnnxValue *x = s->in[0];
    uint64_t dim[ONNX_MAX_RANK] = {0};
    for (uint32_t d = 0; x && d < x->rank; d++)
        dim[d] = d < 2 ? x->dim[d] : 1;
    return x && onnx_set_shape(s->out, x->rank, dim);
}

static bool known_already(const Inference *s)
{
    return s->out->known;
}

static const struct {
    const char *op;
    bool (*infer)(const Inference *s);
} RULES[] = {
    {"Abs", onnx_same_shape},
    {"Add", joint},
    {"And", compare},
    {"AveragePool", pool},
    {"BatchNormalization", onnx_same_shape},
    {"Cast", onnx_cast_shape},
    {"CastLike", onnx_cast_like_shape},
    {"Ceil", onnx_same_shape},
    {"Celu", onnx_same_shape},
    {"Clip", onnx_same_shape},
    {"Concat", onnx_concat_shape},
    {"Constant", known_already},
    {"ConstantOfShape", onnx_filled_shape},
    {"Conv", conv},
    {"Cos", onnx_same_shape},
    {"CumSum", onnx_same_shape},
    {"Div", joint},
    {"Dropout", onnx_same_shape},
    {"Elu", onnx_same_shape},
    {"Equal", compare},
    {"Erf", onnx_same_shape},
    {"Exp", onnx_same_shape},
    {"Expand", onnx_expand_shape},
    {"FastGelu", onnx_same_shape},
    {"Flatten", onnx_flatten_shape},
    {"Floor", onnx_same_shape},
    {"Gather", onnx_gather_shape},
    {"Gelu", onnx_same_shape},
    {"Gemm", gemm},
    {"GlobalAveragePool", global_pool},
    {"GlobalMaxPool", global_pool},
    {"Greater", compare},
    {"GreaterOrEqual", compare},
    {"GroupNormalization", onnx_same_shape},
    {"HardSigmoid", onnx_same_shape},
    {"HardSwish", onnx_same_shape},
    {"Identity", onnx_same_shape},
    {"InstanceNormalization", onnx_same_shape},
    {"IsNaN", onnx_same_shape},
    {"LRN", onnx_same_shape},
    {"LayerNormalization", onnx_same_shape},
    {"LeakyRelu", onnx_same_shape},
    {"Less", compare},
    {"LessOrEqual", compare},
    {"Log", onnx_same_shape},
    {"LogSoftmax", onnx_same_shape},
    {"MatMul", matmul},
    {"Max", joint},
    {"MaxPool", pool},
    {"Min", joint},
    {"Mish", onnx_same_shape},
    {"Mod", joint},
    {"Mul", joint},
    {"Neg", onnx_same_shape},
    {"NonZero", onnx_nonzero_shape},
    {"Not", onnx_same_shape},
    {"Or", compare},
    {"PRelu", onnx_same_shape},
    {"Pad", onnx_pad_shape},
    {"Pow", joint},
    {"QuickGelu", onnx_same_shape},
    {"RMSNormalization", onnx_same_shape},
    {"Range", onnx_range_shape},
    {"Reciprocal", onnx_same_shape},
    {"ReduceMax", onnx_reduce_shape},
    {"ReduceMean", onnx_reduce_shape},
    {"ReduceMin", onnx_reduce_shape},
    {"ReduceProd", onnx_reduce_shape},
    {"ReduceSum", onnx_reduce_shape},
    {"Relu", onnx_same_shape},
    {"Reshape", onnx_reshape_shape},
    {"Round", onnx_same_shape},
    {"Selu", onnx_same_shape},
    {"Shape", onnx_shape_shape},
    {"Sigmoid", onnx_same_shape},
    {"SimplifiedLayerNormalization", onnx_same_shape},
    {"Sin", onnx_same_shape},
    {"Size", onnx_size_shape},
    {"Slice", onnx_slice_shape},
    {"Softmax", onnx_same_shape},
    {"Softplus", onnx_same_shape},
    {"Split", onnx_split_shape},
    {"Sqrt", onnx_same_shape},
    {"Squeeze", onnx_squeeze_shape},
    {"Sub", joint},
    {"Sum", joint},
    {"Swish", onnx_same_shape},
    {"Tanh", onnx_same_shape},
    {"ThresholdedRelu", onnx_same_shape},
    {"Tile", onnx_tile_shape},
    {"Transpose", onnx_transpose_shape},
    {"Trilu", onnx_same_shape},
    {"Unsqueeze", onnx_unsqueeze_shape},
    {"Where", where},
};

static int compare_rules(const void *op, const void *rule)
{
    return strcmp(op, *(const char *const *)rule);
}

void onnx_infer_node(OnnxModel *model, const OnnxNode *node)
{
    g_assert(node->first + node->n_in + node->n_out <= model->operand->len);
    Inference s = {.model = model, .node = node};
    const uint32_t made = onnx_out(model, node, 0);
    for (uint32_t i = 0; i < G_N_ELEMENTS(s.in); i++) {
        const uint32_t in = onnx_in(model, node, i);
        s.in[i] = in != ONNX_NONE && onnx_value(model, in)->known ? onnx_value(model, in)
                                                                  : NULL;
    }
    if (made == ONNX_NONE)
        return;
    s.out = onnx_value(model, made);
    if (s.in[0] && s.out->dtype == 0)
        s.out->dtype = s.in[0]->dtype;
    const typeof(RULES[0]) *rule =
        bsearch(node->op, RULES, G_N_ELEMENTS(RULES), sizeof RULES[0], compare_rules);
    const OnnxValue before = *s.out;
    if (rule && rule->infer(&s))
        return;
    s.out->known = before.stated;
    s.out->rank = before.rank;
    memcpy(s.out->dim, before.dim, sizeof before.dim);
}
