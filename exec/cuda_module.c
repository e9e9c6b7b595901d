/* The cuda backend is a module: its libraries take a quarter of a second and 200 MB to load. */
#include "exec/cuda/module.h"
#include "exec/module.h"

static void *find(const char *symbol, GError **error)
{
    return module_find("cuda", RTLD_LOCAL, symbol,
                       "this build has no CUDA: install the CUDA Toolkit and NCCL, and "
                       "build again",
                       error);
}

bool exec_cuda_built(void)
{
    return module_built("cuda");
}

uint32_t exec_cuda_gpus(void)
{
    uint32_t (*gpus)(void);
    *(void **)&gpus = find("kilter_cuda_gpus", NULL);
    return gpus ? gpus() : 0;
}

ExecBackend *exec_cuda_new(const ExecCudaWorld *world, size_t element_bytes,
                           GError **error)
{
    ExecBackend *(*make)(const ExecCudaWorld *, size_t, GError **);
    *(void **)&make = find("kilter_cuda_new", error);
    return make ? make(world, element_bytes, error) : NULL;
}
