/* Batch norm (Ioffe and Szegedy 2015) over x[n,o,P,Q] by channel, from the moments of the whole
 * batch:
 *
 *     m[0,o] = sum of x, m[1,o] = sum of x^2      over n, P, Q: N elements per channel
 *     y = gamma xhat + beta, xhat = (x - mean) / sqrt(variance + epsilon)
 *
 * where mean = m0 / N and variance = m1 / N - mean^2. A device that has a part of the samples adds
 * its part of the moments; N always counts the whole batch. The file also has the ops that join and
 * split channels, and two losses. */
#include <math.h>
#include <string.h>

#include "exec/kernels/kernels.h"
#include "exec/kernels/vector.h"

/* x[n,o,P,Q], on this shard. */
typedef struct {
    uint64_t samples, channels, plane;
    double count; /* N */
} Shape;

/* `x`: the index among the inputs of x, or of a tensor of its shape */
static Shape batch_norm_shape_of(const KernelCall *call, uint32_t x)
{
    const ExecTensor *tensor = &call->in[x];
    const Tensor *whole = graph_tensor(call->graph, call->op->in[x]);
    const uint64_t plane = (uint64_t)tensor->dim[2] * tensor->dim[3];
    return (Shape){tensor->dim[0], tensor->dim[1], plane,
                   (double)whole->dim[0] * (double)plane};
}

typedef struct {
    double mean, inverse; /* 1 / sqrt(variance + epsilon) */
} Moments;

static Moments moments_of(const ExecTensor *sums, const Shape *n, uint64_t channel)
{
    const double mean = sums->data[channel] / n->count;
    const double squares = sums->data[n->channels + channel] / n->count;
    const double variance = fmax(0, squares - mean * mean); /* not below 0 by rounding */
    return (Moments){mean, 1 / sqrt(variance + BATCH_NORM_EPSILON)};
}

/* A kernel that takes a step for each element i, of channel o; `x`: the index of an input of its
 * shape. */
#define CHANNELS_EACH(name, x, step)                                      \
    void kernel_##name(const KernelCall *call)                            \
    {                                                                     \
        const Shape n = batch_norm_shape_of(call, x);                     \
        const ExecTensor *const in = call->in;                            \
        double *const out = call->out[0].data;                            \
        for (uint64_t i = 0; i < n.samples * n.channels * n.plane; i++) { \
            const uint64_t o = i / n.plane % n.channels;                  \
            step;                                                         \
        }                                                                 \
    }

/* In: x. Out: m[T,o]. */
CHANNELS_EACH(moments, 0, out[o] += in[0].data[i];
              out[n.channels + o] += in[0].data[i] * in[0].data[i])

/* dx = dm0 + 2 x dm1. In: dm[T,o], x. */
CHANNELS_EACH(moments_dx, 1,
              out[i] = in[0].data[o] + 2 * in[1].data[i] * in[0].data[n.channels + o])

/* In: x, m, gamma[o], beta[o]. */
CHANNELS_EACH(batch_norm, 0, const Moments m = moments_of(&in[1], &n, o);
              out[i] = (in[0].data[i] - m.mean) * m.inverse * in[2].data[o] +
                       in[3].data[o])

/* With the moments held fixed: dx = dy gamma / sqrt(variance + epsilon). In: dy, m, gamma. */
CHANNELS_EACH(batch_norm_dx, 0,
              out[i] = in[0].data[i] * in[2].data[o] * moments_of(&in[1], &n, o).inverse)

/* With x held fixed, i the inverse: d variance = - sum dy gamma (x - mean) i^3 / 2, d mean = - sum
 * dy gamma i - 2 mean d variance; dm0 = d mean / N, dm1 = d variance / N. In: dy, x, m, gamma. */
CHANNELS_EACH(batch_norm_dm, 1, const Moments m = moments_of(&in[2], &n, o);
              const double g = in[0].data[i] * in[3].data[o] * m.inverse;
              const double slope = -0.5 * g * (in[1].data[i] - m.mean) * m.inverse *
                                   m.inverse;
              out[o] += (-g - 2 * m.mean * slope) / n.count;
              out[n.channels + o] += slope / n.count)

/* dgamma = sum dy xhat, dbeta = sum dy. In: dy, x, m. */
CHANNELS_EACH(batch_norm_dw, 1, const Moments m = moments_of(&in[2], &n, o);
              out[o] += in[0].data[i] * (in[1].data[i] - m.mean) * m.inverse;
              call->out[1].data[o] += in[0].data[i])

/* --- channels --- */

/* Copies `channels` channels from channel `from_first` of `from` to `to_first` of `to`, for all
 * samples. */
static void copy_channels(const ExecTensor *from, uint64_t from_first, ExecTensor *to,
                          uint64_t to_first, uint64_t channels)
{
    const uint64_t inner = kernel_inner(from, 2);
    for (uint64_t n = 0; n < from->dim[0] && channels * inner > 0; n++)
        memcpy(to->data + (n * to->dim[1] + to_first) * inner,
               from->data + (n * from->dim[1] + from_first) * inner,
               channels * inner * sizeof *to->data);
}

/* In: a[n,A,*], b[n,B,*]. Out: [n,A+B,*]. */
void kernel_concat(const KernelCall *call)
{
    const ExecTensor *a = &call->in[0], *b = &call->in[1];
    copy_channels(a, 0, &call->out[0], 0, a->dim[1]);
    copy_channels(b, 0, &call->out[0], a->dim[1], b->dim[1]);
}

/* Out: the channels of the input from attr.first on. */
KERNEL(concat_part, copy_channels(&call->in[0], call->op->attr.first, &call->out[0], 0,
                                  call->out[0].dim[1]))

/* Zeros beside its part of the channels. */
KERNEL(part_dx, copy_channels(&call->in[0], 0, &call->out[0], call->op->attr.first,
                              call->in[0].dim[1]))

/* --- losses --- */

/* loss = sum of log(1 + exp x) - x t. In: x, t [*]. */
KERNEL_EACH(sigmoid_loss, in[0], const double x = in[0].data[i];
            out->data[0] += fmax(x, 0) + log1p(exp(-fabs(x))) - x * in[1].data[i])

/* dx = dloss (sigmoid x - t). In: dloss (a scalar), x, t. */
KERNEL_EACH(sigmoid_loss_dx, in[1],
            out->data[i] = in[0].data[0] *
                           (sigmoid_of(in[1].data[i]).value - in[2].data[i]))

/* The weight in the loss of entry j of a token's log-probabilities. `logp`: the tensor whose last
 * dim is the vocabulary, of which this shard may have a part. */
static double smooth_weight(const KernelCall *call, const ExecTensor *logp,
                            TensorId whole, double label, uint64_t j)
{
    const uint32_t last = logp->rank - 1;
    const double scale = call->op->attr.scale;
    const double even = scale / graph_tensor(call->graph, whole)->dim[last];
    return even + (label == (double)(j + logp->offset[last]) ? 1 - scale : 0);
}

/* loss = - sum of weight logp. In: logp[*,v], label[*]. */
KERNEL_EACH(smooth_nll_sum, in[0], const uint64_t v = in[0].dim[in[0].rank - 1];
            out->data[0] -= in[0].data[i] * smooth_weight(call, &in[0], call->op->in[0],
                                                          in[1].data[i / v], i % v))

/* In: dloss (a scalar), label[*]. Out: dlogp[*,v]. */
KERNEL_EACH(smooth_nll_sum_dx, out[0], const uint64_t v = out->dim[out->rank - 1];
            out->data[i] = -in[0].data[0] * smooth_weight(call, out, call->op->out[0],
                                                          in[1].data[i / v], i % v))
