/* The result store: one SQLite file that sweeps write and figures read.
 *
 * Numbered invariants:
 *   1. A result is the answer to a question, identified by the SHA-256 of everything that the answer depends on; a
 *      question is answered once, and each experiment that asks it has the answer under its own names.
 *   2. A result is written in one transaction with everything that leads back to it (run, question, seed, version).
 *   3. A file that is not a Kilter store, of another schema version, damaged, or with tables, triggers or views that a
 *      store does not have is refused and left untouched.
 *   4. Opening creates nothing but the file itself and SQLite's own journals.
 * The schema is data/store/schema.sql, the views that queries are written for are data/store/views.sql. A Store is used by
 * one thread at a time. */
#ifndef KILTER_DATA_STORE_STORE_H
#define KILTER_DATA_STORE_STORE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Store Store;

/* A text with its SHA-256 that many questions have in common; counted references, for any thread. */
typedef struct StorePart StorePart;
StorePart *store_part_new(const char *json); /* JSON with sorted keys */
StorePart *store_part_ref(StorePart *part);
void store_part_unref(StorePart *part);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StorePart, store_part_unref)
const char *store_part_text(const StorePart *part);

/* All that an answer depends on; its maker gives its references back with store_question_clear. */
typedef struct {
    StorePart *subject; /* what is trained, or sent */
    StorePart *cluster; /* on what */
    StorePart *method;  /* how: planner, fidelity, options, version */
    uint64_t seed;      /* up to 2^63 - 1 */
} StoreQuestion;

void store_question_clear(StoreQuestion *question);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(StoreQuestion, store_question_clear)

/* The question's identity: the SHA-256 (hex) of {"cluster":C,"method":M,"seed":N,"subject":S}, where C, M and S are those
 * of the parts. Caller frees. */
char *store_question_hash(const StoreQuestion *question);

/* A question as an experiment asks it. Strings are borrowed. */
typedef struct {
    const char *experiment;              /* name in the experiment file */
    const char *hash;                    /* of the question */
    const char *model, *cluster, *entry; /* as the file has them; entry: of the planner */
    const char *axes; /* further axes of its grid, JSON object of texts, or NULL */
    uint32_t ordinal; /* in its grid */
} StoreAsked;

/* One answer. Strings are borrowed on write. */
typedef struct {
    StoreAsked asked;
    StoreQuestion question;
    const char *planner, *fidelity, *granularity;
    uint32_t gpus;
    const char *status;      /* "ok", "oom", "impossible", "error" */
    const char *message;     /* why not ok, or NULL */
    double iteration_time_s; /* NaN becomes NULL */
    double fractional_time_s, lower_bound_s, gap;
    bool optimal;
    uint32_t stages;
    const char *plan;                      /* its strategy, JSON object, or NULL */
    uint64_t peak_memory_bytes;            /* largest over devices */
    double communication_s, computation_s; /* parts of the iteration time */
    double search_time_s,
        balance_time_s; /* wall clock of the planner: the only columns that differ between equal runs */
    const char *detail; /* further report, JSON object, or NULL */
} StoreResult;

/* Opens (creates) a store for writing, or an existing one for reading only. */
Store *store_open(const char *file, GError **error);
Store *store_open_read(const char *file, GError **error);
void store_close(Store *store);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Store, store_close)

/* Registers this invocation (command line, version, revision, host); results written afterwards refer to it. `revision`:
 * the commit that the program was built from, or "". */
bool store_begin_run(Store *store, const char *command, const char *revision,
                     GError **error);

/* has[i]: whether the store has the answer to asked[i]. If so, and the store is open for writing, it becomes the
 * experiment's. All in one transaction. */
bool store_find(Store *store, const StoreAsked *asked, uint32_t n, bool *has,
                GError **error);

/* Adds a result; an answer that the store has is kept, and becomes the experiment's. KILTER_ERROR_FAILED if it cannot be
 * written: the disk is full, or the file was removed. */
bool store_put(Store *store, const StoreResult *result, GError **error);

/* Adds the answers of another store, and who asked for them: all of them or, on failure, none. Equal answers are passed over.
 * *added: how many are new. KILTER_ERROR_INPUT for a file that is no sound store of this version, KILTER_ERROR_FAILED where
 * the two have different answers to one question (wall-clock times apart). */
bool store_merge(Store *store, const char *file, uint32_t *added, GError **error);

/* From now on the views `result` and `best` show store_query the answers to these questions and no others, in the order
 * of their ordinals: an experiment sees what it asks now, whatever else the store holds. */
bool store_select(Store *store, const StoreAsked *asked, uint32_t n, GError **error);

/* Runs a query of one or more columns and hands each row as text columns (NULL for NULL) to `row`. */
typedef void (*StoreRow)(uint32_t n_columns, char **value, char **column, void *data);
bool store_query(Store *store, const char *sql, StoreRow row, void *data, GError **error);

#endif
