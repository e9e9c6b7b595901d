/* out[b, m, n] = sum over k of x[b, m, k] y[b, k, n], where each of b, m, n, k stands for any number of loops:
 *
 *     b   loops of x, y and out       m   of x and out
 *     n   of y and out                k   of x and y, summed over
 *
 * An operand whose dims are in this order, or with its last two groups swapped (a transpose, which BLAS does), is used
 * where it lies; others are permuted into a copy. */
#include "exec/blas.h"

#include <cblas.h>
#include <limits.h>
#include <string.h>

#include "exec/kernels.h"

typedef struct {
    uint32_t n;
    uint8_t loop[OP_MAX_LOOPS];
    uint64_t size; /* product of extents */
} Group;

enum { GROUP_B, GROUP_M, GROUP_N, GROUP_K, GROUPS };

typedef struct {
    OpSpace space;
    uint64_t extent[OP_MAX_LOOPS];
    Group group[GROUPS];
    uint32_t x, y, out; /* operands: inputs, then outputs */
    int added;          /* the bias, or -1 */
    size_t size;        /* bytes of an element */
} Contraction;

/* A matrix for each b: where it lies, and whether its rows and columns are swapped. */
typedef struct {
    char *data;
    void *owned; /* copy to free, or NULL */
    bool swapped;
} Matrix;

static bool drives(const Contraction *c, uint32_t operand, uint32_t loop)
{
    for (uint32_t d = 0; d < TENSOR_MAX_RANK; d++)
        if (c->space.dim_loop[operand][d] == (int8_t)loop)
            return true;
    return false;
}

static void append_loop(Contraction *c, uint32_t group, uint32_t loop)
{
    Group *g = &c->group[group];
    g->loop[g->n++] = (uint8_t)loop;
    g->size *= c->extent[loop];
}

/* Sorts the loops of one operand, in the order of its dims, into groups. */
static void group_loops(Contraction *c, uint32_t operand, uint32_t rank)
{
    for (uint32_t d = 0; d < rank; d++) {
        const int8_t loop = c->space.dim_loop[operand][d];
        if (loop < 0)
            continue;
        const bool x = drives(c, c->x, (uint32_t)loop),
                   y = drives(c, c->y, (uint32_t)loop);
        if (operand == c->out)
            append_loop(c, x && y ? GROUP_B : x ? GROUP_M : GROUP_N, (uint32_t)loop);
        else if (!drives(c, c->out, (uint32_t)loop))
            append_loop(c, GROUP_K, (uint32_t)loop);
    }
}

/* Reads the contraction off the op's space; false if it is none. */
static bool bind(const Graph *graph, OpId id, const ExecShard *in, const ExecShard *out,
                 Contraction *c)
{
    const Op *op = graph_get_op(graph, id);
    if (kernel_of(op->kind) != kernel_contract)
        return false;
    graph_op_space(graph, id, &c->space);
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
    for (uint32_t i = 0; i <= op->n_in; i++) {
        const ExecShard *shard = i < op->n_in ? &in[i] : out;
        for (uint32_t d = 0; d < shard->rank; d++)
            if (c->space.dim_loop[i][d] >= 0)
                c->extent[c->space.dim_loop[i][d]] = shard->dim[d];
    }
    for (uint32_t g = 0; g < GROUPS; g++)
        c->group[g] = (Group){.size = 1};
    group_loops(c, c->out, out->rank);
    group_loops(c, c->x, in[c->x].rank);
    return c->group[GROUP_M].size <= INT_MAX && c->group[GROUP_N].size <= INT_MAX &&
           c->group[GROUP_K].size <= INT_MAX;
}

/* Elements of `shard` that a step of each loop moves. */
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

/* The loops of three groups in that order. Returns how many. */
static uint32_t loops_in_order(const Contraction *c, const uint32_t group[3],
                               uint8_t loop[OP_MAX_LOOPS])
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < 3; g++)
        for (uint32_t i = 0; i < c->group[group[g]].n; i++)
            loop[n++] = c->group[group[g]].loop[i];
    return n;
}

/* Whether a row-major tensor over these loops has the strides that the operand has. */
static bool lies_in_order(const Contraction *c, const uint32_t group[3],
                          const uint64_t *stride)
{
    uint8_t loop[OP_MAX_LOOPS];
    uint64_t size = 1;
    for (uint32_t i = loops_in_order(c, group, loop); i-- > 0;) {
        if (c->extent[loop[i]] > 1 && stride[loop[i]] != size)
            return false;
        size *= c->extent[loop[i]];
    }
    return true;
}

/* Copies between the operand's own order and that of the groups; `pack` into the latter. */
static void permute(const Contraction *c, const uint32_t group[3], const uint64_t *stride,
                    char *own, char *packed, bool pack)
{
    uint8_t loop[OP_MAX_LOOPS];
    const uint32_t n = loops_in_order(c, group, loop);
    const uint64_t last = n > 0 ? c->extent[loop[n - 1]] : 1;
    const uint64_t step = n > 0 ? stride[loop[n - 1]] * c->size : 0;
    uint64_t at[OP_MAX_LOOPS] = {0}, rows = 1;
    for (uint32_t i = 0; i + 1 < n; i++)
        rows *= c->extent[loop[i]];
    for (uint64_t row = 0; row < rows; row++) {
        char *from = own;
        for (uint32_t i = 0; i + 1 < n; i++)
            from += at[i] * stride[loop[i]] * c->size;
        for (uint64_t i = 0; i < last; i++, packed += c->size)
            if (pack)
                memcpy(packed, from + i * step, c->size);
            else
                memcpy(from + i * step, packed, c->size);
        for (uint32_t i = n > 0 ? n - 1 : 0; i-- > 0 && ++at[i] == c->extent[loop[i]];)
            at[i] = 0;
    }
}

static Matrix as_matrix(const Contraction *c, uint32_t operand, const ExecShard *shard,
                        uint32_t rows, uint32_t columns, bool fill)
{
    uint64_t stride[OP_MAX_LOOPS] = {0};
    strides_of(c, operand, shard, stride);
    const uint32_t order[] = {GROUP_B, rows, columns},
                   swapped[] = {GROUP_B, columns, rows};
    if (lies_in_order(c, order, stride))
        return (Matrix){.data = shard->data};
    if (lies_in_order(c, swapped, stride))
        return (Matrix){.data = shard->data, .swapped = true};
    Matrix matrix = {.owned = g_malloc(exec_shard_elements(shard) * c->size + c->size)};
    matrix.data = matrix.owned;
    if (fill)
        permute(c, order, stride, shard->data, matrix.data, true);
    return matrix;
}

/* out = x y, row-major, for one b. */
static void multiply(const Contraction *c, const Matrix *x, const Matrix *y,
                     const Matrix *out, uint64_t b)
{
    const int m = (int)c->group[GROUP_M].size, n = (int)c->group[GROUP_N].size,
              k = (int)c->group[GROUP_K].size;
    const char *px = x->data + b * (uint64_t)m * (uint64_t)k * c->size;
    const char *py = y->data + b * (uint64_t)k * (uint64_t)n * c->size;
    char *po = out->data + b * (uint64_t)m * (uint64_t)n * c->size;
    const int ldx = x->swapped ? m : k, ldy = y->swapped ? k : n;
    /* A swapped out is y' x'. */
    const CBLAS_TRANSPOSE tx = x->swapped != out->swapped ? CblasTrans : CblasNoTrans,
                          ty = y->swapped != out->swapped ? CblasTrans : CblasNoTrans;
    const void *first = out->swapped ? py : px, *second = out->swapped ? px : py;
    const int rows = out->swapped ? n : m, columns = out->swapped ? m : n;
    const int ld1 = out->swapped ? ldy : ldx, ld2 = out->swapped ? ldx : ldy;
    const CBLAS_TRANSPOSE t1 = out->swapped ? ty : tx, t2 = out->swapped ? tx : ty;
    if (c->size == sizeof(double))
        cblas_dgemm(CblasRowMajor, t1, t2, rows, columns, k, 1, first, ld1, second, ld2,
                    0, (double *)(void *)po, columns);
    else
        cblas_sgemm(CblasRowMajor, t1, t2, rows, columns, k, 1, first, ld1, second, ld2,
                    0, (float *)(void *)po, columns);
}

/* Adds the bias, whose dims are the last ones of the output. */
static void add_bias(const ExecShard *bias, const ExecShard *out, size_t size)
{
    const uint64_t period = exec_shard_elements(bias), n = exec_shard_elements(out);
    for (uint64_t row = 0; period > 0 && row < n; row += period)
        for (uint64_t i = 0; i < period; i++)
            if (size == sizeof(double))
                ((double *)out->data)[row + i] += ((const double *)bias->data)[i];
            else
                ((float *)out->data)[row + i] += ((const float *)bias->data)[i];
}

static bool bias_is_last(const Contraction *c, const ExecShard *bias,
                         const ExecShard *out)
{
    for (uint32_t d = 0; d < bias->rank; d++)
        if (c->space.dim_loop[c->added][d] !=
            c->space.dim_loop[c->out][out->rank - bias->rank + d])
            return false;
    return true;
}

bool blas_contract(const Graph *graph, OpId id, const ExecShard *in, const ExecShard *out,
                   size_t element_bytes)
{
    Contraction c = {.size = element_bytes};
    if (!bind(graph, id, in, out, &c) ||
        (c.added >= 0 && !bias_is_last(&c, &in[c.added], out)))
        return false;
    if (exec_shard_elements(out) == 0)
        return true;
    if (c.group[GROUP_K].size == 0) {
        memset(out->data, 0, exec_shard_elements(out) * c.size);
    } else {
        Matrix x = as_matrix(&c, c.x, &in[c.x], GROUP_M, GROUP_K, true);
        Matrix y = as_matrix(&c, c.y, &in[c.y], GROUP_K, GROUP_N, true);
        Matrix z = as_matrix(&c, c.out, out, GROUP_M, GROUP_N, false);
        for (uint64_t b = 0; b < c.group[GROUP_B].size; b++)
            multiply(&c, &x, &y, &z, b);
        if (z.owned) {
            const uint32_t order[] = {GROUP_B, GROUP_M, GROUP_N};
            uint64_t stride[OP_MAX_LOOPS] = {0};
            strides_of(&c, c.out, out, stride);
            permute(&c, order, stride, out->data, z.data, false);
        }
        g_free(x.owned);
        g_free(y.owned);
        g_free(z.owned);
    }
    if (c.added >= 0)
        add_bias(&in[c.added], out, c.size);
    return true;
}

void blas_use_one_thread(void)
{
    openblas_set_num_threads(1);
}
