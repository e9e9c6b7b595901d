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
 * The first line names the columns. Without a comma in it, cells end with semicolons, and numbers
 * may have decimal commas, as spreadsheets write them in much of Europe, or with tabs. Empty lines
 * and lines that begin with # are skipped. A cell in double quotes may hold commas, and "" for a
 * quote, but no line break; spaces around a cell do not count. Each line has as many cells as there
 * are columns.
 *
 * Errors are KILTER_ERROR_INPUT and read FILE:LINE: COLUMN: what was expected. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "data/base/free.h"

typedef struct {
    char *file;    /* the file's name in messages */
    uint32_t line; /* line of `cell`, counted from 1 */
    uint32_t n_columns;
    char **column; /* distinct names; NULL after the last */
    char **cell;   /* cells of the current line [n_columns]; NULL between lines */
    char *text;    /* the whole file */
    char *rest;    /* the part of the text that is not read yet */
    char separator;
} Csv;

/* Reads the first line. csv_parse reads `text`, which ends in '\0' after `length` bytes. */
Csv *csv_read(const char *file, GError **error);
Csv *csv_parse(const char *file, const char *text, size_t length, GError **error);
AUTOPTR(csv_free, Csv)

/* Fails unless the file has all `required` columns, and, unless `optional` is NULL, if it has a
 * column that is in neither list. Both lists end with NULL. */
bool csv_expect(const Csv *csv, const char *const *required, const char *const *optional,
                GError **error);

/* Calls take for each of the other lines, until one cannot be read or take fails. */
bool csv_each(Csv *csv, bool (*take)(const Csv *csv, void *data, GError **error),
              void *data, GError **error);

bool csv_has(const Csv *csv, const char *column);

/* The current line's cell in a column; "" if there is no such column. */
const char *csv_text(const Csv *csv, const char *column);
/* The current line's cell as a number, or as an integer, from `low` to `high`. */
bool csv_number(const Csv *csv, const char *column, double low, double high,
                double *value, GError **error);
bool csv_count(const Csv *csv, const char *column, uint32_t low, uint32_t high,
               uint32_t *value, GError **error);

/* Fails with a message about the current line, and about a column unless it is NULL. */
bool csv_fail(const Csv *csv, const char *column, GError **error, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* Appends a cell without line breaks, in quotes if it needs them. */
void csv_append(GString *out, const char *cell);
