/* The view `configuration`: one row per configuration, and one column per further axis of a grid.
 *
 * Which axes there are is known only from what was asked, so the view is made again, in the same
 * transaction, whenever something is asked that has an axis which no question had before. */
#include <jansson.h>
#include <string.h>

#include "data/base/json.h"
#include "data/store/database.h"

/* Axes as far as SQLite's limit on columns allows by a wide margin; a name with a quotation mark
 * has no path in JSON. */
#define AXES                                                                            \
    "SELECT DISTINCT axis.key AS name FROM main.asked, json_each(asked.axes) AS "       \
    "axis WHERE instr(axis.key, '\"') = 0 AND instr(axis.key, '\\') = 0 ORDER BY name " \
    "LIMIT 500"

/* The statement that makes the view, as SQLite keeps it. */
static const char STATEMENT[] =
    "SELECT 'CREATE VIEW configuration AS SELECT experiment, ordinal, hash, model, "
    "cluster, entry' || coalesce((SELECT group_concat(', json_extract(axes, ' || "
    "quote('$.\"' || name || '\"') || ') AS \"' || name || '\"', '') FROM (" AXES
    ")), '') || "
    "'" ANSWER_METHOD(STORE_NAME) ", seed" ANSWER_NUMBERS(
        STORE_NAME) ", ratios, run FROM result'";

char *store_axes_view(const Store *store)
{
    return store_one_value(store, STATEMENT);
}

static void add_name(void *set, const char *name)
{
    g_hash_table_add(set, g_strdup(name));
}

static int axes_take_name(void *set, int n_columns, char **value, char **column)
{
    (void)column;
    g_assert(n_columns == 1);
    add_name(set, value[0]);
    return 0;
}

static bool axes_make(const Store *store)
{
    g_autofree char *view = store_axes_view(store);
    return view && store_execute(store, "DROP VIEW IF EXISTS main.configuration") &&
           store_execute(store, view);
}

bool store_axes_read(Store *store)
{
    g_assert(store->db);
    g_hash_table_remove_all(store->axis);
    if (sqlite3_exec(store->db, AXES, axes_take_name, store->axis, NULL) != SQLITE_OK)
        return false;
    g_autofree char *view = store_axes_view(store);
    g_autofree char *there = store_one_value(
        store, "SELECT sql FROM main.sqlite_schema WHERE name = 'configuration'");
    return view && (g_strcmp0(view, there) == 0 || axes_make(store));
}

bool store_axes_add(Store *store, const char *axes)
{
    if (!axes || (store->last_axes && strcmp(axes, store->last_axes) == 0))
        return true;
    json_t *object = json_loads(axes, 0, NULL);
    bool is_new = false;
    keys_each (name, object)
        if (!g_hash_table_contains(store->axis, name)) {
            add_name(store->axis, name);
            is_new = true;
        }
    json_decref(object);
    put_block(store->last_axes, g_strdup(axes));
    return !is_new || axes_make(store);
}

void store_axes_forget(Store *store)
{
    g_hash_table_remove_all(store->axis);
    g_clear_pointer(&store->last_axes, g_free);
}
