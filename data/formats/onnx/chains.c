/* Chains of ONNX nodes that are one op, and norms that are one node. */
#include "data/formats/onnx/ops.h"

static bool norm(Builder *b, const OnnxNode *node, const OnnxGroup *group)
{
    const bool layer = group->kind == ONNX_LAYER_NORM && group->in[2] != ONNX_NONE;
    View *x = builder_view(b, group->in[0]);
    if (!x)
        return false;
    if (group->in[1] == ONNX_NONE || x->rank == 0)
        return builder_refuse(b, "a norm without weights");
    if (group->kind == ONNX_RMS_NORM && builder_is_head(b, x)) {
        View *y = &b->view[onnx_out(b->model, node, 0)];
        *y = *x;
        y->norm = group->in[1];
        if (b->taken)
            b->taken->layer_norms += group->nodes > 0;
        return true;
    }
    builder_drop_scale(b, x);
    const TensorId base = builder_settle(b, x, true);
    if (base == GRAPH_NONE)
        return false;
    const Tensor t = *graph_tensor(b->graph, base);
    const uint32_t h = t.dim[t.rank - 1];
    if (onnx_elements(onnx_value(b->model, group->in[1])) != h)
        return builder_refuse(b, "a norm of more than the last dim");
    TensorId in[3] = {base, builder_weight(b, group->in[1], 1, &h), GRAPH_NONE};
    if (layer)
        in[2] = builder_weight(b, group->in[2], 1, &h);
    builder_put(b, onnx_out(b->model, node, 0), x,
                builder_op(b, layer ? OP_LAYER_NORM : OP_RMS_NORM, (OpAttr){0},
                           layer ? 3 : 2, in, NULL));
    if (b->taken && group->kind == ONNX_LAYER_NORM && !layer)
        builder_count(b->taken->approximated, "LayerNormalization without bias");
    if (b->taken)
        b->taken->layer_norms += group->nodes > 0;
    return !b->failed;
}

/* LayerNormalization as one node. */
bool builder_norm(Builder *b, const OnnxNode *node)
{
    const uint32_t x = onnx_in(b->model, node, 0), w = onnx_in(b->model, node, 1),
                   bias = onnx_in(b->model, node, 2);
    const OnnxGroup group = {
        .kind = onnx_op_is(node, "LayerNormalization") ? ONNX_LAYER_NORM : ONNX_RMS_NORM,
        .in = {x, w, onnx_op_is(node, "LayerNormalization") ? bias : ONNX_NONE}};
    const OnnxValue *v = onnx_value(b->model, x);
    if (!v->known || v->rank == 0 || !builder_is_constant(b, w) ||
        onnx_axis(onnx_int(node, "axis", -1), v->rank) != v->rank - 1)
        return builder_refuse(b, "a norm of more than the last dim");
    return norm(b, node, &group);
}

static bool function(Builder *b, const OnnxNode *node, const OnnxGroup *group)
{
    const uint32_t out = onnx_out(b->model, node, 0);
    View *x = builder_view(b, group->in[0]);
    if (!x)
        return false;
    if (group->function == ONNX_SCALED) {
        b->view[out] = *x;
        b->view[out].scale *= group->scale;
        return true;
    }
    builder_drop_scale(b, x);
    if (b->taken && group->function == ONNX_OTHER)
        builder_count(b->taken->approximated, node->op);
    if (b->taken)
        b->taken->activations += group->nodes > 1 && group->function != ONNX_OTHER;
    const bool part = any_of(a, x->n_atoms, x->atom[a].fixed);
    const bool gate = group->function == ONNX_GELU || group->function == ONNX_SILU ||
                      (part && group->function == ONNX_OTHER);
    const Product *inner = builder_product(b, x);
    if (gate && inner && inner->function == ONNX_SCALED && inner->out == GRAPH_NONE) {
        const Product made = {.kind = inner->kind,
                              .x = inner->x,
                              .n = inner->n,
                              .weight = ONNX_NONE,
                              .bias = ONNX_NONE,
                              .function =
                                  group->function == ONNX_GELU ? ONNX_GELU : ONNX_SILU,
                              .inner = x->product,
                              .out = GRAPH_NONE};
        View view = *x;
        view.product = builder_add_product(b, &made);
        b->view[out] = view;
        return true;
    }
    View view = *x;
    for (uint32_t a = 0; a < view.n_atoms; a++)
        if (view.atom[a].fixed && builder_settle(b, &view, true) == GRAPH_NONE)
            return false;
    const TensorId base = builder_base(b, &view);
    const OpKind kind = group->function == ONNX_RELU   ? OP_RELU
                        : group->function == ONNX_GELU ? OP_GELU
                                                       : OP_SILU;
    builder_put(b, out, &view, builder_op(b, kind, (OpAttr){0}, 1, &base, NULL));
    return !b->failed;
}

bool builder_group(Builder *b, const OnnxNode *node, const OnnxGroup *group)
{
    return group->kind == ONNX_ATTENTION  ? builder_attention(b, node, group)
           : group->kind == ONNX_ROTARY   ? builder_rotary(b, node, group)
           : group->kind == ONNX_FUNCTION ? function(b, node, group)
                                          : norm(b, node, group);
}
