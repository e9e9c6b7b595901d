/* The store's inside: one SQLite connection and its statements. Private to data/store. */
#pragma once

#include <sqlite3.h>

#include "data/store/store.h"

enum { STORE_HASH_BYTES = 32 };

struct StorePart {
    char *text, *hash; /* hash: SHA-256 of the text, hex */
};

/* The columns that a row's seal covers, in the order in which they are written. */
#define STORE_RUN_COLUMNS "command, version, revision, host, started"
#define STORE_ANSWER_COLUMNS \
    "hash, subject, cluster, method, seed, run" ANSWER_COLUMNS(STORE_NAME) ", common"
#define STORE_ASKED_COLUMNS   "experiment, answer, ordinal, model, cluster, entry, axes"
#define STORE_ATTEMPT_COLUMNS "hash, host, pid, process, started, deaths, message"

struct Store {
    char *file;
    uint64_t device, inode; /* identity of the file when it was opened */
    sqlite3 *db;
    bool writable;
    sqlite3_stmt *find, *is_asked, *ask, *put, *add_run, *add_part;
    sqlite3_stmt *attempted, *claim, *drop;
    GHashTable *part; /* hash -> id of the parts known to be in the store */
    /* names of the axes that the view `configuration` is known to have */
    GHashTable *axis;
    char *last_axes; /* what store_axes_add was given last */
    char *command;   /* command line of this invocation; NULL before store_begin_run */
    char *revision, *started;
    sqlite3_int64 run; /* id of the run's row; 0 until its first result is written */
    /* The state that a roll-back restores: the run's id before the transaction, and hashes of parts
     * made in it. */
    sqlite3_int64 run_before;
    GPtrArray *made;
    /* This process, as locks and attempts name it; set where the store is writable. `process` tells
     * it from others of the same number, and this store from others that it has open. */
    char *host, *process;
    sqlite3_int64 pid;
    char *lock;   /* the lock's path; NULL: none is kept */
    char *locked; /* since when, UTC */
    uint64_t beats;
    gint64 beat_us; /* when the lock was written last, monotonic */
    char *fault;    /* store_fault_file */
    char *note;     /* what a user should know about how it was opened, or NULL */
};

/* --- store/file.c: the kind of a file, by its bytes --- */

enum {
    STORE_APPLICATION_ID = 0x4b6c7472, /* "Kltr" */
    STORE_VERSION = 6,
    STORE_VERSION_OLDEST =
        2, /* from this on, stores are made one of STORE_VERSION when they are opened */
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

/* Removes the files of faults by which no question is blamed any more. */
void store_faults_clean(const Store *store);

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
/* INSERT of a row with its seal, whose parameters are these columns, then `conflict`. The caller
 * frees it. */
char *store_insert_sql(const char *table, const char *columns, const char *conflict);
/* Runs an INSERT whose parameters are bound. */
bool store_insert(sqlite3_stmt *statement);

/* Binds a SHA-256, given in hex, to a parameter; false if the text is not one. */
bool store_bind_hash(sqlite3_stmt *statement, int at, const char *hex);
/* Forgets that a question was tried: it has an answer, or was not begun. */
bool store_drop_attempt(const Store *store, const char *hash);

/* --- store/check.c --- */

/* Creates the schema in an empty database. */
bool store_create_schema(const Store *store);
/* The statements that make the tables, and the views; the columns of answers follow from their
 * list. The caller frees them. */
char *store_tables_sql(void);
char *store_views_sql(void);
/* Whether SQLite finds the pages, indices and references sound, in whichever version. */
bool store_check_pages(const Store *store, GError **error);
/* Whether the database is sound: its pages, its schema, and every row's seal. */
bool store_check_rows(const Store *store, GError **error);

/* --- store/upgrade.c --- */

/* In a transaction: makes a store of the `old` version one of STORE_VERSION. KILTER_ERROR_INPUT if
 * it is damaged. */
bool store_upgrade(const Store *store, int64_t old, GError **error);
/* The version that the open database says it has, -1 on failure. */
int64_t store_version_of(const Store *store);

/* --- store/lock.c: the machine that writes a store --- */

/* Notes this process in FILE-lock. Several processes of one machine may be in it, as SQLite keeps
 * them apart; a process of another machine that still beats is KILTER_ERROR_FAILED, and one that
 * does not beat for a lease is taken over. A folder that cannot be written has no lock, without an
 * error. */
bool store_lock_take(Store *store, GError **error);
/* Says that the process still writes, if it is time to. KILTER_ERROR_FAILED if another machine took
 * the store over. */
bool store_lock_beat(Store *store, GError **error);
void store_lock_release(Store *store);
/* Waits until no other machine writes the store; KILTER_ERROR_FAILED if one does. */
bool store_lock_wait(const char *file, GError **error);
/* Whether a process noted by this machine still runs; false for those of other machines. */
bool store_process_runs(const char *host, sqlite3_int64 pid, const char *process);

/* --- store/journal.c --- */

/* Whether other machines may see the file: by its file system or $KILTER_SHARED_FILES (1 or 0). */
bool store_is_shared(const char *file);

/* --- store/store.c --- */

/* Rolls the transaction back, and forgets what was learnt in it. */
void store_forget_transaction(Store *store);
/* store_find of one question, in the caller's transaction. */
bool store_find_one(Store *store, const StoreAsked *asked, bool *has);

/* --- store/attempt.c --- */

bool store_attempt_is_there(const Store *store);
/* Makes the table if it is not there, as in stores of earlier versions. */
bool store_attempt_make(const Store *store);
/* Whether the table is as it should be, and all its rows, or not there. */
bool store_attempt_check(const Store *store);
/* Prepares the statements of claims. */
bool store_attempt_prepare(Store *store);

/* --- store/axes.c: the view `configuration`, whose columns depend on what was asked --- */

/* The statement that makes the view for what is in the store; NULL on failure. Caller frees. */
char *store_axes_view(const Store *store);
/* Reads the names of the axes, and makes the view if it is not there. False if SQLite failed, as in
 * the others. */
bool store_axes_read(Store *store);
/* After a question with these axes (JSON, or NULL) was written, in the same transaction: makes the
 * view again if one is new. */
bool store_axes_add(Store *store, const char *axes);
/* After a roll-back. */
void store_axes_forget(Store *store);
