/* The table of ONNX ops (private to data). */
#pragma once

#include "data/formats/onnx/build.h"
#include "data/formats/onnx/fold.h"
#include "data/formats/onnx/shapes.h"

/* X(op, shape, fold, build, n, value): the name of an op; the rule that gives its output's shape
 * (onnx_SHAPE_shape), the one that computes it of constants (onnx_fold_FOLD) and the one that makes
 * it an op of the graph (builder_BUILD), each `none` where there is no such rule; of ops that work
 * element by element the number of inputs (n, else 0); and the formula for elements a and b of
 * their inputs, or for a result and the next element of a reduction. NAN: no formula, so that the
 * op is neither folded nor told by its curve. `whole`: the result is an integer. ALPHA and BETA
 * are attributes with a default. Sorted by name. */
/* clang-format off */
#define ONNX_OPS(X) \
  X(Abs,                 same,        elements,  none,       1, fabs(a)) \
  X(Add,                 joint,       spread,    add,        2, a + b) \
  X(And,                 compare,     spread,    none,       2, a != 0 && b != 0) \
  X(AveragePool,         pool,        none,      pool,       0, NAN) \
  X(BatchNormalization,  same,        none,      batch_norm, 0, NAN) \
  X(Cast,                cast,        elements,  none,       1, whole ? trunc(a) : a) \
  X(CastLike,            cast_like,   elements,  none,       1, whole ? trunc(a) : a) \
  X(Ceil,                same,        elements,  none,       1, ceil(a)) \
  X(Celu,                same,        elements,  none,       1, a < 0 ? ALPHA(1) * expm1(a) : a) \
  X(Clip,                same,        none,      none,       1, NAN) \
  X(Concat,              concat,      concat,    concat,     0, NAN) \
  X(Constant,            stated,      none,      none,       0, NAN) \
  X(ConstantOfShape,     filled,      sizes,     none,       0, NAN) \
  X(Conv,                conv,        none,      conv,       0, NAN) \
  X(Cos,                 same,        elements,  none,       1, cos(a)) \
  X(CumSum,              same,        none,      none,       0, NAN) \
  X(Div,                 joint,       spread,    none,       2, quotient(a, b, whole)) \
  X(Dropout,             same,        same,      none,       1, a) \
  X(Elu,                 same,        elements,  none,       1, a < 0 ? ALPHA(1) * expm1(a) : a) \
  X(Equal,               compare,     spread,    none,       2, a == b) \
  X(Erf,                 same,        elements,  none,       1, erf(a)) \
  X(Exp,                 same,        elements,  none,       1, exp(a)) \
  X(Expand,              expand,      expand,    expand,     0, NAN) \
  X(FastGelu,            same,        elements,  none,       1, gelu_tanh(a)) \
  X(Flatten,             flatten,     same,      reshape,    0, NAN) \
  X(Floor,               same,        elements,  none,       1, floor(a)) \
  X(Gather,              gather,      gather,    gather,     0, NAN) \
  X(Gelu,                same,        elements,  none,       1, gelu(a)) \
  X(Gemm,                gemm,        none,      gemm,       0, NAN) \
  X(GlobalAveragePool,   global_pool, none,      mean,       0, NAN) \
  X(GlobalMaxPool,       global_pool, none,      pool,       0, NAN) \
  X(Greater,             compare,     spread,    none,       2, a > b) \
  X(GreaterOrEqual,      compare,     spread,    none,       2, a >= b) \
  X(GroupNormalization,  same,        none,      none,       0, NAN) \
  X(HardSigmoid,         same,        elements,  none,       1, CLAMP(ALPHA(0.2) * a + BETA(0.5), 0, 1)) \
  X(HardSwish,           same,        none,      none,       1, NAN) \
  X(Identity,            same,        same,      none,       1, a) \
  X(InstanceNormalization,same,        none,      none,       0, NAN) \
  X(IsNaN,               same,        none,      none,       0, NAN) \
  X(LRN,                 same,        none,      none,       1, NAN) \
  X(LayerNormalization,  same,        none,      norm,       0, NAN) \
  X(LeakyRelu,           same,        elements,  none,       1, a < 0 ? ALPHA(0.01) * a : a) \
  X(Less,                compare,     spread,    none,       2, a < b) \
  X(LessOrEqual,         compare,     spread,    none,       2, a <= b) \
  X(Log,                 same,        elements,  none,       1, log(a)) \
  X(LogSoftmax,          same,        none,      none,       0, NAN) \
  X(MatMul,              matmul,      none,      matmul,     0, NAN) \
  X(Max,                 joint,       spread,    none,       2, fmax(a, b)) \
  X(MaxPool,             pool,        none,      pool,       0, NAN) \
  X(Min,                 joint,       spread,    none,       2, fmin(a, b)) \
  X(Mish,                same,        none,      none,       1, NAN) \
  X(Mod,                 joint,       spread,    none,       2, modulo(a, b)) \
  X(Mul,                 joint,       spread,    multiply,   2, a * b) \
  X(Neg,                 same,        elements,  none,       1, -a) \
  X(NonZero,             nonzero,     nonzero,   none,       0, NAN) \
  X(Not,                 compare,     elements,  none,       1, a == 0) \
  X(Or,                  compare,     spread,    none,       2, a != 0 || b != 0) \
  X(PRelu,               same,        none,      none,       1, NAN) \
  X(Pad,                 pad,         none,      pad,        0, NAN) \
  X(Pow,                 joint,       spread,    none,       2, pow(a, b)) \
  X(QuickGelu,           same,        elements,  none,       1, a * sigmoid(ALPHA(1.702) * a)) \
  X(RMSNormalization,    same,        none,      norm,       0, NAN) \
  X(Range,               range,       sizes,     none,       0, NAN) \
  X(Reciprocal,          same,        elements,  none,       1, 1 / a) \
  X(ReduceMax,           reduce,      reduce,    none,       0, fmax(a, b)) \
  X(ReduceMean,          reduce,      reduce,    mean,       0, NAN) \
  X(ReduceMin,           reduce,      reduce,    none,       0, fmin(a, b)) \
  X(ReduceProd,          reduce,      reduce,    none,       0, a * b) \
  X(ReduceSum,           reduce,      reduce,    none,       0, a + b) \
  X(Relu,                same,        elements,  none,       1, fmax(a, 0)) \
  X(Reshape,             reshape,     same,      reshape,    0, NAN) \
  X(Round,               same,        none,      none,       1, NAN) \
  X(Selu,                same,        none,      none,       1, NAN) \
  X(Shape,               shape,       sizes,     none,       0, NAN) \
  X(Sigmoid,             same,        elements,  none,       1, sigmoid(a)) \
  X(SimplifiedLayerNormalization, same,      none,      norm,       0, NAN) \
  X(Sin,                 same,        elements,  none,       1, sin(a)) \
  X(Size,                size,        sizes,     none,       0, NAN) \
  X(Slice,               slice,       slice,     slice,      0, NAN) \
  X(Softmax,             same,        none,      none,       0, NAN) \
  X(Softplus,            same,        elements,  none,       1, log1p(exp(a))) \
  X(Split,               split,       none,      split,      0, NAN) \
  X(Sqrt,                same,        elements,  none,       1, sqrt(a)) \
  X(Squeeze,             squeeze,     same,      reshape,    0, NAN) \
  X(Sub,                 joint,       spread,    none,       2, a - b) \
  X(Sum,                 joint,       spread,    add,        2, a + b) \
  X(Swish,               same,        elements,  none,       1, a * sigmoid(ALPHA(1) * a)) \
  X(Tanh,                same,        elements,  none,       1, tanh(a)) \
  X(ThresholdedRelu,     same,        none,      none,       1, NAN) \
  X(Tile,                tile,        tile,      none,       0, NAN) \
  X(Transpose,           transpose,   transpose, transpose,  0, NAN) \
  X(Trilu,               same,        triangle,  none,       0, NAN) \
  X(Unsqueeze,           unsqueeze,   same,      reshape,    0, NAN) \
  X(Where,               where,       spread,    none,       0, NAN)
/* clang-format on */

/* The rules that the table names are declared by it; `none` is not one. */
#define ONNX_RULES(op, shape, fold, build, n, value) \
    bool onnx_##shape##_shape(const Inference *s);   \
    bool onnx_fold_##fold(const Fold *f);            \
    bool builder_##build(Builder *b, const OnnxNode *node);
ONNX_OPS(ONNX_RULES)

/* How a node becomes ops of the graph. */
typedef bool (*OnnxBuild)(Builder *b, const OnnxNode *node);

/* Of elements a and b; `whole`: the result is an integer. NAN: not known. */
typedef double (*OnnxElement)(const OnnxNode *node, bool whole, double a, double b);

typedef struct {
    const char *op;
    OnnxShape shape;
    OnnxFold fold;   /* NULL: none */
    OnnxBuild build; /* NULL: nothing in the table of ops does the same */
    uint32_t n;      /* inputs of an op that works element by element; else 0 */
    OnnxElement formula;
} OnnxOp;

/* The row of a node's op; NULL: none. */
const OnnxOp *onnx_op_of(const OnnxNode *node);

/* 1 or 2: a node makes a number of each element of one input, or of two; 0: it does not, or makes
 * truth values. */
uint32_t onnx_arithmetic(const OnnxNode *node);
