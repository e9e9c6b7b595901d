/* The store's inside: one SQLite connection and its statements. Private to data/store. */
#ifndef KILTER_DATA_STORE_DATABASE_H
#define KILTER_DATA_STORE_DATABASE_H

#include <sqlite3.h>

#include "data/store/store.h"

enum { STORE_HASH_BYTES = 32 };

struct StorePart {
    char *text, *hash; /* hash: SHA-256 of the text, hex */
};

/* The columns that a row's seal covers, in the order in which they are written. */
#define STORE_RUN_COLUMNS "command, version, revision, host, started"
#define STORE_ANSWER_COLUMNS                                                      \
    "hash, subject, cluster, method, seed, run, planner, fidelity, granularity, " \
    "gpus, status, message, iteration_time_s, fractional_time_s, lower_bound_s, " \
    "gap, optimal, stages, peak_memory_bytes, communication_s, computation_s, "   \
    "search_time_s, balance_time_s, plan, detail"
#define STORE_ASKED_COLUMNS "experiment, answer, ordinal, model, cluster, entry, axes"

struct Store {
    char *file;
    uint64_t device, inode; /* identity of the file when it was opened */
    sqlite3 *db;
    bool writable;
    sqlite3_stmt *find, *is_asked, *ask, *put, *add_run, *add_part;
    GHashTable *part; /* hash -> id of the parts known to be in the store */
    char *command;    /* command line of this invocation; NULL before store_begin_run */
    char *revision, *started;
    sqlite3_int64 run; /* id of the run's row; 0 until its first result is written */
};

/* --- store/file.c: the kind of a file, by its bytes --- */

enum {
    STORE_APPLICATION_ID = 0x4b6c7472, /* "Kltr" */
    STORE_VERSION = 3,
};

/* Fails with "FILE: reason; left untouched". Always false. */
bool store_refuse(const char *file, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
bool store_check_identity(const char *file, int64_t application, int64_t version,
                          GError **error);
/* Accepts stores, and with `create` also empty and absent files. Only reads the file, so that a
 * foreign database is not even recovered. */
bool store_check_file(const char *file, bool create, GError **error);
/* Whether SQLite left a journal beside the file, so that the file by itself may be out of date. */
bool store_has_journal(const char *file);

/* --- store/database.c --- */

/* SQL functions of the schema: kilter_seal(column, ...), 8 bytes that any change of the columns
 * changes, and kilter_hash(text), the SHA-256. */
bool store_add_functions(sqlite3 *db);

/* Fails to do `what`, with SQLite's message about the last call. Always false. */
bool store_failed(const Store *store, int code, const char *what, GError **error);
bool store_execute(const Store *store, const char *sql);
void store_roll_back(const Store *store);
/* The first column of the first row of `sql` as text, NULL on failure. The caller frees it. */
char *store_one_value(const Store *store, const char *sql);
/* Runs an INSERT whose parameters are bound. */
bool store_insert(sqlite3_stmt *statement);

/* Binds a SHA-256, given in hex, to a parameter; false if the text is not one. */
bool store_bind_hash(sqlite3_stmt *statement, int at, const char *hex);

/* Creates the schema in an empty database. */
bool store_create_schema(const Store *store);
/* Whether the database is sound: its pages, its schema, and every row's seal. */
bool store_check_rows(const Store *store, GError **error);

#endif
