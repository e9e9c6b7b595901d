/* Reading and writing measurements. */
#include "data/measured/measurement.h"

#include <string.h>

#include "data/base/assert.h"
#include "data/base/csv.h"
#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/text.h"
#include "data/base/units.h"
#include "data/formats/format.h"
#include "data/formats/measured/nccl_tests.h"
#include "data/formats/measured/nsys.h"

enum { MOST_BYTES = 1 << 28 };

static CLEAR_DEFINE(clear, Measurement, m, free_each(m->device, m->shape));

GArray *measurements_new(void)
{
    GArray *list = array_owning(Measurement, clear);
    return list;
}

static CLEAR_DEFINE(clear_table, MeasuredTable, t,
                    free_each(t->file, t->device, t->test, t->reason));

GArray *measured_tables_new(void)
{
    GArray *tables = array_owning(MeasuredTable, clear_table);
    return tables;
}

static const char SEND[] = "send";

const char *measurement_kind(const Measurement *m)
{
    g_assert(m->send || m->op < OP_KINDS || m->collective < COLLECTIVES);
    return m->send            ? SEND
           : m->op < OP_KINDS ? op_kind_name(m->op)
                              : collective_name(m->collective);
}

/* --- rows --- */

static const char *const COLUMN[] = {"device",   "kind",  "shape",  "ranks",
                                     "share",    "flops", "bytes",  "repeats",
                                     "median_s", "low_s", "high_s", NULL};

static bool measurement_read_kind(const Csv *csv, Measurement *m, GError **error)
{
    const char *text = csv_text(csv, "kind");
    m->op = op_kind_from_name(text);
    m->collective = m->op == OP_KINDS ? collective_from_name(text) : COLLECTIVES;
    m->send = strcmp(text, SEND) == 0;
    if (m->send || m->op < OP_KINDS || m->collective < (Collective)COLLECTIVES_PRICED)
        return true;
    return csv_fail(csv, "kind", error,
                    "expected an op kind, a collective or send, got '%.40s'", text);
}

/* No real measurement exceeds these. */
static const double MOST = 1e18, LONGEST_S = 1e6, SHORTEST_S = 1e-12;
enum { MOST_RANKS = 65536, MOST_REPEATS = 1000000000 };

static bool measurement_read_row(const Csv *csv, void *list, GError **error)
{
    Measurement m = {0};
    if (!measurement_read_kind(csv, &m, error) ||
        !csv_count(csv, "ranks", 1, MOST_RANKS, &m.ranks, error) ||
        !csv_number(csv, "share", 0, 1, &m.share, error) ||
        !csv_number(csv, "flops", 0, MOST, &m.flops, error) ||
        !csv_number(csv, "bytes", 0, MOST, &m.bytes, error) ||
        !csv_count(csv, "repeats", 1, MOST_REPEATS, &m.repeats, error) ||
        !csv_number(csv, "median_s", SHORTEST_S, LONGEST_S, &m.median_s, error) ||
        !csv_number(csv, "low_s", 0, m.median_s, &m.low_s, error) ||
        !csv_number(csv, "high_s", m.median_s, LONGEST_S, &m.high_s, error) ||
        !(*csv_text(csv, "hosts") == '\0' ||
          csv_count(csv, "hosts", 0, m.ranks, &m.hosts, error)))
        return false;
    if (*csv_text(csv, "device") == '\0')
        return csv_fail(csv, "device", error, "expected a name");
    m.device = g_strdup(csv_text(csv, "device"));
    m.shape = g_strdup(csv_text(csv, "shape"));
    g_array_append_val((GArray *)list, m);
    return true;
}

static bool parse_csv(const char *file, const char *text, size_t length, GArray *list,
                      GError **error)
{
    static const char *const others[] = {"hosts", NULL};
    g_autoptr(Csv) csv = csv_parse(file, text, length, error);
    return csv && csv_expect(csv, COLUMN, others, error) &&
           csv_each(csv, measurement_read_row, list, error);
}

/* Makes one table for each run of rows of the same kind and number of ranks. */
static void tabulate(const char *file, const GArray *list, uint32_t first, GArray *tables)
{
    g_assert(first <= list->len);
    MeasuredTable *table = NULL;
    for (uint32_t i = first; i < list->len; i++) {
        const Measurement *m = &g_array_index(list, Measurement, i);
        if (!table || table->ranks != m->ranks || table->hosts != m->hosts ||
            strcmp(table->test, measurement_kind(m)) != 0 ||
            strcmp(table->device, m->device) != 0) {
            const MeasuredTable new = {.file = g_strdup(file),
                                       .device = g_strdup(m->device),
                                       .test = g_strdup(measurement_kind(m)),
                                       .ranks = m->ranks,
                                       .hosts = m->hosts,
                                       .smallest = m->bytes,
                                       .first = i};
            g_array_append_val(tables, new);
            table = &g_array_index(tables, MeasuredTable, tables->len - 1);
        }
        table->rows++;
        table->smallest = MIN(table->smallest, m->bytes);
        table->largest = MAX(table->largest, m->bytes);
    }
}

static bool parse_any(const char *file, const char *text, size_t length, GArray *list,
                      GArray *tables, GError **error)
{
    const uint32_t before = list->len;
    g_autofree char *hint = NULL;
    if (strlen(text) != length) {
        hint = format_hint(file, NULL, 0);
        return refuse(error, "%s: expected a text%s", file, hint);
    }
    const FileFormat format = format_of_text(text, length, FORMAT_MEASURED);
    if (format == FORMAT_MEASUREMENTS) {
        const bool good = parse_csv(file, text, length, list, error);
        tabulate(file, list, before, tables);
        return good;
    }
    if (format == FORMAT_NCCL_TESTS)
        return nccl_tests_parse_text(file, text, list, tables, error);
    hint = format_hint(NULL, text, length);
    const bool object = text[strspn(text, " \t\r\n")] == '{';
    if (format == FORMAT_NCCL_TESTS_JSON || (object && !*hint))
        return nccl_tests_parse_json(file, text, length, list, tables, error);
    return refuse(error,
                  "%s: expected a measurement file (columns device, kind, ..., median_s) "
                  "or output of nccl-tests%s",
                  file, hint);
}

/* The reason why the first skipped table was skipped. */
static const char *first_reason(const GArray *tables, uint32_t from)
{
    KILTER_ASSERT(from <= tables->len);
    for (uint32_t i = from; i < tables->len; i++)
        if (g_array_index(tables, MeasuredTable, i).reason)
            return g_array_index(tables, MeasuredTable, i).reason;
    return NULL;
}

bool measurements_parse(const char *file, const char *text, size_t length, GArray *list,
                        GArray *tables, GError **error)
{
    g_autoptr(GArray) own = tables ? NULL : measured_tables_new();
    GArray *to = tables ? tables : own;
    const uint32_t before = list->len, tables_before = to->len;
    g_autofree char *converted = text_from_utf16(text, length, &length);
    bool good = parse_any(file, converted ? converted : text, length, list, to, error);
    const char *reason = first_reason(to, tables_before);
    if (good && list->len == before && !(tables && reason))
        good = refuse(error, "%s: holds no measurement%s%s", file, reason ? ": " : "",
                      reason ? reason : "");
    if (!good) {
        g_array_set_size(list, before);
        g_array_set_size(to, tables_before);
    }
    return good;
}

bool measurements_read(const char *file, GArray *list, GArray *tables, GError **error)
{
    gsize length;
    if (format_of_file(file, FORMAT_MEASURED) == FORMAT_NSYS) {
        g_autoptr(GArray) own = measured_tables_new();
        return nsys_read(file, list, tables ? tables : own, error);
    }
    g_autofree char *text = file_read(file, MOST_BYTES, &length, error);
    return text && measurements_parse(file, text, length, list, tables, error);
}

/* --- writing --- */

static void add_number(GString *out, double value)
{
    g_autofree char *text = number_exact(value);
    g_string_append_printf(out, ",%s", text);
}

static bool knows_hosts(const GArray *list)
{
    const bool knows =
        any_of(i, list->len, g_array_index(list, Measurement, i).hosts > 0);
    return knows;
}

char *measurements_write(const GArray *list, const char *comment)
{
    GString *out = g_string_new(NULL);
    if (comment)
        g_string_append_printf(out, "# %s\n", comment);
    g_autofree char *header = g_strjoinv(",", (char **)COLUMN);
    const bool hosts = knows_hosts(list);
    g_string_append_printf(out, "%s%s\n", header, hosts ? ",hosts" : "");
    array_each (const Measurement, m, list) {
        csv_append(out, m->device);
        g_string_append_printf(out, ",%s,", measurement_kind(m));
        csv_append(out, m->shape);
        g_string_append_printf(out, ",%u", m->ranks);
        add_number(out, m->share);
        add_number(out, m->flops);
        add_number(out, m->bytes);
        g_string_append_printf(out, ",%u", m->repeats);
        add_number(out, m->median_s);
        add_number(out, m->low_s);
        add_number(out, m->high_s);
        if (hosts)
            g_string_append_printf(out, ",%u", m->hosts);
        g_string_append_c(out, '\n');
    }
    return g_string_free(out, FALSE);
}
