/* Fuzz target: bytes as a profiler's trace are refused with one line, or make sound
 * measurements. */
#include <math.h>

#include "data/data.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const void *data, size_t size)
{
    int memory;
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) list = measurements_new(), tables = measured_tables_new();
    g_autofree char *file = fuzz_file_open(data, size, &memory);
    KinetoFacts facts = {0};
    const bool good = kineto_read(file, list, tables, &facts, &error);
    fuzz_file_close(memory);
    fuzz_check(good == !error, "either a trace or an error");
    if (!good)
        fuzz_check_refused(error, file);
    g_autofree char *written = list->len > 0 ? measurements_write(list, NULL) : NULL;
    fuzz_note("%s", written ? written : "");
    for (guint i = 0; i < list->len; i++) {
        const Measurement *m = &g_array_index(list, Measurement, i);
        fuzz_check(isfinite(m->median_s) && m->median_s > 0 && m->ranks > 0,
                   "a measurement");
        fuzz_check(isfinite(m->flops) && m->flops >= 0 && isfinite(m->bytes) &&
                       m->bytes >= 0,
                   "its amounts");
    }
    fuzz_check(!good || facts.kernels <= facts.events, "kernels are events");
    kineto_facts_clear(&facts);
    return good;
}
