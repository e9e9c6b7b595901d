/* A backend: where a program's devices ("ranks") keep their shards, compute and communicate.
 *
 * A backend holds some of the n_ranks ranks, [first, first + n_local): all of them in one process
 * (reference), or one (mpi). Every process that holds ranks makes the same calls in the same order.
 * Exec's replay (exec/replay.h) is the caller: it knows programs, forms and ratios; a backend knows
 * shards, ops and exchanges.
 *
 *     backend     ranks             numbers             collectives
 *     reference   all, interleaved  float64             copies and sums in memory
 *     mpi         one per process     float64 or float32  MPI
 *     cuda        one per GPU         float64 or float32  NCCL
 *     cuda        all on one GPU    float64 or float32  copies in its memory: for numbers, never for times */
#ifndef KILTER_EXEC_BACKEND_H
#define KILTER_EXEC_BACKEND_H

#include "exec/tensor.h"

/* A rank's part of a tensor in a backend's memory: dims and place in the whole tensor;
 * row-major. */
typedef struct {
    uint32_t rank;
    uint32_t dim[TENSOR_MAX_RANK];
    uint32_t offset[TENSOR_MAX_RANK];
    void *data;
} ExecShard;

uint64_t exec_shard_elements(const ExecShard *shard);

/* The part of the whole tensor that both cover, without memory; false if there is none. */
bool exec_shard_overlap(const ExecShard *a, const ExecShard *b, ExecShard *overlap);

/* Copies what both shards cover of the whole tensor; elements of `size` bytes in host memory. */
void exec_overlap_copy(const ExecShard *from, const ExecShard *to, size_t size);

/* Adds a shard to another of its shape; numbers of `size` bytes in host memory. */
void exec_shard_add(const ExecShard *from, const ExecShard *to, size_t size);

/* A conversion of one tensor that needs more than one rank. Of forms Reduce and Identity every
 * rank's shard is the whole tensor. ALL_TO_ALL from a dim to the same dim cuts it anew (at the
 * boundary of two segments). */
typedef struct {
    Collective kind;       /* a priced one */
    const ExecShard *from; /* [n_ranks]: shapes of all; data of the local ones */
    ExecShard *to;         /* [n_ranks]: the same, allocated */
    uint32_t
        server; /* ALL_REDUCE: 1 + which of those that take part sums for all; 0: none */
    uint32_t n_members; /* only these ranks take part, in that order; 0: all do */
    const uint32_t *member;
} ExecExchange;

/* How many ranks take part, and the i-th of them. */
static inline uint32_t exec_exchange_size(const ExecExchange *e, uint32_t n_ranks)
{
    return e->n_members ? e->n_members : n_ranks;
}
static inline uint32_t exec_exchange_rank(const ExecExchange *e, uint32_t i)
{
    return e->n_members ? e->member[i] : i;
}

typedef struct ExecBackend ExecBackend;

typedef struct {
    const char *name;

    /* --- REQUIRED --- */

    /* Room for that many elements of a local rank (counted from 0), all zero; NULL if memory
     * lacks. */
    void *(*allocate)(ExecBackend *backend, uint32_t local, uint64_t elements);
    void (*release)(ExecBackend *backend, uint32_t local, void *data);

    /* Copies a whole shard from and to the host's float64. */
    void (*write)(ExecBackend *backend, uint32_t local, const ExecShard *to,
                  const double *from);
    void (*read)(ExecBackend *backend, uint32_t local, const ExecShard *from, double *to);

    /* Zeros `to`, then copies what both shards of a rank cover: slice, pad, and replicas. */
    void (*copy)(ExecBackend *backend, uint32_t local, const ExecShard *from,
                 const ExecShard *to);

    /* Adds a rank's shard to another of its shape. */
    void (*add)(ExecBackend *backend, uint32_t local, const ExecShard *from,
                const ExecShard *to);

    void (*run_op)(ExecBackend *backend, uint32_t local, const Graph *graph, OpId op,
                   const ExecShard *in, const ExecShard *out);

    /* KILTER_ERROR_FAILED if the exchange cannot be made (too large a message, a failing
     * network). */
    bool (*exchange)(ExecBackend *backend, const ExecExchange *exchange, GError **error);

    void (*free)(ExecBackend *backend);

    /* --- OPTIONAL, with default --- */

    /* Waits until all that was asked for is done. Default: it always is. */
    void (*synchronise)(ExecBackend *backend);
    /* Seconds since some moment. Default: the monotonic clock. */
    double (*seconds)(ExecBackend *backend);

    /* Whether all that was asked for so far went well. Default: it did. */
    bool (*check)(ExecBackend *backend, GError **error);

    /* --- OPTIONAL --- */

    /* Replaces each number by its maximum over all processes. NULL: there is one. */
    void (*maximum)(ExecBackend *backend, double *value, uint32_t n);
} ExecBackendOps;

struct ExecBackend {
    const ExecBackendOps *ops;
    uint32_t n_ranks;
    uint32_t first, n_local; /* ranks held by this process */
    size_t element_bytes;    /* of a shard: 8 or 4 */
};

/* Frees any backend. */
void exec_backend_free(ExecBackend *backend);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExecBackend, exec_backend_free)

/* The optional members, or their defaults. */
void exec_backend_synchronise(ExecBackend *backend);
double exec_backend_seconds(ExecBackend *backend);
bool exec_backend_check(ExecBackend *backend, GError **error);
void exec_backend_maximum(ExecBackend *backend, double *value, uint32_t n);

/* All ranks in this process, interleaved, in plain C and float64: what every backend must
 * compute. */
ExecBackend *exec_reference_new(uint32_t n_ranks);

/* --- mpi: one rank per process, contractions by OpenBLAS, collectives by MPI --- */

/* Whether this build has it. */
bool exec_mpi_built(void);

/* Joins the world of the process, once; *n_ranks gets its size. KILTER_ERROR_FAILED without MPI. */
bool exec_mpi_start(uint32_t *n_ranks, uint32_t *rank, GError **error);
/* Leaves it. A process that failed must not wait for the others here: it just exits, and mpirun
 * ends them. */
void exec_mpi_stop(void);

/* Numbers of 8 (float64) or 4 bytes (float32). After exec_mpi_start. */
ExecBackend *exec_mpi_new(size_t element_bytes);

/* Over all processes, after exec_mpi_start: bytes of the first; the largest of each number. */
void exec_mpi_broadcast(void *data, size_t bytes);
void exec_mpi_maximum(double *value, uint32_t n);

/* --- cuda: contractions by cuBLAS, own kernels for the rest (exec/cuda), collectives by NCCL
 * --- */

typedef enum {
    EXEC_CUDA_GPUS,    /* a GPU a rank */
    EXEC_CUDA_VIRTUAL, /* all ranks on the first GPU, one after the other */
    EXEC_CUDA_HOST, /* the same on no GPU: the kernels' bodies on this thread, to test them */
} ExecCudaRanks;

typedef struct {
    ExecCudaRanks ranks;
    uint32_t n_ranks;
    uint32_t process,
        n_processes; /* several: each holds as many ranks, on its own GPUs; after exec_mpi_start */
} ExecCudaWorld;

/* Whether this build has it, and how many GPUs this process sees. */
bool exec_cuda_built(void);
uint32_t exec_cuda_gpus(void);

/* Numbers of 8 or 4 bytes. KILTER_ERROR_FAILED without CUDA, with too few GPUs, or where NCCL
 * cannot join them. */
ExecBackend *exec_cuda_new(const ExecCudaWorld *world, size_t element_bytes,
                           GError **error);

#endif
