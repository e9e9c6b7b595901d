/* kilter calibrate: a cluster file from measurements. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "data/base/json.h"
#include "data/base/output.h"
#include "data/base/units.h"
#include "data/base/version.h"
#include "data/measured/measurement.h"
#include "experiments/answers.h"
#include "experiments/calibration/calibrate.h"
#include "experiments/cli/command.h"
#include "experiments/cli/measured_report.h"
#include "experiments/figures/figure.h"

/* clang-format off */
#define CALIBRATE_OPTIONS(X)                \
    X(FILE, output, "output", 'o')          \
    X(TEXT, base, "base", 0)                \
    X(COUNT, ranks, "ranks", 'n', 0, 65536) \
    X(TEXT, memory, "memory", 0)            \
    X(FILE, plot, "plot", 0)
/* clang-format on */
COMMAND_OPTIONS(Own, calibrate_options, CALIBRATE_OPTIONS)

static const char *fit_name(const CalibrationFit *fit)
{
    return fit->place == PLACE_INNER && !fit->curve ? "inside machines"
           : fit->place == PLACE_SEND               ? "send"
           : fit->device                            ? op_kind_name(fit->op)
                                                    : collective_name(fit->collective);
}

/* --- report --- */

/* Seconds per unit as units per second, with the interval; null where the unit costs nothing. */
static json_t *speed_json(const CalibrationLine *line, uint32_t j)
{
    return line->x[j] > 0
               ? json_pack("{s:o, s:o, s:o}", "value", json_number(1 / line->x[j]), "low",
                           json_number(1 / line->high[j]), "high",
                           json_number(1 / line->low[j]))
               : json_null();
}

static json_t *fit_json(const CalibrationFit *fit)
{
    const uint32_t k = fit->device ? 3 : 2;
    json_t *line = json_pack(
        "{s:o, s:o, s:o, s:o, s:o}", "seconds", json_numbers(fit->line.x, k), "low",
        json_numbers(fit->line.low, k), "high", json_numbers(fit->line.high, k), "rate",
        k == 3 ? speed_json(&fit->line, 1) : json_null(), "bandwidth",
        speed_json(&fit->line, k - 1));
    return json_pack(
        "{s:s, s:s, s:s*, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "kind",
        fit_name(fit), "place", place_name(fit->place), "device", fit->device, "ranks",
        (int)fit->ranks, "hosts", (int)fit->hosts, "rows", (int)fit->agreement.n, "mape",
        json_number(fit->agreement.mape), "p95", json_number(fit->agreement.p95), "worst",
        json_number(fit->agreement.worst), "smallest_bytes", json_number(fit->smallest),
        "largest_bytes", json_number(fit->largest), "line", line);
}

static json_t *calibrate_report_json(const Calibration *calibration, const GArray *tables,
                                     const Own *own)
{
    json_t *fits =
        json_list(places_before(i, calibration->n_fits), fit_json(&calibration->fit[i]));
    return json_pack(
        "{s:s, s:s?, s:i, s:o, s:o, s:o, s:o, s:o, s:s}", "cluster",
        calibration->cluster->name, "output", own->output, "rows",
        (int)calibration->agreement.n, "mape", json_number(calibration->agreement.mape),
        "p95", json_number(calibration->agreement.p95), "worst",
        json_number(calibration->agreement.worst), "fits", fits, "files",
        measured_report_json(tables, calibration), "version", KILTER_VERSION);
}

/* Rows of the figure: whether it is a collective, kind, bytes, measured, predicted. */
static bool calibrate_draw(const Calibration *calibration, const GArray *measurements,
                           const char *folder, GError **error)
{
    g_autoptr(GString) text =
        g_string_new("# collective\tkind\tbytes\tmeasured_s\tpredicted_s\n");
    array_at (const Measurement, m, i, measurements) {
        if (!isnan(calibration->predicted_s[i]))
            g_string_append_printf(text, "%d\t%s\t%.9g\t%.9g\t%.9g\n", m->op == OP_KINDS,
                                   measurement_kind(m), m->bytes, m->median_s,
                                   calibration->predicted_s[i]);
    }
    return figure_draw_text("calibration", text->str, folder, error);
}

/* --- input --- */

/* Names of the files, for the cluster's source. Caller frees. */
static char *file_names(int argc, char **argv)
{
    GString *names = g_string_new(NULL);
    for (int i = 1; i < argc; i++) {
        g_autofree char *name = g_path_get_basename(argv[i]);
        g_string_append_printf(names, "%s%s", i > 1 ? ", " : "", name);
    }
    return g_string_free(names, FALSE);
}

static bool fill_options(const Own *own, const CommandOptions *command,
                         CalibrateOptions *options, GError **error)
{
    double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) /
                    MAX(options->ranks, 1);
    options->seed = command->planner.seed;
    if (own->memory && !units_parse(own->memory, QUANTITY_BYTES, &memory, error))
        return kilter_prefix(error, "--memory: ");
    options->memory_bytes = (uint64_t)MAX(memory, 1);
    return true;
}

static uint32_t most_ranks(const GArray *measurements)
{
    return most_over(uint32_t, i, measurements->len, 1,
                     g_array_index(measurements, Measurement, i).ranks);
}

/* Files whose rows were all passed over say why. */
static bool check_rows(const GArray *measurements, const GArray *tables, GError **error)
{
    if (measurements->len > 0 || tables->len == 0)
        return true;
    const MeasuredTable *table = &g_array_index(tables, MeasuredTable, 0);
    return refuse(error, "%s: no row can be used: %s", table->file,
                  table->reason ? table->reason : "there is none");
}

COMMAND(calibrate, Own, CALIBRATE_OPTIONS, 0)
{
    if (own->output && !output_check(own->output, error))
        return false;
    g_autofree char *names = file_names(argc, argv);
    g_autoptr(GArray) measurements = measurements_new();
    g_autoptr(GArray) tables = measured_tables_new();
    if (!measured_read_all(argc, argv, measurements, tables, error) ||
        !check_rows(measurements, tables, error))
        return false;
    g_autofree char *source =
        g_strdup_printf("kilter " KILTER_VERSION " calibrate: %u measurements of %.1000s",
                        measurements->len, names);
    g_autofree char *name = g_path_get_basename(own->output ? own->output : "calibrated");
    CalibrateOptions how = {.ranks = own->ranks ? (uint32_t)own->ranks
                                                : most_ranks(measurements),
                            .name = name,
                            .source = source};
    if (strrchr(name, '.') > name)
        *strrchr(name, '.') = '\0';
    g_autoptr(Cluster) base = own->base ? cluster_load(own->base, error) : NULL;
    if ((own->base && !base) || !fill_options(own, options, &how, error))
        return false;
    how.base = base;
    g_autoptr(Calibration) calibration = calibrate(measurements, &how, error);
    if (!calibration ||
        (own->plot && !calibrate_draw(calibration, measurements, own->plot, error)) ||
        (own->output &&
         !output_take(own->output, cluster_write(calibration->cluster), error)))
        return false;
    command_report(options, calibrate_report_json(calibration, tables, own),
                   ANSWER_MEASURED, ANSWER_CALIBRATE, NULL);
    return true;
}
