/* Reading trials from a table. */
#include "experiments/calibration/trial_file.h"

#include <math.h>
#include <string.h>

#include "data/base/csv.h"
#include "data/base/text.h"
#include "data/base/units.h"
#include "data/cluster/change.h"
#include "data/formats/format.h"
#include "data/formats/measured/training_log.h"
#include "data/plan/fidelity.h"
#include "sim/sim.h"

enum { MOST_TRIALS = 100000, MOST_GPUS = 65536, LOG_BYTES = 1 << 28 };
#define GIB        (1024.0 * 1024 * 1024)
#define MOST_PER_S 1e15
#define MOST_BYTES 1e15
static const double SHORTEST = 1e-9;

static const char *const COLUMN[] = {"cluster", "machines", "gpus",    "planner",
                                     "options", "peak",     "log",     "group",
                                     "contest", "fidelity", "software"};
/* Keys of the model. */
static const char *const MODEL_COLUMN[] = {"global_batch", "seq", "precision"};

typedef struct {
    GArray *list;
    const Cluster *cluster;
    const Sheets *sheets;
} Reading;

static bool is_given(const Csv *csv, const char *column)
{
    return *csv_text(csv, column) != '\0';
}

/* --- the cluster --- */

/* Keeps the first `most` machines of a device type (NULL: any). */
static bool trial_keep_first(const Csv *csv, const Cluster *cluster, const char *type,
                             uint32_t most, bool *keep, GError **error)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < cluster->n_machines && n < most; i++) {
        const char *name = cluster->type[cluster->machine[i].type].name;
        if (type && g_ascii_strcasecmp(type, name) != 0)
            continue;
        keep[i] = true;
        n++;
    }
    return n == most ||
           csv_fail(csv, "machines", error,
                    "expected at most %u%s%s, which cluster %s has, got %u", n,
                    type ? " of " : "", type ? type : "", cluster->name, most);
}

/* "2", or "h100-sxm=2 a100=1". */
static bool read_machines(const Csv *csv, const Cluster *cluster, bool *keep,
                          GError **error)
{
    uint32_t n;
    if (!strchr(csv_text(csv, "machines"), '='))
        return csv_count(csv, "machines", 1, MOST_GPUS, &n, error) &&
               trial_keep_first(csv, cluster, NULL, n, keep, error);
    g_auto(GStrv) part = g_strsplit_set(csv_text(csv, "machines"), " ;", -1);
    for (char **p = part; *p; p++) {
        if (!**p)
            continue;
        char *value = strchr(*p, '='), *end = NULL;
        const guint64 count = value ? g_ascii_strtoull(value + 1, &end, 10) : 0;
        if (!value || end == value + 1 || *end || count > MOST_GPUS)
            return csv_fail(csv, "machines", error,
                            "expected TYPE=COUNT for each device type, got '%s'", *p);
        *value = '\0';
        if (!trial_keep_first(csv, cluster, *p, (uint32_t)count, keep, error))
            return false;
    }
    return true;
}

/* The error of another reader, about a column. False. */
static bool fail_in(const Csv *csv, const char *column, GError **error)
{
    kilter_prefix(error, "%s:%u: %s: ", csv->file, csv->line, column);
    return false;
}

static bool cut_cluster(const Csv *csv, Cluster *cluster, GError **error)
{
    g_autofree bool *keep = g_new0(bool, cluster->n_machines);
    uint32_t gpus;
    if (is_given(csv, "machines") && !read_machines(csv, cluster, keep, error))
        return false;
    if (is_given(csv, "machines") && !cluster_keep(cluster, keep, error))
        return fail_in(csv, "machines", error);
    if (!is_given(csv, "gpus"))
        return true;
    if (!csv_count(csv, "gpus", 1, MOST_GPUS, &gpus, error))
        return false;
    for (uint32_t i = 0; i < cluster->n_machines; i++) {
        if (gpus > cluster->machine[i].gpus)
            return csv_fail(csv, "gpus", error,
                            "expected at most %u, which machine %s has, got %u",
                            cluster->machine[i].gpus, cluster->machine[i].name, gpus);
        cluster->machine[i].gpus = gpus;
    }
    return true;
}

static bool trial_read_cluster(const Csv *csv, const Reading *reading, Trial *trial,
                               GError **error)
{
    g_autoptr(Cluster) cluster = is_given(csv, "cluster")
                                     ? cluster_load(csv_text(csv, "cluster"), error)
                                     : cluster_copy(reading->cluster, error);
    if (!cluster)
        return fail_in(csv, "cluster", error);
    return cut_cluster(csv, cluster, error) &&
           trial_set_cluster(trial, g_steal_pointer(&cluster), reading->sheets);
}

/* --- what was measured --- */

/* As LogQuantity has them, then the peak in another unit. */
static const struct {
    const char *column;
    double most;
} NUMBER[LOG_QUANTITIES + 1] = {{"seconds", 1e9},
                                {"tokens_per_s", MOST_PER_S},
                                {"tokens_per_s_per_gpu", MOST_PER_S},
                                {"samples_per_s", MOST_PER_S},
                                {"peak_bytes", MOST_BYTES},
                                {"peak_gib", MOST_BYTES / GIB}};

/* The numbers that cells leave out (NAN), by the log of the run. */
static bool trial_read_log(const Csv *csv, double *value, GError **error)
{
    double log[LOG_QUANTITIES];
    g_autofree char *text =
        file_read(csv_text(csv, "log"), LOG_BYTES, &(gsize){0}, error);
    if (!text)
        return fail_in(csv, "log", error);
    if (!training_log_parse(text, log))
        return csv_fail(csv, "log", error, "expected a log with times of iterations");
    for (uint32_t k = 0; k < LOG_QUANTITIES; k++)
        value[k] = isnan(value[k]) ? log[k] : value[k];
    return true;
}

static bool trial_read_measured(const Csv *csv, Trial *trial, GError **error)
{
    static const char *const OOM[] = {"peak", "peak_bytes", "peak_gib", "seconds"};
    g_autoptr(GError) failure = NULL;
    double value[LOG_QUANTITIES + 1], *peak = &value[LOG_PEAK_BYTES];
    trial->measured_s = trial->tokens_per_s = trial->samples_per_s = NAN;
    trial->measured_bytes = trial->measured_comm_s = trial->measured_hidden_s = NAN;
    for (uint32_t i = 0; i < G_N_ELEMENTS(OOM); i++)
        trial->failed |= g_ascii_strcasecmp(csv_text(csv, OOM[i]), "oom") == 0;
    for (uint32_t k = 0; !trial->failed && k <= LOG_QUANTITIES; k++) {
        const char *column = NUMBER[k].column;
        value[k] = NAN;
        if (is_given(csv, column) &&
            !csv_number(csv, column, SHORTEST, NUMBER[k].most, &value[k], error))
            return false;
    }
    if (trial->failed)
        return true;
    *peak = fmax(*peak, value[LOG_QUANTITIES] * GIB);
    if (is_given(csv, "peak") &&
        !units_parse(csv_text(csv, "peak"), QUANTITY_BYTES, peak, &failure))
        return csv_fail(csv, "peak", error, "%s, or oom", failure->message);
    if (is_given(csv, "log") && !trial_read_log(csv, value, error))
        return false;
    trial->measured_s = value[LOG_SECONDS];
    trial->samples_per_s = value[LOG_SAMPLES_PER_S];
    trial->tokens_per_s = fmax(value[LOG_TOKENS_PER_S],
                               value[LOG_TOKENS_PER_S_PER_GPU] * trial_gpus(trial));
    trial->measured_bytes = *peak;
    return true;
}

/* --- the plan --- */

/* The strategy's columns as options of `manual`. */
static char *strategy_options(const Csv *csv)
{
    GString *text = g_string_new(NULL);
    for (uint32_t i = 0; i < strategy_table.n; i++) {
        const char *key = strategy_table.row[i].key;
        if (!is_given(csv, key))
            continue;
        g_autofree char *value = g_strdelimit(g_strdup(csv_text(csv, key)), ",", ' ');
        g_string_append_printf(text, "%s%s=%s", text->len ? "," : "", key, value);
    }
    if (is_given(csv, "software"))
        g_string_append_printf(text, "%sruntime=%s", text->len ? "," : "",
                               csv_text(csv, "software"));
    return g_string_free(text, FALSE);
}

static void read_plan(const Csv *csv, Trial *trial)
{
    g_autofree char *strategy = strategy_options(csv),
                    *more = g_strdelimit(g_strdup(csv_text(csv, "options")), " ;", ',');
    trial->planner =
        g_strdup(is_given(csv, "planner") ? csv_text(csv, "planner") : "manual");
    trial->options = g_strconcat(strategy, *strategy && *more ? "," : "", more, NULL);
}

/* The fidelity that predicts the trial; NULL: trial_fidelity chooses. */
static bool trial_read_fidelity(const Csv *csv, Trial *trial, GError **error)
{
    g_autoptr(GError) failure = NULL;
    if (!is_given(csv, "fidelity"))
        return true;
    trial->fidelity = fidelity_find(csv_text(csv, "fidelity"), &failure);
    if (!trial->fidelity)
        return csv_fail(csv, "fidelity", error, "%s", failure->message);
    return true;
}

/* The model with the keys that have columns of their own; caller frees. */
static char *read_model(const Csv *csv)
{
    GString *spec = g_string_new(csv_text(csv, "model"));
    for (uint32_t i = 0; i < G_N_ELEMENTS(MODEL_COLUMN); i++)
        if (is_given(csv, MODEL_COLUMN[i]))
            g_string_append_printf(spec, "%c%s=%s", strchr(spec->str, ':') ? ',' : ':',
                                   MODEL_COLUMN[i], csv_text(csv, MODEL_COLUMN[i]));
    return g_string_free(spec, FALSE);
}

static bool trial_take(const Csv *csv, void *data, GError **error)
{
    Reading *reading = data;
    if (reading->list->len >= MOST_TRIALS)
        return csv_fail(csv, NULL, error, "expected at most %d trials", MOST_TRIALS);
    if (!is_given(csv, "model"))
        return csv_fail(csv, "model", error, "missing");
    Trial trial = {.name = g_strdup_printf("%s:%u", csv->file, csv->line),
                   .model = read_model(csv),
                   .steady = true};
    trial.group = g_strdup(csv_text(csv, is_given(csv, "group") ? "group" : "model"));
    trial.contest =
        is_given(csv, "contest")
            ? g_strdup(csv_text(csv, "contest"))
            : g_strdup_printf("%s on %s %s x %s", trial.model, csv_text(csv, "cluster"),
                              csv_text(csv, "machines"), csv_text(csv, "gpus"));
    read_plan(csv, &trial);
    const bool good = trial_read_fidelity(csv, &trial, error) &&
                      trial_read_cluster(csv, reading, &trial, error) &&
                      trial_read_measured(csv, &trial, error);
    if (good)
        g_array_append_val(reading->list, trial);
    else
        trial_clear(&trial);
    return good;
}

/* Reads the trials and takes the table over; NULL if the table cannot be read. */
static GArray *read_table(Csv *table, const Cluster *cluster, const Sheets *sheets,
                          GError **error)
{
    static const char *const required[] = {"model", NULL};
    g_autoptr(Csv) csv = table;
    g_autoptr(GPtrArray) optional = g_ptr_array_new();
    for (uint32_t i = 0; i < G_N_ELEMENTS(COLUMN); i++)
        g_ptr_array_add(optional, (gpointer)COLUMN[i]);
    for (uint32_t i = 0; i < G_N_ELEMENTS(NUMBER); i++)
        g_ptr_array_add(optional, (gpointer)NUMBER[i].column);
    for (uint32_t i = 0; i < G_N_ELEMENTS(MODEL_COLUMN); i++)
        g_ptr_array_add(optional, (gpointer)MODEL_COLUMN[i]);
    for (uint32_t i = 0; i < strategy_table.n; i++)
        g_ptr_array_add(optional, (gpointer)strategy_table.row[i].key);
    g_ptr_array_add(optional, NULL);
    Reading reading = {.cluster = cluster, .sheets = sheets};
    if (!csv || !csv_expect(csv, required, (const char *const *)optional->pdata, error))
        return NULL;
    reading.list = array_owning(Trial, trial_clear);
    if (!csv_each(csv, trial_take, &reading, error))
        g_clear_pointer(&reading.list, g_array_unref);
    return reading.list;
}

GArray *trial_file_read(const char *file, const Cluster *cluster, GError **error)
{
    g_autoptr(GError) failure = NULL;
    g_autoptr(Sheets) sheets = sheets_load(error);
    if (!sheets)
        return NULL;
    GArray *list = read_table(csv_read(file, &failure), cluster, sheets, &failure);
    g_autofree char *hint = list ? NULL : format_hint(file, NULL, 0);
    if (!list)
        kilter_fail(error, failure->code, "%s%s", failure->message, hint);
    return list;
}

GArray *trial_file_parse(const char *file, const char *text, size_t length,
                         const Cluster *cluster, const Sheets *sheets, GError **error)
{
    return read_table(csv_parse(file, text, length, error), cluster, sheets, error);
}
