/* Contractions as matrix products of BLAS. */
#include "exec/blas.h"

#include <dlfcn.h>
#include <string.h>

#include "data/base/free.h"
#include "exec/contraction.h"

/* A matrix for each b: where it lies, and whether its rows and columns are swapped. */
typedef struct {
    char *data;
    void *owned; /* copy to free, or NULL */
    bool swapped;
} Matrix;

/* Copies between the operand's own order and a dense one; `pack` copies into the dense one. */
static void permute(const LoopOrder *order, size_t size, char *own, char *packed,
                    bool pack)
{
    KILTER_ASSERT(size == sizeof(float) || size == sizeof(double));
    const uint32_t n = order->n;
    const uint64_t last = n > 0 ? order->extent[n - 1] : 1;
    const uint64_t step = n > 0 ? order->stride[n - 1] * size : 0;
    uint64_t at[OP_MAX_LOOPS] = {0}, rows = 1;
    for (uint32_t i = 0; i + 1 < n; i++)
        rows *= order->extent[i];
    for (uint64_t row = 0; row < rows; row++) {
        char *from = own;
        for (uint32_t i = 0; i + 1 < n; i++)
            from += at[i] * order->stride[i] * size;
        for (uint64_t i = 0; i < last; i++, packed += size)
            if (pack)
                memcpy(packed, from + i * step, size);
            else
                memcpy(from + i * step, packed, size);
        for (uint32_t i = n > 0 ? n - 1 : 0; i-- > 0 && ++at[i] == order->extent[i];)
            at[i] = 0;
    }
}

static Matrix as_matrix(const Contraction *c, uint32_t operand, const ExecShard *shard,
                        uint32_t rows, uint32_t columns, size_t size, bool fill)
{
    KILTER_ASSERT(operand < OP_MAX_OPERANDS);
    const LoopOrder order = contraction_order(c, operand, shard, rows, columns),
                    swapped = contraction_order(c, operand, shard, columns, rows);
    if (loop_order_is_dense(&order))
        return (Matrix){.data = shard->data};
    if (loop_order_is_dense(&swapped))
        return (Matrix){.data = shard->data, .swapped = true};
    Matrix matrix = {.owned = g_malloc(exec_shard_elements(shard) * size + size)};
    matrix.data = matrix.owned;
    if (fill)
        permute(&order, size, shard->data, matrix.data, true);
    return matrix;
}

/* out = x y, row-major, for one index b. */
static void multiply(const Blas *blas, const Contraction *c, size_t size, const Matrix *x,
                     const Matrix *y, const Matrix *out, uint64_t b)
{
    const int m = (int)c->group[GROUP_M].size, n = (int)c->group[GROUP_N].size,
              k = (int)c->group[GROUP_K].size;
    const char *px = x->data + b * (uint64_t)m * (uint64_t)k * size;
    const char *py = y->data + b * (uint64_t)k * (uint64_t)n * size;
    char *po = out->data + b * (uint64_t)m * (uint64_t)n * size;
    const int ldx = x->swapped ? m : k, ldy = y->swapped ? k : n;
    /* A swapped output is the product y' x'. */
    const CBLAS_TRANSPOSE tx = x->swapped != out->swapped ? CblasTrans : CblasNoTrans,
                          ty = y->swapped != out->swapped ? CblasTrans : CblasNoTrans;
    const void *first = out->swapped ? py : px, *second = out->swapped ? px : py;
    const int rows = out->swapped ? n : m, columns = out->swapped ? m : n;
    const int ld1 = out->swapped ? ldy : ldx, ld2 = out->swapped ? ldx : ldy;
    const CBLAS_TRANSPOSE t1 = out->swapped ? ty : tx, t2 = out->swapped ? tx : ty;
    if (size == sizeof(double))
        blas->dgemm(CblasRowMajor, t1, t2, rows, columns, k, 1, first, ld1, second, ld2,
                    0, (double *)(void *)po, columns);
    else
        blas->sgemm(CblasRowMajor, t1, t2, rows, columns, k, 1, first, ld1, second, ld2,
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

static void multiply_all(const Blas *blas, const Contraction *c, const ExecShard *in,
                         const ExecShard *out, size_t size)
{
    Matrix x = as_matrix(c, c->x, &in[c->x], GROUP_M, GROUP_K, size, true);
    Matrix y = as_matrix(c, c->y, &in[c->y], GROUP_K, GROUP_N, size, true);
    Matrix z = as_matrix(c, c->out, out, GROUP_M, GROUP_N, size, false);
    for (uint64_t b = 0; b < c->group[GROUP_B].size; b++)
        multiply(blas, c, size, &x, &y, &z, b);
    if (z.owned) {
        const LoopOrder order = contraction_order(c, c->out, out, GROUP_M, GROUP_N);
        permute(&order, size, out->data, z.data, false);
    }
    free_each(x.owned, y.owned, z.owned);
}

bool blas_contract(const Blas *blas, const Graph *graph, OpId id, const ExecShard *in,
                   const ExecShard *out, size_t element_bytes)
{
    Contraction c;
    if (!contraction_bind(graph, id, in, out, &c))
        return false;
    if (exec_shard_elements(out) == 0)
        return true;
    if (c.group[GROUP_K].size == 0)
        memset(out->data, 0, exec_shard_elements(out) * element_bytes);
    else
        multiply_all(blas, &c, in, out, element_bytes);
    if (c.added >= 0)
        add_bias(&in[c.added], out, element_bytes);
    return true;
}

bool blas_open(Blas *blas, GError **error)
{
    /* OpenBLAS reads it while it is loaded */
    g_setenv("OPENBLAS_NUM_THREADS", "1", TRUE);
    void *library = dlopen(KILTER_OPENBLAS, RTLD_NOW | RTLD_LOCAL);
    if (library) {
        *(void **)&blas->sgemm = dlsym(library, "cblas_sgemm");
        *(void **)&blas->dgemm = dlsym(library, "cblas_dgemm");
    }
    return (library && blas->sgemm && blas->dgemm) ||
           kilter_fail(error, KILTER_ERROR_FAILED, "cannot load OpenBLAS: %s", dlerror());
}
