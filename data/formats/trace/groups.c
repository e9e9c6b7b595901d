/* The ranks of groups of collectives, as a file beside execution traces tells them. */
#include <jansson.h>

#include "data/base/error.h"
#include "data/base/json.h"
#include "data/formats/trace/trace.h"

/* Whether all elements are different ranks. */
static bool groups_add_group(const JsonPlace *at, const char *name, const json_t *list,
                             GHashTable *groups)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    GArray *ranks = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_hash_table_insert(groups, g_strdup(name), ranks);
    if (!json_is_array(list) || json_array_size(list) == 0)
        return json_fail(at, name, "expected a list of ranks");
    elements_at (value, i, list) {
        const json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
        const uint32_t rank = (uint32_t)number;
        if (number < 0 || number >= TRACE_MAX_RANKS ||
            !g_hash_table_add(seen, GUINT_TO_POINTER(rank + 1)))
            return json_fail(
                at, name, "[%zu]: expected a whole number from 0 to %d, each rank once",
                i, TRACE_MAX_RANKS - 1);
        g_array_append_val(ranks, rank);
    }
    return true;
}

GHashTable *trace_groups_read(const char *file, GError **error)
{
    const JsonPlace at = {.file = file, .error = error};
    json_t *root = json_read_file(file, "list of the ranks of groups", error);
    if (!root)
        return NULL;
    GHashTable *groups = text_table((GDestroyNotify)g_array_unref);
    bool good =
        json_is_object(root) ||
        refuse(error, "%s: expected an object with the ranks of each group", file);
    members_each (name, list, root)
        good = good && groups_add_group(&at, name, list, groups);
    json_decref(root);
    if (!good)
        g_clear_pointer(&groups, g_hash_table_unref);
    return groups;
}
