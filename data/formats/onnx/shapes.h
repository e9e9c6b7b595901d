/* The common parts of the rules of shapes (private to data). */
#pragma once

#include "data/formats/onnx/onnx.h"

/* A node, its first inputs (NULL: left out, or not known) and its first output. */
typedef struct {
    OnnxModel *model;
    const OnnxNode *node;
    const OnnxValue *in[5];
    OnnxValue *out;
} Inference;

/* Of two values of unlike sizes, by NumPy's rules. */
bool onnx_broadcast(OnnxValue *out, const OnnxValue *a, const OnnxValue *b);

/* A rule of the table of ops (ops.h), which sets the shape and, where it is not the first input's,
 * the type of the output. */
typedef bool (*OnnxShape)(const Inference *s);

/* Sets the shape of a node's first output (there is one), and of others that the rule gives. NULL:
 * no rule. */
void onnx_infer_shape(OnnxModel *model, const OnnxNode *node, OnnxShape rule);
