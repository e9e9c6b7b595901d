/* Shapes of the outputs of ONNX nodes, a rule for each op. A node whose inputs do not fit, or whose
 * op is not known here, leaves its output with the shape that the file states, or unknown: that is
 * an error only where it is needed. */
#include "data/formats/onnx/shapes.h"
#include "data/formats/onnx/ops.h"

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

bool onnx_joint_shape(const Inference *s)
{
    if (!s->in[0] || !onnx_set_shape(s->out, s->in[0]->rank, s->in[0]->dim))
        return false;
    for (uint32_t i = 1; i < s->node->n_in; i++) {
        const OnnxValue *next = onnx_value(s->model, onnx_in(s->model, s->node, i));
        const OnnxValue so_far = *s->out;
        if (!next->known || !onnx_broadcast(s->out, &so_far, next))
            return false;
    }
    return true;
}

bool onnx_where_shape(const Inference *s)
{
    return onnx_joint_shape(s) && (s->out->dtype = s->in[1]->dtype, true);
}

bool onnx_compare_shape(const Inference *s)
{
    return onnx_joint_shape(s) && (s->out->dtype = ONNX_BOOL, true);
}

bool onnx_matmul_shape(const Inference *s)
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

bool onnx_gemm_shape(const Inference *s)
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

bool onnx_conv_shape(const Inference *s)
{
    const OnnxValue *x = s->in[0], *w = s->in[1];
    return x && w && x->rank >= 3 && x->rank <= 5 && w->rank == x->rank &&
           slide(s, w->dim[0], w->dim + 2);
}

bool onnx_pool_shape(const Inference *s)
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

bool onnx_global_pool_shape(const Inference *s)
{
    const OnnxValue *x = s->in[0];
    uint64_t dim[ONNX_MAX_RANK] = {0};
    for (uint32_t d = 0; x && d < x->rank; d++)
        dim[d] = d < 2 ? x->dim[d] : 1;
    return x && onnx_set_shape(s->out, x->rank, dim);
}

bool onnx_stated_shape(const Inference *s)
{
    return s->out->known;
}

void onnx_infer_shape(OnnxModel *model, const OnnxNode *node, OnnxShape rule)
{
    Inference s = {.model = model, .node = node};
    const uint32_t made = onnx_out(model, node, 0);
    for (uint32_t i = 0; i < G_N_ELEMENTS(s.in); i++) {
        const OnnxValue *in = onnx_value(model, onnx_in(model, node, i));
        s.in[i] = in->known ? in : NULL;
    }
    s.out = onnx_value(model, made);
    if (s.in[0] && s.out->dtype == 0)
        s.out->dtype = s.in[0]->dtype;
    const OnnxValue before = *s.out;
    if (rule && rule(&s))
        return;
    s.out->known = before.stated;
    s.out->rank = before.rank;
    memcpy(s.out->dim, before.dim, sizeof before.dim);
}
