/* The result store: one SQLite file that sweeps write and figures read.
 *
 * Numbered invariants:
 *   1. A result is identified by the hash of its effective configuration; an experiment holds each once, and what another
 *      one has evaluated becomes its own.
 *   2. A result is written in one transaction with everything that leads back to it (run, configuration, seed, version).
 *   3. A file that is not a Kilter store, or of another schema version, is refused and left untouched.
 *   4. Opening creates nothing but the file itself and SQLite's own journals.
 * The schema is data/store/schema.sql. A Store is used by one thread at a time. */
#ifndef KILTER_DATA_STORE_STORE_H
#define KILTER_DATA_STORE_STORE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Store Store;

/* One evaluated configuration. Strings are borrowed on write. */
typedef struct {
    const char *hash;       /* SHA-256 of `config`, hex */
    const char *experiment; /* name in the experiment file */
    const char *config;     /* effective configuration, JSON with sorted keys */
    const char *model, *cluster, *planner, *fidelity, *granularity; /* as asked for */
    uint32_t gpus;
    uint64_t seed;
    const char *status;      /* "ok", "oom", "error" */
    const char *message;     /* why not ok, or NULL */
    double iteration_time_s; /* NaN becomes NULL */
    double fractional_time_s, lower_bound_s, gap;
    bool optimal;
    uint32_t stages;
    const char *ratios;                    /* JSON array of arrays, or NULL */
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

/* Registers this invocation (command line, version, host); results written afterwards refer to it. */
bool store_begin_run(Store *store, const char *command, GError **error);

/* Whether the experiment has a result of that configuration. If another one has, and the store is
 * open for writing, a copy, which leads back to the same run, becomes this experiment's. */
bool store_has(Store *store, const char *experiment, const char *hash, bool *has,
               GError **error);

/* Adds a result; one that the experiment has of the same hash is kept. */
bool store_put(Store *store, const StoreResult *result, GError **error);

/* Runs a query of one or more columns and hands each row as text columns (NULL for NULL) to `row`. */
typedef void (*StoreRow)(uint32_t n_columns, char **value, char **column, void *data);
bool store_query(Store *store, const char *sql, StoreRow row, void *data, GError **error);

#endif
