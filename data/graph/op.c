/* Reading the op table. */
#include "data/graph/op.h"
#include "data/base/assert.h"
#include "data/base/names.h"

#define OP_ROW(id, kernel, name, signature, linear, flops) \
    {name, signature, linear, flops},
static const struct {
    const char *name, *signature, *linear, *flops;
} row[OP_KINDS] = {OP_TABLE(OP_ROW)};

ROW_FUNCTION(const char *, op_kind_name, OpKind, OP_KINDS, row[of].name)
ROW_FUNCTION(const char *, op_kind_signature, OpKind, OP_KINDS, row[of].signature)
ROW_FUNCTION(const char *, op_kind_linear, OpKind, OP_KINDS, row[of].linear)
ROW_FUNCTION(const char *, op_kind_flops, OpKind, OP_KINDS, row[of].flops)

bool op_kind_is_view(OpKind kind)
{
    return kind == OP_SPLIT || kind == OP_MERGE || kind == OP_RESHAPE ||
           kind == OP_TIED || kind == OP_TIED_DX || kind == OP_SPLIT_CHANNELS ||
           kind == OP_MERGE_CHANNELS;
}

bool op_kind_is_elementwise(OpKind kind)
{
    KILTER_ASSERT(kind < OP_KINDS);
    const char *c = op_kind_signature(kind);
    while (*c == '*') /* an operand and its terminator */
        c += c[1] == '-' ? 3 : c[1] == ',' ? 2 : 1;
    return !*c && c[-1] == '*';
}

bool op_kind_is_weights_gradient(OpKind kind)
{
    return g_str_has_suffix(op_kind_name(kind), "_dw");
}

bool op_kind_is_of_experts(OpKind kind)
{
    return g_str_has_prefix(op_kind_name(kind), "expert");
}

bool op_kind_has_master(OpKind kind)
{
    return g_str_has_suffix(op_kind_name(kind), "_master");
}

bool op_kind_updates(OpKind kind)
{
    g_assert(kind < OP_KINDS);
    return kind >= OP_ADAM; /* the last rows of the table */
}

bool op_kind_is_loss(OpKind kind)
{
    return kind == OP_NLL_SUM || kind == OP_SMOOTH_NLL_SUM || kind == OP_CROSS_ENTROPY ||
           kind == OP_SIGMOID_LOSS || kind == OP_SQUARE_LOSS || kind == OP_OPAQUE_LOSS;
}

bool op_kind_is_opaque(OpKind kind)
{
    return kind >= OP_OPAQUE && kind < OP_OPAQUE_LOSS;
}

bool op_kind_is_attention(OpKind kind)
{
    return kind == OP_ATTENTION || kind == OP_GROUPED_ATTENTION ||
           kind == OP_FUSED_ATTENTION || kind == OP_SPARSE_ATTENTION ||
           kind == OP_RELATIVE_ATTENTION;
}

bool op_kind_divides_queries(OpKind kind)
{
    KILTER_ASSERT(kind < OP_KINDS);
    return kind == OP_GROUPED_ATTENTION || kind == OP_GROUPED_ATTENTION_DX ||
           kind == OP_FUSED_ATTENTION || kind == OP_FUSED_ATTENTION_DX ||
           kind == OP_ATTENTION_SINK_DW;
}

bool op_kind_skips_masked(OpKind kind)
{
    KILTER_ASSERT(kind < OP_KINDS);
    return kind == OP_FUSED_ATTENTION || kind == OP_FUSED_ATTENTION_DX ||
           kind == OP_TOP_KEYS;
}

uint32_t op_experts_of_token(OpKind kind, const OpAttr *attr)
{
    return kind == OP_GATE_TOP1   ? 1
           : kind == OP_GATE_TOP2 ? 2
           : kind == OP_GATE_TOPK ? attr->top
                                  : 0;
}

uint32_t op_kind_index(OpKind kind)
{
    KILTER_ASSERT(kind < OP_KINDS);
    switch (kind) {
    case OP_EMBEDDING:
        return 0;
    case OP_EMBEDDING_DW:
    case OP_NLL_SUM:
    case OP_NLL_SUM_DX:
    case OP_SMOOTH_NLL_SUM:
    case OP_SMOOTH_NLL_SUM_DX:
    case OP_LABEL_LOGIT:
    case OP_CROSS_ENTROPY:
        return 1;
    case OP_CROSS_ENTROPY_DX:
        return 2;
    default:
        return OP_MAX_IN;
    }
}

uint32_t op_kind_looked_up(OpKind kind)
{
    KILTER_ASSERT(kind < OP_KINDS);
    switch (kind) {
    case OP_NLL_SUM:
    case OP_LABEL_LOGIT:
    case OP_CROSS_ENTROPY:
        return 0;
    case OP_EMBEDDING:
        return 1;
    default:
        return OP_MAX_OPERANDS;
    }
}

OpKind op_kind_from_name(const char *name)
{
    return NAME_PLACE(row, OP_KINDS, name, name);
}
