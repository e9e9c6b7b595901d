/* Predictions beside measured times. */
#include "experiments/calibration/validate.h"

#include <math.h>
#include <string.h>

#include "data/base/csv.h"
#include "data/base/free.h"
#include "data/cluster/change.h"
#include "data/store/store.h"
#include "experiments/calibration/calibrated.h"
#include "experiments/calibration/prediction.h"
#include "experiments/sweep/configuration.h"

static CLEAR_DEFINE(clear_row, ValidationRow, row, free_each(row->plan, row->group));

static Validation *validation_new(void)
{
    Validation *v = g_new0(Validation, 1);
    v->row = array_owning(ValidationRow, clear_row);
    v->group = g_array_new(FALSE, FALSE, sizeof(ValidationGroup));
    v->left = g_ptr_array_new_with_free_func(g_free);
    return v;
}

FREE_DEFINE(validation_free, Validation, validation,
            unref_arrays(validation->row, validation->group),
            g_ptr_array_unref(validation->left));

/* --- groups --- */

/* With at most this regret the best plan counts as found. */
static const double GOOD_REGRET = 0.05;

static void add_group(Validation *v, const char *name)
{
    g_auto(Pairs) pairs = {0};
    ValidationGroup group = {.name = name};
    double least_predicted = INFINITY, least_measured = INFINITY;
    array_each (const ValidationRow, row, v->row) {
        if (strcmp(row->group, name) != 0)
            continue;
        pairs_add(&pairs, row->predicted_s, row->measured_s);
        if (row->predicted_s < least_predicted) {
            least_predicted = row->predicted_s;
            group.chosen = row->plan;
        }
        if (row->measured_s < least_measured) {
            least_measured = row->measured_s;
            group.fastest = row->plan;
        }
    }
    group.n = pairs.n;
    if (group.n < 2)
        return;
    group.regret = statistics_regret(pairs.predicted, pairs.measured, pairs.n);
    group.spearman = statistics_of_pairs(&pairs).spearman;
    g_array_append_val(v->group, group);
}

static void summarise(Validation *v)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    g_auto(Pairs) times = {0}, peaks = {0};
    array_each (const ValidationRow, row, v->row) {
        pairs_add(&times, row->predicted_s, row->measured_s);
        pairs_add(&peaks, row->predicted_bytes, row->measured_bytes);
        if (g_hash_table_add(seen, row->group))
            add_group(v, row->group);
    }
    v->agreement = statistics_of_pairs(&times);
    v->memory = statistics_of_pairs(&peaks);
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

static const char *const REQUIRED[] = {"plan", "measured_s", NULL};
static const char *const OPTIONAL[] = {"predicted_s", "group", "slowdown", NULL};

typedef struct {
    const char *cluster; /* NULL: the plan's own */
    Validation *result;
} Reader;

/* Reads a time; no iteration is shorter or longer than these limits. */
static bool read_seconds(const Csv *csv, const char *column, double *value,
                         GError **error)
{
    static const double shortest_s = 1e-12, longest_s = 1e9;
    return csv_number(csv, column, shortest_s, longest_s, value, error);
}

/* The plan's own cluster, or of the given one the machines that the plan's own has. */
static Cluster *validate_cluster(const Plan *plan, const char *name, const char *file,
                                 GError **error)
{
    g_autoptr(Cluster) own = evaluation_cluster(plan, file, name ? NULL : error);
    if (!name)
        return g_steal_pointer(&own);
    g_autoptr(Cluster) cluster = cluster_load(name, error);
    g_autoptr(GString) only = g_string_new("");
    for (uint32_t i = 0; own && i < own->n_machines; i++)
        g_string_append_printf(only, "%s%s", i ? "," : "", own->machine[i].name);
    if (!cluster || (own && own->n_machines < cluster->n_machines &&
                     !cluster_change(cluster, CHANGE_ONLY, only->str, error)))
        return NULL;
    return g_steal_pointer(&cluster);
}

/* Evaluates the row's plan. */
static bool predict(const char *cluster_name, const char *slowdowns, ValidationRow *row,
                    GError **error)
{
    Graph *built = NULL;
    g_autoptr(Plan) plan = plan_read(row->plan, &built, error);
    g_autoptr(Graph) graph = built;
    g_autoptr(Cluster) cluster =
        plan ? validate_cluster(plan, cluster_name, row->plan, error) : NULL;
    g_auto(GStrv) each = g_strsplit_set(slowdowns, " ;", -1);
    for (char **text = each; cluster && *text; text++)
        if (**text && !cluster_stretch(cluster, plan->granularity, *text, error))
            return false;
    if (!cluster)
        return false;
    const Fitted *fitted = cluster->fitted;
    const char *own = plan_fidelity(plan);
    const bool fits = fitted && (strcmp(fitted->fidelity, "analytic") != 0 ||
                                 strcmp(own, "analytic") == 0);
    g_auto(Evaluation) evaluation = {0};
    SimOptions options;
    double ends[2];
    sim_options_init(&options);
    if (!evaluation_of_plan(g_steal_pointer(&plan), g_steal_pointer(&graph), cluster,
                            fits ? fitted->fidelity : own, &options, &evaluation, error))
        return false;
    row->predicted_s = evaluation.report->iteration_time_s;
    if (fits && prediction_interval(evaluation.view, 0.9, row->predicted_s, ends)) {
        row->low_s = ends[0];
        row->high_s = ends[1];
    }
    row->unmeasured =
        calibrated_outside(evaluation.plan, evaluation.graph, evaluation.view);
    return true;
}

static bool read_row(const Csv *csv, void *data, GError **error)
{
    const Reader *reader = data;
    ValidationRow row = {.plan = g_strdup(csv_text(csv, "plan")),
                         .group = g_strdup(csv_text(csv, "group")),
                         .predicted_bytes = NAN,
                         .measured_bytes = NAN};
    const bool given = csv_has(csv, "predicted_s") && !reader->cluster;
    bool good = read_seconds(csv, "measured_s", &row.measured_s, error);
    if (good && given)
        good = read_seconds(csv, "predicted_s", &row.predicted_s, error);
    else if (good) {
        g_autoptr(GError) why = NULL;
        if (!predict(reader->cluster, csv_text(csv, "slowdown"), &row, &why)) {
            g_ptr_array_add(
                reader->result->left,
                g_strdup_printf("%s:%u: %s", csv->file, csv->line, why->message));
            clear_row(&row);
            return true;
        }
    }
    g_array_append_val(reader->result->row, row);
    return good;
}

Validation *validate_csv(const char *file, const char *cluster, GError **error)
{
    g_autoptr(Validation) v = validation_new();
    Reader reader = {.cluster = cluster, .result = v};
    g_autoptr(Csv) csv = csv_read(file, error);
    if (!csv || !csv_expect(csv, REQUIRED, OPTIONAL, error) ||
        !csv_each(csv, read_row, &reader, error))
        return NULL;
    if (v->row->len == 0 && v->left->len > 0)
        return refused(error, "%s", (const char *)g_ptr_array_index(v->left, 0));
    if (v->row->len == 0) {
        csv_fail(csv, NULL, error, "expected rows with a plan and its measured time");
        return NULL;
    }
    summarise(v);
    return g_steal_pointer(&v);
}

/* --- store --- */

static void validate_take_row(uint32_t n_columns, char **value, char **column, void *data)
{
    Validation *v = data;
    (void)n_columns;
    (void)column;
    if (!value[4]) {
        g_ptr_array_add(v->left, g_strdup_printf("%s %s: %s: its cluster is not known",
                                                 value[0], value[1], value[2]));
        return;
    }
    ValidationRow row = {.plan = g_strdup_printf("%s %s", value[0], value[1]),
                         .group = g_strdup(value[2]),
                         .measured_s = g_ascii_strtod(value[3], NULL),
                         .predicted_s = g_ascii_strtod(value[4], NULL),
                         .unmeasured = (uint32_t)g_ascii_strtoull(value[5], NULL, 10),
                         .measured_bytes = g_ascii_strtod(value[6], NULL),
                         .predicted_bytes =
                             value[7] ? g_ascii_strtod(value[7], NULL) : NAN};
    g_array_append_val(v->row, row);
}

Validation *validate_store(const char *file, GError **error)
{
    static const char sql[] =
        "SELECT planner, substr(subject ->> '$.program', 1, 8), model || ' ' || (config "
        "->> '$.method.slowdown'),"
        " iteration_time_s, detail ->> '$.predicted_time_s', detail ->> '$.unmeasured',"
        " peak_memory_bytes, detail ->> '$.predicted_bytes'"
        " FROM result WHERE fidelity = 'exec' AND status = 'ok' ORDER BY model, config "
        "->> "
        "'$.method.slowdown',"
        " planner, ratios, hash";
    g_autoptr(Store) store = store_open_read(file, error);
    g_autoptr(Validation) v = validation_new();
    if (!store || !store_query(store, sql, validate_take_row, v, error))
        return NULL;
    if (v->row->len == 0)
        return refused(
            error,
            "%s: holds no measured plan with a prediction; kilter exec --db adds them",
            file);
    summarise(v);
    return g_steal_pointer(&v);
}
