/* Chains of elementwise ONNX nodes as functions of one tensor, told by what they make of some
 * numbers. */
#include "data/formats/onnx/curve.h"

#include <math.h>
#include <string.h>

const double ONNX_POINT[ONNX_POINTS] = {-3, -1.3, -0.5, 0, 0.3, 1, 2, 5};

static double unary(const OnnxNode *node, double x)
{
    static const double GELU_CUBIC = 0.044715;
    const char *op = node->op;
    const double alpha = onnx_number(node, "alpha",
                                     strcmp(op, "HardSigmoid") == 0 ? 0.2
                                     : strcmp(op, "LeakyRelu") == 0 ? 0.01
                                                                    : 1);
    if (strcmp(op, "Identity") == 0 || g_str_has_prefix(op, "Cast") ||
        strcmp(op, "Dropout") == 0)
        return x;
    if (strcmp(op, "Relu") == 0)
        return fmax(x, 0);
    if (strcmp(op, "Erf") == 0)
        return erf(x);
    if (strcmp(op, "Tanh") == 0)
        return tanh(x);
    if (strcmp(op, "Sigmoid") == 0)
        return 1 / (1 + exp(-x));
    if (strcmp(op, "Neg") == 0)
        return -x;
    if (strcmp(op, "Abs") == 0)
        return fabs(x);
    if (strcmp(op, "Sqrt") == 0)
        return sqrt(x);
    if (strcmp(op, "Reciprocal") == 0)
        return 1 / x;
    if (strcmp(op, "Exp") == 0)
        return exp(x);
    if (strcmp(op, "LeakyRelu") == 0)
        return x < 0 ? alpha * x : x;
    if (strcmp(op, "Elu") == 0 || strcmp(op, "Celu") == 0)
        return x < 0 ? alpha * (exp(x) - 1) : x;
    if (strcmp(op, "Softplus") == 0)
        return log1p(exp(x));
    if (strcmp(op, "HardSigmoid") == 0)
        return fmax(0, fmin(1, alpha * x + onnx_number(node, "beta", 0.5)));
    if (strcmp(op, "QuickGelu") == 0 || strcmp(op, "Swish") == 0)
        return x / (1 + exp(-onnx_number(node, "alpha", *op == 'Q' ? 1.702 : 1) * x));
    if (strcmp(op, "Gelu") == 0)
        return 0.5 * x * (1 + erf(x * M_SQRT1_2));
    if (strcmp(op, "FastGelu") == 0)
        return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + GELU_CUBIC * x * x * x)));
    return NAN;
}

static double binary(const char *op, double a, double b)
{
    return strcmp(op, "Add") == 0   ? a + b
           : strcmp(op, "Sub") == 0 ? a - b
           : strcmp(op, "Mul") == 0 ? a * b
           : strcmp(op, "Div") == 0 ? a / b
           : strcmp(op, "Pow") == 0 ? pow(a, b)
           : strcmp(op, "Max") == 0 ? fmax(a, b)
           : strcmp(op, "Min") == 0 ? fmin(a, b)
                                    : NAN;
}

/* Ops of one tensor that keep its size; for those without a curve in unary() any other op of that
 * size stands. */
static bool is_unary(const OnnxNode *node)
{
    static const char *const names[] = {
        "Identity",    "Cast",      "Dropout",    "Relu",
        "Erf",         "Tanh",      "Sigmoid",    "Neg",
        "Abs",         "Sqrt",      "Reciprocal", "Exp",
        "LeakyRelu",   "Elu",       "Celu",       "Softplus",
        "HardSigmoid", "Gelu",      "FastGelu",   "Clip",
        "HardSwish",   "Mish",      "Selu",       "Round",
        "LRN",         "Log",       "Sin",        "Cos",
        "Floor",       "Ceil",      "PRelu",      "ThresholdedRelu",
        "CastLike",    "QuickGelu", "Swish",      NULL};
    return g_strv_contains(names, node->op);
}

bool onnx_is_binary(const OnnxNode *node)
{
    static const char *const names[] = {"Add", "Sub", "Mul", "Div",
                                        "Pow", "Max", "Min", NULL};
    return node->n_in == 2 && g_strv_contains(names, node->op);
}

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
    for (uint32_t p = 0; p < ONNX_POINTS; p++)
        y->y[p] = unary(node, x->y[p]);
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
    for (uint32_t p = 0; p < ONNX_POINTS; p++)
        y->y[p] = binary(node->op, first ? number : x->y[p], second ? number : z->y[p]);
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
        if (is_unary(node))
            unary_curve(model, curve, node, &drawn);
        else if (onnx_is_binary(node))
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
