/* Merging: adds the answers of one store to another, in one transaction. */

#include "data/base/error.h"
#include "data/store/database.h"

/* The values of an answer that do not depend on the time and place of its computation. */
#define COMPARE(name, kind, use, rule) COMPARE_##use(name)
#define COMPARE_SAME(name)             "a." #name " IS m." #name " AND "
#define COMPARE_MAY(name)              ""
#define MERGE_SAME                     ANSWER_COLUMNS(COMPARE)
#define MERGE_NAMES                    ANSWER_COLUMNS(STORE_NAME)
#include "data/merge.h" /* STORE_MERGE, generated from data/store/merge.sql */

/* Its steps. */
enum { MERGE_CONFLICT, MERGE_ANSWERS, MERGE_ASKED, MERGE_ATTEMPTS, MERGE_STEPS };

static bool copy(Store *store, bool has_attempts, uint32_t *added, GError **error)
{
    g_auto(GStrv) step = g_strsplit(STORE_MERGE, "-- next", MERGE_STEPS);
    g_autofree char *conflict = store_one_value(store, step[MERGE_CONFLICT]);
    if (conflict)
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "%s: another answer to the same question is there: %s",
                           store->file, conflict);
    const bool good = store_execute(store, step[MERGE_ANSWERS]);
    /* changes by the last statement, which copies answers */
    *added = (uint32_t)sqlite3_changes(store->db);
    return (good && store_execute(store, step[MERGE_ASKED]) &&
            (!has_attempts || store_execute(store, step[MERGE_ATTEMPTS])) &&
            store_axes_read(store) && store_execute(store, "COMMIT")) ||
           store_failed(store, KILTER_ERROR_FAILED, "merge", error);
}

bool store_merge_check(const char *file, bool *has_attempts, GError **error)
{
    /* Opening checks the whole store. */
    g_autoptr(Store) store =
        store_lock_wait(file, error) ? store_open_read(file, error) : NULL;
    if (!store)
        return false;
    *has_attempts = store_attempt_is_there(store);
    return sqlite3_db_filename(store->db, "main")[0] != '\0' ||
           refuse(error,
                  "%s: a store of an earlier schema version; a sweep or a merge into it "
                  "makes it one of version %d, which can be merged",
                  file, STORE_VERSION);
}

bool store_merge(Store *store, const char *file, uint32_t *added, GError **error)
{
    g_assert(store->writable);
    bool has_attempts;
    if (!store_merge_check(file, &has_attempts, error))
        return false;
    g_autofree char *path = g_canonicalize_filename(file, NULL);
    char *attach = sqlite3_mprintf("ATTACH %Q AS other", path);
    bool good =
        (store_execute(store, attach) && store_execute(store, "BEGIN IMMEDIATE")) ||
        store_failed(store, KILTER_ERROR_FAILED, "merge", error);
    sqlite3_free(attach);
    good = good && copy(store, has_attempts, added, error);
    if (!good)
        store_axes_forget(store);
    store_roll_back(store);
    store_execute(store, "DETACH other");
    return good;
}
