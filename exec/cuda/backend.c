/* The CUDA backend: one GPU per rank and NCCL between them, or, for numbers only, all ranks on one
 * GPU with copies in its memory in NCCL's place.
 *
 *     all_gather              one ncclAllGather of blocks padded to the largest shard
 *     grouped_all_gather      an ncclBroadcast of the exact shard from each rank, in one group
 *     reduce_scatter          one ncclReduceScatter of padded blocks
 *     grouped_reduce_scatter  an ncclReduce of the exact shard to each rank, in one group
 *     all_to_all              ncclSend and ncclRecv of exact blocks
 *
 * A GPU has a stream for computation and one for communication. An exchange waits for the
 * computation asked for so far; computation that reads its result or overwrites its data waits for
 * it (and thereby for those before it), and other computation runs beside it. Ranks that exchange
 * among themselves have a communicator of their own. One process holds all GPUs of a machine, or
 * each GPU has its own; with MPI there may be several machines, of unlike numbers of GPUs.
 *
 * A process launches the work of its GPUs from one thread, in the program's order, which is also
 * that of NCCL's calls. Where launches of several GPUs take longer than their kernels, a process
 * for each GPU launches them side by side. */
#include "exec/cuda/kernels.h"
#include "exec/cuda/module.h"
#include "exec/cuda/places.h"

/* --- memory and ops --- */

static void *cuda_reserve(ExecBackend *backend, uint32_t local, uint64_t elements)
{
    return cuda_queue_allocate(&cuda_place(backend, local)->compute, elements);
}

static void *cuda_allocate(ExecBackend *backend, uint32_t local, uint64_t elements)
{
    CudaQueue *queue = &cuda_place(backend, local)->compute;
    void *data = cuda_queue_allocate(queue, elements);
    if (data)
        cuda_queue_zero_bytes(queue, data, elements * cuda_queue_size(queue));
    return data;
}

static void cuda_release(ExecBackend *backend, uint32_t local, void *data)
{
    cuda_queue_release(cuda_place_writes(cuda_place(backend, local), data), data);
}

static void cuda_write(ExecBackend *backend, uint32_t local, const ExecShard *to,
                       const double *from)
{
    cuda_queue_write(cuda_place_writes(cuda_place(backend, local), to->data), to, from);
}

static void cuda_read(ExecBackend *backend, uint32_t local, const ExecShard *from,
                      double *to)
{
    cuda_queue_read(cuda_place_reads(cuda_place(backend, local), from->data), from, to);
}

static void cuda_copy_shard(ExecBackend *backend, uint32_t local, const ExecShard *from,
                            const ExecShard *to)
{
    Place *place = cuda_place(backend, local);
    if (from)
        cuda_place_reads(place, from->data);
    CudaQueue *queue = cuda_place_writes(place, to->data);
    cuda_queue_zero_bytes(queue, to->data, exec_shard_bytes(backend, to));
    if (from)
        cuda_copy_overlap(queue, from, to);
}

static void cuda_add_shard(ExecBackend *backend, uint32_t local, const ExecShard *from,
                           const ExecShard *to)
{
    Place *place = cuda_place(backend, local);
    cuda_place_reads(place, from->data);
    cuda_add_overlap(cuda_place_writes(place, to->data), from, to);
}

static void cuda_run_op(ExecBackend *backend, uint32_t local, const Graph *graph, OpId id,
                        const ExecShard *in, const ExecShard *out)
{
    Place *place = cuda_place(backend, local);
    const Op *op = graph_get_op(graph, id);
    for (uint32_t i = 0; i < op->n_in; i++)
        cuda_place_reads(place, in[i].data);
    for (uint32_t o = 0; o < op->n_out; o++)
        cuda_place_writes(place, out[o].data);
    const CudaCall call = {&place->compute, graph, id, op, in, out};
    cuda_kernel_of(op->kind)(&call);
}

static void cuda_synchronise(ExecBackend *backend)
{
    Cuda *cuda = as_cuda(backend);
    for (uint32_t i = 0; i < cuda->n_places; i++) {
        cuda_queue_enter(&cuda->place[i].compute);
        if (!cuda->together)
            cuda_queue_wait(&cuda->place[i].communicate);
        cuda_queue_wait(&cuda->place[i].compute);
    }
}

static ExecMemory cuda_memory(ExecBackend *backend)
{
    Cuda *cuda = as_cuda(backend);
    ExecMemory most = {0};
    for (uint32_t i = 0; i < cuda->n_places; i++) {
        CudaQueue *queue = &cuda->place[i].compute;
        cuda_queue_enter(queue);
        const ExecMemory own = {cuda_queue_peak(queue), cuda_queue_used(queue)};
        most.peak_bytes = MAX(most.peak_bytes, own.peak_bytes);
        most.device_bytes = MAX(most.device_bytes, own.device_bytes);
    }
    return most;
}

static void cuda_maximum(ExecBackend *backend, double *value, uint32_t n)
{
    if (backend->n_local < backend->n_ranks)
        exec_mpi(NULL)->maximum(value, n);
}

/* --- making and freeing --- */

static void place_clear(Place *place)
{
    cuda_queue_enter(&place->compute);
    g_hash_table_unref(place->written);
    g_hash_table_unref(place->read);
    if (place->computed)
        cudaEventDestroy(place->computed);
    cuda_queue_clear(&place->communicate);
    cuda_queue_clear(&place->compute);
}

static void cuda_free(ExecBackend *backend)
{
    Cuda *cuda = as_cuda(backend);
    cuda_teams_free(cuda);
    for (uint32_t i = 0; i < cuda->n_places; i++)
        place_clear(&cuda->place[i]);
    g_clear_error(&cuda->trouble);
    g_free(cuda->place);
    g_free(cuda);
}

static const ExecBackendOps CUDA_OPS = {
    .name = "cuda",
    .allocate = cuda_allocate,
    .release = cuda_release,
    .reserve = cuda_reserve,
    .write = cuda_write,
    .read = cuda_read,
    .copy = cuda_copy_shard,
    .add = cuda_add_shard,
    .run_op = cuda_run_op,
    .exchange = cuda_exchange,
    .free = cuda_free,
    .synchronise = cuda_synchronise,
    .maximum = cuda_maximum,
    .check = cuda_check,
    .memory = cuda_memory,
};

uint32_t kilter_cuda_gpus(void)
{
    int n = 0;
    return cudaGetDeviceCount(&n) == cudaSuccess ? (uint32_t)n : 0;
}

static void arrival_clear(gpointer data)
{
    const Arrival *arrival = data;
    cudaEventDestroy(arrival->done);
}

static void arrival_unref(gpointer data)
{
    g_rc_box_release_full(data, arrival_clear);
}

static void place_init(Place *place, int device, bool single)
{
    place->written = g_hash_table_new_full(NULL, NULL, NULL, arrival_unref);
    place->read = g_hash_table_new_full(NULL, NULL, NULL, arrival_unref);
    if (!cuda_queue_init(&place->compute, device, single))
        return;
    cuda_queue_init(&place->communicate, device, single);
    cuda_queue_check(&place->compute,
                     cudaEventCreateWithFlags(&place->computed, cudaEventDisableTiming),
                     "cudaEventCreate");
}

/* Lets the other GPUs of this process use a GPU's memory: between them NCCL reads and writes the
 * data itself. */
static void share_memory(Cuda *cuda)
{
    for (uint32_t i = 0; i < cuda->n_places; i++)
        for (uint32_t j = 0; j < cuda->n_places; j++)
            if (i != j)
                cuda_queue_share(&cuda->place[i].compute, cuda->place[j].compute.device);
}

/* Joins the GPUs of all processes. */
static void connect_gpus(Cuda *cuda, const ExecCudaWorld *world)
{
    ncclUniqueId id = {{0}};
    if (world->process == 0)
        cuda_check_nccl(cuda, ncclGetUniqueId(&id), "ncclGetUniqueId");
    if (world->n_processes > 1)
        exec_mpi(NULL)->broadcast(&id, sizeof id);
    cuda_teams_connect(cuda, &id);
}

/* How many ranks, the first one's included, lie on the machine of rank `first`. */
static uint32_t machine_ranks(const ExecCudaWorld *world, uint32_t first)
{
    uint32_t n = 1;
    while (first + n < world->n_ranks &&
           world->machine[first + n] == world->machine[first])
        n++;
    return n;
}

/* The ranks [*first, *first + *n) of this process, and the GPU of the first one. */
static bool find_ranks(const ExecCudaWorld *world, uint32_t *first, uint32_t *n,
                       uint32_t *gpu, GError **error)
{
    const uint32_t n_ranks = world->n_ranks, n_processes = world->n_processes;
    uint32_t n_machines = 0;
    *n = n_ranks / n_processes;
    *first = world->process * *n;
    *gpu = n_processes > 1 ? *first % MAX(kilter_cuda_gpus(), 1) : 0;
    if (!world->machine || n_processes == 1)
        return n_ranks % n_processes == 0 ||
               refuse(error, "%u ranks cannot be divided over %u processes", n_ranks,
                      n_processes);
    for (uint32_t at = 0, size; at < n_ranks; at += size, n_machines++) {
        size = machine_ranks(world, at);
        if (n_processes == n_ranks && *first >= at && *first < at + size)
            *gpu = *first - at;
        if (n_processes != n_ranks && n_machines == world->process) {
            *first = at;
            *n = size;
            *gpu = 0;
        }
    }
    return n_processes == n_ranks || n_processes == n_machines ||
           refuse(error,
                  "%u processes: expected one for each of the plan's %u machines, or one "
                  "for each of its %u GPUs",
                  n_processes, n_machines, n_ranks);
}

/* Whether this process sees the GPUs that its ranks need. */
static bool check_gpus(const ExecCudaWorld *world, uint32_t needed, GError **error)
{
    const uint32_t has = kilter_cuda_gpus();
    if (has >= needed)
        return true;
    return kilter_fail(error, KILTER_ERROR_FAILED,
                       "the plan needs %u GPUs here, %u are there%s", needed, has,
                       has > 0 && world->n_processes == 1
                           ? "; --virtual-ranks checks its numbers on one"
                           : "");
}

ExecBackend *kilter_cuda_new(const ExecCudaWorld *world, size_t element_bytes,
                             GError **error)
{
    g_assert(world->half == EXEC_PLAIN || element_bytes == sizeof(float));
    uint32_t first, n_local, gpu;
    if (!find_ranks(world, &first, &n_local, &gpu, error) ||
        !check_gpus(world, world->ranks == EXEC_CUDA_GPUS ? gpu + n_local : 1, error))
        return NULL;
    Cuda *cuda = g_new0(Cuda, 1);
    cuda->base = (ExecBackend){.ops = &CUDA_OPS,
                               .n_ranks = world->n_ranks,
                               .first = first,
                               .n_local = n_local,
                               .element_bytes = element_bytes,
                               .half = world->half,
                               .loss_scale = world->loss_scale};
    cuda->together = world->ranks != EXEC_CUDA_GPUS;
    cuda->n_places = cuda->together ? 1 : n_local;
    cuda->place = g_new0(Place, cuda->n_places);
    for (uint32_t i = 0; i < cuda->n_places; i++)
        place_init(&cuda->place[i], (int)(gpu + i), element_bytes == sizeof(float));
    if (!cuda->together)
        share_memory(cuda);
    for (uint32_t i = 0; i < cuda->n_places; i++)
        cuda->place[i].compute.unscale = 1 / exec_loss_scale(&cuda->base);
    if (!cuda->together && cuda_check(&cuda->base, NULL))
        connect_gpus(cuda, world);
    if (!cuda_check(&cuda->base, error)) {
        cuda_free(&cuda->base);
        return NULL;
    }
    return &cuda->base;
}
