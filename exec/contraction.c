/* Reading a contraction off an op's signature. */
#include "exec/contraction.h"

#include <limits.h>

#include "exec/kernels/kernels.h"

static void append_loop(Contraction *c, uint32_t group, uint32_t loop)
{
    KILTER_ASSERT(loop < OP_MAX_LOOPS);
    LoopGroup *g = &c->group[group];
    g->loop[g->n++] = (uint8_t)loop;
    g->size *= c->extent[loop];
}

/* Sorts the loops of one operand, in the order of its dims, into groups. */
static void group_loops(Contraction *c, uint32_t operand, uint32_t rank)
{
    g_assert(rank <= TENSOR_MAX_RANK);
    for (uint32_t d = 0; d < rank; d++) {
        const int8_t loop = c->space.dim_loop[operand][d];
        if (loop < 0)
            continue;
        const bool x = space_driven_dim(&c->space, c->x, (uint32_t)loop) >= 0,
                   y = space_driven_dim(&c->space, c->y, (uint32_t)loop) >= 0;
        if (operand == c->out)
            append_loop(c, x && y ? GROUP_B : x ? GROUP_M : GROUP_N, (uint32_t)loop);
        else if (space_driven_dim(&c->space, c->out, (uint32_t)loop) < 0)
            append_loop(c, GROUP_K, (uint32_t)loop);
    }
}

/* Finds the two factors and the bias; false if there are not exactly two factors. */
static bool find_factors(const Op *op, Contraction *c)
{
    uint32_t factor[OP_MAX_IN], n = 0;
    c->added = -1;
    c->out = op->n_in;
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (c->space.added >> i & 1u)
            c->added = (int)i;
        else
            factor[n++] = i;
    }
    if (n != 2)
        return false;
    c->x = factor[0];
    c->y = factor[1];
    return true;
}

static bool bias_is_last(const Contraction *c, const ExecShard *bias,
                         const ExecShard *out)
{
    return all_of(d, bias->rank,
                  c->space.dim_loop[c->added][d] ==
                      c->space.dim_loop[c->out][out->rank - bias->rank + d]);
}

bool contraction_bind(const Graph *graph, OpId id, const ExecShard *in,
                      const ExecShard *out, Contraction *c)
{
    const Op *op = graph_get_op(graph, id);
    *c = (Contraction){.added = -1};
    if (kernel_of(op->kind) != kernel_contract)
        return false;
    graph_op_space(graph, id, &c->space);
    if (!find_factors(op, c))
        return false;
    for (uint32_t i = 0; i <= op->n_in; i++) {
        const ExecShard *shard = i < op->n_in ? &in[i] : out;
        for (uint32_t d = 0; d < shard->rank; d++)
            if (c->space.dim_loop[i][d] >= 0)
                c->extent[c->space.dim_loop[i][d]] = shard->dim[d];
    }
    for (uint32_t g = 0; g < GROUPS; g++)
        c->group[g] = (LoopGroup){.size = 1};
    group_loops(c, c->out, out->rank);
    group_loops(c, c->x, in[c->x].rank);
    return c->group[GROUP_M].size <= INT_MAX && c->group[GROUP_N].size <= INT_MAX &&
           c->group[GROUP_K].size <= INT_MAX &&
           (c->added < 0 || bias_is_last(c, &in[c->added], out));
}

/* stride: out, [loop], by how many elements of `shard` a step of the loop moves. */
static void strides_of(const Contraction *c, uint32_t operand, const ExecShard *shard,
                       uint64_t *stride)
{
    uint64_t size = 1;
    for (uint32_t d = shard->rank; d-- > 0;) {
        if (c->space.dim_loop[operand][d] >= 0)
            stride[c->space.dim_loop[operand][d]] = size;
        size *= shard->dim[d];
    }
}

LoopOrder contraction_order(const Contraction *c, uint32_t operand,
                            const ExecShard *shard, uint32_t rows, uint32_t columns)
{
    KILTER_ASSERT(operand < OP_MAX_OPERANDS);
    const uint32_t group[] = {GROUP_B, rows, columns};
    uint64_t stride[OP_MAX_LOOPS] = {0};
    LoopOrder order = {.n = 0};
    strides_of(c, operand, shard, stride);
    for (uint32_t g = 0; g < G_N_ELEMENTS(group); g++)
        for (uint32_t i = 0; i < c->group[group[g]].n; i++) {
            const uint8_t loop = c->group[group[g]].loop[i];
            order.extent[order.n] = c->extent[loop];
            order.stride[order.n++] = stride[loop];
        }
    return order;
}

bool loop_order_is_dense(const LoopOrder *order)
{
    uint64_t size = 1;
    for (uint32_t i = order->n; i-- > 0;) {
        if (order->extent[i] > 1 && order->stride[i] != size)
            return false;
        size *= order->extent[i];
    }
    return true;
}
