/* Fuzz target: a CSV file as a profile of layers is refused with one line, or its times are those
 * of layers in order, which a model of as many layers takes as they are, all of them. */
#include <math.h>
#include <string.h>

#include "data/data.h"
#include "tests/fuzz/fuzz.h"

/* Times of a model with as many repeated layers as the rows have, by the first word of the GPU's
 * name. */
static void check_model(const LayerProfile *profile, const LayerTime *wanted)
{
    static Graph *graph[2]; /* made once, since a fuzzer calls this a million times */
    g_autofree char *type = g_strndup(wanted->gpu, strcspn(wanted->gpu, " "));
    const uint32_t tmp = wanted->tmp, mbs = wanted->mbs;
    for (uint32_t i = 0; i < G_N_ELEMENTS(graph); i++) {
        g_autofree char *model = g_strdup_printf(
            "gpt2:layers=%u,hidden=4,heads=2,ffn=4,seq=2,vocab=4,global_batch=8", i + 1);
        if (!graph[i])
            graph[i] = model_build(model, 1, NULL, NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(GPtrArray) times =
            layer_profile_select(profile, type, graph_name(graph[i]), tmp, mbs);
        g_autofree double *forward_s = g_new0(double, graph_n_layers(graph[i]));
        double whole_s = 0, sum_s = 0;
        for (guint k = 0; k < times->len; k++)
            whole_s += ((const LayerTime *)times->pdata[k])->forward_s;
        if (!layer_profile_forward(profile, graph[i], type, tmp, mbs, forward_s,
                                   &error)) {
            fuzz_check_refused(error, profile->file);
            continue;
        }
        fuzz_check(times->len > 0, "of rows");
        for (uint32_t l = 0; l < graph_n_layers(graph[i]); l++)
            sum_s += forward_s[l];
        fuzz_check(fabs(sum_s - whole_s) <= 1e-9 * whole_s, "all times belong to layers");
    }
}

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
        fuzz_note("%s %s %u %u %u %s %.12g", t->gpu, t->model, t->tmp, t->mbs, t->layer,
                  t->kind, t->forward_s);
        fuzz_check(i == 0 || t[-1].layer <= t->layer, "by layer");
    }
    if (profile->times->len > 0)
        check_model(profile, &g_array_index(profile->times, LayerTime, 0));
    return true;
}
