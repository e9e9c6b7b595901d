/* Stores of earlier versions, made new: what each lacked, and how its rows are copied, is in
 * data/store/upgrade-VERSION.sql. Answers of version 2 are kept to be read, and evaluated anew when
 * asked again, as what they asked is not known as well as it is today. */

#include "data/store/database.h"

#define FACTS                                                                    \
    "seed, run, planner, fidelity, granularity, gpus, status, message, "         \
    "iteration_time_s, fractional_time_s, lower_bound_s, gap, optimal, stages, " \
    "peak_memory_bytes, communication_s, computation_s, search_time_s, balance_time_s"
/* The sealed columns of both versions; 3 lacks the last one of answers. */
#define ANSWER_3 "hash, subject, cluster, method, " FACTS ", plan, detail"
#define ASKED_4  "experiment, answer, ordinal, model, cluster, entry, axes"

/* STORE_UPGRADE_2 and so on, generated from data/store/upgrade-2.sql */
#include "data/upgrade-2.h"
#include "data/upgrade-3.h"
#include "data/upgrade-4.h"
#include "data/upgrade-5.h"

/* Counts what is not of a store: a foreign trigger or view would be lost. */
static const char STRANGERS[] =
    "SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_autoindex\\_%' "
    "ESCAPE '\\' AND type || ' ' || name NOT IN ('table run', 'table part', 'table "
    "answer', 'table asked', 'table attempt', 'index answer_run', 'view result', 'view "
    "best', 'view configuration')";

static const char STRANGERS_2[] =
    "SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_autoindex\\_%' "
    "ESCAPE '\\' AND type || ' ' || name NOT IN ('table run', 'table result', 'index "
    "result_run')";
static const char DAMAGED_2[] =
    "SELECT count(*) FROM result WHERE lower(hex(kilter_hash(config))) IS NOT hash";

/* Rows whose seals are made anew; those of the others are checked afterwards. */
static const char DAMAGED_3[] =
    "SELECT count(*) FROM answer WHERE kilter_seal(" ANSWER_3 ") IS NOT seal";
static const char DAMAGED_4[] =
    "SELECT count(*) FROM asked WHERE kilter_seal(" ASKED_4 ") IS NOT seal";

static const char *const UPGRADE[] = {
    [2] = STORE_UPGRADE_2, [3] = STORE_UPGRADE_3, [4] = STORE_UPGRADE_4};

int64_t store_version_of(const Store *store)
{
    g_autofree char *version = store_one_value(store, "PRAGMA user_version");
    return version ? g_ascii_strtoll(version, NULL, 10) : -1;
}

/* Refuses a store in which the query counts anything. */
static bool check_none(const Store *store, const char *sql, const char *what,
                       GError **error)
{
    g_autofree char *n = store_one_value(store, sql);
    return g_strcmp0(n, "0") == 0 || store_refuse(store->file, error, "%s: %s", what,
                                                  n ? n : sqlite3_errmsg(store->db));
}

/* Whether nothing is wrong with a store of this version. */
static bool check_old(const Store *store, int64_t version, GError **error)
{
    static const char STRANGE[] = "not a store's tables, views and triggers, but others",
                      ANSWER[] = "a damaged store: an answer";
    if (version == 2)
        return check_none(store, STRANGERS_2, STRANGE, error) &&
               check_none(store, DAMAGED_2, ANSWER, error);
    return (version > 3 || check_none(store, DAMAGED_3, ANSWER, error)) &&
           check_none(store, DAMAGED_4, "a damaged store: what was asked", error) &&
           check_none(store, STRANGERS, STRANGE, error);
}

bool store_upgrade(const Store *store, int64_t old, GError **error)
{
    g_assert(!sqlite3_get_autocommit(store->db));
    g_assert(old >= STORE_VERSION_OLDEST && old < STORE_VERSION);
    g_autofree char *tables = store_tables_sql(), *views = store_views_sql();
    g_autofree char *version = g_strdup_printf("PRAGMA user_version = %d", STORE_VERSION);
    if (old == STORE_VERSION - 1) /* with today's tables and views */
        return store_check_rows(store, error) &&
               ((store_execute(store, STORE_UPGRADE_5) && store_attempt_make(store) &&
                 store_execute(store, version)) ||
                store_refuse(store->file, error, "a damaged store: %s",
                             sqlite3_errmsg(store->db)));
    /* It sets its tables aside; once those of today are there, it copies the rows. */
    g_auto(GStrv) steps = g_strsplit(UPGRADE[old], "-- today's tables", 2);
    /* Rows that pages lost would not be missed later. */
    return store_check_pages(store, error) && check_old(store, old, error) &&
           ((store_execute(store, steps[0]) && store_execute(store, tables) &&
             store_execute(store, steps[1]) && store_execute(store, views) &&
             store_execute(store, version)) ||
            store_refuse(store->file, error, "a damaged store: %s",
                         sqlite3_errmsg(store->db)));
}
