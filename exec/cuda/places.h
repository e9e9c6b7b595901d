/* The inside of the cuda backend: its places and their streams (private to exec/cuda). */
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include "exec/cuda/blocks.h"

/* The end of an exchange on a place: the data that it reads and writes share it. */
typedef struct {
    cudaEvent_t done;
    uint64_t number; /* of the place's exchanges, which end in this order */
} Arrival;

typedef struct {
    CudaQueue compute, communicate;
    cudaEvent_t computed;
    /* exchanges asked for, and the last of them that computation has waited for */
    uint64_t exchanges, waited;
    /* data -> Arrival of the last exchange that writes it, and that reads it, if no computation
     * has waited for that */
    GHashTable *written, *read;
} Place;

typedef struct {
    ExecBackend base;
    bool together; /* all ranks share one place */
    uint32_t n_places;
    Place *place;
    /* ranks, in text -> ncclComm_t[n_places]: the communicators of a set of ranks, NULL outside;
     * "": of all ranks */
    GHashTable *teams;
    GError *trouble; /* the first error of NCCL */
} Cuda;

static inline Cuda *as_cuda(ExecBackend *backend)
{
    return (Cuda *)(void *)backend;
}

/* The place of a local rank, whose device becomes the current one. */
Place *cuda_place(ExecBackend *backend, uint32_t local);
/* The place's computation stream, which first waits for the exchanges that write `data`; or also
 * for those that read it, since `data` is to be overwritten or freed. */
CudaQueue *cuda_place_reads(Place *place, const void *data);
CudaQueue *cuda_place_writes(Place *place, const void *data);
/* Makes the communicators of all ranks: `id` as ncclGetUniqueId made it in the first process. */
void cuda_teams_connect(Cuda *cuda, const ncclUniqueId *id);
/* Frees the communicators of all teams. */
void cuda_teams_free(Cuda *cuda);
/* Keeps the first error that NCCL reports. */
void cuda_check_nccl(Cuda *cuda, ncclResult_t result, const char *call);
/* KILTER_ERROR_FAILED if a queue or NCCL has reported trouble. */
bool cuda_check(ExecBackend *backend, GError **error);
/* As ExecBackendOps.exchange. */
bool cuda_exchange(ExecBackend *backend, const ExecExchange *exchange, GError **error);
