/* Stores of earlier versions, made new step by step.
 *
 *   2: a row for each experiment and configuration, without seals. What it asked is not known as
 *      well as it is today: such answers are kept to be read, and evaluated anew when asked again.
 *   3: an answer's whole report stood in its `detail`.
 *   4: an experiment asked for an answer once, in the same words. */

#include "data/store/database.h"

#define FACTS                                                                    \
    "seed, run, planner, fidelity, granularity, gpus, status, message, "         \
    "iteration_time_s, fractional_time_s, lower_bound_s, gap, optimal, stages, " \
    "peak_memory_bytes, communication_s, computation_s, search_time_s, balance_time_s"
/* The sealed columns of both versions; 3 lacks the last one of answers. */
#define ANSWER_3 "hash, subject, cluster, method, " FACTS ", plan, detail"
#define ASKED_4  "experiment, answer, ordinal, model, cluster, entry, axes"

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
static const char SET_ASIDE_2[] =
    "DROP INDEX result_run; ALTER TABLE run RENAME TO before_run;"
    "ALTER TABLE result RENAME TO before_result";

static const char COPY_RUNS_2[] =
    "INSERT INTO run (id, " STORE_RUN_COLUMNS ", seal) SELECT id, " STORE_RUN_COLUMNS
    ", kilter_seal(" STORE_RUN_COLUMNS ") FROM (SELECT *, '' AS revision FROM "
    "before_run)";
/* Its configuration, whole, stands for the method, and makes its question. */
#define MODEL_2        "json_object('model', model)"
#define CLUSTER_2      "json_object('cluster', cluster)"
#define PART_2(text)   "(SELECT part.id FROM part WHERE part.hash = kilter_hash(" text "))"
#define PART_MODEL_2   PART_2(MODEL_2)
#define PART_CLUSTER_2 PART_2(CLUSTER_2)
#define PART_METHOD_2  PART_2("config")
static const char COPY_2[] =
    "INSERT INTO part (hash, text) SELECT kilter_hash(text), text FROM (SELECT " MODEL_2
    " AS text FROM before_result UNION SELECT " CLUSTER_2
    " FROM before_result UNION SELECT config FROM before_result);"
    "INSERT INTO answer (" STORE_ANSWER_COLUMNS ", seal) SELECT " STORE_ANSWER_COLUMNS
    ", kilter_seal(" STORE_ANSWER_COLUMNS
    ") FROM (SELECT kilter_hash(config) AS hash, " PART_MODEL_2
    " AS subject, " PART_CLUSTER_2 " AS cluster, " PART_METHOD_2 " AS method, " FACTS
    ", CASE WHEN ratios NOTNULL THEN json_object('ratios', "
    "json(ratios)) END AS plan, detail, NULL AS common, min(rowid) AS first FROM "
    "before_result GROUP BY config ORDER BY first)";
static const char COPY_ASKED_2[] =
    "INSERT INTO asked (" STORE_ASKED_COLUMNS ", seal) SELECT " STORE_ASKED_COLUMNS
    ", kilter_seal(" STORE_ASKED_COLUMNS ") FROM (SELECT experiment, (SELECT answer.id "
    "FROM answer WHERE answer.hash = kilter_hash(config)) AS answer, row_number() OVER "
    "(PARTITION BY experiment ORDER BY rowid) AS ordinal, model, cluster, planner AS "
    "entry, '{}' AS axes FROM before_result);"
    "DROP TABLE before_result; DROP TABLE before_run";

/* Rows whose seals are made anew; those of the others are checked afterwards. */
static const char DAMAGED_3[] =
    "SELECT count(*) FROM answer WHERE kilter_seal(" ANSWER_3 ") IS NOT seal";
static const char DAMAGED_4[] =
    "SELECT count(*) FROM asked WHERE kilter_seal(" ASKED_4 ") IS NOT seal";

static const char SET_ASIDE[] =
    "DROP VIEW IF EXISTS configuration; DROP VIEW best; DROP VIEW result;"
    "ALTER TABLE run RENAME TO before_run; ALTER TABLE part RENAME TO before_part;"
    "ALTER TABLE answer RENAME TO before_answer;"
    "ALTER TABLE asked RENAME TO before_asked; DROP INDEX IF EXISTS answer_run";

/* The members that many answers have in common, in the form of result_take_detail
 * (experiments/sweep/result.h). */
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

static const char COPY_RUNS[] = "INSERT INTO run SELECT * FROM before_run;"
                                "INSERT INTO part SELECT * FROM before_part";
static const char COPY_3[] =
    "INSERT INTO part (hash, text) SELECT kilter_hash(text), text FROM (SELECT "
    "DISTINCT " COMMON
    " AS text FROM before_answer) WHERE text NOTNULL ON CONFLICT DO NOTHING;"
    "INSERT INTO answer (id, " ANSWER_3 ", common, seal) SELECT *, "
    "kilter_seal(" ANSWER_3 ", common) FROM (SELECT id, hash, subject, cluster, "
    "method, " FACTS ", plan, " REST
    " AS detail, (SELECT part.id FROM part WHERE part.hash = "
    "kilter_hash(common)) AS common FROM (SELECT *, " COMMON " AS common FROM "
    "before_answer) ORDER BY id)";
static const char COPY_4[] = "INSERT INTO answer SELECT * FROM before_answer";
static const char COPY_ASKED[] =
    "INSERT INTO asked (" STORE_ASKED_COLUMNS
    ", seal) SELECT *, kilter_seal(" STORE_ASKED_COLUMNS
    ") FROM (SELECT experiment, answer, ordinal, model, cluster, entry, coalesce(axes, "
    "'{}') AS axes FROM before_asked);"
    "DROP TABLE before_asked; DROP TABLE before_answer;"
    "DROP TABLE before_part; DROP TABLE before_run";

/* By version: what sets its tables aside, and what copies runs, answers and what was asked. */
static const struct {
    const char *aside, *runs, *answers, *asked;
} STEPS[] = {[2] = {SET_ASIDE_2, COPY_RUNS_2, COPY_2, COPY_ASKED_2},
             [3] = {SET_ASIDE, COPY_RUNS, COPY_3, COPY_ASKED},
             [4] = {SET_ASIDE, COPY_RUNS, COPY_4, COPY_ASKED}};

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
    /* Rows that pages lost would not be missed later. */
    return store_check_pages(store, error) && check_old(store, old, error) &&
           ((store_execute(store, STEPS[old].aside) && store_execute(store, tables) &&
             store_execute(store, STEPS[old].runs) &&
             store_execute(store, STEPS[old].answers) &&
             store_execute(store, STEPS[old].asked) && store_execute(store, views) &&
             store_execute(store, version)) ||
            store_refuse(store->file, error, "a damaged store: %s",
                         sqlite3_errmsg(store->db)));
}
