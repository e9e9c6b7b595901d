/* Chains of elementwise ONNX nodes as functions of one tensor, told by what they make of some
 * numbers. */
#include "data/formats/onnx/curve.h"

#include <math.h>
#include <string.h>

#include "data/formats/onnx/ops.h"

const double ONNX_POINT[ONNX_POINTS] = {-3, -1.3, -0.5, 0, 0.3, 1, 2, 5};

/* Bounds are attributes until opset 10, and inputs since. */
static void clip_curve(const OnnxModel *model, const OnnxNode *node, const OnnxCurve *x,
                       OnnxCurve *y)
{
    g_assert(node->first + node->n_in + node->n_out <= model->operand->len);
    double least = onnx_number(node, "min", -INFINITY),
           most = onnx_number(node, "max", INFINITY);
    onnx_scalar(model, onnx_in(model, node, 1), &least);
    onnx_scalar(model, onnx_in(model, node, 2), &most);
    for (uint32_t p = 0; p < ONNX_POINTS; p++)
        y->y[p] = fmin(fmax(x->y[p], least), most);
}

static void unary_curve(const OnnxModel *model, const OnnxCurve *curve,
                        const OnnxNode *node, OnnxCurve *y)
{
    g_assert(node->first + node->n_in + node->n_out <= model->operand->len);
    const OnnxCurve *x = &curve[onnx_in(model, node, 0)];
    y->root = x->root;
    y->nodes = x->nodes + 1;
    if (onnx_op_is(node, "Clip")) {
        clip_curve(model, node, x, y);
        return;
    }
    const OnnxElement formula = onnx_op_of(node)->formula;
    for (uint32_t p = 0; p < ONNX_POINTS; p++)
        y->y[p] = formula(node, false, x->y[p], 0);
}

/* Of a number and a curve, or of two curves of one root. */
static void binary_curve(const OnnxModel *model, const OnnxCurve *curve,
                         const OnnxNode *node, OnnxCurve *y)
{
    g_assert(node->first + node->n_in + node->n_out <= model->operand->len);
    const uint32_t a = onnx_in(model, node, 0), b = onnx_in(model, node, 1);
    double number = 0;
    if (a == ONNX_NONE || b == ONNX_NONE)
        return;
    const bool first = onnx_scalar(model, a, &number),
               second = !first && onnx_scalar(model, b, &number);
    const OnnxCurve *x = &curve[a], *z = &curve[b];
    if (!first && !second && (x->root != z->root || onnx_value(model, a)->constant))
        return;
    y->root = first ? z->root : x->root;
    y->nodes = 1 + (first ? 0 : x->nodes) + (second ? 0 : z->nodes);
    const OnnxElement formula = onnx_op_of(node)->formula;
    for (uint32_t p = 0; p < ONNX_POINTS; p++)
        y->y[p] =
            formula(node, false, first ? number : x->y[p], second ? number : z->y[p]);
}

/* The same elements in place, of the same size. */
static bool keeps_size(const OnnxModel *model, uint32_t a, uint32_t b)
{
    g_assert(MAX(a, b) < model->value->len || MAX(a, b) == ONNX_NONE);
    const OnnxValue *x = onnx_value(model, a), *y = onnx_value(model, b);
    return x->known && y->known && x->rank == y->rank &&
           memcmp(x->dim, y->dim, x->rank * sizeof *x->dim) == 0;
}

OnnxCurve *onnx_curves(const OnnxModel *model)
{
    OnnxCurve *curve = g_new0(OnnxCurve, model->value->len + 1);
    for (uint32_t v = 0; v < model->value->len; v++) {
        curve[v].root = v;
        memcpy(curve[v].y, ONNX_POINT, sizeof ONNX_POINT);
    }
    for (uint32_t n = 0; n < model->node->len; n++) {
        const OnnxNode *node = onnx_node(model, n);
        const uint32_t made = onnx_out(model, node, 0), in = onnx_in(model, node, 0);
        if (made == ONNX_NONE || in == ONNX_NONE)
            continue;
        OnnxCurve drawn = curve[made];
        const uint32_t operands = onnx_arithmetic(node);
        if (operands == 1)
            unary_curve(model, curve, node, &drawn);
        else if (operands == 2)
            binary_curve(model, curve, node, &drawn);
        if (drawn.root != made && keeps_size(model, made, drawn.root))
            curve[made] = drawn;
    }
    return curve;
}

/* Whether the curve is `factor` times a function, at some points. */
static bool follows(const OnnxCurve *curve, const double *function, double factor)
{
    static const double TOLERANCE = 0.03; /* approximations of GELU differ by 0.02 */
    for (uint32_t p = 0; p < ONNX_POINTS; p++)
        if (!(fabs(curve->y[p] - factor * function[p]) <= TOLERANCE * fabs(factor)))
            return false;
    return true;
}

OnnxFunction onnx_function_of(const OnnxCurve *curve, double *scale)
{
    static const OnnxFunction kind[] = {ONNX_SCALED, ONNX_RELU, ONNX_GELU, ONNX_SILU};
    for (uint32_t k = 0; k < G_N_ELEMENTS(kind); k++) {
        double function[ONNX_POINTS];
        for (uint32_t p = 0; p < ONNX_POINTS; p++) {
            const double x = ONNX_POINT[p];
            function[p] = kind[k] == ONNX_SCALED ? x
                          : kind[k] == ONNX_RELU ? fmax(x, 0)
                          : kind[k] == ONNX_GELU ? 0.5 * x * (1 + erf(x * M_SQRT1_2))
                                                 : x / (1 + exp(-x));
        }
        *scale = curve->y[ONNX_SCALE_POINT] / function[ONNX_SCALE_POINT];
        if (isfinite(*scale) && follows(curve, function, *scale))
            return kind[k];
    }
    *scale = 1;
    return ONNX_OTHER;
}
