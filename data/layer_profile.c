#include "data/layer_profile.h"

#include "data/error.h"

#include <math.h>
#include <string.h>

enum { GPU, MODEL, TMP, LAYER, KIND, FORWARD, MBS, COLUMNS };
static const char *const column_name[COLUMNS] = {
    "gpu", "model", "tmp", "layer_index", "layer_kind", "fwd_time_s_per_sample", "mbs"};

static void clear_time(void *data)
{
    LayerTime *time = data;
    g_free(time->gpu);
    g_free(time->model);
    g_free(time->kind);
}

void layer_profile_free(LayerProfile *profile)
{
    if (!profile)
        return;
    g_free(profile->file);
    g_array_unref(profile->times);
    g_free(profile);
}

/* Where each column is, -1 for a missing `mbs`. */
static bool find_columns(const char *file, const char *header, int column[COLUMNS],
                         GError **error)
{
    g_auto(GStrv) name = g_strsplit(header, ",", -1);
    for (int c = 0; c < COLUMNS; c++) {
        column[c] = -1;
        for (int i = 0; name[i]; i++)
            if (strcmp(g_strstrip(name[i]), column_name[c]) == 0)
                column[c] = i;
        if (column[c] < 0 && c != MBS)
            return kilter_fail(error, KILTER_ERROR_INPUT,
                               "%s:1: expected a column '%s', got '%s'", file,
                               column_name[c], header);
    }
    return true;
}

/* The number in a field, at least `min`; NaN if it is none. */
static double number_in(char **field, int column, double min)
{
    char *end;
    const double number = g_ascii_strtod(field[column], &end);
    return end == field[column] || *end || !isfinite(number) || number < min ? NAN
                                                                             : number;
}

static bool read_row(LayerProfile *profile, uint32_t line, const char *text,
                     const int column[COLUMNS], GError **error)
{
    g_auto(GStrv) field = g_strsplit(text, ",", -1);
    const int n = (int)g_strv_length(field);
    double number[COLUMNS] = {[MBS] = 1};
    for (int c = 0; c < COLUMNS; c++) {
        if (column[c] < 0)
            continue;
        if (column[c] >= n)
            return kilter_fail(error, KILTER_ERROR_INPUT,
                               "%s:%u: expected %d columns, got %d", profile->file, line,
                               column[c] + 1, n);
        g_strstrip(field[column[c]]);
        const bool is_text = c == GPU || c == MODEL || c == KIND;
        const bool is_count = c == TMP || c == MBS;
        if (is_text)
            continue;
        number[c] = number_in(field, column[c], is_count ? 1 : 0);
        if (isnan(number[c]) || (c != FORWARD && number[c] != floor(number[c])))
            return kilter_fail(error, KILTER_ERROR_INPUT,
                               "%s:%u: column '%s': expected %s, got '%s'", profile->file,
                               line, column_name[c],
                               c == FORWARD ? "seconds"
                               : is_count   ? "an integer from 1"
                                            : "an integer from 0",
                               field[column[c]]);
    }
    const LayerTime time = {.gpu = g_strdup(field[column[GPU]]),
                            .model = g_strdup(field[column[MODEL]]),
                            .kind = g_strdup(field[column[KIND]]),
                            .tmp = (uint32_t)number[TMP],
                            .mbs = (uint32_t)number[MBS],
                            .layer = (uint32_t)number[LAYER],
                            .forward_s = number[FORWARD]};
    g_array_append_val(profile->times, time);
    return true;
}

static int by_layer(gconstpointer a, gconstpointer b)
{
    const LayerTime *x = a, *y = b;
    return (x->layer > y->layer) - (x->layer < y->layer);
}

LayerProfile *layer_profile_read(const char *file, GError **error)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) failure = NULL;
    if (!g_file_get_contents(file, &text, NULL, &failure)) {
        kilter_fail(error, KILTER_ERROR_INPUT, "profile: %s", failure->message);
        return NULL;
    }
    g_autoptr(LayerProfile) profile = g_new0(LayerProfile, 1);
    profile->file = g_strdup(file);
    profile->times = g_array_new(FALSE, FALSE, sizeof(LayerTime));
    g_array_set_clear_func(profile->times, clear_time);
    g_auto(GStrv) line = g_strsplit(text, "\n", -1);
    int column[COLUMNS];
    if (!find_columns(file, g_strchomp(line[0]), column, error))
        return NULL;
    for (uint32_t i = 1; line[i]; i++)
        if (*g_strchomp(line[i]) && !read_row(profile, i + 1, line[i], column, error))
            return NULL;
    g_array_sort(profile->times, by_layer);
    return g_steal_pointer(&profile);
}

bool layer_profile_is_gpu(const char *gpu, const char *type)
{
    const size_t n = strcspn(gpu, " ");
    return n == strlen(type) && g_ascii_strncasecmp(gpu, type, n) == 0;
}

GPtrArray *layer_profile_select(const LayerProfile *profile, const char *type,
                                const char *model, uint32_t tmp, uint32_t mbs)
{
    GPtrArray *found = g_ptr_array_new();
    for (guint i = 0; i < profile->times->len; i++) {
        LayerTime *time = &g_array_index(profile->times, LayerTime, i);
        if (time->tmp == tmp && time->mbs == mbs && strcmp(time->model, model) == 0 &&
            layer_profile_is_gpu(time->gpu, type) && strcmp(time->kind, "aux") != 0)
            g_ptr_array_add(found, time);
    }
    return found;
}
