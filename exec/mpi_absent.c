/* Takes the place of the MPI backend where the build found no MPI or no OpenBLAS. */
#include "exec/backend.h"

bool exec_mpi_built(void)
{
    return false;
}

bool exec_mpi_start(uint32_t *n_ranks, uint32_t *rank, GError **error)
{
    *n_ranks = *rank = 0;
    return kilter_fail(error, KILTER_ERROR_FAILED,
                       "this build has no mpi backend: MPI or OpenBLAS was missing "
                       "(libopenmpi-dev, libopenblas-dev: ./run setup installs them, "
                       "./run build then takes them in)");
}

void exec_mpi_stop(void)
{
}

ExecBackend *exec_mpi_new(size_t element_bytes)
{
    (void)element_bytes;
    g_assert_not_reached();
}

void exec_mpi_broadcast(void *data, size_t bytes)
{
    (void)data;
    (void)bytes;
}

void exec_mpi_maximum(double *value, uint32_t n)
{
    (void)value;
    (void)n;
}
