/* Fuzz target: bytes as a report of Nsight Systems are refused with one line, or make sound
 * measurements. */
#include <glib/gstdio.h>
#include <math.h>
#include <unistd.h>

#include "data/data.h"
#include "tests/fuzz/fuzz.h"

static const char MAGIC[] = "SQLite format 3";

bool fuzz_read(const void *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) list = measurements_new(), tables = measured_tables_new();
    g_autofree char *file =
        g_strdup_printf("%s/kilter-fuzz-nsys-%d.db", g_get_tmp_dir(), (int)getpid());
    if (size < sizeof MAGIC || memcmp(data, MAGIC, sizeof MAGIC) != 0)
        return false;
    fuzz_check(g_file_set_contents_full(file, data, (gssize)size,
                                        G_FILE_SET_CONTENTS_NONE, 0600, NULL),
               "a temporary file");
    const bool good = measurements_read(file, list, tables, &error);
    g_unlink(file);
    fuzz_check(good == !error, "either a report or an error");
    if (!good)
        fuzz_check_refused(error, NULL);
    g_autofree char *written = list->len > 0 ? measurements_write(list, NULL) : NULL;
    fuzz_note("%s", written ? written : "");
    for (guint i = 0; i < list->len; i++) {
        const Measurement *m = &g_array_index(list, Measurement, i);
        fuzz_check(isfinite(m->median_s) && m->median_s > 0 && m->ranks > 0,
                   "a measurement");
        fuzz_check(isfinite(m->flops) && m->flops >= 0 && isfinite(m->bytes) &&
                       m->bytes > 0,
                   "its amounts");
    }
    fuzz_check(!good || tables->len == 1, "a report is one table");
    return good;
}
