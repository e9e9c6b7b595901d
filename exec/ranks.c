/* The reference backend: all ranks in one process, one after the other, in plain C and float64.
 * Padded and grouped collectives move the same numbers, so this backend treats them alike. */
#include <math.h>

#include "exec/host.h"

/* Numbers that nothing has written are NaN, so that a result shows that they were used. */
static void *ranks_reserve(ExecBackend *backend, uint32_t local, uint64_t elements)
{
    double *data = exec_host_allocate(backend, local, elements);
    for (uint64_t i = 0; data && i < elements; i++)
        data[i] = NAN;
    return data;
}

/* The sum of the shards of all ranks that take part, which have one shape; the caller frees it. */
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
    .allocate = exec_host_allocate,
    .release = exec_host_release,
    .reserve = ranks_reserve,
    .write = exec_host_write,
    .read = exec_host_read,
    .copy = exec_host_copy,
    .add = exec_host_add,
    .run_op = exec_host_run_op,
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
