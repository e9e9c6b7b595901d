/* Merging: adds the answers of one store to another, in one transaction. */

#include "data/base/error.h"
#include "data/store/database.h"

/* The values of an answer that do not depend on the time and place of its computation. */
#define COMPARE(name, kind, use, rule) COMPARE_##use(name)
#define COMPARE_SAME(name)             "a." #name " IS m." #name " AND "
#define COMPARE_MAY(name)              ""
static const char CONFLICT[] =
    "SELECT lower(hex(a.hash)) || ' (iteration_time_s ' || coalesce(m.iteration_time_s, "
    "m.status) || ' and ' || coalesce(a.iteration_time_s, a.status) || ')' "
    "FROM other.answer AS a JOIN main.answer AS m USING (hash) WHERE NOT "
    "(" ANSWER_COLUMNS(COMPARE) "(SELECT p.hash FROM other.part AS p WHERE p.id = "
                                "a.common) IS (SELECT p.hash FROM main.part AS p WHERE "
                                "p.id = m.common)) LIMIT 1";

/* Ids differ between stores, so rows are matched by their hashes and seals. */
static const char *const COPY[] = {
    "INSERT INTO main.run (" STORE_RUN_COLUMNS ", seal) SELECT " STORE_RUN_COLUMNS
    ", seal FROM other.run AS r "
    "WHERE seal NOT IN (SELECT seal FROM main.run) ORDER BY id",
    "INSERT INTO main.part (hash, text) SELECT hash, text FROM other.part "
    "WHERE hash NOT IN (SELECT hash FROM main.part) ORDER BY id",
    "INSERT INTO main.answer (" STORE_ANSWER_COLUMNS
    ", seal) SELECT *, kilter_seal(" STORE_ANSWER_COLUMNS ") FROM ("
    "SELECT a.hash, (SELECT m.id FROM other.part AS p JOIN main.part AS m USING (hash) "
    "WHERE p.id = a.subject) AS subject, "
    "(SELECT m.id FROM other.part AS p JOIN main.part AS m USING (hash) WHERE p.id = "
    "a.cluster) AS cluster, "
    "(SELECT m.id FROM other.part AS p JOIN main.part AS m USING (hash) WHERE p.id = "
    "a.method) AS method, seed, "
    "(SELECT min(m.id) FROM other.run AS r JOIN main.run AS m USING (seal) WHERE r.id = "
    "a.run) AS run" ANSWER_COLUMNS(STORE_NAME) ", "
                                               "(SELECT m.id FROM other.part AS p JOIN "
                                               "main.part AS m USING (hash) WHERE p.id = "
                                               "a.common) AS common "
                                               "FROM other.answer AS a WHERE hash NOT IN "
                                               "(SELECT hash FROM main.answer) ORDER BY "
                                               "a.id)",
};
static const char COPY_ASKED[] =
    "INSERT INTO main.asked (" STORE_ASKED_COLUMNS
    ", seal) SELECT *, kilter_seal(" STORE_ASKED_COLUMNS ") FROM ("
    "SELECT experiment, (SELECT m.id FROM other.answer AS a JOIN main.answer AS m USING "
    "(hash) WHERE a.id = o.answer) AS answer, "
    "ordinal, model, cluster, entry, axes FROM other.asked AS o) WHERE true ON CONFLICT "
    "DO NOTHING";

/* Copies attempts without an answer; the attempts that this store knows of stay as they are. */
static const char COPY_ATTEMPTS[] =
    "INSERT OR IGNORE INTO main.attempt (" STORE_ATTEMPT_COLUMNS
    ", seal) SELECT " STORE_ATTEMPT_COLUMNS ", seal FROM other.attempt;"
    "DELETE FROM main.attempt WHERE hash IN (SELECT hash FROM main.answer)";

static bool copy(const Store *store, uint32_t *added, GError **error)
{
    g_autofree char *conflict = store_one_value(store, CONFLICT);
    if (conflict)
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "%s: another answer to the same question is there: %s",
                           store->file, conflict);
    bool good = true;
    for (uint32_t i = 0; good && i < G_N_ELEMENTS(COPY); i++)
        good = store_execute(store, COPY[i]);
    /* changes by the last statement, which copies answers */
    *added = (uint32_t)sqlite3_changes(store->db);
    return (good && store_execute(store, COPY_ASKED)) ||
           store_failed(store, KILTER_ERROR_FAILED, "merge", error);
}

bool store_merge(Store *store, const char *file, uint32_t *added, GError **error)
{
    g_assert(store->writable);
    /* Opening checks the whole store. */
    g_autoptr(Store) other =
        store_lock_wait(file, error) ? store_open_read(file, error) : NULL;
    if (!other)
        return false;
    const bool has_attempts = store_attempt_is_there(other);
    if (sqlite3_db_filename(other->db, "main")[0] == '\0')
        return refuse(error,
                      "%s: a store of an earlier schema version; a sweep or a merge into "
                      "it makes it one of version %d, which can be merged",
                      file, STORE_VERSION);
    g_clear_pointer(&other, store_close);
    g_autofree char *path = g_canonicalize_filename(file, NULL);
    char *attach = sqlite3_mprintf("ATTACH %Q AS other", path);
    bool good =
        (store_execute(store, attach) && store_execute(store, "BEGIN IMMEDIATE")) ||
        store_failed(store, KILTER_ERROR_FAILED, "merge", error);
    sqlite3_free(attach);
    good = good && copy(store, added, error) &&
           (((!has_attempts || store_execute(store, COPY_ATTEMPTS)) &&
             store_axes_read(store) && store_execute(store, "COMMIT")) ||
            store_failed(store, KILTER_ERROR_FAILED, "merge", error));
    if (!good)
        store_axes_forget(store);
    store_roll_back(store);
    store_execute(store, "DETACH other");
    return good;
}
