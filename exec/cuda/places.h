/* The inside of the cuda backend: its places and their streams (private to exec/cuda). */
#ifndef KILTER_EXEC_CUDA_PLACES_H
#define KILTER_EXEC_CUDA_PLACES_H

#include <cuda_runtime.h>
#include <nccl.h>

#include "exec/cuda/blocks.h"

typedef struct {
    CudaQueue compute, communicate;
    ncclComm_t comm;
    cudaEvent_t computed, exchanged;
    /* Data that an exchange writes and that no computation has waited for yet. */
    GHashTable *arriving;
} Place;

typedef struct {
    ExecBackend base;
    bool together; /* all ranks share one place */
    uint32_t n_places;
    Place *place;
    GError *trouble; /* the first error of NCCL */
} Cuda;

static inline Cuda *as_cuda(ExecBackend *backend)
{
    return (Cuda *)(void *)backend;
}

/* The place of a local rank, whose device becomes the current one. */
Place *cuda_place(ExecBackend *backend, uint32_t local);
/* Keeps the first error that NCCL reports. */
void cuda_check_nccl(Cuda *cuda, ncclResult_t result, const char *call);
/* KILTER_ERROR_FAILED if a queue or NCCL has reported trouble. */
bool cuda_check(ExecBackend *backend, GError **error);
/* As ExecBackendOps.exchange. */
bool cuda_exchange(ExecBackend *backend, const ExecExchange *exchange, GError **error);

#endif
