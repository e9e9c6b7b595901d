/* Reading trials by a query over CSV files. */
#include "experiments/scorecard/trials.h"

#include <math.h>
#include <sqlite3.h>
#include <string.h>

#include "data/base/csv.h"
#include "data/base/free.h"
#include "data/base/names.h"
#include "data/base/path.h"
#include "data/plan/fidelity.h"

static const char FOLDER[] = "experiments/scorecard";
#define GIB (1024.0 * 1024 * 1024)

char **trials_names(void)
{
    return path_list(FOLDER, ".sql");
}

TrialSet *trials_new(const char *name)
{
    TrialSet *set = g_new0(TrialSet, 1);
    set->name = g_strdup(name);
    set->description = g_strdup("");
    set->trial = array_owning(Trial, trial_clear);
    set->unable = text_table(NULL);
    return set;
}

FREE_DEFINE(trials_free, TrialSet, set,
            free_each(set->name, set->description, set->further),
            g_array_unref(set->trial), g_hash_table_unref(set->unable));

/* Counts a trial that cannot be expressed, by its reason. */
static void trials_count_unable(TrialSet *set, const char *reason)
{
    const guint n = GPOINTER_TO_UINT(g_hash_table_lookup(set->unable, reason));
    g_hash_table_insert(set->unable, g_strdup(reason), GUINT_TO_POINTER(n + 1));
    set->n_unable++;
}

/* --- CSV files as tables --- */

static bool failed(sqlite3 *db, const char *what, GError **error)
{
    return refuse(error, "%s: %s", what, sqlite3_errmsg(db));
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
        return refuse(error, "%s: expected a folder of measured data", folder);
    bool good = true;
    for (const char *name; good && (name = g_dir_read_name(dir));)
        good = load_named(db, folder, name, query, error);
    g_dir_close(dir);
    return good;
}

/* --- the query's rows --- */

/* The column of that name, or -1 and, if `error` is not NULL, an error. */
static int column_of(sqlite3_stmt *row, const char *name, GError **error)
{
    for (int i = 0; i < sqlite3_column_count(row); i++)
        if (strcmp(sqlite3_column_name(row, i), name) == 0)
            return i;
    refuse(error, "the query has no column '%s'", name);
    return -1;
}

/* The text of a column; "" for NULL or a missing column. */
static char *trials_text_of(sqlite3_stmt *row, const char *name)
{
    const int column = column_of(row, name, NULL);
    const char *text = column < 0 ? NULL : (const char *)sqlite3_column_text(row, column);
    return g_strdup(text ? text : "");
}

/* The number of a column; NAN for NULL or a missing column. */
static double number_of(sqlite3_stmt *row, const char *name)
{
    const int column = column_of(row, name, NULL);
    return column < 0 || sqlite3_column_type(row, column) == SQLITE_NULL
               ? NAN
               : sqlite3_column_double(row, column);
}

static bool trials_is_given(sqlite3_stmt *row, const char *name)
{
    const int column = column_of(row, name, NULL);
    return column >= 0 && sqlite3_column_type(row, column) != SQLITE_NULL;
}

static uint32_t count_of(sqlite3_stmt *row, const char *name)
{
    return (uint32_t)fmax(0, number_of(row, name));
}

static bool expect_columns(sqlite3_stmt *row, const char *const *name, GError **error)
{
    for (; *name; name++)
        if (column_of(row, *name, error) < 0)
            return false;
    return true;
}

static bool check_columns(sqlite3_stmt *row, GError **error)
{
    static const char *const all[] = {"split",  "contest",      "model",
                                      "failed", "measured_gib", NULL};
    static const char *const devices[] = {
        "device",    "memory_gib", "gpus",       "machines", "processors",
        "rate",      "bandwidth",  "unfused",    "inner",    "outer",
        "latency_s", "launch_s",   "overhead_s", NULL};
    static const char *const degrees[] = {"pp",     "dp",        "tmp",  "mbs",
                                          "chunks", "recompute", "cuts", NULL};
    return expect_columns(row, all, error) &&
           (column_of(row, "cluster", NULL) >= 0 ||
            expect_columns(row, devices, error)) &&
           (column_of(row, "planner", NULL) >= 0 || expect_columns(row, degrees, error));
}

/* A cluster of equal devices, from the numbers of the row. */
static Cluster *cluster_of_row(sqlite3_stmt *row, TypeStart **start)
{
    Cluster *cluster = g_new0(Cluster, 1);
    const LinkCost inner = {number_of(row, "latency_s"), number_of(row, "inner")},
                   outer = {inner.latency_s, number_of(row, "outer")};
    const double slowdown = number_of(row, "slowdown"),
                 unfused = number_of(row, "unfused");
    cluster->name = g_strdup("network");
    cluster->n_types = 1;
    cluster->type = g_new0(DeviceType, 1);
    cluster->type[0] =
        (DeviceType){.name = trials_text_of(row, "device"),
                     .rate = number_of(row, "rate"),
                     .memory_bytes = (uint64_t)(number_of(row, "memory_gib") * GIB),
                     .source = g_strdup("the data set's query"),
                     .slowdown = fmax(slowdown, 1)}; /* NAN: none */
    cluster->n_machines = MAX(count_of(row, "machines"), 1);
    cluster->machine = g_new0(Machine, cluster->n_machines);
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        cluster->machine[i] = (Machine){.name = g_strdup_printf("machine-%u", i),
                                        .gpus = MAX(count_of(row, "gpus"), 1),
                                        .inner = inner};
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        cluster->collective[kind] = cluster->n_machines > 1 ? outer : inner;
    *start = g_new(TypeStart, 1);
    **start = (TypeStart){.bandwidth = number_of(row, "bandwidth"),
                          .attention = unfused,
                          .loss = unfused,
                          .overhead_s = number_of(row, "overhead_s"),
                          .launch_s = number_of(row, "launch_s"),
                          .handover_s = trials_is_given(row, "handover_s")
                                            ? number_of(row, "handover_s")
                                            : 0,
                          .processors = count_of(row, "processors")};
    return cluster;
}

/* The options of `manual` by AMP's names. */
static char *options_of_degrees(sqlite3_stmt *row)
{
    const uint32_t chunks = MAX(count_of(row, "chunks"), 1);
    g_autofree char *cuts = trials_text_of(row, "cuts");
    GString *text = g_string_new(NULL);
    g_autofree char *more = trials_text_of(row, "options");
    g_string_printf(text, "pp=%u,dp=%u,tp=%u,micro_batch=%u", count_of(row, "pp"),
                    count_of(row, "dp"), count_of(row, "tmp"), count_of(row, "mbs"));
    if (count_of(row, "recompute"))
        g_string_append(text, ",recompute=full");
    if (chunks > 1)
        g_string_append_printf(text, ",schedule=interleaved,virtual_stages=%u", chunks);
    if (*cuts)
        g_string_append_printf(text, ",cuts=%s", cuts);
    if (*more)
        g_string_append_printf(text, ",%s", more);
    return g_string_free(text, FALSE);
}

static bool read_cluster(sqlite3_stmt *row, const Sheets *sheets, bool plain,
                         Trial *trial, GError **error)
{
    if (plain) {
        g_autofree char *text = trials_text_of(row, "cluster");
        trial->cluster = cluster_parse("cluster", text, strlen(text), error);
        return trial->cluster != NULL;
    }
    if (!trials_is_given(row, "cluster")) {
        trial->cluster = cluster_of_row(row, &trial->start);
        return true;
    }
    g_autofree char *text = trials_text_of(row, "cluster");
    return trial_set_cluster(trial, cluster_parse("cluster", text, strlen(text), error),
                             sheets);
}

/* Whether a group of test trials is sealed, as a quarter of them are. */
static bool is_sealed(const char *group)
{
    enum { ONE_OF = 4 };
    g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, group, -1);
    return g_ascii_xdigit_value(hash[0]) % ONE_OF == 0;
}

static void read_measured(sqlite3_stmt *row, Trial *trial)
{
    trial->measured_s = number_of(row, "measured_s");
    trial->tokens_per_s = number_of(row, "tokens_per_s_per_gpu") * trial_gpus(trial);
    trial->samples_per_s = NAN;
    trial->measured_comm_s = number_of(row, "measured_comm_s");
    trial->measured_hidden_s = number_of(row, "measured_hidden_s");
    trial->measured_bytes = number_of(row, "measured_gib") * GIB;
    trial->failed = count_of(row, "failed") > 0;
}

/* The row's fidelity, NULL if it names none. */
static bool trials_read_fidelity(sqlite3_stmt *row, Trial *trial, GError **error)
{
    g_autofree char *name = trials_text_of(row, "fidelity");
    if (!*name)
        return true;
    trial->fidelity = fidelity_find(name, error);
    return trial->fidelity != NULL;
}

/* Adds the runtime of the row's software, and the options of all trials, to its options: the last
 * one of a key counts. */
static void add_further(const TrialSet *set, sqlite3_stmt *row, Trial *trial)
{
    g_autofree char *own = g_steal_pointer(&trial->options),
                    *software = trials_text_of(row, "software");
    g_autofree char *all =
        g_strconcat(own, *software ? ",runtime=" : "", software, set->further, NULL);
    trial->options = g_strdup(*own ? all : all + (*all == ','));
}

static bool add_trial(TrialSet *set, const Sheets *sheets, sqlite3_stmt *row,
                      GError **error)
{
    if (trials_is_given(row, "reason")) {
        g_autofree char *reason = trials_text_of(row, "reason");
        trials_count_unable(set, reason);
        return true;
    }
    const bool plain = set->further != NULL;
    if (plain && !trials_is_given(row, "cluster")) {
        trials_count_unable(set, "the row has costs of its own");
        return true;
    }
    g_autofree char *split = trials_text_of(row, "split");
    Trial trial = {.contest = trials_text_of(row, "contest"),
                   .model = trials_text_of(row, "model"),
                   .planner = trials_text_of(row, "planner")};
    trial.group = trials_is_given(row, "group") ? trials_text_of(row, "group")
                                                : g_strdup(trial.contest);
    if (*trial.planner) {
        trial.options = trials_text_of(row, "options");
    } else {
        put_block(trial.planner, g_strdup("manual"));
        trial.options = options_of_degrees(row);
    }
    trial.name = g_strdup_printf("trial %u", set->trial->len + 1);
    trial.waits = !plain;
    if (plain)
        add_further(set, row, &trial);
    trial.steady = count_of(row, "steady") > 0;
    const bool fit = strcmp(split, "calibration") == 0;
    trial.split = fit                      ? plain ? SPLIT_DEVELOPMENT : SPLIT_FIT
                  : is_sealed(trial.group) ? SPLIT_SEALED
                                           : SPLIT_DEVELOPMENT;
    const bool good = trials_read_fidelity(row, &trial, error) &&
                      read_cluster(row, sheets, plain, &trial, error);
    if (good) {
        read_measured(row, &trial);
        g_array_append_val(set->trial, trial);
    } else {
        trial_clear(&trial);
    }
    return good;
}

static bool run_query(sqlite3 *db, const char *file, const char *query, TrialSet *set,
                      GError **error)
{
    sqlite3_stmt *row = NULL;
    g_autoptr(Sheets) sheets = sheets_load(error);
    if (!sheets)
        return false;
    if (sqlite3_prepare_v2(db, query, -1, &row, NULL) != SQLITE_OK)
        return failed(db, file, error);
    bool good = check_columns(row, error);
    while (good && sqlite3_step(row) == SQLITE_ROW)
        good = add_trial(set, sheets, row, error);
    sqlite3_finalize(row);
    return good;
}

/* The text of the first line, a comment. */
static char *description_of(const char *query)
{
    const char *begin = g_str_has_prefix(query, "-- ") ? query + 3 : query;
    return g_strndup(begin, strcspn(begin, "\n"));
}

static TrialSet *trials_read_with(const char *name, const char *folder,
                                  const char *further, GError **error)
{
    g_autofree char *relative = g_strdup_printf("%s/%s.sql", FOLDER, name);
    g_autofree char *file = path_find(relative), *query = NULL;
    if (!file || !g_file_get_contents(file, &query, NULL, NULL)) {
        g_auto(GStrv) known = trials_names();
        uint32_t index;
        if (names_find("data set", name, (const char *const *)known, &index, error))
            refuse(error, "cannot read %s", relative);
        return NULL;
    }
    g_autoptr(TrialSet) set = trials_new(name);
    put_block(set->description, description_of(query));
    set->further = g_strdup(further);
    sqlite3 *db = NULL;
    bool good = sqlite3_open(":memory:", &db) == SQLITE_OK || failed(db, file, error);
    good = good && load_all(db, folder, query, error) &&
           run_query(db, file, query, set, error);
    sqlite3_close(db);
    return good ? g_steal_pointer(&set) : NULL;
}

TrialSet *trials_read(const char *name, const char *folder, GError **error)
{
    return trials_read_with(name, folder, NULL, error);
}

TrialSet *trials_read_plain(const char *name, const char *folder, char **further,
                            GError **error)
{
    g_autoptr(GString) text = g_string_new("");
    for (; further && *further; further++)
        g_string_append_printf(text, ",%s", *further);
    return trials_read_with(name, folder, text->str, error);
}
