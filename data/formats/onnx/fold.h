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

/* False: the elements cannot be told. The elements of the first input are there, but for
 * onnx_fold_sizes. */
typedef bool (*OnnxFold)(const Fold *f);

bool onnx_fold_same(const Fold *f);     /* in the same order */
bool onnx_fold_elements(const Fold *f); /* one by one */
bool onnx_fold_spread(const Fold *f); /* two or three by one another, by NumPy's rules */
bool onnx_fold_sizes(const Fold *f);  /* of shapes, or of numbers that are attributes */
bool onnx_fold_expand(const Fold *f);
bool onnx_fold_transpose(const Fold *f);
bool onnx_fold_gather(const Fold *f);
bool onnx_fold_concat(const Fold *f);
bool onnx_fold_slice(const Fold *f);
bool onnx_fold_reduce(const Fold *f);
bool onnx_fold_triangle(const Fold *f);
bool onnx_fold_nonzero(const Fold *f);
bool onnx_fold_tile(const Fold *f);

/* Computes the outputs of a node whose inputs are constants, and whose outputs have shapes already
 * where they could be inferred. NULL: no rule, so that they are constants without numbers. */
void onnx_fold(OnnxModel *model, const OnnxNode *node, OnnxFold rule);
