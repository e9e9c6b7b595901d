/* Reading a layer profile. */
#include "data/formats/measured/layer_profile.h"

#include <string.h>

#include "data/base/csv.h"
#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/order.h"

static const char *const COLUMN[] = {
    "gpu", "model", "tmp", "layer_index", "layer_kind", "fwd_time_s_per_sample", NULL};

static CLEAR_DEFINE(clear_time, LayerTime, time,
                    free_each(time->gpu, time->model, time->kind));

FREE_DEFINE(layer_profile_free, LayerProfile, profile, g_free(profile->file),
            g_array_unref(profile->times));

/* No layer takes longer. */
static const double LONGEST_S = 1e6;

static bool layer_profile_read_row(const Csv *csv, void *times, GError **error)
{
    LayerTime time = {.mbs = 1};
    if (!csv_count(csv, "tmp", 1, UINT32_MAX, &time.tmp, error) ||
        !csv_count(csv, "layer_index", 0, UINT32_MAX, &time.layer, error) ||
        !csv_number(csv, "fwd_time_s_per_sample", 0, LONGEST_S, &time.forward_s, error) ||
        (csv_has(csv, "mbs") && !csv_count(csv, "mbs", 1, UINT32_MAX, &time.mbs, error)))
        return false;
    time.gpu = g_strdup(csv_text(csv, "gpu"));
    time.model = g_strdup(csv_text(csv, "model"));
    time.kind = g_strdup(csv_text(csv, "layer_kind"));
    g_array_append_val((GArray *)times, time);
    return true;
}

static ORDER_DEFINE(by_layer, LayerTime, ASCENDING(layer));

LayerProfile *layer_profile_read(const char *file, GError **error)
{
    g_autoptr(LayerProfile) profile = g_new0(LayerProfile, 1);
    profile->file = g_strdup(file);
    profile->times = array_owning(LayerTime, clear_time);
    g_autoptr(Csv) csv = csv_read(file, error);
    if (!csv || !csv_expect(csv, COLUMN, NULL, error) ||
        !csv_each(csv, layer_profile_read_row, profile->times, error))
        return NULL;
    g_array_sort(profile->times, by_layer);
    return g_steal_pointer(&profile);
}

bool layer_profile_option(const char *file, const char **kept, GError **error)
{
    const bool is_pipe =
        !g_file_test(file, G_FILE_TEST_IS_REGULAR); /* read once, later */
    g_autoptr(LayerProfile) profile = is_pipe ? NULL : layer_profile_read(file, error);
    *kept = g_intern_string(file);
    return is_pipe || profile;
}

/* Whether a profile's gpu names the cluster's device type `type`. */
static bool layer_profile_is_gpu(const char *gpu, const char *type)
{
    const size_t n = strcspn(gpu, " ");
    return n == strlen(type) && g_ascii_strncasecmp(gpu, type, n) == 0;
}

GPtrArray *layer_profile_select(const LayerProfile *profile, const char *type,
                                const char *model, uint32_t tmp, uint32_t mbs)
{
    GPtrArray *found = g_ptr_array_new();
    array_each (LayerTime, time, profile->times)
        if (time->tmp == tmp && time->mbs == mbs && strcmp(time->model, model) == 0 &&
            layer_profile_is_gpu(time->gpu, type) && strcmp(time->kind, "aux") != 0)
            g_ptr_array_add(found, time);
    return found;
}

/* Layers of the graph with attention, in order. */
static GArray *transformer_layers(const Graph *graph)
{
    GArray *layers = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    ops_each (op, id, graph) {
        if (op_kind_is_attention(op->kind))
            g_array_append_val(layers, op->layer);
    }
    return layers;
}

bool layer_profile_forward(const LayerProfile *profile, const Graph *graph,
                           const char *type, uint32_t tmp, uint32_t mbs,
                           double *forward_s, GError **error)
{
    g_autoptr(GPtrArray) times =
        layer_profile_select(profile, type, graph_name(graph), tmp, mbs);
    g_autoptr(GArray) repeated = transformer_layers(graph);
    uint32_t profiled = 0, seen = 0;
    if (times->len == 0)
        return refuse(error,
                      "profile %s: expected rows of gpu %s, model %s, tmp %u, mbs %u",
                      profile->file, type, graph_name(graph), tmp, mbs);
    pointers_each (const LayerTime, time, times)
        profiled += g_str_has_prefix(time->kind, "transformer");
    if (profiled != repeated->len)
        return refuse(error, "profile %s: %s has %u transformer layers, expected %u",
                      profile->file, graph_name(graph), profiled, repeated->len);
    for (uint32_t l = 0; l < graph_n_layers(graph); l++)
        forward_s[l] = 0;
    pointers_each (const LayerTime, time, times) {
        uint32_t layer = seen == 0 ? 0 : graph_n_layers(graph) - 1;
        if (g_str_has_prefix(time->kind, "transformer"))
            layer = g_array_index(repeated, uint32_t, seen++);
        else if (seen > 0 && seen < repeated->len)
            layer = g_array_index(repeated, uint32_t, seen - 1);
        forward_s[layer] += time->forward_s;
    }
    return true;
}
