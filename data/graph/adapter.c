/* Ops of the forward pass, with adapters of low rank beside products where the training has them
 * (LoRA, Hu et al. 2022): y = W x becomes W x + B (A x). */
#include "data/base/assert.h"
#include "data/graph/build.h"

#include <string.h>

/* How the dims of the factors follow from those of W: W's with the rank in place of a dim, or two
 * dims. */
typedef enum {
    RANK_LAST,
    RANK_FIRST,
    RANK_BEFORE_LAST,
    RANK_BY_ROWS,
    RANK_BY_EXPERTS
} FactorDims;

/* Of a product the op of the first factor, which makes `rank` numbers of its input, and that of the
 * second. */
static const struct {
    OpKind kind, down, up;
    FactorDims a, b;
} FACTORS[] = {
    {OP_LINEAR, OP_LINEAR, OP_LINEAR, RANK_BY_ROWS, RANK_LAST},
    {OP_LINEAR_PAIR, OP_LINEAR, OP_LINEAR_PAIR, RANK_BY_ROWS, RANK_LAST},
    {OP_QKV, OP_LINEAR, OP_QKV, RANK_BY_ROWS, RANK_LAST},
    {OP_Q_PROJ, OP_LINEAR, OP_Q_PROJ, RANK_BY_ROWS, RANK_LAST},
    {OP_KV_PROJ, OP_LINEAR, OP_KV_PROJ, RANK_BY_ROWS, RANK_LAST},
    {OP_OUT_PROJ, OP_OUT_PROJ, OP_LINEAR, RANK_FIRST, RANK_BY_ROWS},
    {OP_GROUPED_OUT, OP_GROUPED_OUT, OP_LINEAR, RANK_FIRST, RANK_BY_ROWS},
    {OP_EXPERT, OP_EXPERT, OP_EXPERT, RANK_LAST, RANK_BEFORE_LAST},
    {OP_EXPERT_PAIR, OP_EXPERT, OP_EXPERT_PAIR, RANK_BY_EXPERTS, RANK_BEFORE_LAST},
};

static uint32_t factor_dims(FactorDims how, const Tensor *w, bool first, uint32_t rank,
                            uint32_t dim[TENSOR_MAX_RANK])
{
    KILTER_ASSERT(w->rank >= 2);
    memcpy(dim, w->dim, sizeof w->dim);
    switch (how) {
    case RANK_LAST:
        dim[w->rank - 1] = rank;
        return w->rank;
    case RANK_FIRST:
        dim[0] = rank;
        return w->rank;
    case RANK_BEFORE_LAST:
        dim[w->rank - 2] = rank;
        return w->rank;
    case RANK_BY_ROWS: /* A [rank, k], or B [n, rank] */
        dim[0] = first ? rank : w->dim[0];
        dim[1] = first ? w->dim[w->rank - 1] : rank;
        return 2;
    case RANK_BY_EXPERTS: /* [e, k, rank] of [e, T, k, n] */
        dim[1] = w->dim[2];
        dim[2] = rank;
        return 3;
    }
    g_assert_not_reached();
}

/* Appends the adapter beside the product `id` and their sum, if it has one; returns what reads as
 * its output. */
static TensorId adapter_append(Graph *graph, OpId id)
{
    const Op op = *graph_get_op(graph, id);
    uint32_t row = 0;
    while (row < G_N_ELEMENTS(FACTORS) && FACTORS[row].kind != op.kind)
        row++;
    if (graph->training.kind != TRAIN_LORA || row == G_N_ELEMENTS(FACTORS))
        return op.out[0];
    const Tensor weights = *graph_tensor(graph, op.in[1]);
    if (weights.role != ROLE_PARAMETER || !weights.frozen ||
        !graph_targets(graph, weights.name, false))
        return op.out[0];
    TensorId x = op.in[0];
    for (uint32_t factor = 0; factor < 2; factor++) {
        uint32_t dim[TENSOR_MAX_RANK];
        const uint32_t rank =
            factor_dims(factor == 0 ? FACTORS[row].a : FACTORS[row].b, &weights,
                        factor == 0, graph->training.rank, dim);
        g_autofree char *of = g_strdup_printf("%s.lora_%c", op.name, "ab"[factor]);
        g_autofree char *name = g_strconcat(of, ".weight", NULL);
        OpSpec spec = {.kind = factor == 0 ? FACTORS[row].down : FACTORS[row].up,
                       .name = of,
                       .pass = PASS_FORWARD,
                       .of = GRAPH_NONE,
                       .n_in = 2,
                       .role = ROLE_ACTIVATION,
                       .out_of = {GRAPH_NONE, GRAPH_NONE, GRAPH_NONE}};
        spec.in[0] = x;
        spec.in[1] = graph_trained_parameter(graph, name, rank, dim);
        x = graph_get_op(graph, graph_append(graph, &spec))->out[0];
    }
    g_autofree char *sum = g_strconcat(op.name, ".adapted", NULL);
    const OpSpec add = {.kind = OP_ADD,
                        .name = sum,
                        .pass = PASS_FORWARD,
                        .of = GRAPH_NONE,
                        .n_in = 2,
                        .in = {op.out[0], x},
                        .role = ROLE_ACTIVATION,
                        .out_of = {GRAPH_NONE, GRAPH_NONE, GRAPH_NONE}};
    return graph_get_op(graph, graph_append(graph, &add))->out[0];
}

TensorId graph_op(Graph *graph, OpKind kind, const char *name, OpAttr attr, uint32_t n_in,
                  const TensorId *in, const char *extents)
{
    KILTER_ASSERT(n_in <= OP_MAX_IN);
    if (graph->training.documents && kind == OP_FUSED_ATTENTION && attr.causal)
        attr.documents = graph->training.documents;
    OpSpec spec = {.kind = kind,
                   .name = name,
                   .attr = attr,
                   .pass = PASS_FORWARD,
                   .of = GRAPH_NONE,
                   .n_in = n_in,
                   .extents = extents,
                   .role = op_kind_is_loss(kind) ? ROLE_LOSS : ROLE_ACTIVATION,
                   .out_of = {GRAPH_NONE, GRAPH_NONE, GRAPH_NONE}};
    memcpy(spec.in, in, n_in * sizeof *in);
    return adapter_append(graph, graph_append(graph, &spec));
}
