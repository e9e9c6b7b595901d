/* The common parts of the rules of shapes (private to data). */
#pragma once

#include "data/formats/onnx/onnx.h"

/* A node, its first inputs (NULL: left out) and its first output. */
typedef struct {
    OnnxModel *model;
    const OnnxNode *node;
    const OnnxValue *in[5];
    OnnxValue *out;
} Inference;

/* Of two values of unlike sizes, by NumPy's rules. */
bool onnx_broadcast(OnnxValue *out, const OnnxValue *a, const OnnxValue *b);

/* A rule for each op, which sets the shape and, where it is not the first input's, the type of the
 * output. */
typedef bool (*OnnxShape)(const Inference *s);
bool onnx_stated_shape(const Inference *s);
bool onnx_same_shape(const Inference *s);
bool onnx_joint_shape(const Inference *s);
bool onnx_where_shape(const Inference *s);
bool onnx_compare_shape(const Inference *s);
bool onnx_matmul_shape(const Inference *s);
bool onnx_gemm_shape(const Inference *s);
bool onnx_conv_shape(const Inference *s);
bool onnx_pool_shape(const Inference *s);
bool onnx_global_pool_shape(const Inference *s);
bool onnx_transpose_shape(const Inference *s);
bool onnx_reshape_shape(const Inference *s);
bool onnx_flatten_shape(const Inference *s);
bool onnx_unsqueeze_shape(const Inference *s);
bool onnx_squeeze_shape(const Inference *s);
bool onnx_expand_shape(const Inference *s);
bool onnx_gather_shape(const Inference *s);
bool onnx_concat_shape(const Inference *s);
bool onnx_split_shape(const Inference *s);
bool onnx_slice_shape(const Inference *s);
bool onnx_reduce_shape(const Inference *s);
bool onnx_shape_shape(const Inference *s);
bool onnx_filled_shape(const Inference *s);
bool onnx_range_shape(const Inference *s);
bool onnx_cast_shape(const Inference *s);
bool onnx_cast_like_shape(const Inference *s);
bool onnx_size_shape(const Inference *s);
bool onnx_pad_shape(const Inference *s);
bool onnx_tile_shape(const Inference *s);
bool onnx_nonzero_shape(const Inference *s);

/* Sets the shape of a node's first output (there is one), and of others that the rule gives. NULL:
 * no rule. */
void onnx_infer_shape(OnnxModel *model, const OnnxNode *node, OnnxShape rule);
