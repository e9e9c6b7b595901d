#include "exec/backend.h"

#include <string.h>

uint64_t exec_shard_elements(const ExecShard *shard)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < shard->rank; d++)
        n *= shard->dim[d];
    return n;
}

/* The box that two shards share. */
typedef struct {
    uint32_t extent[TENSOR_MAX_RANK];
    uint32_t from[TENSOR_MAX_RANK], to[TENSOR_MAX_RANK]; /* where it begins in each */
} Box;

static bool find_overlap(const ExecShard *from, const ExecShard *to, Box *box)
{
    for (uint32_t d = 0; d < from->rank; d++) {
        const uint64_t low = MAX(from->offset[d], to->offset[d]);
        const uint64_t high = MIN((uint64_t)from->offset[d] + from->dim[d],
                                  (uint64_t)to->offset[d] + to->dim[d]);
        if (high <= low)
            return false;
        box->extent[d] = (uint32_t)(high - low);
        box->from[d] = (uint32_t)(low - from->offset[d]);
        box->to[d] = (uint32_t)(low - to->offset[d]);
    }
    return true;
}

static uint64_t element_at(const ExecShard *shard, const uint32_t *begin,
                           const uint32_t *step)
{
    uint64_t at = 0;
    for (uint32_t d = 0; d < shard->rank; d++)
        at = at * shard->dim[d] + begin[d] + step[d];
    return at;
}

void exec_overlap_copy(const ExecShard *from, const ExecShard *to, size_t size)
{
    g_assert(from->rank == to->rank);
    Box box = {0};
    if (!find_overlap(from, to, &box))
        return;
    /* Runs are contiguous in both: trailing dims that the box takes whole, and one more. */
    uint32_t outer = from->rank;
    uint64_t run = 1, runs = 1;
    bool whole = true;
    while (outer > 0 && whole) {
        outer--;
        run *= box.extent[outer];
        whole =
            box.extent[outer] == from->dim[outer] && from->dim[outer] == to->dim[outer];
    }
    for (uint32_t d = 0; d < outer; d++)
        runs *= box.extent[d];
    uint32_t step[TENSOR_MAX_RANK] = {0};
    for (uint64_t i = 0; i < runs; i++) {
        memcpy((char *)to->data + element_at(to, box.to, step) * size,
               (const char *)from->data + element_at(from, box.from, step) * size,
               run * size);
        for (uint32_t d = outer; d-- > 0 && ++step[d] == box.extent[d];)
            step[d] = 0;
    }
}

void exec_backend_free(ExecBackend *backend)
{
    if (backend)
        backend->ops->free(backend);
}

void exec_backend_synchronise(ExecBackend *backend)
{
    if (backend->ops->synchronise)
        backend->ops->synchronise(backend);
}

double exec_backend_seconds(ExecBackend *backend)
{
    if (backend->ops->seconds)
        return backend->ops->seconds(backend);
    return (double)g_get_monotonic_time() / G_USEC_PER_SEC;
}

void exec_backend_maximum(ExecBackend *backend, double *value, uint32_t n)
{
    if (backend->ops->maximum)
        backend->ops->maximum(backend, value, n);
}
