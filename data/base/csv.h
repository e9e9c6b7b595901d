/* CSV files by the names of their columns.
 *
 *     static bool take(const Csv *csv, void *sum, GError **error)
 *     {
 *         double seconds;
 *         if (!csv_number(csv, "seconds", 0, 1e9, &seconds, error))
 *             return false;
 *         ...
 *     }
 *     g_autoptr(Csv) csv = csv_read(file, error);
 *     return csv && csv_expect(csv, REQUIRED, NULL, error) && csv_each(csv, take, &sum, error);
 *
 * The first line names the columns. Empty lines and lines that begin with # are passed over. A cell
 * in double quotes may hold commas, and "" for a quote, but no line break; spaces around a cell do
 * not count. Each line has as many cells as there are columns.
 *
 * Errors are KILTER_ERROR_INPUT and read FILE:LINE: COLUMN: what was expected. */
#ifndef KILTER_DATA_BASE_CSV_H
#define KILTER_DATA_BASE_CSV_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    char *file;    /* as messages call it */
    uint32_t line; /* that of `cell`, counted from 1 */
    uint32_t n_columns;
    char **column; /* names, each once; NULL after the last one */
    char **cell;   /* of the current line, n_columns of them; NULL between them */
    char *text;    /* the whole file */
    char *rest;    /* of it: what is not read yet */
} Csv;

/* Reads the first line. csv_parse reads `text`, which ends in '\0' after `length` bytes. */
Csv *csv_read(const char *file, GError **error);
Csv *csv_parse(const char *file, const char *text, size_t length, GError **error);
void csv_free(Csv *csv);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Csv, csv_free)

/* Fails unless each of the `required` columns is there; and, unless `optional` is NULL, if another
 * one is that neither list has. Both lists end with NULL. */
bool csv_expect(const Csv *csv, const char *const *required, const char *const *optional,
                GError **error);

/* Calls take for each of the other lines, until one cannot be read or take fails. */
bool csv_each(Csv *csv, bool (*take)(const Csv *csv, void *data, GError **error),
              void *data, GError **error);

bool csv_has(const Csv *csv, const char *column);

/* The current line's cell in a column; "" if there is no such column. */
const char *csv_text(const Csv *csv, const char *column);
/* The cell as a number, or a whole number, from `low` to `high`. */
bool csv_number(const Csv *csv, const char *column, double low, double high,
                double *value, GError **error);
bool csv_count(const Csv *csv, const char *column, uint32_t low, uint32_t high,
               uint32_t *value, GError **error);

/* Fails at the current line, in a column unless it is NULL. */
bool csv_fail(const Csv *csv, const char *column, GError **error, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* Appends a cell of one line, in quotes where it needs them to be read as it is. */
void csv_append(GString *out, const char *cell);

#endif
