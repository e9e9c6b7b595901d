/* Convolution and pooling over images x[n,c,H,W], y[n,o,P,Q]. Spatial dims are whole;
 * n, c, o may be shards. */

#include "exec/kernels/kernels.h"

/* --- convolution ---
 *
 *     y[n,o,p,q] = b[o] + sum over c,r,s of x[n,c,i,j] w[o,c,r,s],
 *     i = p stride + r - padding, j = q stride + s - padding
 *
 * where x is 0 outside the image. */

/* A visit of a convolution's sum: three elements that belong together. */
typedef void (*ConvVisit)(double *x, double *w, double *y);

static void visit_y(double *x, double *w, double *y)
{
    *y += *x * *w;
}

static void visit_x(double *x, double *w, double *y)
{
    *x += *y * *w;
}

static void visit_w(double *x, double *w, double *y)
{
    *w += *y * *x;
}

/* Image row or column that kernel tap `tap` of output `out` reads; false outside the image. */
static bool tap_position(uint32_t stride, uint32_t padding, uint32_t out, uint32_t tap,
                         uint32_t extent, uint32_t *position)
{
    const uint64_t padded = (uint64_t)out * stride + tap;
    if (padded < padding || padded - padding >= extent)
        return false;
    *position = (uint32_t)(padded - padding);
    return true;
}

/* Height and width of planes, the last two dims of a tensor. */
typedef struct {
    uint32_t rows, columns;
    uint64_t size;
} Plane;

static Plane plane_of(const ExecTensor *tensor)
{
    const uint32_t *dim = tensor->dim + tensor->rank - 2;
    return (Plane){dim[0], dim[1], (uint64_t)dim[0] * dim[1]};
}

/* Makes the visits for one image plane x[H,W], one kernel w[R,S] and one output plane y[P,Q]. */
static void conv_planes(const OpAttr *attr, const ExecTensor *x, const ExecTensor *w,
                        const ExecTensor *y, uint64_t x0, uint64_t w0, uint64_t y0,
                        ConvVisit visit)
{
    const Plane image = plane_of(x), kernel = plane_of(w), result = plane_of(y);
    for (uint32_t p = 0; p < result.rows; p++)
        for (uint32_t r = 0; r < kernel.rows; r++) {
            uint32_t i, j;
            if (!tap_position(attr->stride, attr->padding, p, r, image.rows, &i))
                continue;
            for (uint32_t q = 0; q < result.columns; q++)
                for (uint32_t s = 0; s < kernel.columns; s++)
                    if (tap_position(attr->stride, attr->padding_columns, q, s,
                                     image.columns, &j))
                        visit(x->data + x0 + (uint64_t)i * image.columns + j,
                              w->data + w0 + (uint64_t)r * kernel.columns + s,
                              y->data + y0 + (uint64_t)p * result.columns + q);
        }
}

/* Convolves group by group: all channels are one group, or the second dim of x and y and the first
 * dim of w count the groups. */
static void conv(const OpAttr *attr, const ExecTensor *x, const ExecTensor *w,
                 const ExecTensor *y, ConvVisit visit)
{
    const bool grouped = x->rank == 5;
    const uint64_t groups = grouped ? x->dim[1] : 1;
    const uint64_t channels = x->dim[grouped ? 2 : 1], outputs = y->dim[grouped ? 2 : 1];
    const uint64_t x_plane = plane_of(x).size, w_plane = plane_of(w).size,
                   y_plane = plane_of(y).size;
    for (uint64_t n = 0; n < x->dim[0] * groups; n++)
        for (uint64_t o = 0; o < outputs; o++)
            for (uint64_t c = 0; c < channels; c++)
                conv_planes(attr, x, w, y, (n * channels + c) * x_plane,
                            ((n % groups * outputs + o) * channels + c) * w_plane,
                            (n * outputs + o) * y_plane, visit);
}

/* In: x[n,c,H,W], w[o,c,R,S], bias[o] or none; in groups x[n,g,c,H,W], w[g,o,c,R,S], bias[g,o] or
 * none. */
void kernel_conv2d(const KernelCall *call)
{
    const ExecTensor *y = &call->out[0];
    if (call->op->n_in > 2) {
        const uint64_t plane = plane_of(y).size, n = exec_tensor_elements(y),
                       channels = exec_tensor_elements(&call->in[2]);
        for (uint64_t i = 0; i < n; i++)
            y->data[i] = call->in[2].data[i / plane % channels];
    }
    conv(&call->op->attr, &call->in[0], &call->in[1], y, visit_y);
}

/* In: dy[n,o,P,Q], w[o,c,R,S]. */
KERNEL(conv2d_dx,
       conv(&call->op->attr, &call->out[0], &call->in[1], &call->in[0], visit_x))

/* In: dy[n,o,P,Q], x[n,c,H,W]. */
KERNEL(conv2d_dw,
       conv(&call->op->attr, &call->in[1], &call->out[0], &call->in[0], visit_w))

/* --- pooling ---
 *
 * Plane by plane; each output (p,q) covers a span of rows and one of columns. */

typedef struct {
    uint32_t from, to;
} Span;

typedef Span (*SpanOf)(const OpAttr *attr, uint32_t padding, uint32_t out,
                       uint32_t in_extent, uint32_t out_extent);

/* Spans of windows: attr->window elements every attr->stride, cut at the border. */
static Span window_span(const OpAttr *attr, uint32_t padding, uint32_t out,
                        uint32_t in_extent, uint32_t out_extent)
{
    (void)out_extent;
    const uint32_t from = out * attr->stride;
    return (Span){from > padding ? from - padding : 0,
                  MIN(from + attr->window - padding, in_extent)};
}

/* Adaptive spans: the image is cut into out_extent spans, from the floor to the ceiling of the even
 * cut (the rule of torch.nn.AdaptiveAvgPool2d). */
static Span adaptive_span(const OpAttr *attr, uint32_t padding, uint32_t out,
                          uint32_t in_extent, uint32_t out_extent)
{
    if (attr->window)
        return window_span(attr, padding, out, in_extent, out_extent);
    const uint64_t from = (uint64_t)out * in_extent / out_extent;
    const uint64_t to = ((uint64_t)(out + 1) * in_extent + out_extent - 1) / out_extent;
    return (Span){(uint32_t)from, (uint32_t)to};
}

/* Visits one output of one plane: `x` the image plane, `width` its row length, `y` the output
 * element. */
typedef void (*PoolVisit)(double *x, uint32_t width, Span rows, Span columns, double *y,
                          double *dx);

/* Visits every output of y, with the image planes of x and, where given, of dx. */
static void pool(const OpAttr *attr, const ExecTensor *x, const ExecTensor *y,
                 const ExecTensor *dx, SpanOf span, PoolVisit visit)
{
    const uint64_t planes = (uint64_t)x->dim[0] * x->dim[1];
    const uint32_t height = x->dim[2], width = x->dim[3];
    for (uint64_t i = 0; i < planes; i++)
        for (uint32_t p = 0; p < y->dim[2]; p++)
            for (uint32_t q = 0; q < y->dim[3]; q++) {
                const uint64_t image = i * height * width;
                visit(x->data + image, width,
                      span(attr, attr->padding, p, height, y->dim[2]),
                      span(attr, attr->padding_columns, q, width, y->dim[3]),
                      y->data + (i * y->dim[2] + p) * y->dim[3] + q,
                      dx ? dx->data + image : NULL);
            }
}

/* Index in the plane of the first of the largest elements of a window. */
static uint64_t window_argmax(const double *x, uint32_t width, Span rows, Span columns)
{
    uint64_t best = (uint64_t)rows.from * width + columns.from;
    for (uint32_t i = rows.from; i < rows.to; i++)
        for (uint32_t j = columns.from; j < columns.to; j++)
            if (x[(uint64_t)i * width + j] > x[best])
                best = (uint64_t)i * width + j;
    return best;
}

static void visit_max(double *x, uint32_t width, Span rows, Span columns, double *y,
                      double *dx)
{
    (void)dx;
    *y = x[window_argmax(x, width, rows, columns)];
}

static void visit_max_dx(double *x, uint32_t width, Span rows, Span columns, double *dy,
                         double *dx)
{
    dx[window_argmax(x, width, rows, columns)] += *dy;
}

static double span_area(Span rows, Span columns)
{
    return (double)(rows.to - rows.from) * (columns.to - columns.from);
}

static void visit_mean(double *x, uint32_t width, Span rows, Span columns, double *y,
                       double *dx)
{
    (void)dx;
    for (uint32_t i = rows.from; i < rows.to; i++)
        for (uint32_t j = columns.from; j < columns.to; j++)
            *y += x[(uint64_t)i * width + j] / span_area(rows, columns);
}

static void visit_mean_dx(double *x, uint32_t width, Span rows, Span columns, double *dy,
                          double *dx)
{
    (void)dx;
    for (uint32_t i = rows.from; i < rows.to; i++)
        for (uint32_t j = columns.from; j < columns.to; j++)
            x[(uint64_t)i * width + j] += *dy / span_area(rows, columns);
}

/* In: x[n,c,H,W]. */
KERNEL(max_pool2d,
       pool(&call->op->attr, &call->in[0], &call->out[0], NULL, window_span, visit_max))

/* In: dy[n,c,P,Q], x[n,c,H,W]. */
KERNEL(max_pool2d_dx, pool(&call->op->attr, &call->in[1], &call->in[0], &call->out[0],
                           window_span, visit_max_dx))

/* In: x[n,c,H,W]. */
KERNEL(avg_pool2d, pool(&call->op->attr, &call->in[0], &call->out[0], NULL, adaptive_span,
                        visit_mean))

/* In: dy[n,c,P,Q]. */
KERNEL(avg_pool2d_dx, pool(&call->op->attr, &call->out[0], &call->in[0], NULL,
                           adaptive_span, visit_mean_dx))
