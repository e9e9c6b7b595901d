/* The ground of the store's SQL: checksums of rows, statements, values. */
#include "data/store/database.h"

#include <string.h>

#include "data/base/error.h"

/* --- checksums --- */

enum { SEAL_BYTES = 8 };

/* Adds type and bytes of a value, so that NULL differs from "", and two columns from one. */
static void database_add_value(GChecksum *sum, sqlite3_value *value)
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
        database_add_value(sum, value[i]);
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

char *store_insert_sql(const char *table, const char *columns, const char *conflict)
{
    g_autoptr(GString) values = g_string_new("?1");
    int n = 1;
    for (const char *c = columns; *c; c++)
        if (*c == ',')
            g_string_append_printf(values, ", ?%d", ++n);
    return g_strdup_printf("INSERT INTO %s (%s, seal) VALUES (%s, kilter_seal(%s)) %s",
                           table, columns, values->str, values->str, conflict);
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

bool store_drop_attempt(const Store *store, const char *hash)
{
    return store_bind_hash(store->drop, 1, hash) && store_insert(store->drop);
}
