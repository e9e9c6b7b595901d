/* Fuzz target: bytes as a store are refused with one line, or its rows can be read. Rows are sealed, so a damaged store
 * that is accepted holds what a seed holds. */
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "data/data.h"
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
    enum { SEEDS = 2 };
    static char *known[SEEDS];
    for (uint32_t i = 0; i < SEEDS; i++) {
        if (!known[i])
            known[i] = g_strdup(rows);
        if (strcmp(rows, known[i]) == 0)
            return;
    }
    fuzz_check(false, "what is accepted is what was written");
}

bool fuzz_read(const void *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *file =
        g_strdup_printf("%s/kilter-fuzz-%d.db", g_get_tmp_dir(), (int)getpid());
    g_autoptr(GString) rows = g_string_new(NULL);
    bool good = false;
    fuzz_check(g_file_set_contents_full(file, data, (gssize)size,
                                        G_FILE_SET_CONTENTS_NONE, 0600, NULL),
               "a temporary file");
    {
        g_autoptr(Store) store = store_open_read(file, &error);
        fuzz_check(!store == !!error, "either a store or an error");
        good = store && store_query(store, "SELECT * FROM result ORDER BY ordinal",
                                    add_row, rows, &error);
        fuzz_check(good == !error, "either rows or an error");
    }
    if (good)
        check_rows(rows->str);
    else
        fuzz_check(error->domain == KILTER_ERROR && *error->message, "it says why");
    g_unlink(file);
    return good;
}
