/* The result store: one SQLite file that sweeps write and figures read.
 *
 * Numbered invariants:
 *   1. A result is the answer to a question, identified by the SHA-256 of everything that the
 *      answer depends on; a question is answered once, and each point of an experiment's grid that
 *      asks it gets the answer under names of its own.
 *   2. A result is written in one transaction with its provenance (run, question, seed, version).
 *   3. A file that is not a Kilter store, of another schema version, damaged, or with tables,
 *      triggers or views that a store does not have is refused and left untouched. A store of the
 *      version before is made one of this version when it is opened for writing; for reading, its
 *      copy in memory is.
 *   4. Opening creates nothing but the file itself, SQLite's own journals and, for writing, FILE-lock,
 *      which names the processes that write it; closing removes all but the file.
 *   5. One machine at a time writes a store. On a file system that other machines may share it has a
 *      rollback journal, on a local one a write-ahead log.
 * The schema is data/store/schema.sql with the columns of data/store/columns.h, the views that
 * queries are written for are data/store/views.sql; a further view, `configuration`, has the axes
 * of grids as columns (data/store/axes.c). A Store is used by one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "data/base/free.h"
#include "data/store/columns.h"
#include "data/store/question.h"

typedef struct Store Store;

/* One answer (data/store/columns.h). Strings are borrowed on write. */
typedef struct {
    StoreAsked asked;
    StoreQuestion question;
#define MEMBER(name, kind, use, rule) STORE_TYPE_##kind name;
    ANSWER_COLUMNS(MEMBER)
#undef MEMBER
    /* members of this report that many results have in common, kept once: the same kind of object;
     * or NULL */
    StorePart *common;
} StoreResult;

/* Opens a store for writing, creating it if needed; the second function opens an existing store for
 * reading. */
Store *store_open(const char *file, GError **error);
Store *store_open_read(const char *file, GError **error);
AUTOPTR(store_close, Store)

/* Registers this invocation (command line, version, revision, host); results written afterwards
 * refer to it. `revision`: the commit that the program was built from, or "". */
bool store_begin_run(Store *store, const char *command, const char *revision,
                     GError **error);

/* has[i]: whether the store has the answer to asked[i]. If so, and the store is open for writing,
 * the answer is also recorded for the experiment. All in one transaction: the caller's, or its
 * own. */
bool store_find(Store *store, const StoreAsked *asked, uint32_t n, bool *has,
                GError **error);

/* Adds a result; an existing answer is kept, and recorded for the experiment. KILTER_ERROR_FAILED
 * if it cannot be written: the disk is full, or the file was removed. */
bool store_put(Store *store, const StoreResult *result, GError **error);

/* --- claims: who works on what, so that several processes share a store's questions --- */

/* A question that ended as many processes as this by a fault of their own is not tried again. */
enum { STORE_DEATHS = 2 };

typedef enum {
    STORE_CLAIMED, /* this process works on it from now on */
    STORE_TAKEN,   /* another process does */
    STORE_ANSWERED, /* another process has answered it; the answer is recorded for the experiment */
    STORE_SUSPECT, /* a process ended while it worked on it, and STORE_ALONE was not given */
    STORE_POISON, /* STORE_DEATHS processes did, by faults of their own */
} StoreClaim;

enum {
    STORE_ALONE = 1, /* nothing else is worked on: if the process ends, this was why */
    STORE_AGAIN = 2, /* forgets how many processes it ended */
};

/* Notes, before the work begins, that this process answers a question. `flags`: STORE_ALONE and so
 * on. */
bool store_claim(Store *store, const StoreAsked *asked, uint32_t flags, StoreClaim *claim,
                 GError **error);
/* Ends a claim without an answer, with the reason, or NULL for what was not begun. A hash of NULL:
 * all claims of this process, without a reason. store_put ends the claim of what it answers. */
bool store_give_up(Store *store, const char *hash, const char *message, GError **error);

/* The path of the file that a process makes when it ends by its own fault (it crashes, or has no
 * memory left), for which a signal handler suffices. Only then what it worked on is blamed; a
 * process that was killed, or whose machine was lost, blames nothing. Borrowed. */
const char *store_fault_file(Store *store);

/* A question without an answer, and the process that works on it. Strings are borrowed. */
typedef struct StoreAttempt {
    const char *hash, *host, *started;
    int64_t pid;
    bool runs;       /* a process of this machine works on it */
    uint32_t deaths; /* processes that ended by their own fault while they worked on it */
    const char *message; /* the error that it gave last, or NULL */
} StoreAttempt;
typedef void (*StoreAttemptEach)(const StoreAttempt *attempt, void *data);
bool store_attempts(Store *store, StoreAttemptEach each, void *data, GError **error);

/* Between these, what is put and claimed is written in one transaction. A failure in between undoes
 * all of it. */
bool store_begin(Store *store, GError **error);
bool store_commit(Store *store, GError **error);

/* Says that this process still writes; to be called several times in ten seconds.
 * KILTER_ERROR_FAILED if another machine took the store over. */
bool store_keep(Store *store, GError **error);
/* A sentence for the user about how the store was opened, or NULL. */
const char *store_note(const Store *store);

/* Adds the answers of another store with the experiments that asked for them: all of them or, on
 * failure, none. Equal answers are skipped. *added gets the number of new answers.
 * KILTER_ERROR_INPUT for a file that is not a sound store of this version, KILTER_ERROR_FAILED if
 * the stores have different answers to one question (wall-clock times excepted). */
bool store_merge(Store *store, const char *file, uint32_t *added, GError **error);
/* Whether a file can be merged: KILTER_ERROR_INPUT as above. *has_attempts: whether it says which
 * configurations were tried. */
bool store_merge_check(const char *file, bool *has_attempts, GError **error);

/* From now on the views `result` and `best` show store_query only the answers to these questions,
 * in the order of their ordinals: an experiment sees exactly its current questions, whatever else
 * the store holds. `planner` is that of asked.entry, up to a colon. */
bool store_select(Store *store, const StoreAsked *asked, uint32_t n, GError **error);

/* Runs a query with one or more columns and passes each row to `row`, as text columns (NULL for
 * NULL). */
typedef void (*StoreRow)(uint32_t n_columns, char **value, char **column, void *data);
bool store_query(Store *store, const char *sql, StoreRow row, void *data, GError **error);
