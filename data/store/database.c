/* The ground of the store's SQL: checksums of rows, and checks of a whole database. */
#include "data/store/database.h"

#include <string.h>

#include "data/base/error.h"
#include "data/schema.h" /* STORE_SCHEMA, generated from data/store/schema.sql */
#include "data/views.h"  /* STORE_VIEWS, generated from data/store/views.sql */

/* --- checksums --- */

enum { SEAL_BYTES = 8 };

/* Adds type and bytes of a value, so that NULL differs from "", and two columns from one. */
static void add_value(GChecksum *sum, sqlite3_value *value)
{
    const uint8_t type = (uint8_t)sqlite3_value_type(value);
    g_checksum_update(sum, &type, 1);
    if (type == SQLITE_INTEGER) {
        const sqlite3_int64 number = sqlite3_value_int64(value);
        g_checksum_update(sum, (const guchar *)&number, sizeof number);
    } else if (type == SQLITE_FLOAT) {
        const double number = sqlite3_value_double(value);
        g_checksum_update(sum, (const guchar *)&number, sizeof number);
    } else if (type != SQLITE_NULL) {
        const guchar *bytes = sqlite3_value_blob(value);
        const int n = sqlite3_value_bytes(value);
        g_checksum_update(sum, (const guchar *)&n, sizeof n);
        if (n > 0)
            g_checksum_update(sum, bytes, n);
    }
}

static void seal(sqlite3_context *context, int n, sqlite3_value **value)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    uint8_t digest[STORE_HASH_BYTES];
    gsize length = sizeof digest;
    for (int i = 0; i < n; i++)
        add_value(sum, value[i]);
    g_checksum_get_digest(sum, digest, &length);
    sqlite3_result_blob(context, digest, SEAL_BYTES, SQLITE_TRANSIENT);
}

static void hash(sqlite3_context *context, int n, sqlite3_value **value)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    const guchar *text = sqlite3_value_text(value[0]);
    uint8_t digest[STORE_HASH_BYTES];
    gsize length = sizeof digest;
    g_assert(n == 1);
    if (text)
        g_checksum_update(sum, text, sqlite3_value_bytes(value[0]));
    g_checksum_get_digest(sum, digest, &length);
    sqlite3_result_blob(context, digest, sizeof digest, SQLITE_TRANSIENT);
}

bool store_add_functions(sqlite3 *db)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    return sqlite3_create_function(db, "kilter_seal", -1, flags, NULL, seal, NULL,
                                   NULL) == SQLITE_OK &&
           sqlite3_create_function(db, "kilter_hash", 1, flags, NULL, hash, NULL, NULL) ==
               SQLITE_OK;
}

/* --- SQL --- */

bool store_failed(const Store *store, int code, const char *what, GError **error)
{
    return kilter_fail(error, (KilterError)code, "%s: cannot %s: %s", store->file, what,
                       store->db ? sqlite3_errmsg(store->db) : "out of memory");
}

bool store_execute(const Store *store, const char *sql)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

void store_roll_back(const Store *store)
{
    if (!sqlite3_get_autocommit(store->db))
        store_execute(store, "ROLLBACK");
}

char *store_one_value(const Store *store, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    char *value = NULL;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        value = g_strdup((const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    return value;
}

bool store_insert(sqlite3_stmt *statement)
{
    sqlite3_step(statement);
    /* reset repeats the result of the step */
    return sqlite3_reset(statement) == SQLITE_OK;
}

bool store_bind_hash(sqlite3_stmt *statement, int at, const char *hex)
{
    uint8_t hash[STORE_HASH_BYTES];
    bool good = hex && strlen(hex) == 2 * STORE_HASH_BYTES;
    for (uint32_t i = 0; good && i < STORE_HASH_BYTES; i++) {
        const int high = g_ascii_xdigit_value(hex[2 * i]);
        const int low = g_ascii_xdigit_value(hex[2 * i + 1]);
        good = high >= 0 && low >= 0;
        hash[i] = (uint8_t)(high << 4 | low);
    }
    if (good)
        sqlite3_bind_blob(statement, at, hash, sizeof hash, SQLITE_TRANSIENT);
    return good;
}

/* --- a whole database --- */

bool store_create_schema(const Store *store)
{
    g_autofree char *identity =
        g_strdup_printf("PRAGMA application_id = %d; PRAGMA user_version = %d",
                        STORE_APPLICATION_ID, STORE_VERSION);
    return store_execute(store, STORE_SCHEMA) && store_execute(store, STORE_VIEWS) &&
           store_execute(store, identity);
}

/* All declarations of a database as one text; NULL on failure. The caller frees it. */
static char *declared(const Store *store)
{
    return store_one_value(
        store, "SELECT group_concat(type || ' ' || name || ' ' || tbl_name || ' ' || "
               "coalesce(sql, ''), char(10)) FROM (SELECT * FROM sqlite_schema "
               "ORDER BY type, name)");
}

/* Checks that tables, triggers and views equal the schema's, letter by letter: a foreign trigger
 * could change what is written, a foreign view what is read. */
static bool check_schema(const Store *store, GError **error)
{
    Store model = {.file = store->file};
    g_autofree char *found = declared(store), *expected = NULL;
    if (sqlite3_open(":memory:", &model.db) == SQLITE_OK && store_create_schema(&model))
        expected = declared(&model);
    sqlite3_close(model.db);
    if (!expected)
        return store_failed(store, KILTER_ERROR_FAILED, "check the store", error);
    return g_strcmp0(found, expected) == 0 ||
           store_refuse(store->file, error,
                        "not a store's tables, views and triggers, but others");
}

bool store_check_rows(const Store *store, GError **error)
{
    /* One row per table: a message, and a query for the number of its damaged rows. */
    static const struct {
        const char *sql, *sound, *what;
    } CHECK[] = {
        {"PRAGMA integrity_check(1)", "ok", "its pages"},
        {"SELECT count(*) FROM pragma_foreign_key_check", "0", "its references"},
        {"SELECT count(*) FROM part WHERE kilter_hash(text) IS NOT hash", "0",
         "a part of a question"},
        {"SELECT count(*) FROM run WHERE kilter_seal(" STORE_RUN_COLUMNS ") IS NOT seal",
         "0", "a run"},
        {"SELECT count(*) FROM answer WHERE kilter_seal(" STORE_ANSWER_COLUMNS
         ") IS NOT seal",
         "0", "an answer"},
        {"SELECT count(*) FROM asked WHERE kilter_seal(" STORE_ASKED_COLUMNS
         ") IS NOT seal",
         "0", "what was asked"},
    };
    if (!check_schema(store, error))
        return false;
    for (uint32_t i = 0; i < G_N_ELEMENTS(CHECK); i++) {
        g_autofree char *verdict = store_one_value(store, CHECK[i].sql);
        if (g_strcmp0(verdict, CHECK[i].sound) != 0)
            return store_refuse(store->file, error, "a damaged store: %s: %s",
                                CHECK[i].what,
                                verdict ? verdict : sqlite3_errmsg(store->db));
    }
    return true;
}
