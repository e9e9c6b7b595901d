#include "experiments/calibration/validate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiments/calibration/calibrated.h"
#include "experiments/configuration.h"

static void clear_row(void *data)
{
    ValidationRow *row = data;
    g_free(row->plan);
    g_free(row->group);
}

static Validation *validation_new(void)
{
    Validation *v = g_new0(Validation, 1);
    v->row = g_array_new(FALSE, FALSE, sizeof(ValidationRow));
    v->group = g_array_new(FALSE, FALSE, sizeof(ValidationGroup));
    g_array_set_clear_func(v->row, clear_row);
    return v;
}

void validation_free(Validation *validation)
{
    if (!validation)
        return;
    g_array_unref(validation->row);
    g_array_unref(validation->group);
    g_free(validation);
}

static const ValidationRow *row_at(const Validation *v, uint32_t i)
{
    return &g_array_index(v->row, ValidationRow, i);
}

/* --- groups --- */

/* Regret 5 %: what counts as having found the best. */
static const double GOOD_REGRET = 0.05;

static void add_group(Validation *v, const char *name)
{
    g_autofree double *predicted = g_new(double, v->row->len);
    g_autofree double *measured = g_new(double, v->row->len);
    ValidationGroup group = {.name = name};
    double least_predicted = INFINITY, least_measured = INFINITY;
    for (uint32_t i = 0; i < v->row->len; i++) {
        const ValidationRow *row = row_at(v, i);
        if (strcmp(row->group, name) != 0)
            continue;
        predicted[group.n] = row->predicted_s;
        measured[group.n++] = row->measured_s;
        if (row->predicted_s < least_predicted) {
            least_predicted = row->predicted_s;
            group.chosen = row->plan;
        }
        if (row->measured_s < least_measured) {
            least_measured = row->measured_s;
            group.fastest = row->plan;
        }
    }
    if (group.n < 2)
        return;
    group.regret = statistics_regret(predicted, measured, group.n);
    group.spearman = statistics_agreement(predicted, measured, group.n).spearman;
    g_array_append_val(v->group, group);
}

static void summarise(Validation *v)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    g_autofree double *predicted = g_new(double, v->row->len);
    g_autofree double *measured = g_new(double, v->row->len);
    for (uint32_t i = 0; i < v->row->len; i++) {
        const ValidationRow *row = row_at(v, i);
        predicted[i] = row->predicted_s;
        measured[i] = row->measured_s;
        if (g_hash_table_add(seen, row->group))
            add_group(v, row->group);
    }
    v->agreement = statistics_agreement(predicted, measured, v->row->len);
    v->mean_regret = v->within = v->group->len ? 0 : NAN;
    v->worst_regret = v->group->len ? 0 : NAN;
    for (uint32_t g = 0; g < v->group->len; g++) {
        const double regret = g_array_index(v->group, ValidationGroup, g).regret;
        v->mean_regret += regret / v->group->len;
        v->worst_regret = fmax(v->worst_regret, regret);
        v->within += (regret <= GOOD_REGRET) / (double)v->group->len;
    }
}

/* --- CSV --- */

enum { PLAN, MEASURED, PREDICTED, GROUP, SLOWDOWN, COLUMNS };
static const char *const COLUMN[] = {"plan", "measured_s", "predicted_s", "group",
                                     "slowdown"};

typedef struct {
    const char *file, *cluster;
    uint32_t line;
    int place[COLUMNS]; /* -1: not there */
    uint32_t n_columns;
} Reader;

static bool fail(const Reader *reader, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
static bool fail(const Reader *reader, GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *reason = g_strdup_vprintf(format, args);
    va_end(args);
    return kilter_fail(error, KILTER_ERROR_INPUT, "%s:%u: %s", reader->file, reader->line,
                       reason);
}

static bool read_header(Reader *reader, char **cell, GError **error)
{
    for (uint32_t c = 0; c < COLUMNS; c++)
        reader->place[c] = -1;
    for (; cell[reader->n_columns]; reader->n_columns++) {
        const char *name = cell[reader->n_columns];
        uint32_t c = 0;
        while (c < COLUMNS && strcmp(name, COLUMN[c]) != 0)
            c++;
        if (c == COLUMNS || reader->place[c] >= 0)
            return fail(reader, error,
                        "column '%.40s': expected plan, measured_s, predicted_s, group, "
                        "slowdown, each once",
                        name);
        reader->place[c] = (int)reader->n_columns;
    }
    return (reader->place[PLAN] >= 0 && reader->place[MEASURED] >= 0) ||
           fail(reader, error, "expected the columns plan and measured_s");
}

static const char *cell_at(const Reader *reader, char **cell, uint32_t column)
{
    return reader->place[column] >= 0 ? cell[reader->place[column]] : "";
}

static bool read_seconds(const Reader *reader, char **cell, uint32_t column,
                         double *value, GError **error)
{
    const char *text = cell_at(reader, cell, column);
    char *end = NULL;
    *value = g_ascii_strtod(text, &end);
    return (end != text && *end == '\0' && *value > 0 && *value <= 1e9) ||
           fail(reader, error, "%s: expected seconds, got '%.40s'", COLUMN[column], text);
}

/* Evaluates the row's plan. */
static bool predict(const Reader *reader, const char *slowdowns, ValidationRow *row,
                    GError **error)
{
    Graph *built = NULL;
    g_autoptr(Plan) plan = plan_read(row->plan, &built, error);
    g_autoptr(Graph) graph = built;
    g_autoptr(Cluster) cluster =
        plan ? cluster_load(reader->cluster ? reader->cluster : plan->cluster, error)
             : NULL;
    g_auto(GStrv) each = g_strsplit_set(slowdowns, " ;", -1);
    for (char **text = each; cluster && *text; text++)
        if (**text && !cluster_stretch(cluster, plan->granularity, *text, error))
            return false;
    if (!cluster)
        return false;
    g_autoptr(ClusterView) view = cluster_view(cluster, plan->granularity);
    g_autoptr(SimReport) report = sim_evaluate(plan, graph, view, "analytic", error);
    if (!report)
        return false;
    row->predicted_s = report->iteration_time_s;
    row->unmeasured = calibrated_outside(plan, graph, view);
    return true;
}

static bool read_row(const Reader *reader, char **cell, Validation *v, GError **error)
{
    if (g_strv_length(cell) != reader->n_columns)
        return fail(reader, error, "expected %u columns, got %u", reader->n_columns,
                    g_strv_length(cell));
    ValidationRow row = {.plan = g_strdup(cell_at(reader, cell, PLAN)),
                         .group = g_strdup(cell_at(reader, cell, GROUP))};
    const bool given = reader->place[PREDICTED] >= 0 && !reader->cluster;
    bool good = read_seconds(reader, cell, MEASURED, &row.measured_s, error);
    if (good && given)
        good = read_seconds(reader, cell, PREDICTED, &row.predicted_s, error);
    else if (good && !predict(reader, cell_at(reader, cell, SLOWDOWN), &row, error)) {
        g_prefix_error(error, "%s:%u: ", reader->file, reader->line);
        good = false;
    }
    g_array_append_val(v->row, row);
    return good;
}

Validation *validate_csv(const char *file, const char *cluster, GError **error)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) trouble = NULL;
    if (!g_file_get_contents(file, &text, NULL, &trouble)) {
        kilter_fail(error, KILTER_ERROR_INPUT, "%s", trouble->message);
        return NULL;
    }
    Reader reader = {.file = file, .cluster = cluster};
    g_autoptr(Validation) v = validation_new();
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        reader.line++;
        g_strchomp(*line);
        if (**line == '\0' || **line == '#')
            continue;
        g_auto(GStrv) cell = g_strsplit(*line, ",", -1);
        if (!(reader.n_columns ? read_row(&reader, cell, v, error)
                               : read_header(&reader, cell, error)))
            return NULL;
    }
    if (v->row->len == 0) {
        fail(&reader, error, "expected rows with a plan and what it took");
        return NULL;
    }
    summarise(v);
    return g_steal_pointer(&v);
}

/* --- store --- */

bool validate_is_store(const char *file)
{
    static const char magic[] = "SQLite format 3";
    char start[sizeof magic] = "";
    FILE *in = fopen(file, "rb");
    if (!in)
        return false;
    const size_t n = fread(start, 1, sizeof start, in);
    fclose(in);
    return n == sizeof start && memcmp(start, magic, sizeof magic) == 0;
}

static void take_row(uint32_t n_columns, char **value, char **column, void *data)
{
    Validation *v = data;
    (void)n_columns;
    (void)column;
    ValidationRow row = {.plan = g_strdup_printf("%s %s", value[0], value[1]),
                         .group = g_strdup(value[2]),
                         .measured_s = g_ascii_strtod(value[3], NULL),
                         .predicted_s = g_ascii_strtod(value[4], NULL),
                         .unmeasured = (uint32_t)g_ascii_strtoull(value[5], NULL, 10)};
    g_array_append_val(v->row, row);
}

Validation *validate_store(const char *file, GError **error)
{
    static const char sql[] =
        "SELECT planner, substr(config ->> '$.program', 1, 8), model || ' ' || (config "
        "->> '$.slowdown'),"
        " iteration_time_s, detail ->> '$.predicted_time_s', detail ->> '$.unmeasured'"
        " FROM result WHERE fidelity = 'exec' AND status = 'ok' AND"
        " detail ->> '$.predicted_time_s' > 0 ORDER BY model, config ->> '$.slowdown',"
        " planner, ratios, hash";
    g_autoptr(Store) store = store_open_read(file, error);
    g_autoptr(Validation) v = validation_new();
    if (!store || !store_query(store, sql, take_row, v, error))
        return NULL;
    if (v->row->len == 0) {
        kilter_fail(error, KILTER_ERROR_INPUT,
                    "%s: holds no measured plan with a prediction; kilter exec --db adds "
                    "them",
                    file);
        return NULL;
    }
    summarise(v);
    return g_steal_pointer(&v);
}
