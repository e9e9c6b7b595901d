/* The reference backend: all ranks in one process, one after the other, in plain C and float64.
 * Padded and grouped collectives move the same numbers, so this backend treats them alike. */
#include <math.h>
#include <string.h>

#include "exec/backend.h"

static void *ranks_allocate(ExecBackend *backend, uint32_t local, uint64_t elements)
{
    (void)backend;
    (void)local;
    /* One element more than needed, so that an empty shard's memory is not NULL. */
    return g_try_malloc0_n(elements + 1, sizeof(double));
}

/* Numbers that nothing has written are NaN, so that a result shows that they were used. */
static void *ranks_reserve(ExecBackend *backend, uint32_t local, uint64_t elements)
{
    double *data = ranks_allocate(backend, local, elements);
    for (uint64_t i = 0; data && i < elements; i++)
        data[i] = NAN;
    return data;
}

static void ranks_release(ExecBackend *backend, uint32_t local, void *data)
{
    (void)backend;
    (void)local;
    g_free(data);
}

static void ranks_write(ExecBackend *backend, uint32_t local, const ExecShard *to,
                        const double *from)
{
    KILTER_ASSERT(local < backend->n_local);
    (void)backend;
    (void)local;
    memcpy(to->data, from, exec_shard_elements(to) * sizeof *from);
}

static void ranks_read(ExecBackend *backend, uint32_t local, const ExecShard *from,
                       double *to)
{
    KILTER_ASSERT(local < backend->n_local);
    (void)backend;
    (void)local;
    memcpy(to, from->data, exec_shard_elements(from) * sizeof *to);
}

static void ranks_copy(ExecBackend *backend, uint32_t local, const ExecShard *from,
                       const ExecShard *to)
{
    (void)backend;
    (void)local;
    memset(to->data, 0, exec_shard_elements(to) * sizeof(double));
    if (from)
        exec_overlap_copy(from, to, sizeof(double));
}

static void ranks_add(ExecBackend *backend, uint32_t local, const ExecShard *from,
                      const ExecShard *to)
{
    (void)backend;
    (void)local;
    exec_shard_add(from, to, sizeof(double));
}

static ExecTensor as_tensor(const ExecShard *shard)
{
    ExecTensor tensor = {.rank = shard->rank, .data = shard->data};
    memcpy(tensor.dim, shard->dim, sizeof tensor.dim);
    memcpy(tensor.offset, shard->offset, sizeof tensor.offset);
    return tensor;
}

static void ranks_run_op(ExecBackend *backend, uint32_t local, const Graph *graph,
                         OpId id, const ExecShard *in, const ExecShard *out)
{
    KILTER_ASSERT(local < backend->n_local);
    (void)backend;
    (void)local;
    const Op *op = graph_get_op(graph, id);
    ExecTensor inputs[OP_MAX_IN], outputs[OP_MAX_OUT];
    for (uint32_t i = 0; i < op->n_in; i++)
        inputs[i] = as_tensor(&in[i]);
    for (uint32_t o = 0; o < op->n_out; o++)
        outputs[o] = as_tensor(&out[o]);
    exec_run_op(graph, id, inputs, outputs);
}

/* The sum of the shards of all ranks that take part, which have one shape; the caller frees its
 * data. */
static ExecShard sum_ranks(const ExecExchange *e, uint32_t n)
{
    const ExecShard *first = &e->from[exec_exchange_rank(e, 0)];
    const uint64_t n_elements = exec_shard_elements(first);
    ExecShard sum = *first;
    double *total = g_new0(double, n_elements + 1);
    for (uint32_t r = 0; r < n; r++)
        for (uint64_t i = 0; i < n_elements; i++)
            total[i] += ((const double *)e->from[exec_exchange_rank(e, r)].data)[i];
    sum.data = total;
    return sum;
}

static bool ranks_exchange(ExecBackend *backend, const ExecExchange *e, GError **error)
{
    (void)error;
    const bool sums = e->kind == COLLECTIVE_ALL_REDUCE ||
                      e->kind == COLLECTIVE_REDUCE_SCATTER ||
                      e->kind == COLLECTIVE_GROUPED_REDUCE_SCATTER;
    const uint32_t n = exec_exchange_size(e, backend->n_ranks);
    ExecShard sum = {0};
    if (sums)
        sum = sum_ranks(e, n);
    for (uint32_t r = 0; r < n; r++) {
        const ExecShard *to = &e->to[exec_exchange_rank(e, r)];
        if (sums)
            exec_overlap_copy(&sum, to, sizeof(double));
        for (uint32_t s = 0; !sums && s < n; s++)
            exec_overlap_copy(&e->from[exec_exchange_rank(e, s)], to, sizeof(double));
    }
    g_free(sum.data);
    return true;
}

static void ranks_free(ExecBackend *backend)
{
    g_free(backend);
}

static const ExecBackendOps RANKS_OPS = {
    .name = "reference",
    .allocate = ranks_allocate,
    .release = ranks_release,
    .reserve = ranks_reserve,
    .write = ranks_write,
    .read = ranks_read,
    .copy = ranks_copy,
    .add = ranks_add,
    .run_op = ranks_run_op,
    .exchange = ranks_exchange,
    .free = ranks_free,
};

ExecBackend *exec_reference_new(uint32_t n_ranks)
{
    g_assert(n_ranks > 0);
    ExecBackend *backend = g_new(ExecBackend, 1);
    *backend = (ExecBackend){.ops = &RANKS_OPS,
                             .n_ranks = n_ranks,
                             .n_local = n_ranks,
                             .element_bytes = sizeof(double)};
    return backend;
}
