/* The mpi backend is a module: MPI and what it needs would be a quarter of all libraries, and load
 * longest. Their names are visible to the modules of MPI itself. */
#include "exec/backend.h"
#include "exec/module.h"

bool exec_mpi_built(void)
{
    return module_built("mpi");
}

const ExecMpi *exec_mpi(GError **error)
{
    static const ExecMpi *mpi;
    if (!mpi)
        mpi = module_find(
            "mpi", RTLD_GLOBAL, "kilter_mpi",
            "no mpi backend: kilter_mpi.so is neither beside the program nor installed; "
            "a "
            "build makes it where MPI and OpenBLAS are (libopenmpi-dev, libopenblas-dev: "
            "./run setup installs them)",
            error);
    return mpi;
}
