/* Claims of questions: what is worked on, by whom, and what ended processes before. */
#include <glib/gstdio.h>
#include <string.h>

#include "data/attempt.h" /* STORE_ATTEMPT, generated from data/store/attempt.sql */
#include "data/base/error.h"
#include "data/store/database.h"

/* --- the table --- */

bool store_attempt_is_there(const Store *store)
{
    g_autofree char *n = store_one_value(
        store, "SELECT count(*) FROM main.sqlite_schema WHERE name = 'attempt'");
    return g_strcmp0(n, "1") == 0;
}

bool store_attempt_make(const Store *store)
{
    return store_attempt_is_there(store) || store_execute(store, STORE_ATTEMPT);
}

bool store_attempt_check(const Store *store)
{
    static const char declared[] = "SELECT sql FROM sqlite_schema WHERE name = 'attempt'";
    if (!store_attempt_is_there(store))
        return true;
    Store model = {.file = store->file};
    g_autofree char *expected = NULL, *found = store_one_value(store, declared);
    if (sqlite3_open(":memory:", &model.db) == SQLITE_OK && store_attempt_make(&model))
        expected = store_one_value(&model, declared);
    sqlite3_close(model.db);
    g_autofree char *damaged =
        g_strcmp0(found, expected) == 0
            ? store_one_value(store, "SELECT count(*) FROM attempt WHERE kilter_seal"
                                     "(" STORE_ATTEMPT_COLUMNS ") IS NOT seal")
            : NULL;
    return g_strcmp0(damaged, "0") == 0;
}

bool store_attempt_prepare(Store *store)
{
    const struct {
        const char *sql;
        sqlite3_stmt **statement;
    } row[] = {
        {"SELECT host, pid, process, deaths, message FROM attempt WHERE hash = ?",
         &store->attempted},
        {"INSERT OR REPLACE INTO attempt (" STORE_ATTEMPT_COLUMNS
         ", seal) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, kilter_seal(?1, ?2, ?3, ?4, ?5, "
         "?6, ?7))",
         &store->claim},
        {"DELETE FROM attempt WHERE hash = ?", &store->drop},
    };
    bool good = true;
    for (uint32_t i = 0; good && i < G_N_ELEMENTS(row); i++)
        good = sqlite3_prepare_v3(store->db, row[i].sql, -1, SQLITE_PREPARE_PERSISTENT,
                                  row[i].statement, NULL) == SQLITE_OK;
    return good;
}

/* --- faults --- */

static const char FAULT[] = "-fault-";

static char *fault_file(const Store *store, const char *process)
{
    return g_strconcat(store->file, FAULT, process, NULL);
}

const char *store_fault_file(Store *store)
{
    g_assert(store->writable);
    if (!store->fault)
        store->fault = fault_file(store, store->process);
    return store->fault;
}

/* Whether a process that runs no longer said that it ended by its own fault. */
static bool is_blamed(const Store *store, const char *process)
{
    g_autofree char *file = fault_file(store, process);
    return g_file_test(file, G_FILE_TEST_EXISTS);
}

void store_faults_clean(const Store *store)
{
    g_autofree char *folder = g_path_get_dirname(store->file);
    g_autofree char *name = g_path_get_basename(store->file);
    g_autofree char *prefix = g_strconcat(name, FAULT, NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *entry;
    while (dir && (entry = g_dir_read_name(dir))) {
        if (!g_str_has_prefix(entry, prefix))
            continue;
        char *sql = sqlite3_mprintf("SELECT count(*) FROM attempt WHERE message IS NULL "
                                    "AND process = %Q",
                                    entry + strlen(prefix));
        g_autofree char *blames = store_one_value(store, sql);
        g_autofree char *path = g_build_filename(folder, entry, NULL);
        if (g_strcmp0(blames, "0") == 0)
            g_remove(path);
        sqlite3_free(sql);
    }
}

/* --- claims --- */

/* The processes that ended by their own fault while they worked on it, or UINT32_MAX: another one
 * works on it now. *ended: the last one ended, whatever the reason. */
static bool deaths_of(const Store *store, const char *hash, uint32_t *deaths, bool *ended)
{
    sqlite3_stmt *s = store->attempted;
    *deaths = 0;
    *ended = false;
    if (!store_bind_hash(s, 1, hash))
        return false;
    const int code = sqlite3_step(s);
    if (code == SQLITE_ROW) {
        const char *process = (const char *)sqlite3_column_text(s, 2);
        const bool failed = sqlite3_column_type(s, 4) != SQLITE_NULL;
        const bool is_own = strcmp(process, store->process) == 0;
        const bool runs = !failed && !is_own &&
                          store_process_runs((const char *)sqlite3_column_text(s, 0),
                                             sqlite3_column_int64(s, 1), process);
        *ended = !runs && !failed && !is_own;
        *deaths = runs ? UINT32_MAX
                       : (uint32_t)sqlite3_column_int64(s, 3) +
                             (*ended && is_blamed(store, process));
    }
    sqlite3_reset(s);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

static bool attempt_note(const Store *store, const char *hash, uint32_t deaths,
                         const char *message)
{
    sqlite3_stmt *s = store->claim;
    int at = 1;
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *started = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
    if (!store_bind_hash(s, at++, hash))
        return false;
    sqlite3_bind_text(s, at++, store->host, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, at++, store->pid);
    sqlite3_bind_text(s, at++, store->process, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, at++, started, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, at++, deaths);
    sqlite3_bind_text(s, at++, message, -1, SQLITE_STATIC);
    return store_insert(s);
}

static bool claim_one(Store *store, const StoreAsked *asked, uint32_t flags,
                      StoreClaim *claim)
{
    bool has = false, ended;
    uint32_t deaths;
    if (!store_find_one(store, asked, &has))
        return false;
    if (has) {
        *claim = STORE_ANSWERED;
        return true;
    }
    if (!deaths_of(store, asked->hash, &deaths, &ended))
        return false;
    if (deaths != UINT32_MAX && (flags & STORE_AGAIN))
        deaths = 0;
    const bool suspect = (deaths > 0 || ended) && !(flags & STORE_ALONE);
    *claim = deaths == UINT32_MAX     ? STORE_TAKEN
             : deaths >= STORE_DEATHS ? STORE_POISON
             : suspect                ? STORE_SUSPECT
                                      : STORE_CLAIMED;
    return *claim != STORE_CLAIMED || attempt_note(store, asked->hash, deaths, NULL);
}

bool store_claim(Store *store, const StoreAsked *asked, uint32_t flags, StoreClaim *claim,
                 GError **error)
{
    g_assert(store->writable);
    const bool own = sqlite3_get_autocommit(store->db);
    if (own && !store_begin(store, error))
        return false;
    if (!claim_one(store, asked, flags, claim)) {
        store_failed(store, KILTER_ERROR_FAILED, "note an attempt", error);
        store_forget_transaction(store);
        return false;
    }
    return !own || store_commit(store, error);
}

bool store_give_up(Store *store, const char *hash, const char *message, GError **error)
{
    g_assert(store->writable && (hash || !message));
    g_autofree char *all = NULL;
    bool good;
    if (hash) {
        uint32_t deaths;
        bool ended;
        good = deaths_of(store, hash, &deaths, &ended) &&
               (deaths == UINT32_MAX ||
                (!message && deaths == 0 ? store_drop_attempt(store, hash)
                                         : attempt_note(store, hash, deaths, message)));
    } else {
        all = g_strdup_printf(
            "DELETE FROM attempt WHERE message IS NULL AND process = '%s'",
            store->process);
        good = store_execute(store, all);
    }
    return good || store_failed(store, KILTER_ERROR_FAILED, "note an attempt", error);
}

bool store_attempts(Store *store, StoreAttemptEach each, void *data, GError **error)
{
    static const char sql[] = "SELECT lower(hex(hash)), host, pid, process, started, "
                              "deaths, message FROM attempt ORDER BY hash";
    sqlite3_stmt *s = NULL;
    if (!store_attempt_is_there(store))
        return true;
    int code = sqlite3_prepare_v2(store->db, sql, -1, &s, NULL);
    while (code == SQLITE_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        StoreAttempt a = {.hash = (const char *)sqlite3_column_text(s, 0),
                          .host = (const char *)sqlite3_column_text(s, 1),
                          .pid = sqlite3_column_int64(s, 2),
                          .started = (const char *)sqlite3_column_text(s, 4),
                          .deaths = (uint32_t)sqlite3_column_int64(s, 5),
                          .message = (const char *)sqlite3_column_text(s, 6)};
        const char *process = (const char *)sqlite3_column_text(s, 3);
        a.runs = !a.message && store_process_runs(a.host, a.pid, process);
        a.deaths += !a.message && !a.runs && is_blamed(store, process);
        each(&a, data);
        code = SQLITE_OK;
    }
    sqlite3_finalize(s);
    return code == SQLITE_DONE ||
           store_failed(store, KILTER_ERROR_FAILED, "read attempts", error);
}
