/* ONNX nodes as ops, or as views of what they are given. */
#include "data/formats/onnx/ops.h"

/* --- sums --- */

/* Values that all samples share get the samples in the place where the other has them. */
static void align(View *shared, const View *other)
{
    if (!view_is_shared(shared) || view_is_shared(other))
        return;
    if (shared->rank + 1 == other->rank) {
        for (uint32_t d = shared->rank++; d > 0; d--)
            shared->dim[d] = shared->dim[d - 1];
        shared->dim[0].n = 0;
    }
    view_set_batch(shared);
}

static bool same_sizes(const View *x, const View *y)
{
    bool same = x->rank == y->rank;
    for (uint32_t d = 0; same && d < x->rank; d++)
        same = view_size(x, d) == view_size(y, d);
    return same;
}

static bool add_values(Builder *b, uint32_t out, View *x, View *y)
{
    builder_drop_scale(b, x);
    builder_drop_scale(b, y);
    TensorId in[2] = {builder_base(b, x), builder_base(b, y)};
    align(x, y);
    align(y, x);
    if (b->failed)
        return false;
    if (!same_sizes(x, y))
        return builder_refuse(b, "its inputs differ in size");
    if (!view_same(x, y)) {
        in[0] = builder_settle(b, x, false);
        in[1] = builder_settle(b, y, false);
    }
    const TensorId sum = builder_op(b, OP_ADD, (OpAttr){0}, 2, in, NULL);
    builder_put(b, out, x, sum);
    return !b->failed;
}

/* The bias of a product, or a row for each sample. */
static bool add_constant(Builder *b, uint32_t out, uint32_t value, uint32_t constant)
{
    View *x = builder_view(b, value);
    const OnnxValue *w = onnx_value(b->model, constant);
    if (!x)
        return false;
    Product *product = builder_product(b, x);
    if (!w->known || w->rank > x->rank || x->rank == 0)
        return builder_refuse(b, "it adds a constant of more dims than the value has");
    if (product && product->bias == ONNX_NONE && product->function == ONNX_SCALED &&
        product->out == GRAPH_NONE && onnx_value(b->model, value)->uses == 1 &&
        onnx_elements(w) == product->n && view_size(x, x->rank - 1) == product->n) {
        product->bias = constant;
        b->view[out] = *x;
        return true;
    }
    builder_drop_scale(b, x);
    const TensorId base = builder_settle(b, x, false);
    if (base == GRAPH_NONE)
        return false;
    const Tensor t = *graph_tensor(b->graph, base);
    if (dims_elements(t.dim, 1, t.rank) != onnx_elements(w) || t.rank < 2)
        return builder_refuse(b, "it adds a constant that is neither a bias nor a row");
    const TensorId in[] = {base, builder_weight(b, constant, t.rank - 1, t.dim + 1)};
    builder_put(b, out, x, builder_op(b, OP_ADD_ROWS, (OpAttr){0}, 2, in, NULL));
    return !b->failed;
}

bool builder_add(Builder *b, const OnnxNode *node)
{
    const uint32_t out = onnx_out(b->model, node, 0);
    uint32_t sum = onnx_in(b->model, node, 0);
    if (node->n_in == 1)
        return builder_begin(b, node, out) != NULL;
    for (uint32_t i = 1; i < node->n_in; i++) {
        const uint32_t next = onnx_in(b->model, node, i);
        if (sum == ONNX_NONE || next == ONNX_NONE)
            return builder_refuse(b, "an input is missing");
        const bool first = onnx_value(b->model, sum)->constant && i == 1,
                   second = onnx_value(b->model, next)->constant;
        if (first || second) {
            if (!add_constant(b, out, first ? next : sum, first ? sum : next))
                return false;
        } else {
            View *x = builder_view(b, sum), *y = builder_view(b, next);
            if (!x || !y)
                return false;
            View left = *x, right = *y;
            if (!add_values(b, out, &left, &right))
                return false;
        }
        sum = out;
    }
    return true;
}

/* A weight for each element of the last dim, as a norm has it; or one of the same size as what it
 * multiplies. */
static bool times_constant(Builder *b, uint32_t out, uint32_t value, uint32_t constant)
{
    const OnnxValue *v = onnx_value(b->model, value), *w = onnx_value(b->model, constant),
                    *made = onnx_value(b->model, out);
    View *x = builder_view(b, value);
    if (!x)
        return false;
    if (!v->known || !w->known || !made->known || v->rank == 0 ||
        onnx_elements(made) != onnx_elements(v))
        return builder_refuse(b, "it multiplies a constant of more elements");
    builder_drop_scale(b, x);
    if (b->taken)
        builder_count(b->taken->approximated, "Mul by a constant");
    const uint32_t h = (uint32_t)v->dim[v->rank - 1];
    if (onnx_elements(w) == h && w->rank > 0 && w->dim[w->rank - 1] == h &&
        w->origin != ONNX_NONE) {
        TensorId in[2] = {builder_settle(b, x, true)};
        in[1] = builder_weight(b, constant, 1, &h);
        builder_put(b, out, x, builder_op(b, OP_RMS_NORM, (OpAttr){0}, 2, in, NULL));
        return !b->failed;
    }
    const TensorId base = builder_base(b, x);
    builder_put(b, out, x, builder_op(b, OP_SILU, (OpAttr){0}, 1, &base, NULL));
    return !b->failed;
}

/* The factors of a pending product's function: two products of one tensor, or, as *halves, the
 * halves of one. */
static bool find_gate(Builder *b, const View **x, const View **y, bool *halves)
{
    const Product *gate = builder_product(b, *x), *other = builder_product(b, *y);
    if (gate && gate->function == ONNX_SCALED) {
        const View *view = *x;
        const Product *swap = gate;
        gate = other;
        other = swap;
        *x = *y;
        *y = view;
    }
    if (!gate || !other || gate->function == ONNX_SCALED ||
        other->function != ONNX_SCALED || gate->out != GRAPH_NONE ||
        other->out != GRAPH_NONE)
        return false;
    const Product *inner = &g_array_index(b->product, Product, gate->inner);
    *halves = gate->inner == (*y)->product && view_other_half(*x, *y);
    return inner->x == other->x && inner->n == other->n && inner->out == GRAPH_NONE &&
           (inner->bias == ONNX_NONE) == (other->bias == ONNX_NONE) &&
           (*halves || view_same(*x, *y));
}

/* A gate and what it multiplies; of other values their sum stands for the product. */
bool builder_multiply(Builder *b, const OnnxNode *node)
{
    const uint32_t out = onnx_out(b->model, node, 0), left = onnx_in(b->model, node, 0),
                   right = onnx_in(b->model, node, 1);
    const bool first = builder_is_constant(b, left),
               second = builder_is_constant(b, right);
    bool halves = false;
    if (first != second)
        return times_constant(b, out, first ? right : left, first ? left : right);
    const View *x = builder_view(b, left), *y = x ? builder_view(b, right) : NULL;
    if (!y)
        return false;
    if (!find_gate(b, &x, &y, &halves)) {
        View one = *x, two = *y;
        if (b->taken)
            builder_count(b->taken->approximated, "Mul of two values");
        return add_values(b, out, &one, &two);
    }
    const Product *gate = builder_product(b, x), *other = builder_product(b, y),
                  *inner = &g_array_index(b->product, Product, gate->inner);
    const Tensor t = *graph_tensor(b->graph, other->x);
    const uint32_t dim[] = {2, halves ? other->n / 2 : other->n, t.dim[t.rank - 1]};
    const bool bias = other->bias != ONNX_NONE, gelu = gate->function == ONNX_GELU;
    TensorId in[3] = {other->x, builder_weight(b, inner->weight, 3, dim), GRAPH_NONE};
    if (bias)
        in[2] = builder_weight(b, inner->bias, 2, dim);
    const TensorId pair =
        builder_op(b, OP_LINEAR_PAIR, (OpAttr){0}, bias ? 3 : 2, in, NULL);
    View view = *y;
    if (halves)
        view_drop_fixed(&view);
    builder_put(b, out, &view,
                builder_op(b, gelu ? OP_GEGLU : OP_SWIGLU, (OpAttr){0}, 1, &pair, NULL));
    return !b->failed;
}

/* --- products --- */

/* How many dims at the end of the base the last dim of a view of attention's output is, heads and
 * their elements; 1 for other tensors. */
static uint32_t heads_at_end(const Builder *b, const View *view)
{
    const OpId made = view->product == VIEW_NO_PRODUCT
                          ? graph_tensor(b->graph, view->base)->producer
                          : GRAPH_NONE;
    const OpKind kind =
        made == GRAPH_NONE ? OP_KINDS : graph_get_op(b->graph, made)->kind;
    const uint32_t n = kind == OP_ATTENTION                                         ? 2
                       : kind == OP_FUSED_ATTENTION || kind == OP_GROUPED_ATTENTION ? 3
                                                                                    : 1;
    return n > 1 && view_ends_like_base(view, n) ? n : 1;
}

/* x [.., k] times a matrix of k and n: pending. */
static bool product(Builder *b, uint32_t out, uint32_t in, uint32_t weight, uint32_t bias,
                    bool transposed)
{
    View *x = builder_view(b, in);
    const OnnxValue *w = onnx_value(b->model, weight);
    if (!x)
        return false;
    if (!w->known || w->rank != 2 || x->rank == 0)
        return builder_refuse(b, "expected a matrix of weights");
    const uint64_t n = w->dim[transposed ? 0 : 1], k = w->dim[transposed ? 1 : 0];
    builder_drop_scale(b, x);
    const uint32_t shared = heads_at_end(b, x);
    const TensorId base = shared > 1 ? x->base : builder_settle(b, x, true);
    if (base == GRAPH_NONE)
        return false;
    if (view_size(x, x->rank - 1) != k || n == 0)
        return builder_refuse(
            b, "%" G_GUINT64_FORMAT " columns times %" G_GUINT64_FORMAT " rows",
            view_size(x, x->rank - 1), k);
    const Product made = {.kind = shared == 1   ? OP_LINEAR
                                  : shared == 2 ? OP_OUT_PROJ
                                                : OP_GROUPED_OUT,
                          .x = base,
                          .weight = weight,
                          .bias = bias,
                          .n = (uint32_t)n,
                          .inner = VIEW_NO_PRODUCT,
                          .out = GRAPH_NONE};
    View view = *x;
    view.base = GRAPH_NONE;
    view.product = builder_add_product(b, &made);
    view.base_rank = x->base_rank - shared + 1;
    while (view.n_atoms > 0 && view.atom[view.n_atoms - 1].dim >= view.base_rank - 1)
        view.n_atoms--;
    view.dim[view.rank - 1].n = 0;
    if (n > 1) {
        const uint8_t atom = (uint8_t)view.n_atoms++;
        view.atom[atom] = (Atom){.size = n, .dim = (uint8_t)(view.base_rank - 1)};
        view.dim[view.rank - 1] = (ViewDim){.n = 1, .atom = {atom}};
    }
    b->view[out] = view;
    return true;
}

bool builder_matmul(Builder *b, const OnnxNode *node)
{
    const uint32_t w = onnx_in(b->model, node, 1);
    if (!builder_is_constant(b, w))
        return builder_refuse(b, "a product of two values that is no attention");
    return product(b, onnx_out(b->model, node, 0), onnx_in(b->model, node, 0), w,
                   ONNX_NONE, false);
}

bool builder_gemm(Builder *b, const OnnxNode *node)
{
    const uint32_t w = onnx_in(b->model, node, 1), bias = onnx_in(b->model, node, 2);
    const bool transposed = onnx_int(node, "transB", 0);
    const OnnxValue *v = onnx_value(b->model, bias), *matrix = onnx_value(b->model, w);
    if (!matrix->constant || (bias != ONNX_NONE && !v->constant) ||
        onnx_int(node, "transA", 0))
        return builder_refuse(b, "expected a matrix of weights on the right");
    if (bias != ONNX_NONE && (!v->known || !matrix->known ||
                              onnx_elements(v) != matrix->dim[transposed ? 0 : 1]))
        return builder_refuse(b, "expected a bias for each column");
    return product(b, onnx_out(b->model, node, 0), onnx_in(b->model, node, 0), w, bias,
                   transposed);
}
