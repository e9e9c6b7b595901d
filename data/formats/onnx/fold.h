/* Rules of folding: what an op computes of constants (private to data). */
#pragma once

#include "data/formats/onnx/onnx.h"

/* A node whose inputs are constants, and the elements of its output. */
typedef struct {
    OnnxModel *model;
    const OnnxNode *node;
    const OnnxValue *in[4]; /* NULL: left out */
    OnnxValue *out;
    double *to; /* [n] */
    uint64_t n;
} Fold;

/* A rule of the table of ops (ops.h). False: the elements cannot be told. The elements of the first
 * input are there, but for onnx_fold_sizes. */
typedef bool (*OnnxFold)(const Fold *f);

/* Computes the outputs of a node whose inputs are constants, and whose outputs have shapes already
 * where they could be inferred. NULL: no rule, so that they are constants without numbers. */
void onnx_fold(OnnxModel *model, const OnnxNode *node, OnnxFold rule);
