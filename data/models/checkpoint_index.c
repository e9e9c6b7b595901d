/* Reading indexes of checkpoints. */
#include "data/models/checkpoint_index.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "data/base/assert.h"
#include "data/base/json.h"

enum { MOST_LAYERS = 100000 };
static const double MOST_TOTAL = 0x1p62;

/* The number of the layer in "model.layers.31.mlp.up_proj.weight": the first part of the name that
 * is a number; -1: none is. */
static int32_t layer_of(const char *name)
{
    g_auto(GStrv) part = g_strsplit(name, ".", -1);
    for (char **p = part; *p; p++)
        if (**p && strspn(*p, "0123456789") == strlen(*p)) {
            const guint64 number = g_ascii_strtoull(*p, NULL, 10);
            return number < MOST_LAYERS ? (int32_t)number : -1;
        }
    return -1;
}

static bool read_index(const JsonPlace *at, const json_t *root, CheckpointIndex *index)
{
    const json_t *map = json_object_get(root, "weight_map"),
                 *total =
                     json_object_get(json_object_get(root, "metadata"), "total_size");
    const double bytes = json_number_value(total); /* old writers have a real */
    g_autoptr(GHashTable) files = g_hash_table_new(g_str_hash, g_str_equal);
    if (!json_is_number(total) || !(bytes >= 1 && bytes <= MOST_TOTAL))
        return json_fail(at, "metadata.total_size", "expected the bytes of all tensors");
    if (!json_is_object(map) || json_object_size(map) == 0)
        return json_fail(at, "weight_map", "expected the file of each tensor");
    index->bytes = json_is_integer(total) ? (uint64_t)json_integer_value(total)
                                          : (uint64_t)llround(bytes);
    members_each (name, file, map) {
        const int32_t layer = layer_of(name);
        if (!json_is_string(file))
            return json_fail(at, "weight_map", "%.60s: expected the name of a file",
                             name);
        index->tensors++;
        index->in_layers += layer >= 0;
        index->layers = MAX(index->layers, (uint32_t)(layer + 1));
        g_hash_table_add(files, (char *)json_string_value(file));
    }
    index->files = g_hash_table_size(files);
    KILTER_ASSERT(index->files > 0 && index->in_layers <= index->tensors);
    return true;
}

bool checkpoint_index_read(const char *file, CheckpointIndex *index, GError **error)
{
    *index = (CheckpointIndex){0};
    const JsonPlace at = {.file = file, .error = error};
    json_auto_t *root = json_read_file(file, "checkpoint's index", error);
    return root && read_index(&at, root, index);
}
