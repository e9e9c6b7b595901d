/* Ops that work element by element: the formula of each. */
#include "data/formats/onnx/elements.h"

#include <math.h>
#include <string.h>

#include "data/formats/onnx/ops.h"

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
#define ROW(op, shape, fold, build, n, value) {#op, #shape, n, element_##op},
ONNX_OPS(FORMULA)

static const struct {
    const char *op, *shape;
    uint32_t n;
    OnnxElement formula;
} ELEMENTS[] = {ONNX_OPS(ROW)};

static int elements_compare(const void *op, const void *row)
{
    return strcmp(op, *(const char *const *)row);
}

static const typeof(ELEMENTS[0]) *elements_find(const OnnxNode *node)
{
    return bsearch(node->op, ELEMENTS, G_N_ELEMENTS(ELEMENTS), sizeof ELEMENTS[0],
                   elements_compare);
}

uint32_t onnx_arithmetic(const OnnxNode *node)
{
    const typeof(ELEMENTS[0]) *row = elements_find(node);
    const bool numbers = row && strcmp(row->shape, "compare") != 0;
    return numbers && (row->n < 2 || row->n == node->n_in) ? row->n : 0;
}

OnnxElement onnx_element_of(const OnnxNode *node)
{
    const typeof(ELEMENTS[0]) *row = elements_find(node);
    g_assert(row);
    return row->formula;
}
