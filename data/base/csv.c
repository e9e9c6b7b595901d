/* Reading and writing CSV files, with the line in every error. */
#include "data/base/csv.h"

#include <math.h>
#include <string.h>

#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/names.h"
#include "data/base/number_gap.h"
#include "data/base/text.h"
#include "data/base/units.h"

/* More than any table that people pass around. */
enum { MOST_BYTES = 1 << 28 };

FREE_DEFINE(csv_free, Csv, csv, g_free(csv->file), g_strfreev(csv->column),
            g_strfreev(csv->cell), g_free(csv->text));

bool csv_fail(const Csv *csv, const char *column, GError **error, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(reason, format);
    return refuse(error, "%s:%u: %s%s%s", csv->file, csv->line, column ? column : "",
                  column ? ": " : "", reason);
}

/* --- lines --- */

/* Appends the text between the quote at *at and the closing quote to `cell`, and moves *at behind
 * it; false if there is no closing quote. */
static bool read_quoted(const char **at, GString *cell)
{
    const char *c = *at + 1;
    for (; *c && (*c != '"' || c[1] == '"'); c++) {
        c += *c == '"';
        g_string_append_c(cell, *c);
    }
    *at = *c ? c + 1 : c;
    return *c == '"';
}

/* Reads one cell from *at on and moves *at behind it; NULL if a quoted cell does not end with a
 * quote and a separator. */
static char *read_cell(const char **at, char separator)
{
    const char ends[] = {separator, '\0'};
    const char *const blanks = separator == '\t' ? " " : " \t";
    *at += strspn(*at, blanks);
    if (**at != '"') {
        const size_t n = strcspn(*at, ends);
        char *cell = g_strndup(*at, n);
        *at += n;
        return g_strchomp(cell);
    }
    g_autoptr(GString) cell = g_string_new(NULL);
    const bool closed = read_quoted(at, cell);
    *at += strspn(*at, blanks);
    return closed && (**at == '\0' || **at == separator) ? g_strdup(cell->str) : NULL;
}

/* The cells of a line; NULL and *error if there is none. */
static char **csv_split(const Csv *csv, const char *line, GError **error)
{
    g_autoptr(GPtrArray) cells = g_ptr_array_new_with_free_func(g_free);
    for (bool more = true; more; line++) {
        char *cell = read_cell(&line, csv->separator);
        if (!cell) {
            csv_fail(csv, NULL, error, "cell %u: expected a closing quote, then a %s",
                     cells->len + 1,
                     csv->separator == ',' ? "comma" : "separator of cells");
            return NULL;
        }
        g_ptr_array_add(cells, cell);
        more = *line == csv->separator;
    }
    g_ptr_array_add(cells, NULL);
    return (char **)g_ptr_array_steal(cells, NULL);
}

/* The next line that is neither empty nor a comment; NULL at the end. */
static const char *next_line(Csv *csv)
{
    while (*csv->rest) {
        char *line = csv->rest;
        csv->rest += strcspn(line, "\n");
        if (*csv->rest)
            *csv->rest++ = '\0';
        csv->line++;
        if (csv->separator == '\t') /* the last cells may be empty */
            line[strcspn(line, "\r")] = '\0';
        else
            g_strchomp(line);
        if (*line && *line != '#')
            return line;
    }
    return NULL;
}

static bool csv_read_header(Csv *csv, GError **error)
{
    const char *line = next_line(csv);
    if (!line)
        return refuse(error, "%s: expected a first line that names the columns",
                      csv->file);
    const char *separator = strchr(line, ',') ? NULL : strpbrk(line, ";\t");
    csv->separator = separator ? *separator : ',';
    csv->column = csv_split(csv, line, error);
    if (!csv->column)
        return false;
    csv->n_columns = g_strv_length(csv->column);
    for (uint32_t i = 0; i < csv->n_columns; i++)
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(csv->column[i], csv->column[k]) == 0)
                return csv_fail(csv, NULL, error,
                                "column '%.40s': expected once, is there twice",
                                csv->column[i]);
    return true;
}

/* Takes ownership of the text. */
static Csv *open_text(const char *file, char *text, size_t length, GError **error)
{
    g_autoptr(Csv) csv = g_new0(Csv, 1);
    csv->file = g_strdup(file);
    csv->text = csv->rest = text;
    if (g_str_has_prefix(text,
                         "\xef\xbb\xbf")) /* spreadsheets put a byte order mark there */
        csv->rest += 3;
    if (strlen(text) != length)
        return refused(error, "%s: expected a text", file);
    return csv_read_header(csv, error) ? g_steal_pointer(&csv) : NULL;
}

Csv *csv_parse(const char *file, const char *text, size_t length, GError **error)
{
    return open_text(file, g_memdup2(text, length + 1), length, error);
}

Csv *csv_read(const char *file, GError **error)
{
    gsize length;
    char *text = file_read(file, MOST_BYTES, &length, error);
    return text ? open_text(file, text, length, error) : NULL;
}

/* Makes a line the current one. */
static bool csv_read_line(Csv *csv, const char *line, GError **error)
{
    csv->cell = csv_split(csv, line, error);
    const uint32_t n = csv->cell ? g_strv_length(csv->cell) : 0;
    return csv->cell &&
           (n == csv->n_columns ||
            csv_fail(csv, NULL, error, "expected %u columns, got %u", csv->n_columns, n));
}

bool csv_each(Csv *csv, bool (*take)(const Csv *csv, void *data, GError **error),
              void *data, GError **error)
{
    bool good = true;
    for (const char *line; good && (line = next_line(csv));) {
        good = csv_read_line(csv, line, error) && take(csv, data, error);
        g_clear_pointer(&csv->cell, g_strfreev);
    }
    return good;
}

/* --- columns --- */

bool csv_has(const Csv *csv, const char *column)
{
    return g_strv_contains((const char *const *)csv->column, column);
}

bool csv_expect(const Csv *csv, const char *const *required, const char *const *optional,
                GError **error)
{
    for (uint32_t i = 0; required[i]; i++)
        if (!csv_has(csv, required[i]))
            return csv_fail(csv, NULL, error, "expected a column '%s'", required[i]);
    for (uint32_t c = 0; optional && c < csv->n_columns; c++)
        if (!g_strv_contains(required, csv->column[c]) &&
            !g_strv_contains(optional, csv->column[c])) {
            g_autofree char *known = g_strjoinv(", ", (char **)required),
                            *others = g_strjoinv(", ", (char **)optional);
            return csv_fail(csv, NULL, error, "column '%.40s': expected one of %s%s%s",
                            csv->column[c], known, *others ? ", " : "", others);
        }
    return true;
}

const char *csv_text(const Csv *csv, const char *column)
{
    const uint32_t c = TEXT_PLACE(csv->column, csv->n_columns, column);
    return c < csv->n_columns ? csv->cell[c] : "";
}

bool csv_number(const Csv *csv, const char *column, double low, double high,
                double *value, GError **error)
{
    g_assert(low <= high);
    g_autofree char *text = g_strdup(csv_text(csv, column));
    if (csv->separator == ';')
        g_strdelimit(text, ",", '.');
    return number_read(text, low, high, value) ||
           csv_fail(csv, column, error, "expected a number from %g to %g%s, got '%.40s'",
                    low, high, number_gap(text), text);
}

bool csv_count(const Csv *csv, const char *column, uint32_t low, uint32_t high,
               uint32_t *value, GError **error)
{
    g_assert(low <= high);
    const char *text = csv_text(csv, column);
    double number;
    if (!csv_number(csv, column, low, high, &number, NULL) || number != floor(number))
        return csv_fail(csv, column, error,
                        "expected a whole number from %u to %u, got '%.40s'", low, high,
                        text);
    *value = (uint32_t)number;
    return true;
}

/* --- writing --- */

void csv_append(GString *out, const char *cell)
{
    const size_t n = strlen(cell);
    if (!strpbrk(cell, ",\"#") &&
        (n == 0 || (!g_ascii_isspace(cell[0]) && !g_ascii_isspace(cell[n - 1])))) {
        g_string_append(out, cell);
        return;
    }
    g_string_append_c(out, '"');
    for (; *cell; cell++) {
        if (*cell == '"')
            g_string_append_c(out, '"');
        g_string_append_c(out, *cell);
    }
    g_string_append_c(out, '"');
}
