/* Shards in memory: overlap, copies and sums, for all backends. */
#include "exec/backend.h"

#include <string.h>

uint64_t exec_shard_elements(const ExecShard *shard)
{
    KILTER_ASSERT(shard->rank <= TENSOR_MAX_RANK);
    return dims_elements(shard->dim, 0, shard->rank);
}

ExecTensor exec_shard_of(const ExecTensor *whole, const ExecShard *shard)
{
    ExecTensor part = *whole;
    for (uint32_t d = 0; d < shard->rank; d++) {
        if (shard->dim[d] == part.dim[d])
            continue;
        const uint32_t first = shard->offset[d];
        ExecTensor less = exec_tensor_slice(&part, d, first, first + shard->dim[d]);
        if (part.data != whole->data)
            exec_tensor_clear(&part);
        part = less;
    }
    return part;
}

uint64_t exec_shard_bytes(const ExecBackend *backend, const ExecShard *shard)
{
    return exec_shard_elements(shard) *
           (shard->numbers == EXEC_PLAIN ? backend->element_bytes : sizeof(uint16_t));
}

uint64_t exec_shard_room(const ExecBackend *backend, const ExecShard *shard)
{
    return (exec_shard_bytes(backend, shard) + backend->element_bytes - 1) /
           backend->element_bytes;
}

bool exec_shard_overlap(const ExecShard *a, const ExecShard *b, ExecShard *overlap)
{
    g_assert(a->rank == b->rank);
    *overlap = (ExecShard){.rank = a->rank, .numbers = a->numbers};
    for (uint32_t d = 0; d < a->rank; d++) {
        const uint64_t low = MAX(a->offset[d], b->offset[d]);
        const uint64_t high =
            MIN((uint64_t)a->offset[d] + a->dim[d], (uint64_t)b->offset[d] + b->dim[d]);
        if (high <= low)
            return false;
        overlap->offset[d] = (uint32_t)low;
        overlap->dim[d] = (uint32_t)(high - low);
    }
    return true;
}

/* Index in `shard` of the element that lies `step` [rank] steps from the beginning of `box`. */
static uint64_t element_at(const ExecShard *shard, const ExecShard *box,
                           const uint32_t *step)
{
    KILTER_ASSERT(shard->rank == box->rank);
    uint64_t at = 0;
    for (uint32_t d = 0; d < shard->rank; d++)
        at = at * shard->dim[d] + (box->offset[d] - shard->offset[d]) + step[d];
    return at;
}

void exec_overlap_copy(const ExecShard *from, const ExecShard *to, size_t size)
{
    g_assert(size == sizeof(float) || size == sizeof(double));
    ExecShard box;
    if (!exec_shard_overlap(from, to, &box))
        return;
    /* Runs are contiguous in both shards: they span the trailing dims that the box takes whole, and
     * one more. */
    uint32_t outer = from->rank;
    bool whole = true;
    while (outer > 0 && whole) {
        outer--;
        whole = box.dim[outer] == from->dim[outer] && box.dim[outer] == to->dim[outer];
    }
    const uint64_t runs = dims_elements(box.dim, 0, outer),
                   run = dims_elements(box.dim, outer, from->rank);
    uint32_t step[TENSOR_MAX_RANK] = {0};
    for (uint64_t i = 0; i < runs; i++) {
        memcpy((char *)to->data + element_at(to, &box, step) * size,
               (const char *)from->data + element_at(from, &box, step) * size,
               run * size);
        for (uint32_t d = outer; d-- > 0 && ++step[d] == box.dim[d];)
            step[d] = 0;
    }
}

void exec_shard_add(const ExecShard *from, const ExecShard *to, size_t size)
{
    g_assert(size == sizeof(float) || size == sizeof(double));
    const uint64_t n = exec_shard_elements(from);
    for (uint64_t i = 0; i < n; i++)
        if (size == sizeof(double))
            ((double *)to->data)[i] += ((const double *)from->data)[i];
        else
            ((float *)to->data)[i] += ((const float *)from->data)[i];
}

void exec_backend_free(ExecBackend *backend)
{
    if (backend)
        backend->ops->free(backend);
}

void *exec_backend_reserve(ExecBackend *backend, uint32_t local, uint64_t elements)
{
    return (backend->ops->reserve ? backend->ops->reserve
                                  : backend->ops->allocate)(backend, local, elements);
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

bool exec_backend_check(ExecBackend *backend, GError **error)
{
    return !backend->ops->check || backend->ops->check(backend, error);
}

ExecMemory exec_backend_memory(ExecBackend *backend)
{
    return backend->ops->memory ? backend->ops->memory(backend) : (ExecMemory){0};
}

void exec_backend_maximum(ExecBackend *backend, double *value, uint32_t n)
{
    if (backend->ops->maximum)
        backend->ops->maximum(backend, value, n);
}
