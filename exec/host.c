/* Shards in this process's memory, in float64 or float32. */
#include "exec/host.h"

#include <string.h>

#include "data/base/assert.h"
#include "exec/tensor.h"

void *exec_host_allocate(ExecBackend *backend, uint32_t local, uint64_t elements)
{
    (void)local;
    /* One element more than needed, so that an empty shard's memory is not NULL. */
    return g_try_malloc0_n(elements + 1, backend->element_bytes);
}

void exec_host_release(ExecBackend *backend, uint32_t local, void *data)
{
    (void)backend;
    (void)local;
    g_free(data);
}

static void from_host(const double *from, void *to, uint64_t n, size_t size)
{
    KILTER_ASSERT(size == sizeof(float) || size == sizeof(double));
    if (size == sizeof(double)) {
        memcpy(to, from, n * size);
        return;
    }
    float *single = to;
    for (uint64_t i = 0; i < n; i++)
        single[i] = (float)from[i];
}

static void to_host(const void *from, double *to, uint64_t n, size_t size)
{
    KILTER_ASSERT(size == sizeof(float) || size == sizeof(double));
    if (size == sizeof(double)) {
        memcpy(to, from, n * size);
        return;
    }
    const float *single = from;
    for (uint64_t i = 0; i < n; i++)
        to[i] = (double)single[i];
}

void exec_host_write(ExecBackend *backend, uint32_t local, const ExecShard *to,
                     const double *from)
{
    KILTER_ASSERT(local < backend->n_local);
    (void)local;
    from_host(from, to->data, exec_shard_elements(to), backend->element_bytes);
}

void exec_host_read(ExecBackend *backend, uint32_t local, const ExecShard *from,
                    double *to)
{
    KILTER_ASSERT(local < backend->n_local);
    (void)local;
    to_host(from->data, to, exec_shard_elements(from), backend->element_bytes);
}

void exec_host_copy(ExecBackend *backend, uint32_t local, const ExecShard *from,
                    const ExecShard *to)
{
    (void)local;
    memset(to->data, 0, exec_shard_elements(to) * backend->element_bytes);
    if (from)
        exec_overlap_copy(from, to, backend->element_bytes);
}

void exec_host_add(ExecBackend *backend, uint32_t local, const ExecShard *from,
                   const ExecShard *to)
{
    (void)local;
    exec_shard_add(from, to, backend->element_bytes);
}

/* A shard as a tensor in float64: the shard's own memory, or a copy (filled with its numbers if
 * `fill`). */
static ExecTensor host_tensor(const ExecShard *shard, size_t size, bool fill)
{
    ExecTensor tensor = {.rank = shard->rank, .data = shard->data};
    if (size != sizeof(double)) {
        tensor = exec_tensor_new(shard->rank, shard->dim);
        if (fill)
            to_host(shard->data, tensor.data, exec_shard_elements(shard), size);
    }
    memcpy(tensor.dim, shard->dim, sizeof tensor.dim);
    memcpy(tensor.offset, shard->offset, sizeof tensor.offset);
    return tensor;
}

void exec_host_run_op(ExecBackend *backend, uint32_t local, const Graph *graph, OpId id,
                      const ExecShard *in, const ExecShard *out)
{
    KILTER_ASSERT(local < backend->n_local);
    (void)local;
    const size_t size = backend->element_bytes;
    const Op *op = graph_get_op(graph, id);
    ExecTensor input[OP_MAX_IN], output[OP_MAX_OUT];
    for (uint32_t i = 0; i < op->n_in; i++)
        input[i] = host_tensor(&in[i], size, true);
    for (uint32_t o = 0; o < op->n_out; o++)
        output[o] = host_tensor(&out[o], size, false);
    exec_run_op(graph, id, input, output);
    if (size == sizeof(double))
        return;
    for (uint32_t i = 0; i < op->n_in; i++)
        exec_tensor_clear(&input[i]);
    for (uint32_t o = 0; o < op->n_out; o++) {
        from_host(output[o].data, out[o].data, exec_shard_elements(&out[o]), size);
        exec_tensor_clear(&output[o]);
    }
}
