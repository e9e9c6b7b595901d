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

/* y[*,h] = table[ids[*],h]. In: ids[*], table[v,h]. */
void kernel_embedding(const KernelCall *call)
{
    const ExecTensor *ids = &call->in[0], *table = &call->in[1];
    const uint64_t h = table->dim[1], n = exec_tensor_elements(ids);
    uint64_t row;
    for (uint64_t i = 0; i < n; i++)
        if (find_entry(table, 0, ids->data[i], &row))
            for (uint64_t j = 0; j < h; j++)
                call->out[0].data[i * h + j] = table->data[row * h + j];
}

/* dtable[v,h] = sum of the rows of dy whose id is v. In: dy[*,h], ids[*]. */
void kernel_embedding_dw(const KernelCall *call)
{
    const ExecTensor *dy = &call->in[0], *ids = &call->in[1], *dtable = &call->out[0];
    const uint64_t h = dtable->dim[1], n = exec_tensor_elements(ids);
    uint64_t row;
    for (uint64_t i = 0; i < n; i++)
        if (find_entry(dtable, 0, ids->data[i], &row))
            for (uint64_t j = 0; j < h; j++)
                dtable->data[row * h + j] += dy->data[i * h + j];
}

/* Adds factor * x[*,label[*]] to the output, to its element for each or all to one. In: x[*,v],
 * label[*]. */
static void add_labelled(const KernelCall *call, double factor, bool to_one)
{
    const ExecTensor *x = &call->in[0], *label = &call->in[1];
    const uint64_t v = x->dim[x->rank - 1], n = exec_tensor_elements(label);
    uint64_t entry;
    for (uint64_t i = 0; i < n; i++)
        if (find_entry(x, x->rank - 1, label->data[i], &entry))
            call->out[0].data[to_one ? 0 : i] += factor * x->data[i * v + entry];
}

/* loss = - sum of logp[*,label[*]]. */
KERNEL(nll_sum, add_labelled(call, -1, true))
/* t[*] = x[*,label[*]]. */
KERNEL(label_logit, add_labelled(call, 1, false))

/* dlogp[*,v] = - dloss where v is the label. In: dloss (a scalar), label[*]. */
void kernel_nll_sum_dx(const KernelCall *call)
{
    const ExecTensor *label = &call->in[1], *dlogp = &call->out[0];
    const uint64_t v = dlogp->dim[dlogp->rank - 1], n = exec_tensor_elements(label);
    uint64_t entry;
    for (uint64_t i = 0; i < n; i++)
        if (find_entry(dlogp, dlogp->rank - 1, label->data[i], &entry))
            dlogp->data[i * v + entry] = -call->in[0].data[0];
}

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

/* loss = sum of z[*] - x[*,label[*]]. In: x[*,v], label[*], z[*]. */
void kernel_cross_entropy(const KernelCall *call)
{
    const ExecTensor *x = &call->in[0], *label = &call->in[1], *z = &call->in[2];
    const uint64_t v = x->dim[x->rank - 1], n = exec_tensor_elements(label);
    uint64_t entry;
    for (uint64_t i = 0; i < n; i++)
        if (find_entry(x, x->rank - 1, label->data[i], &entry))
            call->out[0].data[0] += z->data[i] - x->data[i * v + entry];
}

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
