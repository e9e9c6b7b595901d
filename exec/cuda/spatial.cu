/* Convolution and pooling, on GPUs. */
// Convolution and pooling; see exec/kernels/spatial.c. A convolution is a matrix product with the
// patches of an image, columns[c R S, P Q]; the products of several images are one batch.
#include "exec/cuda/launch.cuh"

struct Conv {
    uint64_t images, channels;
    Divisor height, width;
    uint64_t outputs;
    Divisor p, q, r, s, stride;
    uint64_t padding, padding_columns;
    uint64_t
        groups; // groups of channels, each with kernels of its own; an image counts once per group
};

static Conv conv_of(const CudaCall *call, const ExecShard *x, const ExecShard *w,
                    const ExecShard *y)
{
    const bool grouped = x->rank == 5;
    const uint64_t groups = grouped ? x->dim[1] : 1;
    const uint32_t *image = x->dim + x->rank - 3, *kernel = w->dim + w->rank - 2,
                   *result = y->dim + y->rank - 3;
    return {x->dim[0] * groups,
            image[0],
            image[1],
            image[2],
            result[0],
            result[1],
            result[2],
            kernel[0],
            kernel[1],
            call->op->attr.stride,
            call->op->attr.padding,
            call->op->attr.padding_columns,
            groups};
}

// How many images are worked on together: one of each group, or as many as a scratch memory of 2^24 numbers has room for, with
// `numbers` each.
static uint64_t chunk_of(const Conv &n, uint64_t numbers)
{
    const uint64_t room = (UINT64_C(1) << 24) / (numbers > 0 ? numbers : 1);
    if (n.groups > 1)
        return n.groups;
    return room < 1 ? 1 : room < n.images ? room : n.images;
}

// The kernels of consecutive images, as many as chunk_of says.
template <typename P>
static CudaMatrix kernels_of(const Conv &n, P w, uint64_t taps, bool transposed)
{
    return matrix(w, transposed, taps, n.groups > 1 ? n.outputs * taps : 0);
}

template <typename T>
static void gather_patches(CudaQueue *queue, const Conv &n, uint64_t images, In<T> from,
                           Out<T> columns)
{
    const Divisor size(n.channels * n.r * n.s * n.p * n.q);
    each(
        queue, images * size, BODY(uint64_t at) {
            const In<T> image = from + at / size * n.channels * n.height * n.width;
            const uint64_t i = at % size, q = i % n.q, lines = i / n.q, p = lines % n.p,
                           taps = lines / n.p, s = taps % n.s, taps_r = taps / n.s,
                           r = taps_r % n.r, c = taps_r / n.r;
            const uint64_t row = p * n.stride + r, column = q * n.stride + s;
            const bool inside = row >= n.padding && row - n.padding < n.height &&
                                column >= n.padding_columns &&
                                column - n.padding_columns < n.width;
            columns[at] = inside ? image[(c * n.height + row - n.padding) * n.width +
                                         column - n.padding_columns]
                                 : 0;
        });
}

// Each image element becomes the sum of the patch elements that it was copied to.
template <typename T>
static void scatter_patches(CudaQueue *queue, const Conv &n, uint64_t images,
                            In<T> columns, Out<T> to)
{
    const Divisor size(n.channels * n.height * n.width);
    each(
        queue, images * size, BODY(uint64_t at) {
            const In<T> patches =
                columns + at / size * n.channels * n.r * n.s * n.p * n.q;
            const uint64_t i = at % size, column = i % n.width + n.padding_columns,
                           line = i / n.width, row = line % n.height + n.padding,
                           c = line / n.height;
            T sum = 0;
            for (uint64_t r = 0; r < n.r && r <= row; r++)
                for (uint64_t s = 0; s < n.s && s <= column; s++) {
                    const uint64_t p = (row - r) / n.stride, q = (column - s) / n.stride;
                    if ((row - r) % n.stride == 0 && (column - s) % n.stride == 0 &&
                        p < n.p && q < n.q)
                        sum += patches[(((c * n.r + r) * n.s + s) * n.p + p) * n.q + q];
                }
            to[at] = sum;
        });
}

template <typename T> static void conv2d(const CudaCall *call)
{
    const Conv n = conv_of(call, &call->in[0], &call->in[1], &call->out[0]);
    const uint64_t taps = n.channels * n.r * n.s, places = n.p * n.q,
                   chunk = chunk_of(n, taps * places);
    const In<T> x = in<T>(call, 0), w = in<T>(call, 1);
    const Out<T> y = out<T>(call, 0),
                 columns = scratch_like<T>(call->queue, chunk * taps * places, x);
    const CudaMatrix patches = matrix(columns, false, places, taps * places),
                     kernel = kernels_of(n, w, taps, false);
    if (taps == 0)
        zero(call->queue, y, exec_shard_elements(&call->out[0]));
    for (uint64_t i = 0; i < n.images && taps > 0; i += chunk) {
        const uint64_t images = n.images - i < chunk ? n.images - i : chunk;
        const Out<T> to = y + i * n.outputs * places;
        gather_patches<T>(call->queue, n, images, x + i * n.channels * n.height * n.width,
                          columns);
        queue_multiply(call->queue,
                       {n.outputs, places, taps, images, 1.0, &kernel, &patches, raw(to),
                        places, n.outputs * places, numbers_of(to)});
    }
    release(call->queue, columns);
    if (call->op->n_in < 3)
        return;
    const In<T> bias = in<T>(call, 2);
    const Divisor plane(places), kernels(n.groups * n.outputs);
    each(
        call->queue, exec_shard_elements(&call->out[0]),
        BODY(uint64_t i) { y[i] += bias[i / plane % kernels]; });
}
CUDA_KERNEL(cuda_conv2d, conv2d)

template <typename T> static void conv2d_dx(const CudaCall *call)
{
    const Conv n = conv_of(call, &call->out[0], &call->in[1], &call->in[0]);
    const uint64_t taps = n.channels * n.r * n.s, places = n.p * n.q,
                   chunk = chunk_of(n, taps * places);
    const In<T> dy = in<T>(call, 0), w = in<T>(call, 1);
    const Out<T> dx = out<T>(call, 0),
                 columns = scratch_like<T>(call->queue, chunk * taps * places, dy);
    const CudaMatrix kernel = kernels_of(n, w, taps, true);
    for (uint64_t i = 0; i < n.images && taps > 0; i += chunk) {
        const uint64_t images = n.images - i < chunk ? n.images - i : chunk;
        const CudaMatrix from =
            matrix(dy + i * n.outputs * places, false, places, n.outputs * places);
        if (n.outputs > 0)
            queue_multiply(call->queue,
                           {taps, places, n.outputs, images, 1.0, &kernel, &from,
                            raw(columns), places, taps * places, numbers_of(columns)});
        else
            zero(call->queue, columns, images * taps * places);
        scatter_patches<T>(call->queue, n, images, columns,
                           dx + i * n.channels * n.height * n.width);
    }
    release(call->queue, columns);
}
CUDA_KERNEL(cuda_conv2d_dx, conv2d_dx)

// The products of a chunk's images are made apart and then added to the sum so far, image after image.
template <typename T> static void conv2d_dw(const CudaCall *call)
{
    const Conv n = conv_of(call, &call->in[1], &call->out[0], &call->in[0]);
    const uint64_t taps = n.channels * n.r * n.s, places = n.p * n.q,
                   size = n.outputs * taps, all = n.groups * size,
                   chunk = chunk_of(n, taps * places + size);
    const In<T> dy = in<T>(call, 0), x = in<T>(call, 1);
    const Out<T> dw = out<T>(call, 0),
                 columns = scratch_like<T>(call->queue, chunk * taps * places, x);
    T *part = scratch<T>(call->queue, chunk * size);
    const CudaMatrix patches = matrix(columns, true, places, taps * places);
    const bool narrow = numbers_of(dw) != EXEC_PLAIN;
    T *total = narrow ? scratch<T>(call->queue, all) : (T *)raw(dw);
    zero(call->queue, total, all);
    for (uint64_t i = 0; i < n.images && size > 0; i += chunk) {
        const uint64_t images = n.images - i < chunk ? n.images - i : chunk;
        const CudaMatrix from =
            matrix(dy + i * n.outputs * places, false, places, n.outputs * places);
        gather_patches<T>(call->queue, n, images, x + i * n.channels * n.height * n.width,
                          columns);
        queue_multiply(call->queue, {n.outputs, taps, places, images, 1.0, &from,
                                     &patches, part, taps, size, EXEC_PLAIN});
        each(
            call->queue, all, BODY(uint64_t j) {
                for (uint64_t at = j; at < images * size; at += all)
                    total[j] += part[at];
            });
    }
    if (narrow) {
        each(
            call->queue, all, BODY(uint64_t j) { dw[j] = total[j]; });
        release(call->queue, total);
    }
    release(call->queue, columns);
    release(call->queue, part);
}
CUDA_KERNEL(cuda_conv2d_dw, conv2d_dw)

// --- pooling: an element of a plane, and the windows that hold it ---

struct Pool {
    uint64_t height, width, p, q;
    uint64_t stride, window, padding, padding_columns;
};

struct Span {
    uint64_t from, to;
};

// The span of window `out` of `n_out` on an edge of `n_in` elements; without windows, an even part
// of the edge.
__host__ __device__ static Span span_of(const Pool &n, uint64_t padding, uint64_t out,
                                        uint64_t n_in, uint64_t n_out)
{
    const uint64_t from = out * n.stride, to = from + n.window - padding;
    if (n.window == 0)
        return {out * n_in / n_out, ((out + 1) * n_in + n_out - 1) / n_out};
    return {from > padding ? from - padding : 0, to < n_in ? to : n_in};
}

__host__ __device__ static Span rows_of(const Pool &n, uint64_t p)
{
    return span_of(n, n.padding, p, n.height, n.p);
}

__host__ __device__ static Span columns_of(const Pool &n, uint64_t q)
{
    return span_of(n, n.padding_columns, q, n.width, n.q);
}

static Pool pool_of(const CudaCall *call, const ExecShard *x, const ExecShard *y)
{
    return {x->dim[2],
            x->dim[3],
            y->dim[2],
            y->dim[3],
            call->op->attr.stride,
            call->op->attr.window,
            call->op->attr.padding,
            call->op->attr.padding_columns};
}

// Index in the plane of the largest element of window (p, q), the first if several are equal.
template <typename T>
__host__ __device__ static uint64_t window_argmax(const Pool &n, In<T> plane, uint64_t p,
                                                  uint64_t q)
{
    const Span rows = rows_of(n, p), columns = columns_of(n, q);
    uint64_t best = rows.from * n.width + columns.from;
    for (uint64_t i = rows.from; i < rows.to; i++)
        for (uint64_t j = columns.from; j < columns.to; j++)
            if (plane[i * n.width + j] > plane[best])
                best = i * n.width + j;
    return best;
}

template <typename T> static void max_pool2d(const CudaCall *call)
{
    const Pool n = pool_of(call, &call->in[0], &call->out[0]);
    const In<T> x = in<T>(call, 0);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t i) {
            const In<T> plane = x + i / (n.p * n.q) * n.height * n.width;
            y[i] = plane[window_argmax<T>(n, plane, i / n.q % n.p, i % n.q)];
        });
}
CUDA_KERNEL(cuda_max_pool2d, max_pool2d)

template <typename T> static void max_pool2d_dx(const CudaCall *call)
{
    const Pool n = pool_of(call, &call->in[1], &call->in[0]);
    const In<T> dy = in<T>(call, 0), x = in<T>(call, 1);
    Out<T> dx = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t i) {
            const uint64_t plane = i / (n.height * n.width),
                           place = i % (n.height * n.width), row = place / n.width,
                           column = place % n.width;
            const In<T> image = x + plane * n.height * n.width;
            T sum = 0;
            const uint64_t i0 = row + n.padding, j0 = column + n.padding_columns;
            const uint64_t p0 = i0 < n.window ? 0 : (i0 - n.window) / n.stride + 1,
                           q0 = j0 < n.window ? 0 : (j0 - n.window) / n.stride + 1;
            for (uint64_t p = p0; p < n.p && p * n.stride <= i0; p++)
                for (uint64_t q = q0; q < n.q && q * n.stride <= j0; q++)
                    if (window_argmax<T>(n, image, p, q) == place)
                        sum += dy[(plane * n.p + p) * n.q + q];
            dx[i] = sum;
        });
}
CUDA_KERNEL(cuda_max_pool2d_dx, max_pool2d_dx)

// The number of elements whose mean is output (p, q).
__host__ __device__ static double area_of(Span rows, Span columns)
{
    return (double)(rows.to - rows.from) * (double)(columns.to - columns.from);
}

template <typename T> static void avg_pool2d(const CudaCall *call)
{
    const Pool n = pool_of(call, &call->in[0], &call->out[0]);
    const In<T> x = in<T>(call, 0);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t at) {
            const In<T> plane = x + at / (n.p * n.q) * n.height * n.width;
            const Span rows = rows_of(n, at / n.q % n.p),
                       columns = columns_of(n, at % n.q);
            T sum = 0;
            for (uint64_t i = rows.from; i < rows.to; i++)
                for (uint64_t j = columns.from; j < columns.to; j++)
                    sum += plane[i * n.width + j];
            y[at] = T(sum / area_of(rows, columns));
        });
}
CUDA_KERNEL(cuda_avg_pool2d, avg_pool2d)

template <typename T> static void avg_pool2d_dx(const CudaCall *call)
{
    const Pool n = pool_of(call, &call->out[0], &call->in[0]);
    const In<T> dy = in<T>(call, 0);
    Out<T> dx = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t at) {
            const uint64_t plane = at / (n.height * n.width), i = at / n.width % n.height,
                           j = at % n.width;
            double sum = 0;
            for (uint64_t p = 0; p < n.p; p++)
                for (uint64_t q = 0; q < n.q; q++) {
                    const Span rows = rows_of(n, p), columns = columns_of(n, q);
                    if (i >= rows.from && i < rows.to && j >= columns.from &&
                        j < columns.to)
                        sum += (double)dy[(plane * n.p + p) * n.q + q] /
                               area_of(rows, columns);
                }
            dx[at] = T(sum);
        });
}
CUDA_KERNEL(cuda_avg_pool2d_dx, avg_pool2d_dx)
