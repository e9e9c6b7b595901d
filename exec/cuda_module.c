/* The cuda backend is a module of its own, opened when it is first asked for: its libraries take a
 * quarter of a second and 200 MB to load, which no other command should pay for. */
#include <dlfcn.h>

#include "exec/cuda/module.h"

/* The module's file: beside the program or in the folder above (a build folder, or a kit of
 * exec/on-device.sh), or where it is installed, else where it was built; NULL if it was not. The
 * caller frees it. */
static char *module_file(void)
{
    static const char *const places[] = {"kilter_cuda.so", "../kilter_cuda.so",
                                         KILTER_CUDA_INSTALLED};
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *folder = self ? g_path_get_dirname(self) : NULL;
    for (uint32_t i = 0; folder && i < G_N_ELEMENTS(places); i++) {
        g_autofree char *file = g_build_filename(folder, places[i], NULL);
        if (g_file_test(file, G_FILE_TEST_EXISTS))
            return g_steal_pointer(&file);
    }
    return *KILTER_CUDA_MODULE ? g_strdup(KILTER_CUDA_MODULE) : NULL;
}

bool exec_cuda_built(void)
{
    g_autofree char *file = module_file();
    return file != NULL;
}

/* The address of a function of the module; NULL and an error if there is no module, or if it cannot
 * be loaded here. */
static void *find(const char *name, GError **error)
{
    g_autofree char *file = module_file();
    if (!file) {
        kilter_fail(
            error, KILTER_ERROR_FAILED,
            "this build has no CUDA: install the CUDA Toolkit and NCCL, and build "
            "again");
        return NULL;
    }
    void *module = dlopen(file, RTLD_NOW | RTLD_LOCAL);
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
