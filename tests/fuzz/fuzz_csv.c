/* Fuzz target: any bytes as a CSV file are either refused with a message or rows of as many cells
 * as there are columns, which can be written and read again. */
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

/* The rows as text, or NULL after checking that the refusal says why. *n: the number of columns. */
static char *rewrite(const char *text, size_t size, uint32_t *n)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) out = g_string_new(NULL);
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
    /* A line of one empty cell is an empty line, which readers skip. */
    if (n < 2)
        return once != NULL;
    g_autofree char *twice = once ? rewrite(once, strlen(once), &n) : NULL;
    fuzz_check(!once || (twice && strcmp(once, twice) == 0),
               "written rows are read as they were");
    return once != NULL;
}
