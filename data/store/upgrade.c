/* Stores of the version before: an answer's whole report stood in its `detail`. */
#include <string.h>

#include "data/base/error.h"
#include "data/schema.h" /* STORE_SCHEMA, generated from data/store/schema.sql */
#include "data/store/database.h"
#include "data/views.h" /* STORE_VIEWS, generated from data/store/views.sql */

/* The sealed columns of an answer, of which this version has one more. */
#define BEFORE                                                                    \
    "hash, subject, cluster, method, seed, run, planner, fidelity, granularity, " \
    "gpus, status, message, iteration_time_s, fractional_time_s, lower_bound_s, " \
    "gap, optimal, stages, peak_memory_bytes, communication_s, computation_s, "   \
    "search_time_s, balance_time_s, plan, detail"

/* Counts what is not of a store: a foreign trigger or view would be lost. */
static const char STRANGERS[] =
    "SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_autoindex\\_%' "
    "ESCAPE '\\' AND type || ' ' || name NOT IN ('table run', 'table part', 'table "
    "answer', 'table asked', 'table attempt', 'index answer_run', 'view result', 'view "
    "best', 'view configuration')";

static const char DAMAGED[] =
    "SELECT (SELECT count(*) FROM answer WHERE kilter_seal(" BEFORE ") IS NOT seal)";

static const char SET_ASIDE[] =
    "DROP VIEW IF EXISTS configuration; DROP VIEW best; DROP VIEW result;"
    "ALTER TABLE run RENAME TO before_run; ALTER TABLE part RENAME TO before_part;"
    "ALTER TABLE answer RENAME TO before_answer;"
    "ALTER TABLE asked RENAME TO before_asked; DROP INDEX answer_run";

/* The members that many answers have in common, in the form of result_take_detail (experiments/sweep/result.h). */
#define COMMON                                                            \
    "CASE WHEN json_type(detail, '$.gates') = 'object' AND "              \
    "json_type(detail, '$.parameters') = 'object' AND json_type(detail, " \
    "'$.placement') = 'object' THEN json_object('gates', "                \
    "json(json_extract(detail, '$.gates')), 'parameters', "               \
    "json(json_extract(detail, '$.parameters')), 'placement', "           \
    "json(json_extract(detail, '$.placement'))) END"
#define REST                                                                \
    "CASE WHEN common IS NULL THEN detail ELSE nullif(json_remove(detail, " \
    "'$.gates', '$.parameters', '$.placement'), '{}') END"

static const char COPY[] =
    "INSERT INTO run SELECT * FROM before_run;"
    "INSERT INTO part SELECT * FROM before_part;"
    "INSERT INTO part (hash, text) SELECT kilter_hash(text), text FROM (SELECT "
    "DISTINCT " COMMON
    " AS text FROM before_answer) WHERE text NOTNULL ON CONFLICT DO NOTHING;"
    "INSERT INTO answer (id, " STORE_ANSWER_COLUMNS ", seal) SELECT *, "
    "kilter_seal(" STORE_ANSWER_COLUMNS ") FROM (SELECT id, hash, subject, cluster, "
    "method, seed, run, planner, fidelity, granularity, gpus, status, message, "
    "iteration_time_s, fractional_time_s, lower_bound_s, gap, optimal, stages, "
    "peak_memory_bytes, communication_s, computation_s, search_time_s, balance_time_s, "
    "plan, " REST " AS detail, (SELECT part.id FROM part WHERE part.hash = "
    "kilter_hash(common)) AS common FROM (SELECT *, " COMMON " AS common FROM "
    "before_answer) ORDER BY id);"
    "INSERT INTO asked SELECT * FROM before_asked;"
    "DROP TABLE before_asked; DROP TABLE before_answer;"
    "DROP TABLE before_part; DROP TABLE before_run";

int64_t store_version_of(const Store *store)
{
    g_autofree char *version = store_one_value(store, "PRAGMA user_version");
    return version ? g_ascii_strtoll(version, NULL, 10) : -1;
}

bool store_upgrade(const Store *store, GError **error)
{
    g_assert(!sqlite3_get_autocommit(store->db));
    g_assert(store_version_of(store) == STORE_VERSION_BEFORE);
    if (!store_check_pages(store,
                           error)) /* rows that pages lost would not be missed later */
        return false;
    g_autofree char *damaged = store_one_value(store, DAMAGED);
    g_autofree char *strangers = store_one_value(store, STRANGERS);
    g_autofree char *version = g_strdup_printf("PRAGMA user_version = %d", STORE_VERSION);
    if (g_strcmp0(damaged, "0") != 0)
        return store_refuse(store->file, error, "a damaged store: an answer: %s",
                            damaged ? damaged : sqlite3_errmsg(store->db));
    if (g_strcmp0(strangers, "0") != 0)
        return store_refuse(store->file, error,
                            "not a store's tables, views and triggers, but others");
    return (store_execute(store, SET_ASIDE) && store_execute(store, STORE_SCHEMA) &&
            store_execute(store, COPY) && store_execute(store, STORE_VIEWS) &&
            store_execute(store, version)) ||
           store_refuse(store->file, error, "a damaged store: %s",
                        sqlite3_errmsg(store->db));
}
