/* The row of a node's op gives its shape, its elements, and how it becomes an op of the graph. */
#include "data/formats/onnx/ops.h"

#include <string.h>

#include "data/formats/onnx/fold.h"
#include "data/formats/onnx/shapes.h"

#define onnx_fold_none NULL
#define builder_none   NULL
#define ROW(op, shape, fold, build, n, value) \
    {#op, onnx_##shape##_shape, onnx_fold_##fold, builder_##build},

static const struct {
    const char *op;
    OnnxShape shape;
    OnnxFold fold;
    OnnxBuild build;
} OPS[] = {ONNX_OPS(ROW)};

static int ops_compare(const void *op, const void *row)
{
    return strcmp(op, *(const char *const *)row);
}

static const typeof(OPS[0]) *ops_find(const char *op)
{
    return bsearch(op, OPS, G_N_ELEMENTS(OPS), sizeof OPS[0], ops_compare);
}

void onnx_infer_node(OnnxModel *model, const OnnxNode *node)
{
    if (onnx_out(model, node, 0) == ONNX_NONE)
        return;
    const typeof(OPS[0]) *row = ops_find(node->op);
    onnx_infer_shape(model, node, row ? row->shape : NULL);
    onnx_fold(model, node, row ? row->fold : NULL);
}

OnnxBuild onnx_build_of(const char *op)
{
    const typeof(OPS[0]) *row = ops_find(op);
    return row ? row->build : NULL;
}
