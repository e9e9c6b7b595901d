/* Measured times as text and JSON. */
#include "experiments/cli/measured_report.h"

#include <math.h>
#include <string.h>

#include "data/base/json.h"
#include "data/measured/measurement.h"

bool measured_read_all(int argc, char **argv, GArray *list, GArray *tables,
                       GError **error)
{
    for (int i = 1; i < argc; i++)
        if (!measurements_read(argv[i], list, tables, error))
            return false;
    return true;
}

static const MeasuredTable *table_at(const GArray *tables, uint32_t i)
{
    return &g_array_index(tables, MeasuredTable, i);
}

/* --- what became of a table's rows --- */

static uint32_t used_of(const MeasuredTable *table, const Calibration *calibration)
{
    uint32_t used = 0;
    for (uint32_t i = 0; calibration && i < table->rows; i++)
        used += !isnan(calibration->predicted_s[table->first + i]);
    return calibration ? used : table->rows;
}

static const char *measured_report_place_of(const MeasuredTable *table,
                                            const Calibration *calibration)
{
    for (uint32_t i = 0; calibration && i < table->rows; i++)
        if (!isnan(calibration->predicted_s[table->first + i]))
            return place_name(calibration->placing[table->first + i].place);
    return NULL;
}

static const char *reason_of(const MeasuredTable *table, const Calibration *calibration)
{
    for (uint32_t i = 0; calibration && i < table->rows; i++)
        if (isnan(calibration->predicted_s[table->first + i])) {
            const char *reason = calibration->placing[table->first + i].reason;
            return reason ? reason : "no cost of the cluster takes it";
        }
    return table->reason;
}

static json_t *table_json(const MeasuredTable *table, const Calibration *calibration)
{
    const uint32_t used = used_of(table, calibration);
    return json_pack(
        "{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:s*, s:s*}", "test", table->test,
        "device", table->device, "ranks", (int)table->ranks, "hosts", (int)table->hosts,
        "rows", (int)(table->rows + table->passed), "used", (int)used, "left_out",
        (int)(table->rows + table->passed - used), "smallest_bytes",
        json_number(table->smallest), "largest_bytes", json_number(table->largest),
        "place", measured_report_place_of(table, calibration), "reason",
        reason_of(table, calibration));
}

/* The tables of one file, from `first` on; *end gets the index after them. */
static json_t *file_json(const GArray *tables, uint32_t first,
                         const Calibration *calibration, uint32_t *end)
{
    const char *file = table_at(tables, first)->file;
    json_t *list = json_array();
    g_autoptr(GString) tests = g_string_new(NULL);
    uint32_t rows = 0, ranks = 0;
    double largest = 0;
    for (*end = first;
         *end < tables->len && strcmp(table_at(tables, *end)->file, file) == 0; ++*end) {
        const MeasuredTable *table = table_at(tables, *end);
        rows += table->rows + table->passed;
        ranks = MAX(ranks, table->ranks);
        largest = fmax(largest, table->largest);
        g_string_append_printf(tests, "%s%s=%u", tests->len ? ";" : "", table->test,
                               table->rows + table->passed);
        json_array_append_new(list, table_json(table, calibration));
    }
    return json_pack("{s:s, s:i, s:i, s:s, s:s, s:o, s:o}", "file", file, "rows",
                     (int)rows, "ranks", (int)ranks, "device",
                     table_at(tables, first)->device, "tests", tests->str,
                     "largest_bytes", json_integer((json_int_t)largest), "tables", list);
}

json_t *measured_report_json(const GArray *tables, const Calibration *calibration)
{
    json_t *files = json_array();
    for (uint32_t i = 0; i < tables->len;)
        json_array_append_new(files, file_json(tables, i, calibration, &i));
    return files;
}
