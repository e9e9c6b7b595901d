#include "data/measurement.h"

#include <math.h>
#include <string.h>

#include "data/error.h"
#include "data/nccl_tests.h"

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

/* --- columns --- */

#define COLUMN_TABLE(X)   \
    X(DEVICE, "device")   \
    X(KIND, "kind")       \
    X(SHAPE, "shape")     \
    X(RANKS, "ranks")     \
    X(SHARE, "share")     \
    X(FLOPS, "flops")     \
    X(BYTES, "bytes")     \
    X(REPEATS, "repeats") \
    X(MEDIAN, "median_s") \
    X(LOW, "low_s")       \
    X(HIGH, "high_s")

enum {
#define X(id, name) COLUMN_##id,
    COLUMN_TABLE(X)
#undef X
        COLUMNS
};

static const char *const COLUMN[] = {
#define X(id, name) name,
    COLUMN_TABLE(X)
#undef X
};

typedef struct {
    const char *file;
    uint32_t line;           /* counted from 1 */
    uint32_t place[COLUMNS]; /* of each column in a line */
    GArray *list;
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
    bool seen[COLUMNS] = {false};
    for (uint32_t place = 0; cell[place]; place++) {
        uint32_t c = 0;
        while (c < COLUMNS && strcmp(cell[place], COLUMN[c]) != 0)
            c++;
        if (c == COLUMNS || seen[c])
            return fail(reader, error, "column '%.40s': unknown, or there twice",
                        cell[place]);
        seen[c] = true;
        reader->place[c] = place;
    }
    for (uint32_t c = 0; c < COLUMNS; c++)
        if (!seen[c])
            return fail(reader, error, "expected a column %s", COLUMN[c]);
    return true;
}

/* --- rows --- */

static bool read_number(const Reader *reader, char **cell, uint32_t column, double low,
                        double high, double *value, GError **error)
{
    const char *text = cell[reader->place[column]];
    char *end = NULL;
    *value = g_ascii_strtod(text, &end);
    if (end != text && *end == '\0' && *value >= low && *value <= high)
        return true;
    return fail(reader, error, "%s: expected a number from %g to %g, got '%.40s'",
                COLUMN[column], low, high, text);
}

static bool read_kind(const Reader *reader, const char *text, Measurement *m,
                      GError **error)
{
    m->op = op_kind_from_name(text);
    m->collective = m->op == OP_KINDS ? collective_from_name(text) : COLLECTIVES;
    if (m->op < OP_KINDS || m->collective < (Collective)COLLECTIVES_PRICED)
        return true;
    return fail(reader, error, "kind: expected an op kind or a collective, got '%.40s'",
                text);
}

/* No measurement of anything is beyond these. */
static const double MOST = 1e18, LONGEST_S = 1e6, SHORTEST_S = 1e-12;
enum { MOST_RANKS = 65536, MOST_REPEATS = 1000000000 };

static bool read_row(Reader *reader, char **cell, GError **error)
{
    if (g_strv_length(cell) != COLUMNS)
        return fail(reader, error, "expected %d columns, got %u", COLUMNS,
                    g_strv_length(cell));
    Measurement m = {0};
    double ranks, repeats;
    if (!read_kind(reader, cell[reader->place[COLUMN_KIND]], &m, error) ||
        !read_number(reader, cell, COLUMN_RANKS, 1, MOST_RANKS, &ranks, error) ||
        !read_number(reader, cell, COLUMN_SHARE, 0, 1, &m.share, error) ||
        !read_number(reader, cell, COLUMN_FLOPS, 0, MOST, &m.flops, error) ||
        !read_number(reader, cell, COLUMN_BYTES, 0, MOST, &m.bytes, error) ||
        !read_number(reader, cell, COLUMN_REPEATS, 1, MOST_REPEATS, &repeats, error) ||
        !read_number(reader, cell, COLUMN_MEDIAN, SHORTEST_S, LONGEST_S, &m.median_s,
                     error) ||
        !read_number(reader, cell, COLUMN_LOW, 0, m.median_s, &m.low_s, error) ||
        !read_number(reader, cell, COLUMN_HIGH, m.median_s, LONGEST_S, &m.high_s, error))
        return false;
    if (ranks != floor(ranks) || repeats != floor(repeats))
        return fail(reader, error, "ranks, repeats: expected whole numbers");
    m.ranks = (uint32_t)ranks;
    m.repeats = (uint32_t)repeats;
    m.device = g_strdup(cell[reader->place[COLUMN_DEVICE]]);
    m.shape = g_strdup(cell[reader->place[COLUMN_SHAPE]]);
    g_array_append_val(reader->list, m);
    return *m.device || fail(reader, error, "device: expected a name");
}

static bool parse_csv(const char *file, const char *text, GArray *list, GError **error)
{
    Reader reader = {.file = file, .list = list};
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    bool header = false;
    for (char **line = lines; *line; line++) {
        reader.line++;
        g_strchomp(*line);
        if (**line == '\0' || **line == '#')
            continue;
        g_auto(GStrv) cell = g_strsplit(*line, ",", -1);
        if (!(header ? read_row(&reader, cell, error)
                     : read_header(&reader, cell, error)))
            return false;
        header = true;
    }
    return true;
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
        good = parse_csv(file, text, list, error);
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
    char text[G_ASCII_DTOSTR_BUF_SIZE], format[8];
    for (int digits = 6; digits <= 17; digits++) {
        g_snprintf(format, sizeof format, "%%.%dg", digits);
        g_ascii_formatd(text, sizeof text, format, value);
        if (g_ascii_strtod(text, NULL) == value)
            break;
    }
    g_string_append_printf(out, ",%s", text);
}

char *measurements_write(const GArray *list, const char *comment)
{
    GString *out = g_string_new(NULL);
    if (comment)
        g_string_append_printf(out, "# %s\n", comment);
    for (uint32_t c = 0; c < COLUMNS; c++)
        g_string_append_printf(out, "%s%s", c ? "," : "", COLUMN[c]);
    g_string_append_c(out, '\n');
    for (uint32_t i = 0; i < list->len; i++) {
        const Measurement *m = &g_array_index(list, Measurement, i);
        g_string_append_printf(out, "%s,%s,%s,%u", m->device, measurement_kind(m),
                               m->shape, m->ranks);
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
