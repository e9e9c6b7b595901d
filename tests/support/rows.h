/* Rows of a CSV file of measured data, for tests. */
#ifndef KILTER_TESTS_SUPPORT_ROWS_H
#define KILTER_TESTS_SUPPORT_ROWS_H

#include "data/data.h"
#include "tests/test.h"

static inline void test_rows(const char *path,
                             bool (*take)(const Csv *csv, void *data, GError **error),
                             void *data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Csv) csv = csv_read(path, &error);
    assert_no_error(error);
    csv_each(csv, take, data, &error);
    assert_no_error(error);
}

/* The number in a cell. */
static inline double test_number(const Csv *csv, const char *column)
{
    g_autoptr(GError) error = NULL;
    double value = 0;
    csv_number(csv, column, -G_MAXDOUBLE, G_MAXDOUBLE, &value, &error);
    assert_no_error(error);
    return value;
}

static inline bool test_is(const Csv *csv, const char *column, const char *text)
{
    return strcmp(csv_text(csv, column), text) == 0;
}

#endif
