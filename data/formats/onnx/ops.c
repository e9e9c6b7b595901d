/* The table of ONNX ops. */
#include "data/formats/onnx/ops.h"

#include <math.h>
#include <string.h>

static double sigmoid(double a)
{
    return 1 / (1 + exp(-a));
}

static double gelu(double a)
{
    return 0.5 * a * (1 + erf(a * M_SQRT1_2));
}

static double gelu_tanh(double a)
{
    static const double CUBIC = 0.044715;
    return 0.5 * a * (1 + tanh(sqrt(2 / M_PI) * (a + CUBIC * a * a * a)));
}

static double quotient(double a, double b, bool whole)
{
    return !whole ? a / b : b != 0 ? trunc(a / b) : 0;
}

static double modulo(double a, double b)
{
    return b != 0 ? a - b * floor(a / b) : 0;
}

#define ALPHA(otherwise) onnx_number(node, "alpha", otherwise)
#define BETA(otherwise)  onnx_number(node, "beta", otherwise)
#define FORMULA(op, shape, fold, build, n, value)                                \
    static double element_##op(G_GNUC_UNUSED const OnnxNode *node,               \
                               G_GNUC_UNUSED bool whole, G_GNUC_UNUSED double a, \
                               G_GNUC_UNUSED double b)                           \
    {                                                                            \
        return value;                                                            \
    }
ONNX_OPS(FORMULA)

#define onnx_fold_none NULL
#define builder_none   NULL
#define ROW(op, shape, fold, build, n, value) \
    {#op, onnx_##shape##_shape, onnx_fold_##fold, builder_##build, n, element_##op},

static const OnnxOp OPS[] = {ONNX_OPS(ROW)};

static int ops_compare(const void *op, const void *row)
{
    return strcmp(op, ((const OnnxOp *)row)->op);
}

const OnnxOp *onnx_op_of(const OnnxNode *node)
{
    return bsearch(node->op, OPS, G_N_ELEMENTS(OPS), sizeof OPS[0], ops_compare);
}

uint32_t onnx_arithmetic(const OnnxNode *node)
{
    const OnnxOp *op = onnx_op_of(node);
    const bool numbers = op && op->shape != onnx_compare_shape;
    return numbers && (op->n < 2 || op->n == node->n_in) ? op->n : 0;
}
