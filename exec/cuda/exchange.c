/* Exchanges of the cuda backend: copies within one GPU, or NCCL between GPUs. */
#include "exec/cuda/kernels.h"
#include "exec/cuda/places.h"

Place *cuda_place(ExecBackend *backend, uint32_t local)
{
    KILTER_ASSERT(local < backend->n_local);
    Cuda *cuda = as_cuda(backend);
    Place *place = &cuda->place[cuda->together ? 0 : local];
    cuda_queue_enter(&place->compute);
    return place;
}

static bool is_sum(Collective kind)
{
    KILTER_ASSERT(kind < COLLECTIVES);
    return kind == COLLECTIVE_ALL_REDUCE || kind == COLLECTIVE_REDUCE_SCATTER ||
           kind == COLLECTIVE_GROUPED_REDUCE_SCATTER;
}

/* Sums in memory apart, since the ranks may get the sum in place of their parts. */
static void reduce_together(CudaQueue *queue, const ExecExchange *e, uint32_t n)
{
    ExecShard sum = e->to[exec_exchange_rank(e, 0)];
    sum.numbers = EXEC_PLAIN;
    sum.data = cuda_queue_allocate(queue, exec_shard_elements(&sum));
    if (!sum.data) {
        cuda_queue_check(queue, cudaErrorMemoryAllocation, "an exchange's sum");
        return;
    }
    cuda_queue_zero_bytes(queue, sum.data,
                          exec_shard_elements(&sum) * cuda_queue_size(queue));
    for (uint32_t r = 0; r < n; r++)
        cuda_add_overlap(queue, &e->from[exec_exchange_rank(e, r)], &sum);
    for (uint32_t r = 0; r < n; r++)
        cuda_copy_overlap(queue, &sum, &e->to[exec_exchange_rank(e, r)]);
    cuda_queue_release(queue, sum.data);
}

static void exchange_together(Cuda *cuda, const ExecExchange *e)
{
    CudaQueue *queue = &cuda_place(&cuda->base, 0)->compute;
    const uint32_t n = exec_exchange_size(e, cuda->base.n_ranks);
    if (e->kind == COLLECTIVE_ALL_REDUCE) {
        reduce_together(queue, e, n);
        return;
    }
    for (uint32_t r = 0; r < n; r++) {
        const ExecShard *to = &e->to[exec_exchange_rank(e, r)];
        cuda_queue_zero_bytes(queue, to->data, exec_shard_bytes(&cuda->base, to));
        for (uint32_t s = 0; s < n; s++)
            if (is_sum(e->kind))
                cuda_add_overlap(queue, &e->from[exec_exchange_rank(e, s)], to);
            else
                cuda_copy_overlap(queue, &e->from[exec_exchange_rank(e, s)], to);
    }
}

void cuda_check_nccl(Cuda *cuda, ncclResult_t result, const char *call)
{
    if (result != ncclSuccess && !cuda->trouble)
        kilter_fail(&cuda->trouble, KILTER_ERROR_FAILED, "%s: %s", call,
                    ncclGetErrorString(result));
}

/* One GPU's part in an exchange. */
typedef struct {
    Place *place;
    uint32_t rank;
    CudaBlocks sent, received;
} Part;

static void part_begin(Cuda *cuda, const ExecExchange *e, uint32_t local, Part *part)
{
    Place *place = cuda_place(&cuda->base, local);
    CudaQueue *queue = &place->communicate;
    const uint32_t n = cuda->base.n_ranks;
    *part = (Part){.place = place, .rank = cuda->base.first + local};
    cuda_queue_check(queue, cudaEventRecord(place->computed, place->compute.stream),
                     "cudaEventRecord");
    cuda_queue_check(queue, cudaStreamWaitEvent(queue->stream, place->computed, 0),
                     "cudaStreamWaitEvent");
    if (e->kind == COLLECTIVE_ALL_REDUCE)
        return;
    part->sent = cuda_blocks_sent(e, n, part->rank);
    part->received = cuda_blocks_received(e, n, part->rank);
    part->sent.buffer = cuda_queue_allocate(queue, part->sent.total);
    part->received.buffer = cuda_queue_allocate(queue, part->received.total);
    if (!part->sent.buffer || !part->received.buffer)
        cuda_queue_check(queue, cudaErrorMemoryAllocation, "an exchange's buffers");
    else
        cuda_blocks_pack(&part->sent, queue, &e->from[part->rank]);
}

static void all_to_all(Cuda *cuda, const Part *part, ncclDataType_t type)
{
    const CudaQueue *queue = &part->place->communicate;
    for (uint32_t r = 0; r < cuda->base.n_ranks; r++) {
        const uint64_t sent = exec_shard_elements(&part->sent.block[r]),
                       received = exec_shard_elements(&part->received.block[r]);
        if (sent > 0)
            cuda_check_nccl(cuda,
                            ncclSend(cuda_block(&part->sent, queue, r), sent, type,
                                     (int)r, part->place->comm, queue->stream),
                            "ncclSend");
        if (received > 0)
            cuda_check_nccl(cuda,
                            ncclRecv(cuda_block(&part->received, queue, r), received,
                                     type, (int)r, part->place->comm, queue->stream),
                            "ncclRecv");
    }
}

/* A grouped collective: a broadcast from each rank, or a reduction to each rank. */
static void grouped(Cuda *cuda, const ExecExchange *e, const Part *part,
                    ncclDataType_t type)
{
    const CudaQueue *queue = &part->place->communicate;
    const bool gather = e->kind == COLLECTIVE_GROUPED_ALL_GATHER;
    for (uint32_t r = 0; r < cuda->base.n_ranks; r++) {
        const uint64_t n = exec_shard_elements(gather ? &e->from[r] : &e->to[r]);
        if (n == 0)
            continue;
        cuda_check_nccl(
            cuda,
            gather
                ? ncclBroadcast(part->sent.buffer, cuda_block(&part->received, queue, r),
                                n, type, (int)r, part->place->comm, queue->stream)
                : ncclReduce(cuda_block(&part->sent, queue, r), part->received.buffer, n,
                             type, ncclSum, (int)r, part->place->comm, queue->stream),
            gather ? "ncclBroadcast" : "ncclReduce");
    }
}

static void part_issue(Cuda *cuda, const ExecExchange *e, const Part *part)
{
    const ExecNumbers numbers = e->from[part->rank].numbers;
    const ncclDataType_t type = numbers == EXEC_FP16          ? ncclHalf
                                : numbers == EXEC_BF16        ? ncclBfloat16
                                : part->place->compute.single ? ncclFloat
                                                              : ncclDouble;
    ncclComm_t comm = part->place->comm;
    cudaStream_t stream = part->place->communicate.stream;
    const uint32_t n = cuda->base.n_ranks;
    switch (e->kind) {
    case COLLECTIVE_ALL_REDUCE:
        cuda_check_nccl(cuda,
                        ncclAllReduce(e->from[part->rank].data, e->to[part->rank].data,
                                      exec_shard_elements(&e->from[part->rank]), type,
                                      ncclSum, comm, stream),
                        "ncclAllReduce");
        break;
    case COLLECTIVE_ALL_GATHER:
        cuda_check_nccl(cuda,
                        ncclAllGather(part->sent.buffer, part->received.buffer,
                                      cuda_blocks_step(e, n), type, comm, stream),
                        "ncclAllGather");
        break;
    case COLLECTIVE_REDUCE_SCATTER:
        cuda_check_nccl(cuda,
                        ncclReduceScatter(part->sent.buffer, part->received.buffer,
                                          cuda_blocks_step(e, n), type, ncclSum, comm,
                                          stream),
                        "ncclReduceScatter");
        break;
    case COLLECTIVE_ALL_TO_ALL:
        all_to_all(cuda, part, type);
        break;
    default:
        grouped(cuda, e, part, type);
    }
}

static void part_end(const ExecExchange *e, Part *part)
{
    Place *place = part->place;
    CudaQueue *queue = &place->communicate;
    cuda_queue_enter(queue);
    if (part->received.buffer)
        cuda_blocks_unpack(&part->received, queue, &e->to[part->rank]);
    CudaBlocks *side[] = {&part->sent, &part->received};
    for (uint32_t i = 0; i < G_N_ELEMENTS(side); i++) {
        if (side[i]->buffer)
            cuda_queue_release(queue, side[i]->buffer);
        cuda_blocks_clear(side[i]);
    }
    cuda_queue_check(queue, cudaEventRecord(place->exchanged, queue->stream),
                     "cudaEventRecord");
    /* Nor may computation overwrite data that is still being sent. */
    g_hash_table_add(place->arriving, e->from[part->rank].data);
    g_hash_table_add(place->arriving, e->to[part->rank].data);
}

bool cuda_check(ExecBackend *backend, GError **error)
{
    const Cuda *cuda = as_cuda(backend);
    for (uint32_t i = 0; i < cuda->n_places; i++) {
        const Place *place = &cuda->place[i];
        const char *trouble =
            place->compute.trouble ? place->compute.trouble : place->communicate.trouble;
        if (trouble)
            return kilter_fail(error, KILTER_ERROR_FAILED, "%s", trouble);
    }
    if (cuda->trouble && error)
        *error = g_error_copy(cuda->trouble);
    return !cuda->trouble;
}

bool cuda_exchange(ExecBackend *backend, const ExecExchange *exchange, GError **error)
{
    g_assert((int)exchange->kind < COLLECTIVES_PRICED);
    Cuda *cuda = as_cuda(backend);
    if (cuda->together) {
        exchange_together(cuda, exchange);
        return cuda_check(backend, error);
    }
    if (exchange->n_members)
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "cuda: expected exchanges among all ranks: programs with "
                           "groups run on one GPU");
    g_autofree Part *part = g_new0(Part, backend->n_local);
    for (uint32_t local = 0; local < backend->n_local; local++)
        part_begin(cuda, exchange, local, &part[local]);
    if (cuda_check(backend, NULL)) {
        cuda_check_nccl(cuda, ncclGroupStart(), "ncclGroupStart");
        for (uint32_t local = 0; local < backend->n_local; local++)
            part_issue(cuda, exchange, &part[local]);
        cuda_check_nccl(cuda, ncclGroupEnd(), "ncclGroupEnd");
    }
    for (uint32_t local = 0; local < backend->n_local; local++)
        part_end(exchange, &part[local]);
    return cuda_check(backend, error);
}
