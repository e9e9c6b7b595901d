#include "data/graph/op.h"

#include <string.h>

static const struct {
    const char *name, *signature, *linear, *flops;
} row[OP_KINDS] = {
#define X(id, name, signature, linear, flops) {name, signature, linear, flops},
    OP_TABLE(X)
#undef X
};

const char *op_kind_name(OpKind kind)
{
    return row[kind].name;
}

const char *op_kind_signature(OpKind kind)
{
    return row[kind].signature;
}

const char *op_kind_linear(OpKind kind)
{
    return row[kind].linear;
}

const char *op_kind_flops(OpKind kind)
{
    return row[kind].flops;
}

bool op_kind_is_view(OpKind kind)
{
    return kind == OP_SPLIT || kind == OP_MERGE || kind == OP_RESHAPE;
}

bool op_kind_is_elementwise(OpKind kind)
{
    return !strpbrk(op_kind_signature(kind),
                    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
}

OpKind op_kind_from_name(const char *name)
{
    OpKind kind = 0;
    while (kind < OP_KINDS && strcmp(row[kind].name, name) != 0)
        kind++;
    return kind;
}
