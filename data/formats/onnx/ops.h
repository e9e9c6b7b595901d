/* The table of ONNX ops (private to data). */
#pragma once

#include "data/formats/onnx/build.h"
#include "data/formats/onnx/fold.h"
#include "data/formats/onnx/shapes.h"

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
