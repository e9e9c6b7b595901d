/* Activations, gated units (Shazeer 2020), and rotary embeddings (Su et al. 2021). */
#include <math.h>

#include "exec/kernels/kernels.h"
#include "exec/kernels/position.h"
#include "exec/kernels/vector.h"

/* --- activations, with their slopes --- */

/* x Phi(x), Phi the normal distribution function (Hendrycks and Gimpel 2016, the exact form). */
static Activation gelu_of(double x)
{
    const double distribution = 0.5 * (1 + erf(x * M_SQRT1_2));
    return (Activation){x * distribution,
                        distribution + x * exp(-0.5 * x * x) / sqrt(2 * M_PI)};
}

static Activation relu_of(double x)
{
    return (Activation){fmax(x, 0), x > 0};
}

/* Squared ReLU (So et al. 2021). */
static Activation relu2_of(double x)
{
    return (Activation){fmax(x, 0) * fmax(x, 0), 2 * fmax(x, 0)};
}

/* Gradients: in: dy, x; of relu y, which is above 0 where x is. */
#define CURVE(name)                                                          \
    KERNEL_EACH(name, out[0], out->data[i] = name##_of(in[0].data[i]).value) \
    KERNEL_EACH(name##_dx, out[0],                                           \
                out->data[i] = in[0].data[i] * name##_of(in[1].data[i]).slope)
CURVE(gelu)
CURVE(relu)
CURVE(relu2)
CURVE(silu)

/* --- units: y[*,n] = f(x[*,0,n]) x[*,1,n] --- */

static void glu(const KernelCall *call, Activation (*f)(double))
{
    const ExecTensor *y = &call->out[0];
    const uint64_t n = y->dim[y->rank - 1], all = exec_tensor_elements(y);
    g_assert(call->in[0].dim[call->in[0].rank - 2] == 2);
    for (uint64_t i = 0; i < all; i++) {
        const double *x = call->in[0].data + i / n * 2 * n + i % n;
        y->data[i] = f(x[0]).value * x[n];
    }
}

/* In: dy[*,n], x[*,T,n]. */
static void glu_dx(const KernelCall *call, Activation (*f)(double))
{
    const ExecTensor *dy = &call->in[0];
    const uint64_t n = dy->dim[dy->rank - 1], all = exec_tensor_elements(dy);
    for (uint64_t i = 0; i < all; i++) {
        const uint64_t at = i / n * 2 * n + i % n;
        const double *x = call->in[1].data + at;
        double *dx = call->out[0].data + at;
        dx[0] = dy->data[i] * x[n] * f(x[0]).slope;
        dx[n] = dy->data[i] * f(x[0]).value;
    }
}

KERNEL(swiglu, glu(call, silu_of))
KERNEL(swiglu_dx, glu_dx(call, silu_of))
KERNEL(geglu, glu(call, gelu_of))
KERNEL(geglu_dx, glu_dx(call, gelu_of))

/* --- rotary embedding of x[b,s,*,D] --- */

static void rotary(const KernelCall *call, double sign)
{
    g_assert(sign == 1 || sign == -1);
    const ExecTensor *x = &call->in[0];
    const uint64_t width = x->dim[x->rank - 1], all = exec_tensor_elements(x);
    const uint64_t first = call->op->attr.first, turned = call->op->attr.span,
                   half = turned / 2;
    const uint64_t inner = kernel_inner(x, 2); /* elements per token */
    for (uint64_t at = 0; at < all; at++) {
        const uint64_t i = at % width;
        if (i < first || i >= first + turned) {
            call->out[0].data[at] = x->data[at];
            continue;
        }
        const bool second = i - first >= half;
        const uint64_t pair = (i - first) % half, low = at - (second ? half : 0);
        const double both[] = {x->data[low], x->data[low + half]};
        const uint64_t position = at / inner % x->dim[1] + x->offset[1];
        call->out[0].data[at] =
            rotary_element(both, second, rotary_angle(position, pair, turned), sign);
    }
}

KERNEL(rotary, rotary(call, 1))

/* The transpose of a rotation turns back. */
KERNEL(rotary_dx, rotary(call, -1))

/* --- keys of which all heads share a part --- */

/* In: x[b,s,h,D], shared[b,s,R]. Out: [b,s,h,D+R], the shared part at `first`. */
void kernel_join_keys(const KernelCall *call)
{
    const ExecTensor *y = &call->out[0];
    const uint64_t own = call->in[0].dim[3], shared = call->in[1].dim[2];
    const uint64_t width = y->dim[3], heads = y->dim[2], first = call->op->attr.first;
    const uint64_t all = exec_tensor_elements(y);
    for (uint64_t at = 0; at < all; at++) {
        const uint64_t i = at % width, row = at / width;
        y->data[at] = i < first ? call->in[0].data[row * own + i]
                      : i < first + shared
                          ? call->in[1].data[row / heads * shared + i - first]
                          : call->in[0].data[row * own + i - shared];
    }
}

/* In: dy[b,s,h,E]. Out: [b,s,h,D]. */
void kernel_join_keys_dx(const KernelCall *call)
{
    const ExecTensor *dx = &call->out[0];
    const uint64_t own = dx->dim[3], width = call->in[0].dim[3], shared = width - own;
    const uint64_t all = exec_tensor_elements(dx), first = call->op->attr.first;
    for (uint64_t at = 0; at < all; at++) {
        const uint64_t i = at % own;
        dx->data[at] = call->in[0].data[at / own * width + (i < first ? i : i + shared)];
    }
}

/* In: dy[b,s,h,E]. Out: [b,s,R], summed over the heads. */
void kernel_join_keys_dr(const KernelCall *call)
{
    const ExecTensor *dr = &call->out[0], *dy = &call->in[0];
    const uint64_t shared = dr->dim[2], heads = dy->dim[2], width = dy->dim[3];
    const uint64_t all = exec_tensor_elements(dr), first = call->op->attr.first;
    for (uint64_t at = 0; at < all; at++)
        for (uint64_t h = 0; h < heads; h++)
            dr->data[at] +=
                dy->data[(at / shared * heads + h) * width + first + at % shared];
}
