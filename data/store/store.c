/* The result store: SQLite behind numbered invariants (data/store/store.h). */
#include "data/store/store.h"

#include "data/base/error.h"
#include "data/schema.h" /* STORE_SCHEMA, made of data/store/schema.sql */

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    APPLICATION_ID = 0x4b6c7472, /* "Kltr" */
    SCHEMA_VERSION = 2,
    BUSY_MS = 60 * 1000,  /* how long to wait for other writers */
    RETRY_US = 10 * 1000, /* between attempts that SQLite itself does not repeat */
};

struct Store {
    char *file;
    sqlite3 *db;
    bool writable;
    sqlite3_stmt *has, *adopt, *put, *add_run;
    char *command; /* of this invocation; NULL before store_begin_run */
    char *started;
    sqlite3_int64 run; /* its row; 0 until its first result is written */
};

/* --- errors --- */

static bool refuse(const char *file, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
static bool refuse(const char *file, GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *reason = g_strdup_vprintf(format, args);
    va_end(args);
    return kilter_fail(error, KILTER_ERROR_INPUT, "%s: %s; left untouched", file, reason);
}

/* SQLite's message about the last call, as a failure to do `what`. */
static bool failed(const Store *store, KilterError code, const char *what, GError **error)
{
    return kilter_fail(error, code, "%s: cannot %s: %s", store->file, what,
                       store->db ? sqlite3_errmsg(store->db) : "out of memory");
}

/* --- what a file is, told from its bytes alone (SQLite file format, Sec. 1.3) --- */

enum {
    HEADER_BYTES = 100,
    PAGE_SIZE_AT = 16,
    PAGES_AT = 28,
    USER_VERSION_AT = 60,
    APPLICATION_ID_AT = 68,
};

static const char MAGIC[16] = "SQLite format 3";

static uint32_t big_endian(const uint8_t *bytes, uint32_t n)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < n; i++)
        value = value << 8 | bytes[i];
    return value;
}

static bool check_identity(const char *file, int64_t application, int64_t version,
                           GError **error)
{
    if (application != APPLICATION_ID)
        return refuse(file, error, "not a Kilter store");
    if (version != SCHEMA_VERSION)
        return refuse(file, error,
                      "a Kilter store of schema version %" G_GINT64_FORMAT
                      ", expected version %d",
                      version, SCHEMA_VERSION);
    return true;
}

/* Whether SQLite left a journal beside the file: then the file alone may be behind. */
static bool has_journal(const char *file)
{
    static const char *const suffix[] = {"-journal", "-wal"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(suffix); i++) {
        g_autofree char *name = g_strconcat(file, suffix[i], NULL);
        struct stat status;
        if (stat(name, &status) == 0 && status.st_size > 0)
            return true;
    }
    return false;
}

static bool check_header(const char *file, const uint8_t *header, uint64_t n,
                         uint64_t size, GError **error)
{
    if (n < HEADER_BYTES)
        return refuse(file, error,
                      memcmp(header, MAGIC, MIN(n, sizeof MAGIC)) == 0
                          ? "a truncated database"
                          : "not a Kilter store");
    if (memcmp(header, MAGIC, sizeof MAGIC) != 0)
        return refuse(file, error, "not a Kilter store");
    if (!check_identity(file, (int32_t)big_endian(header + APPLICATION_ID_AT, 4),
                        (int32_t)big_endian(header + USER_VERSION_AT, 4), error))
        return false;
    uint32_t page = big_endian(header + PAGE_SIZE_AT, 2);
    uint64_t whole =
        (uint64_t)big_endian(header + PAGES_AT, 4) * (page == 1 ? 65536 : page);
    if (size < whole && !has_journal(file))
        return refuse(file, error,
                      "a truncated store of %" G_GUINT64_FORMAT
                      " bytes, expected %" G_GUINT64_FORMAT,
                      size, whole);
    return true;
}

/* Passes stores, and (so that they can be made) empty and absent files if `create`. Only reads, so
 * a foreign database is not even recovered. */
static bool check_file(const char *file, bool create, GError **error)
{
    struct stat status;
    if (stat(file, &status) != 0) {
        if (create && errno == ENOENT)
            return true; /* SQLite says if it cannot be made */
        return kilter_fail(error, KILTER_ERROR_INPUT, "%s: cannot open the store: %s",
                           file, g_strerror(errno));
    }
    if (!S_ISREG(status.st_mode))
        return refuse(file, error, "not a regular file");
    if (status.st_size == 0)
        return create || refuse(file, error, "not a Kilter store, but empty");
    uint8_t header[HEADER_BYTES];
    int descriptor = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t n = descriptor < 0 ? -1 : pread(descriptor, header, sizeof header, 0);
    int cause = errno;
    if (descriptor >= 0)
        close(descriptor);
    if (n < 0)
        return kilter_fail(error, KILTER_ERROR_INPUT, "%s: cannot read the store: %s",
                           file, g_strerror(cause));
    return check_header(file, header, (uint64_t)n, (uint64_t)status.st_size, error);
}

/* --- SQLite --- */

static bool execute(const Store *store, const char *sql)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static void roll_back(const Store *store)
{
    if (!sqlite3_get_autocommit(store->db))
        execute(store, "ROLLBACK");
}

/* First column of the first row of `sql` as text, NULL on failure. Caller frees. */
static char *one_value(const Store *store, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    char *value = NULL;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        value = g_strdup((const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    return value;
}

static bool is_empty(const Store *store)
{
    g_autofree char *tables = one_value(store, "SELECT count(*) FROM sqlite_schema");
    g_autofree char *application = one_value(store, "PRAGMA application_id");
    g_autofree char *version = one_value(store, "PRAGMA user_version");
    return g_strcmp0(tables, "0") == 0 && g_strcmp0(application, "0") == 0 &&
           g_strcmp0(version, "0") == 0;
}

/* Identity once more, now that journals are played back, and SQLite's own check of the pages. */
static bool check_database(const Store *store, GError **error)
{
    g_autofree char *application = one_value(store, "PRAGMA application_id");
    g_autofree char *version = one_value(store, "PRAGMA user_version");
    if (!application || !version)
        return failed(store, KILTER_ERROR_INPUT, "read the store", error);
    if (!check_identity(store->file, g_ascii_strtoll(application, NULL, 10),
                        g_ascii_strtoll(version, NULL, 10), error))
        return false;
    g_autofree char *verdict = one_value(store, "PRAGMA quick_check(1)");
    if (g_strcmp0(verdict, "ok") == 0)
        return true;
    return refuse(store->file, error, "a damaged store: %s",
                  verdict ? verdict : sqlite3_errmsg(store->db));
}

static bool create_schema(const Store *store)
{
    g_autofree char *identity =
        g_strdup_printf("PRAGMA application_id = %d; PRAGMA user_version = %d",
                        APPLICATION_ID, SCHEMA_VERSION);
    return execute(store, STORE_SCHEMA) && execute(store, identity);
}

/* SQLite does not wait when readers keep it from changing the journal mode, so this does. */
static bool use_wal(const Store *store)
{
    for (int waited = 0; waited < BUSY_MS * 1000; waited += RETRY_US) {
        g_autofree char *mode = one_value(store, "PRAGMA journal_mode = WAL");
        if (mode)
            return true;
        if ((sqlite3_errcode(store->db) & 0xff) != SQLITE_BUSY)
            return false;
        g_usleep(RETRY_US);
    }
    return false;
}

static bool make_or_check(const Store *store, GError **error)
{
    if (!is_empty(store))
        return check_database(store, error);
    return create_schema(store) ||
           failed(store, KILTER_ERROR_INPUT, "create the store", error);
}

/* Makes the schema in an empty file or checks what is there, in one transaction, so that of several
 * openers one makes it and a kill leaves all of it or nothing. */
static bool prepare_for_writing(Store *store, GError **error)
{
    if (!execute(store, "PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL;"
                        "BEGIN IMMEDIATE"))
        return failed(store, KILTER_ERROR_INPUT, "write the store", error);
    if (!make_or_check(store, error)) {
        roll_back(store);
        return false;
    }
    if (!execute(store, "COMMIT") || !use_wal(store))
        return failed(store, KILTER_ERROR_INPUT, "write the store", error);
    return true;
}

/* --- opening --- */

/* SQLite gives some names a meaning (":memory:", ""); an absolute path has none. */
static bool open_database(Store *store, int flags, GError **error)
{
    g_autofree char *path = g_canonicalize_filename(store->file, NULL);
    if (flags & SQLITE_OPEN_URI) {
        char *escaped = g_uri_escape_string(path, "/", TRUE);
        g_free(path);
        path = g_strconcat("file:", escaped, "?immutable=1", NULL);
        g_free(escaped);
    }
    if (sqlite3_open_v2(path, &store->db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        return failed(store, KILTER_ERROR_INPUT, "open the store", error);
    sqlite3_busy_timeout(store->db, BUSY_MS);
    /* Until the file is known to be a sound store, closing must not write to it. */
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return true;
}

static bool prepare(const Store *store, const char *sql, sqlite3_stmt **statement,
                    GError **error)
{
    return sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement,
                              NULL) == SQLITE_OK ||
           failed(store, KILTER_ERROR_INPUT, "use the store", error);
}

/* Columns of a result that do not depend on the experiment. */
#define COLUMNS                                                                       \
    "hash, config, model, cluster, planner, fidelity, granularity, status, message, " \
    "ratios, detail, run, gpus, seed, optimal, stages, peak_memory_bytes, "           \
    "iteration_time_s, fractional_time_s, lower_bound_s, gap, communication_s, "      \
    "computation_s, search_time_s, balance_time_s"

static bool prepare_statements(Store *store, GError **error)
{
    static const char has[] = "SELECT 1 FROM result WHERE hash = ?2 AND experiment = ?1";
    static const char adopt[] =
        "INSERT INTO result (experiment, " COLUMNS ") SELECT ?1, " COLUMNS
        " FROM result WHERE hash = ?2 LIMIT 1 ON CONFLICT DO NOTHING";
    static const char add_run[] =
        "INSERT INTO run (command, version, host, started) VALUES (?, ?, ?, ?)";
    static const char put[] =
        "INSERT INTO result (experiment, " COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?,"
        " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING";
    return prepare(store, has, &store->has, error) &&
           (!store->writable || (prepare(store, adopt, &store->adopt, error) &&
                                 prepare(store, add_run, &store->add_run, error) &&
                                 prepare(store, put, &store->put, error)));
}

Store *store_open(const char *file, GError **error)
{
    if (!check_file(file, true, error))
        return NULL;
    g_autoptr(Store) store = g_new0(Store, 1);
    store->file = g_strdup(file);
    store->writable = true;
    if (!open_database(store, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, error) ||
        !prepare_for_writing(store, error) || !prepare_statements(store, error))
        return NULL;
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    return g_steal_pointer(&store);
}

Store *store_open_read(const char *file, GError **error)
{
    if (!check_file(file, false, error))
        return NULL;
    g_autoptr(Store) store = g_new0(Store, 1);
    store->file = g_strdup(file);
    if (!open_database(store, SQLITE_OPEN_READONLY, error))
        return NULL;
    /* Reading a WAL store takes shared memory beside it. Where that cannot be made nobody writes
     * either, and without a journal the file alone is all there is. */
    g_autofree char *version = one_value(store, "PRAGMA user_version");
    int code = sqlite3_errcode(store->db) & 0xff;
    if (!version && (code == SQLITE_CANTOPEN || code == SQLITE_READONLY) &&
        !has_journal(file)) {
        sqlite3_close(store->db);
        store->db = NULL;
        if (!open_database(store, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, error))
            return NULL;
    }
    if (!check_database(store, error) || !prepare_statements(store, error))
        return NULL;
    return g_steal_pointer(&store);
}

void store_close(Store *store)
{
    if (!store)
        return;
    sqlite3_finalize(store->has);
    sqlite3_finalize(store->adopt);
    sqlite3_finalize(store->put);
    sqlite3_finalize(store->add_run);
    sqlite3_close(store->db);
    g_free(store->command);
    g_free(store->started);
    g_free(store->file);
    g_free(store);
}

/* --- reading and writing --- */

bool store_begin_run(Store *store, const char *command, GError **error)
{
    if (!store->writable)
        return kilter_fail(error, KILTER_ERROR_FAILED, "%s: opened for reading only",
                           store->file);
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_free(store->command);
    g_free(store->started);
    store->command = g_strdup(command);
    store->started = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
    store->run = 0;
    return true;
}

/* Runs an INSERT whose parameters are bound. */
static bool insert(sqlite3_stmt *statement)
{
    sqlite3_step(statement);
    return sqlite3_reset(statement) == SQLITE_OK; /* which repeats what the step said */
}

static void bind_key(sqlite3_stmt *statement, const char *experiment, const char *hash)
{
    sqlite3_bind_text(statement, 1, experiment, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, hash, -1, SQLITE_STATIC);
}

bool store_has(Store *store, const char *experiment, const char *hash, bool *has,
               GError **error)
{
    bind_key(store->has, experiment, hash);
    int code = sqlite3_step(store->has);
    *has = code == SQLITE_ROW;
    bool ok = *has || code == SQLITE_DONE;
    sqlite3_reset(store->has);
    if (ok && !*has && store->writable) {
        bind_key(store->adopt, experiment, hash);
        ok = insert(store->adopt);
        *has = ok && sqlite3_changes(store->db) > 0;
    }
    return ok || failed(store, KILTER_ERROR_FAILED, "look up a result", error);
}

static bool insert_run(const Store *store)
{
    const char *text[] = {store->command, KILTER_VERSION, g_get_host_name(),
                          store->started};
    for (int i = 0; i < (int)G_N_ELEMENTS(text); i++)
        sqlite3_bind_text(store->add_run, i + 1, text[i], -1, SQLITE_STATIC);
    return insert(store->add_run);
}

/* Texts, integers and reals in the order of the statement's parameters; NULL texts and infinite
 * reals become NULL. */
static bool insert_result(const Store *store, sqlite3_int64 run,
                          const StoreResult *result)
{
    const char *text[] = {result->experiment, result->hash,        result->config,
                          result->model,      result->cluster,     result->planner,
                          result->fidelity,   result->granularity, result->status,
                          result->message,    result->ratios,      result->detail};
    const sqlite3_int64 integer[] = {run,
                                     result->gpus,
                                     (sqlite3_int64)result->seed,
                                     result->optimal,
                                     result->stages,
                                     (sqlite3_int64)result->peak_memory_bytes};
    const double real[] = {result->iteration_time_s, result->fractional_time_s,
                           result->lower_bound_s,    result->gap,
                           result->communication_s,  result->computation_s,
                           result->search_time_s,    result->balance_time_s};
    int at = 1;
    for (uint32_t i = 0; i < G_N_ELEMENTS(text); i++)
        sqlite3_bind_text(store->put, at++, text[i], -1, SQLITE_STATIC);
    for (uint32_t i = 0; i < G_N_ELEMENTS(integer); i++)
        sqlite3_bind_int64(store->put, at++, integer[i]);
    for (uint32_t i = 0; i < G_N_ELEMENTS(real); i++)
        if (isfinite(real[i]))
            sqlite3_bind_double(store->put, at++, real[i]);
        else
            sqlite3_bind_null(store->put, at++);
    return insert(store->put);
}

/* Checks of a result that the schema cannot express. */
static bool check_result(const Store *store, const StoreResult *result, GError **error)
{
    if (!store->command)
        return kilter_fail(error, KILTER_ERROR_FAILED, "%s: a result without a run",
                           store->file);
    if (result->seed > INT64_MAX)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "%s: seed: expected at most %" G_GINT64_FORMAT
                           ", got %" G_GUINT64_FORMAT,
                           store->file, INT64_MAX, result->seed);
    g_autofree char *hash =
        g_compute_checksum_for_string(G_CHECKSUM_SHA256, result->config, -1);
    if (g_strcmp0(hash, result->hash) != 0)
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "%s: hash: expected %s, the SHA-256 of the configuration, got "
                           "%s",
                           store->file, hash, result->hash);
    return true;
}

/* The run's row is written with its first result, so that no transaction leaves one without the
 * other. */
bool store_put(Store *store, const StoreResult *result, GError **error)
{
    if (!check_result(store, result, error))
        return false;
    sqlite3_int64 run = store->run;
    bool ok = execute(store, "BEGIN IMMEDIATE");
    if (ok && run == 0) {
        ok = insert_run(store);
        run = sqlite3_last_insert_rowid(store->db);
    }
    ok = ok && insert_result(store, run, result);
    if (ok && sqlite3_changes(store->db) == 0) { /* it is there: keep nothing of this */
        roll_back(store);
        return true;
    }
    if (ok && execute(store, "COMMIT")) {
        store->run = run;
        return true;
    }
    failed(store, KILTER_ERROR_FAILED, "write a result", error);
    roll_back(store);
    return false;
}

typedef struct {
    StoreRow row;
    void *data;
} Query;

static int hand_over(void *data, int n_columns, char **value, char **column)
{
    Query *query = data;
    query->row((uint32_t)n_columns, value, column, query->data);
    return 0;
}

bool store_query(Store *store, const char *sql, StoreRow row, void *data, GError **error)
{
    Query query = {row, data};
    execute(store, "PRAGMA query_only = ON");
    int code = sqlite3_exec(store->db, sql, row ? hand_over : NULL, &query, NULL);
    bool ok = code == SQLITE_OK || failed(store,
                                          code == SQLITE_ERROR || code == SQLITE_READONLY
                                              ? KILTER_ERROR_INPUT
                                              : KILTER_ERROR_FAILED,
                                          "run the query", error);
    roll_back(store);
    execute(store, "PRAGMA query_only = OFF");
    return ok;
}
