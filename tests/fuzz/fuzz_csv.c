/* Fuzz target: any bytes as a CSV file are either refused with a message or rows of as many cells
 * as there are columns, which can be written and read again.
 *
 *     CC=clang cmake -B build-fuzz -DKILTER_SANITIZE=ON -DCMAKE_C_FLAGS=-fsanitize=fuzzer-no-link
 *     cmake --build build-fuzz --target fuzz_csv
 *
 * The same function runs over damaged files in tests/fault/test_measurement_mutations.c. */
#include <string.h>

#include "data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert, stays in release builds; the fuzzer reports the abort. */
static void check(bool holds, const char *what)
{
    if (!holds)
        g_error("broken: %s", what);
}

static void write_line(GString *out, char **cell, uint32_t n)
{
    check(g_strv_length(cell) == n, "as many cells as columns");
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

/* The rows again, or NULL after checking that the refusal says why. */
static char *rewrite(const char *text, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) out = g_string_new(NULL);
    g_autoptr(Csv) csv = csv_parse("any.csv", text, size, &error);
    if (csv)
        write_line(out, csv->column, csv->n_columns);
    const bool good = csv && csv_each(csv, write_row, out, &error);
    check(good == !error, "either rows or an error");
    check(good || (error->code == KILTER_ERROR_INPUT && *error->message), "a message");
    return good ? g_strdup(out->str) : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autofree char *once = rewrite(text, size);
    /* A line of one empty cell is an empty line, which is passed over. */
    if (!once || !strchr(once, ','))
        return 0;
    g_autofree char *twice = rewrite(once, strlen(once));
    check(twice && strcmp(once, twice) == 0, "written rows are read as they were");
    return 0;
}
