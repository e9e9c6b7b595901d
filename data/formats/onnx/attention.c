/* Attention of an ONNX model: softmax(q k^T) v, whose queries, keys and values are parts of
 * products with weights, as ops of the table. */
#include "data/formats/onnx/build.h"

#include <string.h>

/* One of queries, keys and values: [lead..., tokens, elements], where the heads are atoms of the
 * product's features. */
typedef struct {
    View view;
    const Product *product;
    uint32_t index;                /* of the product */
    uint64_t heads, repeats, size; /* heads: those that differ */
    uint64_t parts, part;          /* of how many in the product's features, and which */
} Projection;

/* Counts the heads in the dims before tokens and elements; *seen: atoms that are in a dim. */
static bool place_atoms(Builder *b, Projection *role, uint32_t *seen)
{
    const View *v = &role->view;
    for (uint32_t d = 0; d < v->rank; d++)
        for (uint32_t i = 0; i < v->dim[d].n; i++, ++*seen) {
            const Atom *atom = &v->atom[v->dim[d].atom[i]];
            const bool lead = d < v->rank - 2, head = lead && atom->dim == 2;
            if (lead && atom->repeats) {
                role->repeats *= atom->size;
                continue;
            }
            if (head && role->repeats > 1)
                return builder_refuse(b, "attention whose heads of keys are not those of "
                                         "neighbouring queries");
            if (lead ? atom->dim == 1
                     : atom->repeats || atom->dim != (d == v->rank - 1 ? 2 : 1))
                return builder_refuse(b, "attention over dims that are no tokens");
            role->heads *= head ? atom->size : 1;
        }
    return true;
}

static bool find_role(Builder *b, uint32_t value, bool transposed, Projection *role)
{
    const View *view = builder_view(b, value);
    if (!view)
        return false;
    *role = (Projection){.view = *view, .heads = 1, .repeats = 1, .parts = 1};
    View *v = &role->view;
    role->index = v->product;
    role->product = v->product == VIEW_NO_PRODUCT
                        ? NULL
                        : &g_array_index(b->product, Product, v->product);
    if (!role->product || role->product->out != GRAPH_NONE ||
        role->product->kind != OP_LINEAR || role->product->function != ONNX_SCALED)
        return builder_refuse(b,
                              "attention whose queries, keys or values are not made by "
                              "a matrix of weights");
    if (v->rank < 2 || v->base_rank != 3)
        return builder_refuse(b, "attention to what are no tokens of samples");
    if (transposed) {
        const ViewDim swap = v->dim[v->rank - 1];
        v->dim[v->rank - 1] = v->dim[v->rank - 2];
        v->dim[v->rank - 2] = swap;
    }
    uint32_t seen = 0;
    if (!place_atoms(b, role, &seen))
        return false;
    for (uint32_t a = 0; a < v->n_atoms; a++)
        if (v->atom[a].fixed) {
            seen++;
            role->parts *= v->atom[a].size;
            role->part = v->atom[a].at;
        }
    role->size = view_size(v, v->rank - 1);
    if ((v->rotary && v->rotary != role->size) ||
        (v->norm && onnx_elements(onnx_value(b->model, v->norm)) != role->size))
        return builder_refuse(b,
                              "attention with rotation or a norm on a part of each head");
    return (seen == v->n_atoms &&
            role->heads * role->size * role->parts == role->product->n) ||
           builder_refuse(b, "attention to a part of what a matrix makes");
}

bool builder_is_head(Builder *b, const View *view)
{
    const Product *product = builder_product(b, view);
    const ViewDim *last = view->rank ? &view->dim[view->rank - 1] : NULL;
    bool head = product && product->out == GRAPH_NONE && product->kind == OP_LINEAR &&
                product->function == ONNX_SCALED && view->base_rank == 3 &&
                view->rank == 4 && view_size(view, 3) < product->n;
    for (uint32_t i = 0; head && i < last->n; i++)
        head = view->atom[last->atom[i]].dim == 2;
    return head;
}

bool builder_rotary(Builder *b, const OnnxNode *node, const OnnxGroup *group)
{
    const uint32_t made = onnx_out(b->model, node, 0);
    const View *x = builder_view(b, group->in[0]);
    if (!x || x->rotary || x->rank == 0)
        return x && builder_refuse(b, "its input is turned by its place twice");
    b->view[made] = *x;
    b->view[made].rotary = (uint32_t)view_size(x, x->rank - 1);
    return true;
}

static bool is_self(const Projection *role)
{
    bool self = role[0].product->x == role[1].product->x;
    for (uint32_t i = 0; i < 3; i++)
        self =
            self && role[i].parts == 1 &&
            (role[i].product->bias == ONNX_NONE) == (role[0].product->bias == ONNX_NONE);
    return self && role[0].index != role[1].index;
}

/* Queries, keys and values as one op, whose weight is that of all. */
static TensorId joint(Builder *b, const Projection *role, const OnnxGroup *group)
{
    const Product *product = role[0].product;
    const Tensor x = *graph_tensor(b->graph, product->x);
    const uint32_t dim[] = {3, (uint32_t)role[0].heads, (uint32_t)role[0].size, x.dim[2]};
    const OpAttr attr = {.causal = group->causal};
    TensorId in[3] = {product->x, builder_weight(b, product->weight, 4, dim), GRAPH_NONE};
    if (product->bias != ONNX_NONE)
        in[2] = builder_weight(b, product->bias, 3, dim);
    const TensorId qkv =
        builder_op(b, OP_QKV, (OpAttr){0}, product->bias != ONNX_NONE ? 3 : 2, in, NULL);
    g_autofree char *keys = g_strdup_printf("K=%u", x.dim[1]);
    return builder_op(b, OP_ATTENTION, attr, 1, &qkv, keys);
}

/* Queries, or the first elements of keys and values, normed. */
static TensorId normed(Builder *b, const Projection *role, OpKind kind, TensorId x)
{
    const uint32_t size = (uint32_t)role->size;
    TensorId in[] = {x, GRAPH_NONE};
    if (role->view.norm == ONNX_NONE || b->failed)
        return x;
    in[1] = builder_weight(b, role->view.norm, 1, &size);
    return builder_op(b, kind, (OpAttr){0}, 2, in, NULL);
}

/* The first elements of each head, turned by the token's place. */
static TensorId turned(Builder *b, const Projection *role, TensorId x)
{
    const OpAttr attr = {.span = role->view.rotary};
    return role->view.rotary && !b->failed ? builder_op(b, OP_ROTARY, attr, 1, &x, NULL)
                                           : x;
}

/* Queries of one tensor, keys and values of another one, or without probabilities in memory. Of a
 * packed weight the keys' and values' part is a parameter of its own. */
static TensorId apart(Builder *b, const Projection *role, const OnnxGroup *group)
{
    const Product *q = role[0].product, *k = role[1].product;
    const uint32_t heads = (uint32_t)role[1].heads, size = (uint32_t)role[0].size,
                   queries = (uint32_t)(role[0].heads / role[1].heads),
                   wide = (uint32_t)(role[1].size + role[2].size),
                   width = graph_tensor(b->graph, q->x)->dim[2],
                   kwidth = graph_tensor(b->graph, k->x)->dim[2];
    const bool kbias = k->bias != ONNX_NONE && role[2].product->bias != ONNX_NONE;
    const char *part = role[0].index == role[1].index ? ".kv" : "";
    const OpAttr attr = {.causal = group->causal};
    TensorId in[3] = {
        q->x, builder_weight(b, q->weight, 4, (uint32_t[]){heads, queries, size, width}),
        GRAPH_NONE};
    if (q->bias != ONNX_NONE)
        in[2] = builder_weight(b, q->bias, 3, (uint32_t[]){heads, queries, size});
    TensorId operand[2];
    operand[0] =
        builder_op(b, OP_Q_PROJ, (OpAttr){0}, q->bias != ONNX_NONE ? 3 : 2, in, NULL);
    in[0] = k->x;
    in[1] = builder_part(b, k->weight, part, 3, (uint32_t[]){heads, wide, kwidth});
    if (kbias)
        in[2] = builder_part(b, k->bias, part, 2, (uint32_t[]){heads, wide});
    operand[1] = builder_op(b, OP_KV_PROJ, (OpAttr){0}, kbias ? 3 : 2, in, NULL);
    for (uint32_t i = 0; i < 2; i++)
        operand[i] = turned(
            b, &role[i], normed(b, &role[i], i ? OP_KEY_NORM : OP_RMS_NORM, operand[i]));
    g_autofree char *extents = g_strdup_printf("V=%u", (uint32_t)role[2].size);
    return builder_op(b, b->sizes->fused ? OP_FUSED_ATTENTION : OP_GROUPED_ATTENTION,
                      attr, 2, operand, extents);
}

static bool is_in(const View *view, uint32_t dim, uint32_t atom)
{
    g_assert(view && dim < view->rank);
    return memchr(view->dim[dim].atom, (int)atom, view->dim[dim].n) != NULL;
}

/* Marks the queries' heads as those of keys, and behind them those that share a head of keys: dims
 * 2 and 3. */
static bool part_heads(View *q, uint64_t heads)
{
    uint64_t before = 1;
    items_at (Atom, atom, a, q->atom, q->n_atoms) {
        if (atom->dim != 2 || atom->fixed || is_in(q, q->rank - 1, a))
            continue;
        if (before == heads) {
            atom->dim = 3;
            continue;
        }
        const uint64_t rest = heads / before;
        if (rest % atom->size != 0 &&
            (atom->size % rest != 0 || !view_split_atom(q, (uint8_t)a, rest)))
            return false;
        before *= q->atom[a].size;
    }
    return before == heads;
}

/* [b, q, h, D] or [b, q, h, g, D] in the dims of the queries, with the elements of the values last.
 * False: their heads are not those of keys and then of queries. */
static bool output_view(const Projection *role, TensorId base, uint32_t rank, View *out)
{
    View q = role[0].view;
    if (role[0].heads > role[1].heads && !part_heads(&q, role[1].heads))
        return false;
    ViewDim *last = &q.dim[q.rank - 1];
    for (uint32_t a = 0; a < q.n_atoms; a++)
        q.atom[a].fixed |= is_in(&q, q.rank - 1, a);
    view_drop_fixed(&q);
    last->n = 0;
    if (role[2].size > 1) {
        const uint8_t atom = (uint8_t)q.n_atoms++;
        q.atom[atom] = (Atom){.size = role[2].size, .dim = (uint8_t)(rank - 1)};
        *last = (ViewDim){.n = 1, .atom = {atom}};
    }
    *out = q;
    out->base = base;
    out->product = VIEW_NO_PRODUCT;
    out->base_rank = rank;
    out->scale = 1;
    out->rotary = 0;
    out->norm = ONNX_NONE;
    return true;
}

/* Whether each head of keys and values is one of the queries, or of as many. */
static bool heads_fit(const Projection *role)
{
    const uint64_t heads = role[1].heads, repeats = role[1].repeats;
    return role[0].repeats == 1 && role[2].view.rotary == 0 &&
           role[2].view.norm == ONNX_NONE && role[2].heads == heads &&
           role[2].repeats == repeats && role[0].size == role[1].size &&
           (role[0].heads == heads * repeats || heads * repeats == 1);
}

bool builder_attention(Builder *b, const OnnxNode *node, const OnnxGroup *group)
{
    Projection role[3];
    const uint32_t made = onnx_out(b->model, node, 0);
    const OnnxValue *out = onnx_value(b->model, made);
    for (uint32_t i = 0; i < 3; i++)
        if (!find_role(b, group->in[i], i == 1, &role[i]))
            return false;
    /* thirds of one product */
    const bool packed = role[0].index == role[1].index &&
                        role[0].index == role[2].index && role[0].parts == 3 &&
                        role[1].parts == 3 && role[2].parts == 3,
               self = is_self(role);
    if (!heads_fit(role) || role[1].product->x != role[2].product->x)
        return builder_refuse(b, "attention of unlike numbers of heads or elements");
    if (!packed && !self &&
        (role[0].parts != 1 || (role[1].parts != 1 && role[1].index != role[2].index)))
        return builder_refuse(b, "attention to a part of what a matrix makes");
    const bool plain = view_is_plain(&role[0].view) && view_is_plain(&role[1].view);
    const bool whole = (packed || self) && role[0].size == role[2].size && plain &&
                       role[0].heads == role[1].heads;
    const TensorId y =
        whole && !b->sizes->fused ? joint(b, role, group) : apart(b, role, group);
    if (y == GRAPH_NONE)
        return false;
    if (b->taken)
        b->taken->attentions++;
    if (!output_view(role, y, graph_tensor(b->graph, y)->rank, &b->view[made]))
        return builder_refuse(b, "attention whose heads of keys are not those of "
                                 "neighbouring queries");
    return !out->known || view_reshape(&b->view[made], out->rank, out->dim) ||
           builder_refuse(b, "attention whose output is cut across its heads");
}
