/* Parts of layers beside attention: gates, convolutions of a few tokens, joined vectors, norms of
 * all heads. */
#include <math.h>

#include "exec/kernels/kernels.h"
#include "exec/kernels/vector.h"

/* --- x f(g) --- */

/* In: x[*,V], g[*,G], G is 1 or V; or, for dg, dy[*,V] before them. */
static void gate_elements(const KernelCall *call, const double *dy)
{
    const ExecTensor *x = &call->in[dy ? 1 : 0], *g = x + 1;
    const uint64_t width = x->dim[x->rank - 1], gates = g->dim[g->rank - 1],
                   n = exec_tensor_elements(x);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t at = gates == 1 ? i / width : i;
        const Activation gate =
            call->op->attr.sigmoid ? sigmoid_of(g->data[at]) : silu_of(g->data[at]);
        if (dy)
            call->out[0].data[at] += dy[i] * x->data[i] * gate.slope;
        else
            call->out[0].data[i] = x->data[i] * gate.value;
    }
}

KERNEL(gate, gate_elements(call, NULL))
KERNEL(gate_dg, gate_elements(call, call->in[0].data))

KERNEL_EACH(multiply, in[0], out->data[i] = in[0].data[i] * in[1].data[i])

/* --- y[t,c] = sum over r of w[c,r] x[t - (R - 1) + r, c] + bias[c] --- */

typedef struct {
    uint64_t batch, seq, channels, width;
} ShortConv;

static ShortConv short_conv_of(const ExecTensor *x, uint64_t width)
{
    return (ShortConv){x->dim[0], x->dim[1], kernel_inner(x, 2), width};
}

/* In: x[b,S,*], w[*,R], bias[*] or none. */
void kernel_short_conv(const KernelCall *call)
{
    const ExecTensor *w = &call->in[1];
    const ShortConv n = short_conv_of(&call->in[0], w->dim[w->rank - 1]);
    const double *x = call->in[0].data;
    for (uint64_t at = 0; at < n.batch * n.seq * n.channels; at++) {
        const uint64_t c = at % n.channels, t = at / n.channels % n.seq;
        double sum = call->op->n_in > 2 ? call->in[2].data[c] : 0;
        for (uint64_t back = 0; back < n.width && back <= t; back++)
            sum += w->data[c * n.width + n.width - 1 - back] * x[at - back * n.channels];
        call->out[0].data[at] = sum;
    }
}

/* In: dy[b,S,*], w[*,R]. */
void kernel_short_conv_dx(const KernelCall *call)
{
    const ExecTensor *w = &call->in[1];
    const ShortConv n = short_conv_of(&call->in[0], w->dim[w->rank - 1]);
    const double *dy = call->in[0].data;
    for (uint64_t at = 0; at < n.batch * n.seq * n.channels; at++) {
        const uint64_t c = at % n.channels, t = at / n.channels % n.seq;
        for (uint64_t on = 0; on < n.width && t + on < n.seq; on++)
            call->out[0].data[at] +=
                w->data[c * n.width + n.width - 1 - on] * dy[at + on * n.channels];
    }
}

/* In: dy[b,S,*], x[b,S,*]. Out: dw[*,R]. */
void kernel_short_conv_dw(const KernelCall *call)
{
    const ExecTensor *dw = &call->out[0];
    const ShortConv n = short_conv_of(&call->in[0], dw->dim[dw->rank - 1]);
    const double *dy = call->in[0].data, *x = call->in[1].data;
    for (uint64_t at = 0; at < n.batch * n.seq * n.channels; at++) {
        const uint64_t c = at % n.channels, t = at / n.channels % n.seq;
        for (uint64_t back = 0; back < n.width && back <= t; back++)
            dw->data[c * n.width + n.width - 1 - back] +=
                dy[at] * x[at - back * n.channels];
    }
}

/* --- vectors one behind the other --- */

/* In: x[*,A], y[*,B]. */
void kernel_join(const KernelCall *call)
{
    const ExecTensor *z = &call->out[0];
    const uint64_t width = z->dim[z->rank - 1], n = exec_tensor_elements(z),
                   first = call->in[0].dim[z->rank - 1], second = width - first;
    for (uint64_t at = 0; at < n; at++) {
        const uint64_t i = at % width, row = at / width;
        z->data[at] = i < first ? call->in[0].data[row * first + i]
                                : call->in[1].data[row * second + i - first];
    }
}

/* Elements [first, first + A) of x[*,C]. */
void kernel_join_part(const KernelCall *call)
{
    const ExecTensor *x = &call->in[0], *y = &call->out[0];
    const uint64_t from = x->dim[x->rank - 1], to = y->dim[y->rank - 1],
                   n = exec_tensor_elements(y);
    for (uint64_t at = 0; at < n; at++)
        y->data[at] = x->data[at / to * from + call->op->attr.first + at % to];
}

/* --- RMS norms of all heads, each of whose devices has a part of the squares --- */

/* 1 / sqrt(mean + epsilon). */
static double mixer_inverse(double squares, uint64_t n)
{
    return 1 / sqrt(fmax(0, squares) / (double)n + RMS_NORM_EPSILON);
}

/* In: x[b,s,*]. Out: m[b,s]. */
KERNEL_EACH(squares, in[0],
            out->data[i / kernel_inner(&in[0], 2)] += in[0].data[i] * in[0].data[i])

/* In: dm[b,s], x[b,s,*]. */
KERNEL_EACH(squares_dx, in[1],
            out->data[i] = 2 * in[0].data[i / kernel_inner(&in[1], 2)] * in[1].data[i])

/* y = x gamma / sqrt(m / span + epsilon). In: x[b,s,*], m[b,s], gamma[*]. */
KERNEL_EACH(norm_by, in[0], const uint64_t n = kernel_inner(&in[0], 2);
            out->data[i] = in[0].data[i] * in[2].data[i % n] *
                           mixer_inverse(in[1].data[i / n], call->op->attr.span))

/* In: dy, x, m, gamma. Out: dm. */
KERNEL_EACH(norm_by_dm, in[1], const uint64_t n = kernel_inner(&in[1], 2);
            const double inverse = mixer_inverse(in[2].data[i / n], call->op->attr.span);
            out->data[i / n] -= in[0].data[i] * in[1].data[i] * in[3].data[i % n] *
                                pow(inverse, 3) / 2 / call->op->attr.span)

/* In: dy, x, m. Out: dgamma. */
KERNEL_EACH(norm_by_dw, in[1], const uint64_t n = kernel_inner(&in[1], 2);
            out->data[i % n] += in[0].data[i] * in[1].data[i] *
                                mixer_inverse(in[2].data[i / n], call->op->attr.span))

/* --- differences of tokens, and biases of samples --- */

/* y[t] = x[t - 1] - x[t]; backwards: dx[t] = dy[t + 1] - dy[t]. The first token has none before. */
static void mixer_shift(const KernelCall *call, bool back)
{
    const ExecTensor *x = &call->in[0];
    const uint64_t n = exec_tensor_elements(x), seq = x->dim[1], row = kernel_inner(x, 2);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t t = i / row % seq;
        const bool other = back ? t + 1 < seq : t > 0;
        call->out[0].data[i] =
            (other ? x->data[back ? i + row : i - row] : 0) - x->data[i];
    }
}

KERNEL(token_shift, mixer_shift(call, false))
KERNEL(token_shift_dx, mixer_shift(call, true))

/* In: x[b,s,*], bias[b,*]. */
void kernel_sample_bias(const KernelCall *call)
{
    const ExecTensor *x = &call->in[0];
    const uint64_t n = exec_tensor_elements(x), seq = x->dim[1], row = kernel_inner(x, 2);
    for (uint64_t i = 0; i < n; i++)
        call->out[0].data[i] =
            x->data[i] + call->in[1].data[i / (row * seq) * row + i % row];
}
