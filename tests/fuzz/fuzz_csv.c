/* Fuzz target: any bytes as a CSV file are either refused with a message or rows of as many cells
 * as there are columns, which can be written and read again. A cell asked for as a number is one,
 * and a file is read as its text is. */
#include <math.h>
#include <string.h>

#include "data/data.h"
#include "tests/fuzz/fuzz.h"

static void write_line(GString *out, char **cell, uint32_t n)
{
    fuzz_check(g_strv_length(cell) == n, "as many cells as columns");
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            g_string_append_c(out, ',');
        csv_append(out, cell[i]);
    }
    g_string_append_c(out, '\n');
}

static bool write_row(const Csv *csv, void *out, GError **error)
{
    (void)error;
    write_line(out, csv->cell, csv->n_columns);
    return true;
}

/* A cell is a number in the bounds, and then it is written as one, or the refusal says why. */
static void check_numbers(const Csv *csv, const char *column)
{
    static const double LOW = -1e6, HIGH = 1e12;
    enum { MOST = 1000 };
    double number = NAN;
    uint32_t count;
    g_autoptr(GError) error = NULL, no_count = NULL;
    const bool good = csv_number(csv, column, LOW, HIGH, &number, &error);
    fuzz_check(good == !error, "either a number or an error");
    if (!good)
        fuzz_check_refused(error, csv->file);
    fuzz_check(!good || (number >= LOW && number <= HIGH &&
                         g_ascii_strtod(csv_text(csv, column), NULL) == number),
               "the cell's number");
    if (csv_count(csv, column, 1, MOST, &count, &no_count))
        fuzz_check(good && count == number && count >= 1 && count <= MOST, "a count");
    else
        fuzz_check_refused(no_count, csv->file);
}

static bool check_row(const Csv *csv, void *rows, GError **error)
{
    (void)error;
    ++*(uint32_t *)rows;
    for (uint32_t i = 0; i < csv->n_columns; i++)
        check_numbers(csv, csv->column[i]);
    fuzz_check(csv_has(csv, "no\ncolumn") || !*csv_text(csv, "no\ncolumn"),
               "a column that is not there");
    return true;
}

/* The columns are those that are there, and no others. */
static void check_columns(const Csv *csv)
{
    const char *const none[] = {NULL}, *const one[] = {csv->column[0], NULL},
                      *const other[] = {"no\ncolumn", NULL};
    const char *const *all = (const char *const *)csv->column;
    g_autoptr(GError) lacks = NULL, has = NULL;
    fuzz_check(csv_expect(csv, all, NULL, NULL) && csv_expect(csv, one, all, NULL),
               "columns");
    fuzz_check(!csv_expect(csv, other, NULL, &lacks), "a column that is not there");
    fuzz_check_refused(lacks, csv->file);
    fuzz_check(csv_expect(csv, one, none, &has) == (csv->n_columns == 1),
               "a column too many");
    if (has)
        fuzz_check_refused(has, csv->file);
}

/* As a file. */
static void check_file(const void *data, size_t size, bool good)
{
    int memory;
    uint32_t rows = 0;
    g_autoptr(GError) error = NULL;
    g_autofree char *file = fuzz_file_open(data, size, &memory);
    g_autoptr(Csv) csv = csv_read(file, &error);
    fuzz_file_close(memory);
    if (csv)
        check_columns(csv);
    const bool read = csv && csv_each(csv, check_row, &rows, &error);
    fuzz_check(read == !error, "either rows or an error");
    fuzz_check(read == good, "a file is read as its text is");
    if (!read)
        fuzz_check_refused(error, file);
}

/* The rows as text, or NULL after checking that the refusal says why. *n: the number of columns. */
static char *rewrite(const char *text, size_t size, uint32_t *n)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) out =
        g_string_new("\n"); /* a byte order mark is one in the first line only */
    g_autoptr(Csv) csv = csv_parse("any.csv", text, size, &error);
    *n = csv ? csv->n_columns : 0;
    if (csv)
        write_line(out, csv->column, csv->n_columns);
    const bool good = csv && csv_each(csv, write_row, out, &error);
    fuzz_check(good == !error, "either rows or an error");
    fuzz_check(good || (error->code == KILTER_ERROR_INPUT && *error->message),
               "a message");
    return good ? g_strdup(out->str) : NULL;
}

bool fuzz_read(const void *data, size_t size)
{
    uint32_t n;
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autofree char *once = rewrite(text, size, &n);
    check_file(data, size, once != NULL);
    /* A line of one empty cell is an empty line, which readers skip. */
    if (n < 2)
        return once != NULL;
    fuzz_note("%u %s", n, once ? once : "");
    g_autofree char *twice = once ? rewrite(once, strlen(once), &n) : NULL;
    fuzz_check(!once || (twice && strcmp(once, twice) == 0),
               "written rows are read as they were");
    return once != NULL;
}
