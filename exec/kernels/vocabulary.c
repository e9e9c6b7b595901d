/* Ops indexed by integers, and the loss of sharded logits (data/graph/op.h): a device
 * that holds entries [offset, offset + v) of the vocabulary sees the integers in that
 * range and takes the others as contributing nothing. */
#include <math.h>

#include "exec/kernels/kernels.h"

/* The index of `id` on dim `dim` of the shard; false if it is on another device. */
static bool find_entry(const ExecTensor *shard, uint32_t dim, double id, uint64_t *entry)
{
    KILTER_ASSERT(dim < shard->rank);
    const double local = id - shard->offset[dim];
    if (local < 0 || local >= shard->dim[dim])
        return false;
    *entry = (uint64_t)local;
    return true;
}

/* A kernel that takes a step for each element j of the rows of which the shard of `rows`, a table,
 * has the integer. */
#define ROWS_EACH(name, ids, rows, step)                                    \
    void kernel_##name(const KernelCall *call)                              \
    {                                                                       \
        const ExecTensor *const in = call->in, *const out = call->out;      \
        const uint64_t h = (rows).dim[1], n = exec_tensor_elements(&(ids)); \
        uint64_t row;                                                       \
        for (uint64_t i = 0; i < n; i++)                                    \
            if (find_entry(&(rows), 0, (ids).data[i], &row))                \
                for (uint64_t j = 0; j < h; j++) {                          \
                    step;                                                   \
                }                                                           \
    }

/* y[*,h] = table[ids[*],h]. In: ids[*], table[v,h]. */
ROWS_EACH(embedding, in[0], in[1], out->data[i * h + j] = in[1].data[row * h + j])

/* dtable[v,h] = sum of the rows of dy whose id is v. In: dy[*,h], ids[*]. */
ROWS_EACH(embedding_dw, in[1], out[0], out->data[row * h + j] += in[0].data[i * h + j])

/* A kernel that takes a step for each label i at which the shard of x [*,v] has the entry. */
#define LABELS_EACH(name, x, label, step)                                             \
    void kernel_##name(const KernelCall *call)                                        \
    {                                                                                 \
        const ExecTensor *const in = call->in, *const out = call->out;                \
        const uint64_t v = (x).dim[(x).rank - 1], n = exec_tensor_elements(&(label)); \
        uint64_t entry;                                                               \
        for (uint64_t i = 0; i < n; i++)                                              \
            if (find_entry(&(x), (x).rank - 1, (label).data[i], &entry)) {            \
                step;                                                                 \
            }                                                                         \
    }

/* loss = - sum of logp[*,label[*]]. In: logp[*,v], label[*]. */
LABELS_EACH(nll_sum, in[0], in[1], out->data[0] -= in[0].data[i * v + entry])
/* t[*] = x[*,label[*]]. */
LABELS_EACH(label_logit, in[0], in[1], out->data[i] += in[0].data[i * v + entry])

/* dlogp[*,v] = - dloss where v is the label. In: dloss (a scalar), label[*]. */
LABELS_EACH(nll_sum_dx, out[0], in[1], out->data[i * v + entry] = -in[0].data[0])

/* loss = sum of z[*] - x[*,label[*]]. In: x[*,v], label[*], z[*]. */
LABELS_EACH(cross_entropy, in[0], in[1],
            out->data[0] += in[2].data[i] - in[0].data[i * v + entry])

/* s[*] = sum of exp(x[*,v] - t[*]) over v. In: x[*,v], t[*]. */
void kernel_sum_exp(const KernelCall *call)
{
    const ExecTensor *x = &call->in[0], *t = &call->in[1];
    const uint64_t v = x->dim[x->rank - 1], n = exec_tensor_elements(t);
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t j = 0; j < v; j++)
            call->out[0].data[i] += exp(x->data[i * v + j] - t->data[i]);
}

/* z[*] = t[*] + log s[*]. In: s[*], t[*]. */
KERNEL_EACH(log_sum_exp, in[0], out->data[i] = in[1].data[i] + log(in[0].data[i]))

/* dx[*,v] = dloss (exp(x[*,v] - z[*]) - 1 where v is the label). In: dloss (a scalar), x[*,v],
 * label[*], z[*]. */
void kernel_cross_entropy_dx(const KernelCall *call)
{
    const ExecTensor *x = &call->in[1], *label = &call->in[2], *z = &call->in[3];
    const uint64_t v = x->dim[x->rank - 1], n = exec_tensor_elements(label);
    const double dloss = call->in[0].data[0];
    double *dx = call->out[0].data;
    uint64_t entry;
    for (uint64_t i = 0; i < n; i++) {
        for (uint64_t j = 0; j < v; j++)
            dx[i * v + j] = dloss * exp(x->data[i * v + j] - z->data[i]);
        if (find_entry(x, x->rank - 1, label->data[i], &entry))
            dx[i * v + entry] -= dloss;
    }
}
