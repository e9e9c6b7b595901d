/* Fuzz target: bytes as a store are refused with one line, or its rows can be read. */
#include <glib/gstdio.h>
#include <unistd.h>

#include "data/data.h"
#include "tests/fuzz/fuzz.h"

static void count(uint32_t n, char **value, char **column, void *rows)
{
    (void)n, (void)value, (void)column;
    ++*(uint32_t *)rows;
}

bool fuzz_read(const void *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *file =
        g_strdup_printf("%s/kilter-fuzz-%d.db", g_get_tmp_dir(), (int)getpid());
    uint32_t rows = 0;
    bool good = false;
    fuzz_check(g_file_set_contents_full(file, data, (gssize)size,
                                        G_FILE_SET_CONTENTS_NONE, 0600, NULL),
               "a temporary file");
    {
        g_autoptr(Store) store = store_open_read(file, &error);
        fuzz_check(!store == !!error, "either a store or an error");
        good = store && store_query(store, "SELECT * FROM result", count, &rows, &error);
        fuzz_check(good == !error, "either rows or an error");
    }
    if (!good)
        fuzz_check(error->domain == KILTER_ERROR && *error->message, "it says why");
    g_unlink(file);
    return good;
}
