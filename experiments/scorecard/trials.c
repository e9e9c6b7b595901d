/* Reading trials by a query over CSV files. */
#include "experiments/scorecard/trials.h"

#include <math.h>
#include <sqlite3.h>
#include <string.h>

#include "data/data.h"

static const char FOLDER[] = "experiments/scorecard";
#define GIB (1024.0 * 1024 * 1024)

const ScoreParameterInfo *score_parameter(ScoreParameter parameter)
{
    static const ScoreParameterInfo info[] = {
#define X(id, column, text, unit, width) {column, text, unit, width},
        SCORE_PARAMETERS(X)
#undef X
    };
    return &info[parameter];
}

char **trials_names(void)
{
    return path_list(FOLDER, ".sql");
}

static void trial_clear(void *data)
{
    Trial *trial = data;
    g_free(trial->contest);
    g_free(trial->model);
    g_free(trial->device);
    g_free(trial->cuts);
    g_free(trial->planner);
    g_free(trial->options);
}

void trials_free(TrialSet *set)
{
    if (!set)
        return;
    g_free(set->name);
    g_free(set->description);
    g_array_unref(set->trial);
    g_free(set);
}

/* --- CSV files as tables --- */

static bool failed(sqlite3 *db, const char *what, GError **error)
{
    return kilter_fail(error, KILTER_ERROR_INPUT, "%s: %s", what, sqlite3_errmsg(db));
}

/* "INSERT INTO table VALUES (?, ?, ...)". */
static char *insertion(const char *table, uint32_t n)
{
    GString *text = g_string_new(NULL);
    g_string_printf(text, "INSERT INTO \"%s\" VALUES (", table);
    for (uint32_t i = 0; i < n; i++)
        g_string_append(text, i ? ", ?" : "?");
    g_string_append(text, ")");
    return g_string_free(text, FALSE);
}

static char *creation(const char *table, char **column)
{
    GString *text = g_string_new(NULL);
    g_string_printf(text, "CREATE TABLE \"%s\" (", table);
    for (uint32_t i = 0; column[i]; i++)
        g_string_append_printf(text, "%s\"%s\" NUMERIC", i ? ", " : "", column[i]);
    g_string_append(text, ")");
    return g_string_free(text, FALSE);
}

typedef struct {
    sqlite3 *db;
    sqlite3_stmt *insert;
} Table;

static bool insert_row(const Csv *csv, void *data, GError **error)
{
    const Table *table = data;
    sqlite3_reset(table->insert);
    for (uint32_t c = 0; c < csv->n_columns; c++)
        sqlite3_bind_text(table->insert, (int)c + 1, csv->cell[c], -1, SQLITE_TRANSIENT);
    return sqlite3_step(table->insert) == SQLITE_DONE ||
           failed(table->db, csv->file, error);
}

static bool load_table(sqlite3 *db, const char *file, const char *name, GError **error)
{
    g_autoptr(Csv) csv = csv_read(file, error);
    if (!csv)
        return false;
    g_autofree char *create = creation(name, csv->column),
                    *insert = insertion(name, csv->n_columns);
    Table table = {.db = db};
    const bool good =
        (sqlite3_exec(db, create, NULL, NULL, NULL) == SQLITE_OK &&
         sqlite3_prepare_v2(db, insert, -1, &table.insert, NULL) == SQLITE_OK) ||
        failed(db, file, error);
    const bool whole = good && csv_each(csv, insert_row, &table, error);
    sqlite3_finalize(table.insert);
    return whole;
}

/* Loads the files of a subfolder that the query names. */
static bool load_named(sqlite3 *db, const char *folder, const char *sub,
                       const char *query, GError **error)
{
    g_autofree char *path = g_build_filename(folder, sub, NULL);
    GDir *dir = g_dir_open(path, 0, NULL);
    bool good = true;
    for (const char *name; good && dir && (name = g_dir_read_name(dir));) {
        if (!g_str_has_suffix(name, ".csv"))
            continue;
        g_autofree char *base = g_strndup(name, strlen(name) - strlen(".csv"));
        g_autofree char *table = g_strdup_printf("%s_%s", sub, base);
        g_autofree char *file = g_build_filename(path, name, NULL);
        if (strstr(query, table))
            good = load_table(db, file, table, error);
    }
    if (dir)
        g_dir_close(dir);
    return good;
}

static bool load_all(sqlite3 *db, const char *folder, const char *query, GError **error)
{
    GDir *dir = g_dir_open(folder, 0, NULL);
    if (!dir)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "%s: expected a folder of measured data", folder);
    bool good = true;
    for (const char *name; good && (name = g_dir_read_name(dir));)
        good = load_named(db, folder, name, query, error);
    g_dir_close(dir);
    return good;
}

/* --- the query's rows --- */

/* The column of that name, or -1 and, if it is asked for, an error. */
static int column_of(sqlite3_stmt *row, const char *name, GError **error)
{
    for (int i = 0; i < sqlite3_column_count(row); i++)
        if (strcmp(sqlite3_column_name(row, i), name) == 0)
            return i;
    kilter_fail(error, KILTER_ERROR_INPUT, "the query has no column '%s'", name);
    return -1;
}

/* "" for NULL, or where there is no such column. */
static char *text_of(sqlite3_stmt *row, const char *name)
{
    const int column = column_of(row, name, NULL);
    const char *text = column < 0 ? NULL : (const char *)sqlite3_column_text(row, column);
    return g_strdup(text ? text : "");
}

/* NAN likewise. */
static double number_of(sqlite3_stmt *row, const char *name)
{
    const int column = column_of(row, name, NULL);
    return column < 0 || sqlite3_column_type(row, column) == SQLITE_NULL
               ? NAN
               : sqlite3_column_double(row, column);
}

static uint32_t count_of(sqlite3_stmt *row, const char *name)
{
    return (uint32_t)sqlite3_column_int(row, column_of(row, name, NULL));
}

static bool check_columns(sqlite3_stmt *row, GError **error)
{
    static const char *const names[] = {
        "split",  "contest",  "model",     "device",     "memory_gib",   "gpus",
        "pp",     "dp",       "tmp",       "mbs",        "chunks",       "cuts",
        "failed", "machines", "recompute", "measured_s", "measured_gib", "processors"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(names); i++)
        if (column_of(row, names[i], error) < 0)
            return false;
    for (uint32_t p = 0; p < SCORE_N_PARAMETERS; p++)
        if (column_of(row, score_parameter((ScoreParameter)p)->column, error) < 0)
            return false;
    return true;
}

static void add_trial(TrialSet *set, sqlite3_stmt *row)
{
    g_autofree char *split = text_of(row, "split");
    const Trial trial = {.contest = text_of(row, "contest"),
                         .model = text_of(row, "model"),
                         .device = text_of(row, "device"),
                         .cuts = text_of(row, "cuts"),
                         .planner = text_of(row, "planner"),
                         .options = text_of(row, "options"),
                         .calibration = strcmp(split, "calibration") == 0,
                         .recompute = count_of(row, "recompute") > 0,
                         .failed = count_of(row, "failed") > 0,
                         .memory_bytes = number_of(row, "memory_gib") * GIB,
                         .slowdown = number_of(row, "slowdown"),
                         .processors = count_of(row, "processors"),
                         .gpus = count_of(row, "gpus"),
                         .machines = count_of(row, "machines"),
                         .pp = count_of(row, "pp"),
                         .dp = count_of(row, "dp"),
                         .tmp = count_of(row, "tmp"),
                         .mbs = count_of(row, "mbs"),
                         .chunks = count_of(row, "chunks"),
                         .measured_s = number_of(row, "measured_s"),
                         .measured_comm_s = number_of(row, "measured_comm_s"),
                         .measured_hidden_s = number_of(row, "measured_hidden_s"),
                         .measured_bytes = number_of(row, "measured_gib") * GIB};
    g_array_append_val(set->trial, trial);
    for (uint32_t p = 0; p < SCORE_N_PARAMETERS; p++)
        set->start[p] = number_of(row, score_parameter((ScoreParameter)p)->column);
}

static bool run_query(sqlite3 *db, const char *file, const char *query, TrialSet *set,
                      GError **error)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(db, query, -1, &row, NULL) != SQLITE_OK)
        return failed(db, file, error);
    bool good = check_columns(row, error);
    while (good && sqlite3_step(row) == SQLITE_ROW)
        add_trial(set, row);
    sqlite3_finalize(row);
    return good;
}

/* The text of the first line, a comment. */
static char *description_of(const char *query)
{
    const char *begin = g_str_has_prefix(query, "-- ") ? query + 3 : query;
    return g_strndup(begin, strcspn(begin, "\n"));
}

TrialSet *trials_read(const char *name, const char *folder, GError **error)
{
    g_autofree char *relative = g_strdup_printf("%s/%s.sql", FOLDER, name);
    g_autofree char *file = path_find(relative), *query = NULL;
    if (!file || !g_file_get_contents(file, &query, NULL, NULL)) {
        g_auto(GStrv) known = trials_names();
        uint32_t index;
        if (names_find("data set", name, (const char *const *)known, &index, error))
            kilter_fail(error, KILTER_ERROR_INPUT, "cannot read %s", relative);
        return NULL;
    }
    g_autoptr(TrialSet) set = g_new0(TrialSet, 1);
    set->name = g_strdup(name);
    set->description = description_of(query);
    set->trial = g_array_new(false, false, sizeof(Trial));
    g_array_set_clear_func(set->trial, trial_clear);
    sqlite3 *db = NULL;
    bool good = sqlite3_open(":memory:", &db) == SQLITE_OK || failed(db, file, error);
    good = good && load_all(db, folder, query, error) &&
           run_query(db, file, query, set, error);
    sqlite3_close(db);
    return good ? g_steal_pointer(&set) : NULL;
}
