/* RMS norm, on GPUs. */
// Root mean square norm of rows or of the first elements of rows: one warp per row. See
// exec/kernels/rms_norm.c.
#include <cmath>

#include "exec/cuda/launch.cuh"

struct Rows {
    uint64_t rows, width, n;
};

static Rows rows_of(const ExecShard *x, uint64_t n)
{
    Rows r = {1, x->dim[x->rank - 1], n};
    for (uint32_t d = 0; d + 1 < x->rank; d++)
        r.rows *= x->dim[d];
    return r;
}

template <typename T>
__host__ __device__ static T row_inverse(In<T> x, uint64_t n, Lane lane)
{
    T squares = 0;
    for (uint64_t i = lane.id; i < n; i += lane.n)
        squares += x[i] * x[i];
    return 1 / sqrt(lane.sum(squares) / T(n) + T(RMS_NORM_EPSILON));
}

template <typename T> static void rms_norm(const CudaCall *call)
{
    const Rows n = rows_of(&call->in[0], call->in[1].dim[0]);
    const In<T> x = in<T>(call, 0), gamma = in<T>(call, 1);
    Out<T> y = out<T>(call, 0);
    rows(
        call->queue, n.rows, BODY(uint64_t r, Lane lane) {
            const In<T> from = x + r * n.width;
            const T inverse = row_inverse<T>(from, n.n, lane);
            for (uint64_t i = lane.id; i < n.width; i += lane.n)
                y[r * n.width + i] = i < n.n ? from[i] * inverse * gamma[i] : from[i];
        });
}
CUDA_KERNEL(cuda_rms_norm, rms_norm)

template <typename T> static void rms_norm_dx(const CudaCall *call)
{
    const Rows n = rows_of(&call->in[1], call->in[2].dim[0]);
    const In<T> dy = in<T>(call, 0), x = in<T>(call, 1), gamma = in<T>(call, 2);
    Out<T> dx = out<T>(call, 0);
    rows(
        call->queue, n.rows, BODY(uint64_t r, Lane lane) {
            const In<T> from = x + r * n.width, g = dy + r * n.width;
            const T inverse = row_inverse<T>(from, n.n, lane);
            T dot = 0;
            for (uint64_t i = lane.id; i < n.n; i += lane.n)
                dot += g[i] * gamma[i] * from[i];
            const T slope = lane.sum(dot) / T(n.n) * inverse * inverse;
            for (uint64_t i = lane.id; i < n.width; i += lane.n)
                dx[r * n.width + i] =
                    i < n.n ? inverse * (g[i] * gamma[i] - from[i] * slope) : g[i];
        });
}
CUDA_KERNEL(cuda_rms_norm_dx, rms_norm_dx)

// dgamma of `columns` columns: column i is x[first + i] and dy[i], and dy has rows of `step`
// elements. Summed in blocks of rows first, then over blocks, always in the same order.
template <typename T>
static void sum_columns(const CudaCall *call, const Rows &n, uint64_t columns,
                        uint64_t first, uint64_t step)
{
    const uint64_t block = 64, blocks = (n.rows + block - 1) / block;
    const In<T> dy = in<T>(call, 0), x = in<T>(call, 1);
    Out<T> dgamma = out<T>(call, 0);
    T *inverse = scratch<T>(call->queue, n.rows);
    T *part = scratch<T>(call->queue, blocks * columns);
    rows(
        call->queue, n.rows, BODY(uint64_t r, Lane lane) {
            const T value = row_inverse<T>(x + r * n.width, n.n, lane);
            if (lane.id == 0)
                inverse[r] = value;
        });
    each(
        call->queue, blocks * columns, BODY(uint64_t at) {
            const uint64_t b = at / columns, i = at % columns;
            T sum = 0;
            for (uint64_t r = b * block; r < (b + 1) * block && r < n.rows; r++)
                sum += dy[r * step + i] * x[r * n.width + first + i] * inverse[r];
            part[at] = sum;
        });
    each(
        call->queue, columns, BODY(uint64_t i) {
            T sum = 0;
            for (uint64_t b = 0; b < blocks; b++)
                sum += part[b * columns + i];
            dgamma[i] = sum;
        });
    release(call->queue, inverse);
    release(call->queue, part);
}

template <typename T> static void rms_norm_dw(const CudaCall *call)
{
    const ExecShard *dy = &call->in[0], *x = &call->in[1];
    const uint64_t h = dy->dim[dy->rank - 1];
    sum_columns<T>(call, rows_of(x, x->dim[x->rank - 1]), h,
                   dy->offset[dy->rank - 1] - x->offset[x->rank - 1], h);
}
CUDA_KERNEL(cuda_rms_norm_dw, rms_norm_dw)

template <typename T> static void key_norm_dw(const CudaCall *call)
{
    const Rows n = rows_of(&call->in[1], call->out[0].dim[0]);
    sum_columns<T>(call, n, n.n, 0, n.width);
}
CUDA_KERNEL(cuda_key_norm_dw, key_norm_dw)
