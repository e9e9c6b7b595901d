/* Fuzz target: bytes as a store are refused with one line, or its rows can be read. Rows are
 * sealed, so a damaged store that is accepted holds what a seed holds. Opened for writing it is
 * accepted or refused alike; what is refused keeps its bytes, and what is accepted keeps its
 * rows. */
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "data/data.h"
#include "data/store/store.h"
#include "tests/fuzz/fuzz.h"

static void add_row(uint32_t n, char **value, char **column, void *rows)
{
    for (uint32_t i = 0; i < n; i++)
        g_string_append_printf(rows, "%s=%s%c", column[i], value[i] ? value[i] : "NULL",
                               i + 1 < n ? ',' : '\n');
}

/* The seeds come first: each has contents of its own. */
static void check_rows(const char *rows)
{
    enum { SEEDS = 4 };
    static char *known[SEEDS];
    for (uint32_t i = 0; i < SEEDS; i++) {
        if (!known[i])
            known[i] = g_strdup(rows);
        if (strcmp(rows, known[i]) == 0)
            return;
    }
    fuzz_check(false, "what is accepted is what was written");
}

/* All rows of a store; NULL: it is refused. Closes the store. */
static char *rows_of(Store *opened, GError **error)
{
    g_autoptr(Store) store = opened;
    g_autoptr(GString) rows = g_string_new(NULL);
    const bool good = store && store_query(store, "SELECT * FROM result ORDER BY ordinal",
                                           add_row, rows, error);
    return good ? g_strdup(rows->str) : NULL;
}

/* Opening for writing finds the rows that reading gave (NULL: none). */
static void check_writing(const char *file, const void *data, size_t size,
                          const char *read)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *rows = rows_of(store_open(file, &error), &error), *bytes = NULL;
    gsize length;
    if (size == 0) { /* a new store */
        fuzz_check(rows && !*rows, "an empty file becomes a store");
        return;
    }
    fuzz_check(!rows == !!error, "either rows or an error");
    fuzz_check(g_strcmp0(rows, read) == 0, "for writing it is taken as for reading");
    fuzz_check(rows || (g_file_get_contents(file, &bytes, &length, NULL) &&
                        length == size && memcmp(bytes, data, size) == 0),
               "what is refused is left as it is");
    g_autofree char *again = rows ? rows_of(store_open_read(file, NULL), NULL) : NULL;
    fuzz_check(g_strcmp0(rows, again) == 0, "what was opened for writing is read");
}

bool fuzz_read(const void *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *file =
        g_strdup_printf("%s/kilter-fuzz-%d.db", g_get_tmp_dir(), (int)getpid());
    fuzz_check(g_file_set_contents_full(file, data, (gssize)size,
                                        G_FILE_SET_CONTENTS_NONE, 0600, NULL),
               "a temporary file");
    g_autofree char *rows = rows_of(store_open_read(file, &error), &error);
    fuzz_check(!rows == !!error, "either rows or an error");
    if (rows)
        check_rows(rows);
    else
        fuzz_check(error->domain == KILTER_ERROR && *error->message, "it says why");
    check_writing(file, data, size, rows);
    g_unlink(file);
    return rows != NULL;
}
