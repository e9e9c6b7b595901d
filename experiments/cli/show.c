/* kilter show and kilter rerun: one stored result. */

#include "experiments/answers.h"
#include "experiments/cli/command.h"
#include "experiments/sweep/stored.h"

/* The row from the given database or, if none is named, from the first one in out/ that has it. */
static json_t *show_find(const char *hash, const char *database, GError **error)
{
    if (database) {
        g_autoptr(Store) store = store_open_read(database, error);
        return store ? stored_find(store, hash, error) : NULL;
    }
    g_autoptr(GDir) dir = g_dir_open("out", 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename("out", name, NULL);
        g_autoptr(Store) store =
            g_str_has_suffix(name, ".db") ? store_open_read(path, NULL) : NULL;
        json_t *row = store ? stored_find(store, hash, NULL) : NULL;
        if (row)
            return row;
    }
    return refused(error, "no database in out/ has a result '%s'; --db FILE names one",
                   hash);
}

#define SHOW_OPTIONS(X) X(FILE, database, "db", 0)
COMMAND_OPTIONS(Own, show_own, SHOW_OPTIONS)

COMMAND(show, Own, SHOW_OPTIONS, 0)
{
    json_t *row = show_find(argv[1], own->database, error);
    if (row)
        command_report(options, row, ANSWER_SHOW, NULL);
    return row != NULL;
}

/* Reports the comparison and releases both values. */
static bool show_report(json_t *row, json_t *again, const CommandOptions *options,
                        GError **error)
{
    const bool same = json_is_true(json_object_get(again, "same"));
    const size_t n = json_array_size(json_object_get(again, "differences"));
    const char *stored = json_string_value(json_object_get(row, "hash"));
    json_object_set_new(again, "stored_hash", json_string(stored));
    json_decref(row);
    command_report(options, again, ANSWER_RERUN, NULL);
    return same || kilter_fail(error, KILTER_ERROR_FAILED,
                               "%zu columns differ from the stored result", n);
}

COMMAND(rerun, Own, SHOW_OPTIONS, 0)
{
    json_t *row = show_find(argv[1], own->database, error);
    json_t *again = row ? stored_rerun(row, options->set, error) : NULL;
    if (again)
        return show_report(row, again, options, error);
    json_decref(row);
    return false;
}
