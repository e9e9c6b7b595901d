/* The inside of the mpi backend (private to exec). */
#pragma once

#include <mpi.h>

#include "exec/blas.h"

typedef struct {
    ExecBackend base;
    MPI_Datatype type;
    uint32_t rank;
    void *buffer[2]; /* to send from, to receive into */
    uint64_t capacity[2];
    GHashTable *team; /* ranks as text -> Team */
    Blas blas;
} Mpi;

/* The ranks of an exchange. */
typedef struct {
    MPI_Comm comm;
    uint32_t n, me; /* ranks, and the place of this process among them */
} Team;

enum { SEND, RECEIVE }; /* places in Mpi.buffer */

static inline Mpi *as_mpi(ExecBackend *backend)
{
    return (Mpi *)(void *)backend;
}

/* KILTER_ERROR_FAILED with MPI's own words unless `code` is MPI_SUCCESS. */
bool mpi_check(int code, const char *call, GError **error);
/* The module is looked up for this (exec/mpi_module.c). */
extern __attribute__((visibility("default"))) const ExecMpi kilter_mpi;

void mpi_team_free(gpointer team);
/* As ExecBackendOps.exchange. */
bool mpi_exchange(ExecBackend *backend, const ExecExchange *exchange, GError **error);
