/* In place of the CUDA backend where the build has no CUDA Toolkit or no NCCL. */
#include "exec/backend.h"

bool exec_cuda_built(void)
{
    return false;
}

uint32_t exec_cuda_gpus(void)
{
    return 0;
}

ExecBackend *exec_cuda_new(const ExecCudaWorld *world, size_t element_bytes,
                           GError **error)
{
    (void)world;
    (void)element_bytes;
    kilter_fail(
        error, KILTER_ERROR_FAILED,
        "this build has no CUDA: install the CUDA Toolkit and NCCL, and build again");
    return NULL;
}
