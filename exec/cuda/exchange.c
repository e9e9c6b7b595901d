/* Exchanges of the cuda backend: copies within one GPU, or NCCL between GPUs. */
#include "data/base/each.h"
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

static void place_wait(Place *place, GHashTable *pending, const void *data)
{
    const Arrival *arrival = g_hash_table_lookup(pending, data);
    if (!arrival)
        return;
    if (arrival->number > place->waited) {
        cuda_queue_check(&place->compute,
                         cudaStreamWaitEvent(place->compute.stream, arrival->done, 0),
                         "cudaStreamWaitEvent");
        place->waited = arrival->number;
    }
    g_hash_table_remove(pending, data);
}

CudaQueue *cuda_place_reads(Place *place, const void *data)
{
    place_wait(place, place->written, data);
    return &place->compute;
}

CudaQueue *cuda_place_writes(Place *place, const void *data)
{
    place_wait(place, place->read, data);
    return cuda_place_reads(place, data);
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

/* --- communicators --- */

/* The communicators of the exchange's ranks, [n_places]. All processes ask for those of a set of
 * ranks at the same time, when it first exchanges anything. */
static ncclComm_t *cuda_team(Cuda *cuda, const ExecExchange *e)
{
    g_autoptr(GString) key = g_string_new(NULL);
    for (uint32_t i = 0; i < e->n_members; i++)
        g_string_append_printf(key, "%u ", e->member[i]);
    ncclComm_t *team = g_hash_table_lookup(cuda->teams, key->str);
    if (team)
        return team;
    const ncclComm_t *all = g_hash_table_lookup(cuda->teams, "");
    team = g_new0(ncclComm_t, cuda->n_places);
    g_hash_table_insert(cuda->teams, g_strdup(key->str), team);
    cuda_check_nccl(cuda, ncclGroupStart(), "ncclGroupStart");
    for (uint32_t local = 0; local < cuda->n_places; local++) {
        uint32_t at = 0;
        while (at < e->n_members && e->member[at] != cuda->base.first + local)
            at++;
        cuda_place(&cuda->base, local);
        cuda_check_nccl(cuda,
                        ncclCommSplit(all[local],
                                      at < e->n_members ? 0 : NCCL_SPLIT_NOCOLOR, (int)at,
                                      &team[local], NULL),
                        "ncclCommSplit");
    }
    cuda_check_nccl(cuda, ncclGroupEnd(), "ncclGroupEnd");
    return team;
}

void cuda_teams_connect(Cuda *cuda, const ncclUniqueId *id)
{
    ncclComm_t *all = g_new0(ncclComm_t, cuda->n_places);
    cuda->teams = text_table(g_free);
    g_hash_table_insert(cuda->teams, g_strdup(""), all);
    cuda_check_nccl(cuda, ncclGroupStart(), "ncclGroupStart");
    for (uint32_t i = 0; i < cuda->n_places; i++) {
        cuda_place(&cuda->base, i);
        cuda_check_nccl(cuda,
                        ncclCommInitRank(&all[i], (int)cuda->base.n_ranks, *id,
                                         (int)(cuda->base.first + i)),
                        "ncclCommInitRank");
    }
    cuda_check_nccl(cuda, ncclGroupEnd(), "ncclGroupEnd");
}

void cuda_teams_free(Cuda *cuda)
{
    if (!cuda->teams)
        return;
    table_each (key, team, cuda->teams)
        for (uint32_t i = 0; i < cuda->n_places; i++)
            if (((ncclComm_t *)team)[i])
                ncclCommDestroy(((ncclComm_t *)team)[i]);
    g_hash_table_unref(cuda->teams);
}

/* --- exchanges between GPUs --- */

/* One GPU's part in an exchange. */
typedef struct {
    Place *place;
    uint32_t rank;
    uint32_t n, me; /* ranks that take part, and which of them it is */
    ncclComm_t comm;
    ncclDataType_t type;
    CudaBlocks sent, received;
} Part;

static void part_begin(const ExecExchange *e, Part *part)
{
    Place *place = part->place;
    CudaQueue *queue = &place->communicate;
    const ExecNumbers numbers = e->from[part->rank].numbers;
    part->type = numbers == EXEC_FP16    ? ncclHalf
                 : numbers == EXEC_BF16  ? ncclBfloat16
                 : place->compute.single ? ncclFloat
                                         : ncclDouble;
    cuda_queue_enter(queue);
    cuda_queue_check(queue, cudaEventRecord(place->computed, place->compute.stream),
                     "cudaEventRecord");
    cuda_queue_check(queue, cudaStreamWaitEvent(queue->stream, place->computed, 0),
                     "cudaStreamWaitEvent");
    if (e->kind == COLLECTIVE_ALL_REDUCE)
        return;
    part->sent = cuda_blocks_sent(e, part->n, part->me);
    part->received = cuda_blocks_received(e, part->n, part->me);
    part->sent.buffer = cuda_queue_allocate(queue, part->sent.total);
    part->received.buffer = cuda_queue_allocate(queue, part->received.total);
    if (!part->sent.buffer || !part->received.buffer)
        cuda_queue_check(queue, cudaErrorMemoryAllocation, "an exchange's buffers");
    else
        cuda_blocks_pack(&part->sent, queue, &e->from[part->rank]);
}

static void part_all_to_all(Cuda *cuda, const Part *part)
{
    const CudaQueue *queue = &part->place->communicate;
    for (uint32_t r = 0; r < part->n; r++) {
        const uint64_t sent = exec_shard_elements(&part->sent.block[r]),
                       received = exec_shard_elements(&part->received.block[r]);
        if (sent > 0)
            cuda_check_nccl(cuda,
                            ncclSend(cuda_block(&part->sent, queue, r), sent, part->type,
                                     (int)r, part->comm, queue->stream),
                            "ncclSend");
        if (received > 0)
            cuda_check_nccl(cuda,
                            ncclRecv(cuda_block(&part->received, queue, r), received,
                                     part->type, (int)r, part->comm, queue->stream),
                            "ncclRecv");
    }
}

/* A grouped collective: a broadcast from each rank, or a reduction to each rank. */
static void part_grouped(Cuda *cuda, const ExecExchange *e, const Part *part)
{
    const CudaQueue *queue = &part->place->communicate;
    const bool gather = e->kind == COLLECTIVE_GROUPED_ALL_GATHER;
    for (uint32_t r = 0; r < part->n; r++) {
        const uint32_t rank = exec_exchange_rank(e, r);
        const uint64_t n = exec_shard_elements(gather ? &e->from[rank] : &e->to[rank]);
        if (n == 0)
            continue;
        cuda_check_nccl(
            cuda,
            gather
                ? ncclBroadcast(part->sent.buffer, cuda_block(&part->received, queue, r),
                                n, part->type, (int)r, part->comm, queue->stream)
                : ncclReduce(cuda_block(&part->sent, queue, r), part->received.buffer, n,
                             part->type, ncclSum, (int)r, part->comm, queue->stream),
            gather ? "ncclBroadcast" : "ncclReduce");
    }
}

/* An all-reduce, or, by a server, its first or second step: a reduction to the server, and a
 * broadcast from it. */
static void part_all_reduce(Cuda *cuda, const ExecExchange *e, const Part *part,
                            uint32_t step)
{
    const ExecShard *from = &e->from[part->rank], *to = &e->to[part->rank];
    cudaStream_t stream = part->place->communicate.stream;
    const uint64_t n = exec_shard_elements(from);
    const int server = (int)e->server - 1;
    if (server < 0)
        cuda_check_nccl(cuda,
                        ncclAllReduce(from->data, to->data, n, part->type, ncclSum,
                                      part->comm, stream),
                        "ncclAllReduce");
    else if (step == 0)
        cuda_check_nccl(cuda,
                        ncclReduce(from->data, to->data, n, part->type, ncclSum, server,
                                   part->comm, stream),
                        "ncclReduce");
    else
        cuda_check_nccl(
            cuda,
            ncclBroadcast(to->data, to->data, n, part->type, server, part->comm, stream),
            "ncclBroadcast");
}

static void part_issue(Cuda *cuda, const ExecExchange *e, const Part *part, uint32_t step)
{
    cudaStream_t stream = part->place->communicate.stream;
    switch (e->kind) {
    case COLLECTIVE_ALL_REDUCE:
        part_all_reduce(cuda, e, part, step);
        break;
    case COLLECTIVE_ALL_GATHER:
        cuda_check_nccl(cuda,
                        ncclAllGather(part->sent.buffer, part->received.buffer,
                                      cuda_blocks_step(e, part->n), part->type,
                                      part->comm, stream),
                        "ncclAllGather");
        break;
    case COLLECTIVE_REDUCE_SCATTER:
        cuda_check_nccl(cuda,
                        ncclReduceScatter(part->sent.buffer, part->received.buffer,
                                          cuda_blocks_step(e, part->n), part->type,
                                          ncclSum, part->comm, stream),
                        "ncclReduceScatter");
        break;
    case COLLECTIVE_ALL_TO_ALL:
        part_all_to_all(cuda, part);
        break;
    default:
        part_grouped(cuda, e, part);
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
    Arrival *arrival = g_rc_box_new0(Arrival);
    arrival->number = ++place->exchanges;
    cuda_queue_check(queue,
                     cudaEventCreateWithFlags(&arrival->done, cudaEventDisableTiming),
                     "cudaEventCreate");
    cuda_queue_check(queue, cudaEventRecord(arrival->done, queue->stream),
                     "cudaEventRecord");
    g_hash_table_insert(place->read, e->from[part->rank].data, arrival);
    g_hash_table_insert(place->written, e->to[part->rank].data,
                        g_rc_box_acquire(arrival));
}

bool cuda_check(ExecBackend *backend, GError **error)
{
    const Cuda *cuda = as_cuda(backend);
    items_each (const Place, place, cuda->place, cuda->n_places) {
        const char *trouble =
            place->compute.trouble ? place->compute.trouble : place->communicate.trouble;
        if (trouble)
            return kilter_fail(error, KILTER_ERROR_FAILED, "%s", trouble);
    }
    if (cuda->trouble && error)
        *error = g_error_copy(cuda->trouble);
    return !cuda->trouble;
}

/* The parts of this process's GPUs that take part: [base.n_local] has room for all. */
static uint32_t exchange_parts(Cuda *cuda, const ExecExchange *e, Part *part)
{
    const ncclComm_t *team = cuda_team(cuda, e);
    const uint32_t n = exec_exchange_size(e, cuda->base.n_ranks);
    uint32_t n_parts = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t rank = exec_exchange_rank(e, i), local = rank - cuda->base.first;
        if (rank >= cuda->base.first && local < cuda->base.n_local)
            part[n_parts++] = (Part){.place = &cuda->place[local],
                                     .rank = rank,
                                     .n = n,
                                     .me = i,
                                     .comm = team[local]};
    }
    return n_parts;
}

bool cuda_exchange(ExecBackend *backend, const ExecExchange *exchange, GError **error)
{
    g_assert((int)exchange->kind < COLLECTIVES_PRICED);
    Cuda *cuda = as_cuda(backend);
    if (cuda->together) {
        exchange_together(cuda, exchange);
        return cuda_check(backend, error);
    }
    g_autofree Part *part = g_new0(Part, backend->n_local);
    const uint32_t n = exchange_parts(cuda, exchange, part);
    for (uint32_t i = 0; i < n; i++)
        part_begin(exchange, &part[i]);
    for (uint32_t step = 0; step < (exchange->server ? 2 : 1) && n > 0; step++) {
        if (!cuda_check(backend, NULL))
            break;
        cuda_check_nccl(cuda, ncclGroupStart(), "ncclGroupStart");
        for (uint32_t i = 0; i < n; i++)
            part_issue(cuda, exchange, &part[i], step);
        cuda_check_nccl(cuda, ncclGroupEnd(), "ncclGroupEnd");
    }
    for (uint32_t i = 0; i < n; i++)
        part_end(exchange, &part[i]);
    return cuda_check(backend, error);
}
