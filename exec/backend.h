/* A backend: where a program's devices ("ranks") keep their shards, compute and communicate.
 *
 * A backend holds some of the n_ranks ranks, [first, first + n_local): all of them in one process
 * (reference), or one (mpi). Every process that holds ranks makes the same calls in the same order.
 * Exec's replay (exec/replay.h) is the caller: it knows programs, forms and ratios; a backend knows
 * shards, ops and exchanges (one collective or transfer of one tensor).
 *
 *     backend     ranks               numbers             collectives
 *     reference   all, interleaved    float64             copies and sums in memory
 *     mpi         one per process     float64 or float32  MPI
 *     cuda        one per GPU         float64 or float32  NCCL
 *     cuda        all on one GPU      float64 or float32  copies in its memory, never timed
 *
 * In float32 the cuda backend also keeps tensors in half precision (DTYPE_F16) as fp16 or bf16, as
 * training in mixed precision does: kernels read and write them and compute in float32, products of
 * such matrices take two bytes each and add up in float32, and the optimizer works on float32
 * copies. */
#pragma once

#include "data/cluster/collective.h"
#include "exec/tensor.h"

/* How a shard's numbers are stored: as the backend computes, or in two bytes. */
typedef enum { EXEC_PLAIN, EXEC_FP16, EXEC_BF16 } ExecNumbers;

/* A rank's part of a tensor, row-major in a backend's memory: its dims and its place in the whole
 * tensor. */
typedef struct {
    uint32_t rank;
    uint32_t dim[TENSOR_MAX_RANK];
    uint32_t offset[TENSOR_MAX_RANK];
    ExecNumbers numbers;
    void *data;
} ExecShard;

uint64_t exec_shard_elements(const ExecShard *shard);

/* The part of a whole tensor that a shard has: the tensor itself where it has all, else a copy that
 * the caller clears. */
ExecTensor exec_shard_of(const ExecTensor *whole, const ExecShard *shard);

/* The part of the whole tensor that both shards cover, without memory; false if there is none. */
bool exec_shard_overlap(const ExecShard *a, const ExecShard *b, ExecShard *overlap);

/* Copies the part of the whole tensor that both shards cover; elements of `size` bytes in host
 * memory. */
void exec_overlap_copy(const ExecShard *from, const ExecShard *to, size_t size);

/* Adds a shard to another of its shape; numbers of `size` bytes in host memory. */
void exec_shard_add(const ExecShard *from, const ExecShard *to, size_t size);

/* An exchange: one collective, or one transfer, of one tensor among several ranks. In forms Reduce
 * and Identity every rank's shard is the whole tensor. ALL_TO_ALL from a dim to the same dim cuts
 * it anew (at the boundary of two segments). An ALL_REDUCE may work in place: from and to with the
 * same data. */
typedef struct {
    Collective kind;       /* a priced one */
    const ExecShard *from; /* [n_ranks]: shapes of all shards, data of the local ones */
    ExecShard *to;         /* [n_ranks]: the same, allocated */
    uint32_t server;       /* ALL_REDUCE: 1 + the member that sums for all; 0: none */
    uint32_t n_members;    /* only these ranks take part, in that order; 0: all do */
    const uint32_t *member;
} ExecExchange;

/* How many ranks take part in an exchange, and the i-th of them. */
static inline uint32_t exec_exchange_size(const ExecExchange *e, uint32_t n_ranks)
{
    return e->n_members ? e->n_members : n_ranks;
}
static inline uint32_t exec_exchange_rank(const ExecExchange *e, uint32_t i)
{
    return e->n_members ? e->member[i] : i;
}

typedef struct ExecBackend ExecBackend;

/* Memory of the device that has most in use; 0: unknown. */
typedef struct {
    /* most that was allocated at once, temporary memory of ops included */
    uint64_t peak_bytes;
    /* in use now, by contexts, libraries and other programs as well */
    uint64_t device_bytes;
} ExecMemory;

typedef struct {
    const char *name;

    /* --- REQUIRED --- */

    /* Room for `elements` numbers of local rank `local` (counted from 0), all zero; NULL if memory
     * runs out. */
    void *(*allocate)(ExecBackend *backend, uint32_t local, uint64_t elements);
    void (*release)(ExecBackend *backend, uint32_t local, void *data);

    /* Copies a whole shard from and to the host's float64. */
    void (*write)(ExecBackend *backend, uint32_t local, const ExecShard *to,
                  const double *from);
    void (*read)(ExecBackend *backend, uint32_t local, const ExecShard *from, double *to);

    /* Zeros `to`, then copies the part that both shards of a rank cover: slice, pad, and
     * replicas. `from` may be NULL: nothing. */
    void (*copy)(ExecBackend *backend, uint32_t local, const ExecShard *from,
                 const ExecShard *to);

    /* Adds a rank's shard to another of its shape. */
    void (*add)(ExecBackend *backend, uint32_t local, const ExecShard *from,
                const ExecShard *to);

    void (*run_op)(ExecBackend *backend, uint32_t local, const Graph *graph, OpId op,
                   const ExecShard *in, const ExecShard *out);

    /* KILTER_ERROR_FAILED if the exchange cannot be made (a large message, a failing network). */
    bool (*exchange)(ExecBackend *backend, const ExecExchange *exchange, GError **error);

    void (*free)(ExecBackend *backend);

    /* --- OPTIONAL, with default --- */

    /* Room with any contents. Default: allocate. */
    void *(*reserve)(ExecBackend *backend, uint32_t local, uint64_t elements);

    /* Waits until all work asked for so far is done. Default: it always is. */
    void (*synchronise)(ExecBackend *backend);
    /* Seconds since an arbitrary moment. Default: the monotonic clock. */
    double (*seconds)(ExecBackend *backend);

    /* Whether all work asked for so far went well. Default: it did. */
    bool (*check)(ExecBackend *backend, GError **error);

    /* The memory of this process's devices. The peak is that since the call before. Default: all
     * unknown. */
    ExecMemory (*memory)(ExecBackend *backend);

    /* --- OPTIONAL --- */

    /* Replaces each number by its maximum over all processes. NULL: there is one process. */
    void (*maximum)(ExecBackend *backend, double *value, uint32_t n);
} ExecBackendOps;

struct ExecBackend {
    const ExecBackendOps *ops;
    uint32_t n_ranks;
    uint32_t first, n_local; /* ranks held by this process */
    size_t element_bytes;    /* of a plain number: 8 or 4 */
    ExecNumbers half;        /* how tensors in half precision are stored */
    /* the gradient of the loss is this, and gradients of parameters are divided by it in
     * updates; 0: 1 */
    double loss_scale;
};

/* How the backend stores a tensor. */
static inline ExecNumbers exec_numbers_of(const ExecBackend *backend,
                                          const Tensor *tensor)
{
    return tensor->dtype == DTYPE_F16 ? backend->half : EXEC_PLAIN;
}
/* Bytes of a shard, and how many plain numbers take as much room. */
uint64_t exec_shard_bytes(const ExecBackend *backend, const ExecShard *shard);
uint64_t exec_shard_room(const ExecBackend *backend, const ExecShard *shard);
static inline double exec_loss_scale(const ExecBackend *backend)
{
    return backend->loss_scale > 0 ? backend->loss_scale : 1;
}

/* Frees any backend. */
AUTOPTR(exec_backend_free, ExecBackend)

/* The optional members, or their defaults. */
void *exec_backend_reserve(ExecBackend *backend, uint32_t local, uint64_t elements);
void exec_backend_synchronise(ExecBackend *backend);
double exec_backend_seconds(ExecBackend *backend);
bool exec_backend_check(ExecBackend *backend, GError **error);
ExecMemory exec_backend_memory(ExecBackend *backend);
void exec_backend_maximum(ExecBackend *backend, double *value, uint32_t n);

/* All ranks in this process, interleaved, in plain C and float64: what backends must compute. */
ExecBackend *exec_reference_new(uint32_t n_ranks);

/* --- mpi: one rank per process, contractions by OpenBLAS, collectives by MPI --- */

/* Folders begin so in which Open MPI is told to keep the memory that ranks share; `start` removes
 * them. */
#define EXEC_SHARED "/dev/shm/kilter-"

typedef struct {
    /* Joins the world of the process, once; *n_ranks gets its size. */
    bool (*start)(uint32_t *n_ranks, uint32_t *rank, GError **error);
    /* Leaves MPI's world. A process that failed must not wait for the others here: it just exits,
     * and mpirun ends them. */
    void (*stop)(void);
    /* After `start`: the backend with numbers of 8 (float64) or 4 bytes (float32). */
    ExecBackend *(*backend_new)(size_t element_bytes);
    /* Over all processes, after `start`: every process gets the first one's bytes; the largest
     * value of each number. */
    void (*broadcast)(void *data, size_t bytes);
    void (*maximum)(double *value, uint32_t n);
} ExecMpi;

/* Whether this build has the mpi backend. */
bool exec_mpi_built(void);
/* A module, which the first call loads. NULL with KILTER_ERROR_FAILED: without MPI. */
const ExecMpi *exec_mpi(GError **error);

/* --- cuda: contractions by cuBLAS, own kernels for the rest (exec/cuda), collectives by NCCL
 * --- */

typedef enum {
    EXEC_CUDA_GPUS,    /* one GPU per rank */
    EXEC_CUDA_VIRTUAL, /* all ranks on the first GPU, one after the other */
} ExecCudaRanks;

typedef struct {
    ExecCudaRanks ranks;
    uint32_t n_ranks;
    uint32_t process, n_processes; /* if several: after ExecMpi.start */
    /* [n_ranks], equal ones side by side: the machine of each rank. Several processes are one for
     * each machine, or one for each rank; a machine's ranks take its GPUs in their order. NULL:
     * each process holds equally many ranks. */
    const uint32_t *machine;
    ExecNumbers half;  /* of tensors in half precision, with numbers of 4 bytes */
    double loss_scale; /* as in ExecBackend */
} ExecCudaWorld;

/* Whether the cuda backend is there, built or beside the program; how many GPUs a process sees. */
bool exec_cuda_built(void);
uint32_t exec_cuda_gpus(void);

/* The cuda backend with numbers of 8 or 4 bytes. KILTER_ERROR_FAILED without CUDA, with too few
 * GPUs, or where NCCL cannot join them. */
ExecBackend *exec_cuda_new(const ExecCudaWorld *world, size_t element_bytes,
                           GError **error);
