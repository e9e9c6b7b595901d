/* A whole database: its schema, and checks of all that it holds. */
#include <string.h>

#include "data/base/error.h"
#include "data/schema.h" /* STORE_SCHEMA, generated from data/store/schema.sql */
#include "data/store/database.h"
#include "data/views.h" /* STORE_VIEWS, generated from data/store/views.sql */

/* Puts a list in the place of a mark. Takes the text; the caller frees the new one. */
static char *fill_in(char *text, const char *mark, const char *list)
{
    g_auto(GStrv) part = g_strsplit(text, mark, 2);
    g_assert(part[0] && part[1]);
    g_free(text);
    return g_strconcat(part[0], list + strlen(", "), part[1], NULL);
}

char *store_tables_sql(void)
{
#define TYPE_TEXT(name)                "TEXT"
#define TYPE_JSON(name)                "TEXT CHECK (" #name " IS NULL OR json_valid(" #name "))"
#define TYPE_REAL(name)                "REAL"
#define TYPE_COUNT(name)               "INTEGER NOT NULL"
#define TYPE_BYTES(name)               "INTEGER NOT NULL"
#define TYPE_FLAG(name)                "INTEGER NOT NULL CHECK (" #name " IN (0, 1))"
#define DECLARE(name, kind, use, rule) ", " #name " " TYPE_##kind(name) rule
    return fill_in(g_strdup(STORE_SCHEMA), "{columns}", ANSWER_COLUMNS(DECLARE));
}

char *store_views_sql(void)
{
#define OF_ANSWER(name, kind, use, rule) ", answer." #name
    return fill_in(fill_in(g_strdup(STORE_VIEWS), "{method}", ANSWER_METHOD(OF_ANSWER)),
                   "{numbers}", ANSWER_NUMBERS(OF_ANSWER));
}

bool store_create_schema(const Store *store)
{
    g_autofree char *tables = store_tables_sql(), *views = store_views_sql();
    g_autofree char *identity =
        g_strdup_printf("PRAGMA application_id = %d; PRAGMA user_version = %d",
                        STORE_APPLICATION_ID, STORE_VERSION);
    return store_execute(store, tables) && store_execute(store, views) &&
           store_attempt_make(store) && store_execute(store, identity);
}

/* All declarations of a database as one text, without what stores of earlier versions lack; NULL on
 * failure. The caller frees it. */
static char *declared(const Store *store)
{
    return store_one_value(
        store, "SELECT group_concat(type || ' ' || name || ' ' || tbl_name || ' ' || "
               "coalesce(sql, ''), char(10)) FROM (SELECT * FROM sqlite_schema "
               "WHERE name NOT IN ('configuration', 'attempt') ORDER BY type, name)");
}

/* Whether there is no view `configuration` (a store of earlier versions has none), or the one for
 * what was asked. */
static bool has_right_axes(const Store *store)
{
    g_autofree char *there = store_one_value(
        store, "SELECT group_concat(type || ' ' || sql) FROM sqlite_schema WHERE name = "
               "'configuration'");
    g_autofree char *view = there ? store_axes_view(store) : NULL;
    return !there || (view && g_str_has_prefix(there, "view ") &&
                      strcmp(there + strlen("view "), view) == 0);
}

/* Takes the comments out of declarations, and makes one space of all that stands between two words:
 * SQLite keeps both as they were written. Texts and names in quotes stay. */
static void strip_comments(char *sql)
{
    char *to = sql;
    char quote = 0;
    for (const char *at = sql; *at; at++) {
        if (!quote && at[0] == '-' && at[1] == '-') {
            at += strcspn(at, "\n");
            if (!*at)
                break;
        }
        const bool space = !quote && g_ascii_isspace(*at);
        if (!space)
            *to++ = *at;
        else if (to > sql && to[-1] != ' ')
            *to++ = ' ';
        if (quote ? *at == quote : *at == '\'' || *at == '"' || *at == '`')
            quote = quote ? 0 : *at;
    }
    *to = '\0';
}

/* Checks that tables, triggers and views equal the schema's in all but comments: a foreign trigger
 * could change what is written, a foreign view what is read. */
static bool check_schema(const Store *store, GError **error)
{
    Store model = {.file = store->file};
    g_autofree char *found = declared(store), *expected = NULL;
    if (sqlite3_open(":memory:", &model.db) == SQLITE_OK && store_create_schema(&model))
        expected = declared(&model);
    sqlite3_close(model.db);
    if (!expected)
        return store_failed(store, KILTER_ERROR_FAILED, "check the store", error);
    strip_comments(expected);
    if (found)
        strip_comments(found);
    return (g_strcmp0(found, expected) == 0 && has_right_axes(store)) ||
           store_refuse(store->file, error,
                        "not a store's tables, views and triggers, but others");
}

/* A query, its answer in a sound store, and what is damaged otherwise. */
typedef struct {
    const char *sql, *sound, *what;
} Check;

static bool check_all(const Store *store, const Check *check, uint32_t n, GError **error)
{
    for (uint32_t i = 0; i < n; i++) {
        g_autofree char *verdict = store_one_value(store, check[i].sql);
        if (g_strcmp0(verdict, check[i].sound) != 0)
            return store_refuse(store->file, error, "a damaged store: %s: %s",
                                check[i].what,
                                verdict ? verdict : sqlite3_errmsg(store->db));
    }
    return true;
}

bool store_check_pages(const Store *store, GError **error)
{
    static const Check CHECK[] = {
        {"PRAGMA integrity_check(1)", "ok", "its pages"},
        {"SELECT count(*) FROM pragma_foreign_key_check", "0", "its references"},
    };
    return check_all(store, CHECK, G_N_ELEMENTS(CHECK), error);
}

bool store_check_rows(const Store *store, GError **error)
{
    /* The number of damaged rows of each table. */
    static const Check CHECK[] = {
        {"SELECT count(*) FROM part WHERE kilter_hash(text) IS NOT hash", "0",
         "a part of a question"},
        {"SELECT count(*) FROM run WHERE kilter_seal(" STORE_RUN_COLUMNS ") IS NOT seal",
         "0", "a run"},
        {"SELECT count(*) FROM answer WHERE kilter_seal(" STORE_ANSWER_COLUMNS
         ") IS NOT seal",
         "0", "an answer"},
        {"SELECT count(*) FROM asked WHERE kilter_seal(" STORE_ASKED_COLUMNS
         ") IS NOT seal",
         "0", "what was asked"},
    };
    return check_schema(store, error) && store_check_pages(store, error) &&
           check_all(store, CHECK, G_N_ELEMENTS(CHECK), error) &&
           (store_attempt_check(store) ||
            store_refuse(store->file, error, "a damaged store: %s", "its attempts"));
}
