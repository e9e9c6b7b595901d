/* Modules of backends: looked for beside the program. */
#include "exec/module.h"

#include "data/base/error.h"

/* The module's file: beside the program or in the folder above (a build folder, or a kit of
 * exec/on-device.sh), or where modules are installed; NULL if it was not built. The caller frees
 * it. */
static char *module_file(const char *name)
{
    static const char *const places[] = {".", "..", KILTER_MODULES};
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *folder = self ? g_path_get_dirname(self) : NULL;
    for (uint32_t i = 0; folder && i < G_N_ELEMENTS(places); i++) {
        g_autofree char *place = g_canonicalize_filename(places[i], folder);
        char *file = g_strdup_printf("%s/kilter_%s.so", place, name);
        if (g_file_test(file, G_FILE_TEST_EXISTS))
            return file;
        g_free(file);
    }
    return NULL;
}

bool module_built(const char *name)
{
    g_autofree char *file = module_file(name);
    return file != NULL;
}

void *module_find(const char *name, int flags, const char *symbol, const char *absent,
                  GError **error)
{
    g_autofree char *file = module_file(name);
    void *module = file ? dlopen(file, RTLD_NOW | flags) : NULL;
    void *found = module ? dlsym(module, symbol) : NULL;
    if (!file)
        kilter_fail(error, KILTER_ERROR_FAILED, "%s", absent);
    else if (!found)
        kilter_fail(error, KILTER_ERROR_FAILED, "cannot load the %s backend: %s", name,
                    dlerror());
    return found;
}
