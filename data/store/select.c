/* Reading: the questions that an experiment asks now, and queries. */

#include "data/base/error.h"
#include "data/store/database.h"

/* In what is selected an answer has the planner's name that was asked for: another one may stand
 * for it. */
static const char PLANNER[] = "answer.planner,";
static const char PLANNER_ASKED[] =
    "substr(asked.entry, 1, instr(asked.entry || ':', ':') - 1) AS planner,";

/* Creates the views in the connection, from the same texts, over a temporary table in place of the
 * store's. */
static bool make_views(const Store *store)
{
    static const char reset[] = "PRAGMA temp_store = MEMORY; DROP VIEW IF EXISTS "
                                "temp.best; DROP VIEW IF EXISTS temp.result;"
                                "DROP TABLE IF EXISTS temp.asked;"
                                "CREATE TEMP TABLE asked (experiment TEXT, answer "
                                "INTEGER, ordinal INTEGER PRIMARY "
                                "KEY, model TEXT, cluster TEXT, entry TEXT, axes TEXT)";
    g_autofree char *all = store_views_sql();
    g_auto(GStrv) part = g_strsplit(all, "CREATE VIEW", -1);
    g_autofree char *own = g_strjoinv("CREATE TEMP VIEW", part);
    g_auto(GStrv) rest = g_strsplit(own, PLANNER, 2);
    g_autofree char *views = g_strjoinv(PLANNER_ASKED, rest);
    g_assert(rest[0] && rest[1]);
    return store_execute(store, reset) && store_execute(store, views);
}

static bool fill(sqlite3_stmt *insert, const StoreAsked *asked, uint32_t n)
{
    g_assert(insert && (asked || n == 0));
    bool good = true;
    for (uint32_t i = 0; good && i < n; i++) {
        const char *text[] = {asked[i].experiment, asked[i].model, asked[i].cluster,
                              asked[i].entry, asked[i].axes};
        const int last = (int)G_N_ELEMENTS(text);
        for (int k = 0; k < last; k++)
            sqlite3_bind_text(insert, k + 1, text[k], -1, SQLITE_STATIC);
        sqlite3_bind_int64(insert, last + 1, asked[i].ordinal);
        good = store_bind_hash(insert, last + 2, asked[i].hash) && store_insert(insert);
    }
    return good;
}

bool store_select(Store *store, const StoreAsked *asked, uint32_t n, GError **error)
{
    static const char sql[] =
        "INSERT INTO temp.asked (experiment, answer, ordinal, model, cluster, entry, "
        "axes) "
        "SELECT ?1, id, ?6, ?2, ?3, ?4, ?5 FROM main.answer WHERE hash = ?7";
    sqlite3_stmt *insert = NULL;
    const bool good =
        make_views(store) && store_execute(store, "BEGIN") &&
        sqlite3_prepare_v2(store->db, sql, -1, &insert, NULL) == SQLITE_OK &&
        fill(insert, asked, n) && store_execute(store, "COMMIT");
    if (!good)
        store_failed(store, KILTER_ERROR_FAILED, "select results", error);
    sqlite3_finalize(insert);
    store_roll_back(store);
    return good;
}

typedef struct {
    StoreRow row;
    void *data;
} Query;

static int hand_over(void *data, int n_columns, char **value, char **column)
{
    Query *query = data;
    query->row((uint32_t)n_columns, value, column, query->data);
    return 0;
}

bool store_query(Store *store, const char *sql, StoreRow row, void *data, GError **error)
{
    g_assert(store && sql);
    Query query = {row, data};
    store_execute(store, "PRAGMA query_only = ON");
    int code = sqlite3_exec(store->db, sql, row ? hand_over : NULL, &query, NULL);
    bool ok =
        code == SQLITE_OK || store_failed(store,
                                          code == SQLITE_ERROR || code == SQLITE_READONLY
                                              ? KILTER_ERROR_INPUT
                                              : KILTER_ERROR_FAILED,
                                          "run the query", error);
    store_roll_back(store);
    store_execute(store, "PRAGMA query_only = OFF");
    return ok;
}
