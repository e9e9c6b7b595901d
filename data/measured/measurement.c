#include "data/measured/measurement.h"

#include <string.h>

#include "data/base/csv.h"
#include "data/base/error.h"
#include "data/base/units.h"
#include "data/measured/nccl_tests.h"

static void clear(void *measurement)
{
    Measurement *m = measurement;
    g_free(m->device);
    g_free(m->shape);
}

GArray *measurements_new(void)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(Measurement));
    g_array_set_clear_func(list, clear);
    return list;
}

const char *measurement_kind(const Measurement *m)
{
    return m->op < OP_KINDS ? op_kind_name(m->op) : collective_name(m->collective);
}

/* --- rows --- */

static const char *const COLUMN[] = {"device",   "kind",  "shape",  "ranks",
                                     "share",    "flops", "bytes",  "repeats",
                                     "median_s", "low_s", "high_s", NULL};

static bool read_kind(const Csv *csv, Measurement *m, GError **error)
{
    const char *text = csv_text(csv, "kind");
    m->op = op_kind_from_name(text);
    m->collective = m->op == OP_KINDS ? collective_from_name(text) : COLLECTIVES;
    if (m->op < OP_KINDS || m->collective < (Collective)COLLECTIVES_PRICED)
        return true;
    return csv_fail(csv, "kind", error,
                    "expected an op kind or a collective, got '%.40s'", text);
}

/* No measurement of anything is beyond these. */
static const double MOST = 1e18, LONGEST_S = 1e6, SHORTEST_S = 1e-12;
enum { MOST_RANKS = 65536, MOST_REPEATS = 1000000000 };

static bool read_row(const Csv *csv, void *list, GError **error)
{
    Measurement m = {0};
    if (!read_kind(csv, &m, error) ||
        !csv_count(csv, "ranks", 1, MOST_RANKS, &m.ranks, error) ||
        !csv_number(csv, "share", 0, 1, &m.share, error) ||
        !csv_number(csv, "flops", 0, MOST, &m.flops, error) ||
        !csv_number(csv, "bytes", 0, MOST, &m.bytes, error) ||
        !csv_count(csv, "repeats", 1, MOST_REPEATS, &m.repeats, error) ||
        !csv_number(csv, "median_s", SHORTEST_S, LONGEST_S, &m.median_s, error) ||
        !csv_number(csv, "low_s", 0, m.median_s, &m.low_s, error) ||
        !csv_number(csv, "high_s", m.median_s, LONGEST_S, &m.high_s, error))
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
    static const char *const others[] = {NULL};
    g_autoptr(Csv) csv = csv_parse(file, text, length, error);
    return csv && csv_expect(csv, COLUMN, others, error) &&
           csv_each(csv, read_row, list, error);
}

/* The first line that is not a comment names our columns. */
static bool is_csv(const char *text)
{
    while (*text == '#' || *text == '\n' || *text == '\r') {
        const char *end = strchr(text, '\n');
        if (!end)
            return false;
        text = end + 1;
    }
    g_autofree char *line = g_strndup(text, strcspn(text, "\r\n"));
    return strchr(line, ',') && strstr(line, "median_s");
}

bool measurements_parse(const char *file, const char *text, size_t length, GArray *list,
                        GError **error)
{
    const uint32_t before = list->len;
    const char *start = text + strspn(text, " \t\r\n");
    bool good;
    if (strlen(text) != length)
        good = kilter_fail(error, KILTER_ERROR_INPUT, "%s: expected a text", file);
    else if (*start == '{')
        good = nccl_tests_parse_json(file, text, length, list, error);
    else if (is_csv(text))
        good = parse_csv(file, text, length, list, error);
    else if (nccl_tests_is_text(text))
        good = nccl_tests_parse_text(file, text, list, error);
    else
        good = kilter_fail(error, KILTER_ERROR_INPUT,
                           "%s: expected a measurement file (columns device, kind, ..., "
                           "median_s) or output of nccl-tests",
                           file);
    if (good && list->len == before)
        good = kilter_fail(error, KILTER_ERROR_INPUT, "%s: holds no measurement", file);
    if (!good)
        g_array_set_size(list, before);
    return good;
}

bool measurements_read(const char *file, GArray *list, GError **error)
{
    g_autofree char *text = NULL;
    gsize length;
    g_autoptr(GError) trouble = NULL;
    if (!g_file_get_contents(file, &text, &length, &trouble))
        return kilter_fail(error, KILTER_ERROR_INPUT, "%s", trouble->message);
    return measurements_parse(file, text, length, list, error);
}

/* --- writing --- */

static void add_number(GString *out, double value)
{
    g_autofree char *text = number_exact(value);
    g_string_append_printf(out, ",%s", text);
}

char *measurements_write(const GArray *list, const char *comment)
{
    GString *out = g_string_new(NULL);
    if (comment)
        g_string_append_printf(out, "# %s\n", comment);
    g_autofree char *header = g_strjoinv(",", (char **)COLUMN);
    g_string_append_printf(out, "%s\n", header);
    for (uint32_t i = 0; i < list->len; i++) {
        const Measurement *m = &g_array_index(list, Measurement, i);
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
        g_string_append_c(out, '\n');
    }
    return g_string_free(out, FALSE);
}
