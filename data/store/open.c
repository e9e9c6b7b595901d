/* Opening and closing stores: a file that is not a store is refused before SQLite may touch it. */
#include <stdio.h>
#include <sys/stat.h>

#include "data/base/error.h"
#include "data/base/free.h"
#include "data/store/database.h"

enum {
    BUSY_MS = 60 * 1000,  /* how long to wait for other writers */
    RETRY_US = 10 * 1000, /* wait between attempts that SQLite itself does not repeat */
};

static bool is_empty(const Store *store)
{
    g_autofree char *tables =
        store_one_value(store, "SELECT count(*) FROM sqlite_schema");
    g_autofree char *application = store_one_value(store, "PRAGMA application_id");
    g_autofree char *version = store_one_value(store, "PRAGMA user_version");
    return g_strcmp0(tables, "0") == 0 && g_strcmp0(application, "0") == 0 &&
           g_strcmp0(version, "0") == 0;
}

/* Checks the identity again, now that journals are played back, and the whole content. A store of
 * an earlier version is made one of this version first, in the caller's transaction. */
static bool check_database(const Store *store, GError **error)
{
    g_autofree char *application = store_one_value(store, "PRAGMA application_id");
    const int64_t version = store_version_of(store);
    if (!application || version < 0)
        return store_failed(store, KILTER_ERROR_INPUT, "read the store", error);
    return store_check_identity(store->file, g_ascii_strtoll(application, NULL, 10),
                                version, error) &&
           (version == STORE_VERSION || store_upgrade(store, version, error)) &&
           store_check_rows(store, error);
}

/* Puts a copy of the database in memory in its place. */
static bool copy_to_memory(Store *store)
{
    sqlite3 *memory = NULL;
    sqlite3_backup *backup =
        sqlite3_open(":memory:", &memory) == SQLITE_OK && store_add_functions(memory)
            ? sqlite3_backup_init(memory, "main", store->db, "main")
            : NULL;
    if (backup)
        sqlite3_backup_step(backup, -1);
    const bool good = backup && sqlite3_backup_finish(backup) == SQLITE_OK;
    sqlite3_close(good ? store->db : memory);
    if (good)
        store->db = memory;
    return good;
}

/* Reads nothing but the file, of whichever version. */
static bool check_for_reading(Store *store, GError **error)
{
    if (store_version_of(store) == STORE_VERSION)
        return check_database(store, error);
    if (!copy_to_memory(store) || !store_execute(store, "BEGIN"))
        return store_failed(store, KILTER_ERROR_INPUT, "read the store", error);
    return check_database(store, error) &&
           (store_execute(store, "COMMIT") ||
            store_failed(store, KILTER_ERROR_INPUT, "read the store", error));
}

/* Switches to the journal that the file system allows. SQLite does not wait when readers prevent a
 * change of the journal mode, so this function does. */
static bool use_journal(const Store *store)
{
    const char *pragma = store_is_shared(store->file) ? "PRAGMA journal_mode = TRUNCATE"
                                                      : "PRAGMA journal_mode = WAL";
    for (int waited = 0; waited < BUSY_MS * 1000; waited += RETRY_US) {
        g_autofree char *mode = store_one_value(store, pragma);
        if (mode)
            return true;
        if ((sqlite3_errcode(store->db) & 0xff) != SQLITE_BUSY)
            return false;
        g_usleep(RETRY_US);
    }
    return false;
}

/* A disk that is full, damaged or only read is not the user's mistake. */
static KilterError failure_of(const Store *store)
{
    switch (sqlite3_errcode(store->db) & 0xff) {
    case SQLITE_FULL:
    case SQLITE_READONLY:
    case SQLITE_IOERR:
        return KILTER_ERROR_FAILED;
    default:
        return KILTER_ERROR_INPUT;
    }
}

static bool make_or_check(const Store *store, GError **error)
{
    if (!is_empty(store))
        return check_database(store, error);
    return store_create_schema(store) ||
           store_failed(store, failure_of(store), "create the store", error);
}

/* Rows have some hundred bytes, so that smaller pages would stay empty by a tenth; the size is that
 * of new files. Creates the schema in an empty file, or checks an existing one, in one transaction,
 * so that one of several openers creates it and a kill leaves all of it or nothing. */
static bool prepare_for_writing(Store *store, GError **error)
{
    if (!store_execute(store, "PRAGMA page_size = 8192; PRAGMA foreign_keys = ON;"
                              "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE"))
        return store_failed(store, failure_of(store), "write the store", error);
    if (!make_or_check(store, error) ||
        !((store_attempt_make(store) && store_axes_read(store)) ||
          store_failed(store, failure_of(store), "write the store", error))) {
        store_roll_back(store);
        return false;
    }
    if (!store_execute(store, "COMMIT") || !use_journal(store))
        return store_failed(store, failure_of(store), "write the store", error);
    return true;
}

/* Opens the database by its absolute path, as ":memory:" and "" mean something to SQLite. */
static bool open_database(Store *store, int flags, GError **error)
{
    g_autofree char *path = g_canonicalize_filename(store->file, NULL);
    if (flags & SQLITE_OPEN_URI) {
        g_autofree char *escaped = g_uri_escape_string(path, "/", TRUE);
        put_block(path, g_strconcat("file:", escaped, "?immutable=1", NULL));
    }
    if (sqlite3_open_v2(path, &store->db, flags | SQLITE_OPEN_NOMUTEX, NULL) !=
            SQLITE_OK ||
        !store_add_functions(store->db))
        return store_failed(store, KILTER_ERROR_INPUT, "open the store", error);
    sqlite3_busy_timeout(store->db, BUSY_MS);
    /* Closing must not write to the file until it is known to be a sound store. */
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return true;
}

static bool prepare(const Store *store, const char *sql, sqlite3_stmt **statement,
                    GError **error)
{
    return sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement,
                              NULL) == SQLITE_OK ||
           store_failed(store, KILTER_ERROR_INPUT, "use the store", error);
}

static bool prepare_statements(Store *store, GError **error)
{
    static const char find[] = "SELECT id FROM answer WHERE hash = ?";
    static const char is_asked[] =
        "SELECT 1 FROM main.asked WHERE experiment = ?1 AND answer = ?2 AND model = ?4 "
        "AND cluster = ?5 AND entry = ?6 AND axes = ?7";
    static const char add_part[] =
        "INSERT INTO part (hash, text) VALUES (?1, ?2) ON CONFLICT (hash) DO UPDATE SET "
        "hash = hash RETURNING id";
    g_autofree char *ask =
        store_insert_sql("main.asked", STORE_ASKED_COLUMNS, "ON CONFLICT DO NOTHING");
    g_autofree char *add_run = store_insert_sql("run", STORE_RUN_COLUMNS, "");
    g_autofree char *put = store_insert_sql("answer", STORE_ANSWER_COLUMNS, "");
    return prepare(store, find, &store->find, error) &&
           prepare(store, is_asked, &store->is_asked, error) &&
           (!store->writable ||
            (prepare(store, ask, &store->ask, error) &&
             prepare(store, add_run, &store->add_run, error) &&
             prepare(store, add_part, &store->add_part, error) &&
             prepare(store, put, &store->put, error) &&
             (store_attempt_prepare(store) ||
              store_failed(store, KILTER_ERROR_INPUT, "use the store", error))));
}

static Store *store_new(const char *file)
{
    Store *store = g_new0(Store, 1);
    store->file = g_strdup(file);
    store->part = text_table(NULL);
    store->made = g_ptr_array_new_with_free_func(g_free);
    store->axis = text_table(NULL);
    return store;
}

/* Remembers the identity of the file, to notice when it was removed or replaced. */
static void remember_file(Store *store)
{
    struct stat status;
    if (stat(store->file, &status) == 0) {
        store->device = status.st_dev;
        store->inode = status.st_ino;
    }
}

Store *store_open(const char *file, GError **error)
{
    if (!store_check_file(file, true, error))
        return NULL;
    const bool fresh = !g_file_test(file, G_FILE_TEST_EXISTS);
    g_autoptr(Store) store = store_new(file);
    store->writable = true;
    if (!store_lock_take(store, error))
        return NULL;
    if (!open_database(store, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, error) ||
        !prepare_for_writing(store, error) || !prepare_statements(store, error)) {
        struct stat status;
        if (fresh && stat(file, &status) == 0 && status.st_size == 0)
            /* just created, and not a store: for example, the disk is full */
            remove(file);
        return NULL;
    }
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    remember_file(store);
    return g_steal_pointer(&store);
}

Store *store_open_read(const char *file, GError **error)
{
    if (!store_check_file(file, false, error))
        return NULL;
    g_autoptr(Store) store = store_new(file);
    if (!open_database(store, SQLITE_OPEN_READONLY, error))
        return NULL;
    /* Reading a WAL store needs a shared-memory file beside it. If that cannot be created, no
     * process can write either, and without a journal the file is complete. */
    g_autofree char *version = store_one_value(store, "PRAGMA user_version");
    int code = sqlite3_errcode(store->db) & 0xff;
    if (!version && (code == SQLITE_CANTOPEN || code == SQLITE_READONLY) &&
        !store_has_journal(file)) {
        sqlite3_close(store->db);
        store->db = NULL;
        if (!open_database(store, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, error))
            return NULL;
    }
    if (!check_for_reading(store, error) || !prepare_statements(store, error))
        return NULL;
    return g_steal_pointer(&store);
}

/* Reading a store in WAL mode makes two files beside it, which only a connection that may write
 * takes away, if it is the last one. Nothing is written to the store, as there is nothing in
 * them. */
static void remove_empty_journal(const Store *store)
{
    sqlite3 *db = NULL;
    g_autofree char *path = g_canonicalize_filename(store->file, NULL);
    g_autofree char *shared = g_strconcat(path, "-shm", NULL);
    if (store_has_journal(path) || !g_file_test(shared, G_FILE_TEST_EXISTS))
        return;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK)
        sqlite3_exec(db, "SELECT 1 FROM sqlite_schema LIMIT 1", NULL, NULL, NULL);
    sqlite3_close(db);
}

void store_close(Store *store)
{
    if (!store)
        return;
    sqlite3_stmt *const statement[] = {store->find, store->is_asked, store->ask,
                                       store->put,  store->add_run,  store->add_part,
                                       store->drop, store->claim,    store->attempted};
    for (uint32_t i = 0; i < G_N_ELEMENTS(statement); i++)
        sqlite3_finalize(statement[i]);
    if (store->writable && store->process)
        store_faults_clean(store);
    sqlite3_close(store->db);
    if (!store->writable)
        remove_empty_journal(store);
    store_lock_release(store);
    g_ptr_array_unref(store->made);
    g_hash_table_unref(store->part);
    g_hash_table_unref(store->axis);
    free_each(store->last_axes, store->command, store->revision, store->started,
              store->host, store->process, store->fault, store->lock, store->locked,
              store->note, store->file, store);
}

bool store_keep(Store *store, GError **error)
{
    return store_lock_beat(store, error);
}

const char *store_note(const Store *store)
{
    return store->note;
}
