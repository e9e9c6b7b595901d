/* out[its loops] = sum over the other loops of the product of the factors, + added operand
 *
 * The factors are the inputs that are not added operands: two for a matrix product of
 * any shape, one for a sum (bias_grad, sum_rows) or a transpose. */
#include "exec/kernels/kernels.h"

enum { MAX_FACTORS = 2, OUT = MAX_FACTORS, LANES = 4 };

/* The loops of one call in the order in which they run: the output's loops come first, but the
 * longest of them runs just outside of the last summed loop. The sum of an element has the same
 * order wherever the output's loops stand. */
typedef struct {
    uint32_t n_loops;
    uint64_t extent[OP_MAX_LOOPS];
    /* elements per step; row [OUT] is the output's, and that of a factor that is missing is 0 */
    uint64_t stride[MAX_FACTORS + 1][OP_MAX_LOOPS];
} Nest;

/* Elements of `tensor` that a step of `loop` moves: the sum over the dims that it drives. */
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

/* Extent of `loop` on this shard: of any operand dim that it drives; 1 if it drives none. */
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

/* out[l oj] += sum over i of a[l aj + i as] b[l bj + i bs], for n <= LANES values of l: the sums do
 * not wait for one another. */
static inline void run_lanes(const Nest *nest, uint32_t j, uint64_t n, const double *a,
                             const double *b, double *out)
{
    const uint64_t *const stride_a = nest->stride[0], *const stride_b = nest->stride[1],
                          oj = nest->stride[OUT][j];
    const uint64_t aj = stride_a[j], as = stride_a[j + 1], bj = stride_b[j],
                   bs = stride_b[j + 1];
    double sum[LANES];
    for (uint64_t l = 0; l < n; l++)
        sum[l] = out[l * oj];
    for (uint64_t i = 0; i < nest->extent[j + 1]; i++)
        for (uint64_t l = 0; l < n; l++)
            sum[l] += a[l * aj + i * as] * b[l * bj + i * bs];
    for (uint64_t l = 0; l < n; l++)
        out[l * oj] = sum[l];
}

/* The last output loop, and within it the last summed loop. */
static void run_inner(const Nest *nest, const double *a, const double *b, double *out)
{
    const uint32_t j = nest->n_loops - 2;
    const uint64_t n = nest->extent[j], oj = nest->stride[OUT][j];
    uint64_t at = 0;
    for (; at + LANES <= n; at += LANES)
        run_lanes(nest, j, LANES, a + at * nest->stride[0][j],
                  b + at * nest->stride[1][j], out + at * oj);
    for (; at < n; at++)
        run_lanes(nest, j, 1, a + at * nest->stride[0][j], b + at * nest->stride[1][j],
                  out + at * oj);
}

/* b: the second factor, or a 1 that no loop moves. */
static void contract_run(const Nest *nest, uint32_t depth, const double *a,
                         const double *b, double *out)
{
    if (depth == nest->n_loops) {
        *out += *a * *b;
        return;
    }
    const uint64_t sa = nest->stride[0][depth], sb = nest->stride[1][depth],
                   so = nest->stride[OUT][depth];
    if (depth + 2 == nest->n_loops && nest->stride[OUT][depth + 1] == 0 && so > 0) {
        run_inner(nest, a, b, out);
        return;
    }
    if (depth + 1 == nest->n_loops) {
        for (uint64_t i = 0; i < nest->extent[depth]; i++)
            out[i * so] += a[i * sa] * b[i * sb];
        return;
    }
    for (uint64_t i = 0; i < nest->extent[depth]; i++)
        contract_run(nest, depth + 1, a + i * sa, b + i * sb, out + i * so);
}

/* Moves the longest of the output's loops, which are the first n_out, to just before the last
 * summed loop. */
static void nest_move_longest(Nest *nest, uint32_t n_out)
{
    if (n_out == 0 || n_out == nest->n_loops)
        return;
    uint32_t longest = 0;
    for (uint32_t l = 1; l < n_out; l++)
        if (nest->extent[l] >= nest->extent[longest])
            longest = l;
    for (uint32_t l = longest; l + 2 < nest->n_loops; l++) {
        const uint64_t extent = nest->extent[l];
        nest->extent[l] = nest->extent[l + 1];
        nest->extent[l + 1] = extent;
        for (uint32_t f = 0; f <= OUT; f++) {
            const uint64_t stride = nest->stride[f][l];
            nest->stride[f][l] = nest->stride[f][l + 1];
            nest->stride[f][l + 1] = stride;
        }
    }
}

/* out += product of inputs factor[0..n) summed over the loops that out lacks. */
static void contract(const KernelCall *call, const OpSpace *space, uint32_t n_factors,
                     const uint32_t *factor)
{
    g_assert(n_factors == 1 || n_factors == 2);
    ExecTensor *out = &call->out[0];
    const int8_t *out_loop = space->dim_loop[call->op->n_in];
    static const double ONE = 1;
    Nest nest = {0};
    uint32_t n_out = 0;
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
            nest.stride[OUT][nest.n_loops] = of_out;
            n_out += of_out > 0;
            nest.extent[nest.n_loops++] = loop_extent(call, space, l);
        }
    }
    nest_move_longest(&nest, n_out);
    contract_run(&nest, 0, call->in[factor[0]].data,
                 n_factors > 1 ? call->in[factor[1]].data : &ONE, out->data);
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
