/* Fuzz target: a CSV file as a profile of layers is refused with one line, or its times are those of layers in order. */
#include <math.h>

#include "data/data.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const void *data, size_t size)
{
    int memory;
    g_autoptr(GError) error = NULL;
    g_autofree char *file = fuzz_file_open(data, size, &memory);
    g_autoptr(LayerProfile) profile = layer_profile_read(file, &error);
    fuzz_file_close(memory);
    fuzz_check(!profile == !!error, "either a profile or an error");
    if (!profile) {
        fuzz_check_refused(error, file);
        return false;
    }
    for (guint i = 0; i < profile->times->len; i++) {
        const LayerTime *t = &g_array_index(profile->times, LayerTime, i);
        fuzz_check(isfinite(t->forward_s) && t->forward_s >= 0 && t->tmp > 0 &&
                       t->mbs > 0 && t->gpu && t->model && t->kind,
                   "a layer's time");
        fuzz_check(i == 0 || t[-1].layer <= t->layer, "by layer");
    }
    return true;
}
