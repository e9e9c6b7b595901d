/* The cuda backend is a module of its own, opened when it is first asked for: its libraries take a
 * quarter of a second and 200 MB to load, which no other command should pay for. */
#include <dlfcn.h>

#include "exec/cuda/module.h"

bool exec_cuda_built(void)
{
    return KILTER_CUDA_MODULE[0] != '\0';
}

/* The address of a function of the module; NULL and an error if there is no module, or if it cannot
 * be loaded here. */
static void *find(const char *name, GError **error)
{
    if (!exec_cuda_built()) {
        kilter_fail(
            error, KILTER_ERROR_FAILED,
            "this build has no CUDA: install the CUDA Toolkit and NCCL, and build "
            "again");
        return NULL;
    }
    void *module = dlopen(KILTER_CUDA_MODULE, RTLD_NOW | RTLD_LOCAL);
    void *function = module ? dlsym(module, name) : NULL;
    if (!function)
        kilter_fail(error, KILTER_ERROR_FAILED, "cannot load the cuda backend: %s",
                    dlerror());
    return function;
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
