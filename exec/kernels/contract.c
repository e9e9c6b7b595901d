/* out[its loops] = sum over the other loops of the product of the factors, + added operand
 *
 * The factors are the inputs that are not added operands: two for a matrix product of
 * any shape, one for a sum (bias_grad, sum_rows) or a transpose. */
#include "exec/kernels/kernels.h"

enum { MAX_FACTORS = 2 };

/* The loops of one call in the order in which they run: the output's loops come first. */
typedef struct {
    uint32_t n_loops, n_factors;
    uint64_t extent[OP_MAX_LOOPS];
    /* elements per step; row [n_factors] is the output's */
    uint64_t stride[MAX_FACTORS + 1][OP_MAX_LOOPS];
} Nest;

/* Elements of `tensor` that a step of `loop` moves: the sum over the dims that it
 * drives. */
static uint64_t loop_stride(const ExecTensor *tensor, const int8_t *dim_loop,
                            uint32_t loop)
{
    KILTER_ASSERT(loop < OP_MAX_LOOPS);
    uint64_t stride = 0, size = 1;
    for (uint32_t d = tensor->rank; d-- > 0;) {
        if (dim_loop[d] == (int8_t)loop)
            stride += size;
        size *= tensor->dim[d];
    }
    return stride;
}

/* Extent of `loop` on this shard: of any operand dim that it drives; 1 if it drives
 * none. */
static uint64_t loop_extent(const KernelCall *call, const OpSpace *space, uint32_t loop)
{
    const uint32_t n_in = call->op->n_in;
    for (uint32_t i = 0; i < n_in + 1; i++) {
        const ExecTensor *tensor = i < n_in ? &call->in[i] : &call->out[0];
        for (uint32_t d = 0; d < tensor->rank; d++)
            if (space->dim_loop[i][d] == (int8_t)loop)
                return tensor->dim[d];
    }
    return 1;
}

static void run(const Nest *nest, uint32_t depth, const double *a, const double *b,
                double *out)
{
    if (depth == nest->n_loops) {
        *out += b ? *a * *b : *a;
        return;
    }
    const uint64_t sa = nest->stride[0][depth], sb = b ? nest->stride[1][depth] : 0;
    const uint64_t so = nest->stride[nest->n_factors][depth];
    if (b && depth + 1 == nest->n_loops) {
        for (uint64_t i = 0; i < nest->extent[depth]; i++)
            out[i * so] += a[i * sa] * b[i * sb];
        return;
    }
    for (uint64_t i = 0; i < nest->extent[depth]; i++)
        run(nest, depth + 1, a + i * sa, b ? b + i * sb : NULL, out + i * so);
}

/* out += product of inputs factor[0..n) summed over the loops that out lacks. */
static void contract(const KernelCall *call, const OpSpace *space, uint32_t n_factors,
                     const uint32_t *factor)
{
    g_assert(n_factors == 1 || n_factors == 2);
    ExecTensor *out = &call->out[0];
    const int8_t *out_loop = space->dim_loop[call->op->n_in];
    Nest nest = {.n_factors = n_factors};
    for (uint32_t summed = 0; summed <= 1; summed++) {
        for (uint32_t l = 0; l < space->n_loops; l++) {
            const uint64_t of_out = loop_stride(out, out_loop, l);
            uint64_t step[MAX_FACTORS] = {0};
            bool used = of_out > 0;
            for (uint32_t f = 0; f < n_factors; f++) {
                step[f] =
                    loop_stride(&call->in[factor[f]], space->dim_loop[factor[f]], l);
                used |= step[f] > 0;
            }
            if (!used || (of_out == 0) != (summed == 1))
                continue;
            for (uint32_t f = 0; f < n_factors; f++)
                nest.stride[f][nest.n_loops] = step[f];
            nest.stride[n_factors][nest.n_loops] = of_out;
            nest.extent[nest.n_loops++] = loop_extent(call, space, l);
        }
    }
    run(&nest, 0, call->in[factor[0]].data,
        n_factors > 1 ? call->in[factor[1]].data : NULL, out->data);
}

void kernel_contract(const KernelCall *call)
{
    OpSpace space;
    graph_op_space(call->graph, call->id, &space);
    uint32_t factor[MAX_FACTORS], n_factors = 0;
    for (uint32_t i = 0; i < call->op->n_in; i++) {
        if (space.added >> i & 1) {
            contract(call, &space, 1, &i);
        } else {
            g_assert(n_factors < MAX_FACTORS);
            factor[n_factors++] = i;
        }
    }
    contract(call, &space, n_factors, factor);
}
