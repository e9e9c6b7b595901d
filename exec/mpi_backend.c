/* The MPI backend: one rank per process. Padded and grouped collectives really differ:
 *
 *     all_gather              one MPI_Allgather of blocks padded to the largest shard
 *     grouped_all_gather      an MPI_Bcast of the exact shard from each rank
 *     reduce_scatter          one MPI_Reduce_scatter_block of padded blocks
 *     grouped_reduce_scatter  an MPI_Reduce of the exact shard to each rank
 *     all_to_all              one MPI_Alltoallv of exact blocks
 *
 * Contractions are done by BLAS; other ops run the reference's kernels, in float32 by way of
 * float64. */
#include <limits.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "data/base/free.h"
#include "data/base/output.h"
#include "exec/host.h"
#include "exec/mpi_backend.h"

static void *mpi_reserve(ExecBackend *backend, uint32_t local, uint64_t elements)
{
    (void)local;
    return g_try_malloc_n(elements + 1, backend->element_bytes);
}

static void mpi_run_op(ExecBackend *backend, uint32_t local, const Graph *graph, OpId op,
                       const ExecShard *in, const ExecShard *out)
{
    if (!blas_contract(&as_mpi(backend)->blas, graph, op, in, out,
                       backend->element_bytes))
        exec_host_run_op(backend, local, graph, op, in, out);
}

static double mpi_seconds(ExecBackend *backend)
{
    (void)backend;
    return MPI_Wtime();
}

static void world_maximum(double *value, uint32_t n)
{
    MPI_Allreduce(MPI_IN_PLACE, value, (int)n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static void mpi_maximum(ExecBackend *backend, double *value, uint32_t n)
{
    (void)backend;
    world_maximum(value, n);
}

static void mpi_free(ExecBackend *backend)
{
    Mpi *mpi = as_mpi(backend);
    g_hash_table_unref(mpi->team);
    free_each(mpi->buffer[SEND], mpi->buffer[RECEIVE], mpi);
}

static const ExecBackendOps MPI_OPS = {
    .name = "mpi",
    .allocate = exec_host_allocate,
    .release = exec_host_release,
    .reserve = mpi_reserve,
    .write = exec_host_write,
    .read = exec_host_read,
    .copy = exec_host_copy,
    .add = exec_host_add,
    .run_op = mpi_run_op,
    .exchange = mpi_exchange,
    .free = mpi_free,
    .seconds = mpi_seconds,
    .maximum = mpi_maximum,
};

/* --- the world --- */

/* Keeps freed memory in the process instead of returning it, so that ops that need scratch do not
 * fetch it anew page by page: times then grow evenly with sizes. */
static void keep_memory(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

/* Once all ranks have each other's memory, its files need no names, and a killed command leaves
 * none behind: each pair exchanges a byte, then the folder goes. */
static void forget_shared(int size, int rank)
{
    const char *folder = g_getenv("OMPI_MCA_btl_vader_backing_directory");
    if (!folder || !g_str_has_prefix(folder, EXEC_SHARED))
        return;
    for (int i = 1; i < size; i++) {
        char in = 0, out = 0;
        MPI_Sendrecv(&out, 1, MPI_BYTE, (rank + i) % size, 0, &in, 1, MPI_BYTE,
                     (rank + size - i) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        output_forget(folder);
}

static bool world_start(uint32_t *n_ranks, uint32_t *rank, GError **error)
{
    int provided, size = 0, place = 0;
    Blas blas;
    if (!blas_open(&blas, error) ||
        !mpi_check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided),
                   "MPI_Init", error))
        return false;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &place);
    *n_ranks = (uint32_t)size;
    *rank = (uint32_t)place;
    keep_memory();
    forget_shared(size, place);
    return true;
}

static void world_stop(void)
{
    MPI_Finalize();
}

static void world_broadcast(void *data, size_t bytes)
{
    MPI_Bcast(data, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static ExecBackend *mpi_new(size_t element_bytes)
{
    int size = 0, rank = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    Mpi *mpi = g_new0(Mpi, 1);
    mpi->base = (ExecBackend){.ops = &MPI_OPS,
                              .n_ranks = (uint32_t)size,
                              .first = (uint32_t)rank,
                              .n_local = 1,
                              .element_bytes = element_bytes};
    mpi->rank = (uint32_t)rank;
    const bool good = blas_open(&mpi->blas, NULL);
    g_assert(good); /* world_start has checked it */
    mpi->team = text_table(mpi_team_free);
    mpi->type = element_bytes == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT;
    return &mpi->base;
}

const ExecMpi kilter_mpi = {
    .start = world_start,
    .stop = world_stop,
    .backend_new = mpi_new,
    .broadcast = world_broadcast,
    .maximum = world_maximum,
};
