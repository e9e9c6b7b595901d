/* Fuzz target: any bytes as measurements (CSV, text or JSON of nccl-tests) are either refused with
 * a message or a list of sound rows that can be written and read again. */
#include <math.h>
#include <string.h>

#include "data/data.h"
#include "tests/fuzz/fuzz.h"

static void check_row(const Measurement *m)
{
    fuzz_check(m->device && *m->device && m->shape, "texts");
    fuzz_check((m->op < OP_KINDS) + (m->collective < (Collective)COLLECTIVES_PRICED) +
                       m->send ==
                   1,
               "an op, a collective or a send");
    fuzz_check(m->ranks > 0 && m->repeats > 0 && m->share >= 0 && m->share <= 1,
               "counts");
    fuzz_check(isfinite(m->flops) && m->flops >= 0 && isfinite(m->bytes) && m->bytes >= 0,
               "amounts");
    fuzz_check(isfinite(m->high_s) && m->median_s > 0 && m->low_s <= m->median_s &&
                   m->median_s <= m->high_s,
               "times");
}

bool fuzz_read(const void *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) list = measurements_new();
    const bool good = measurements_parse("all_reduce", text, size, list, NULL, &error);
    fuzz_check(good == !error && good == (list->len > 0), "either rows or an error");
    for (uint32_t i = 0; i < list->len; i++)
        check_row(&g_array_index(list, Measurement, i));
    if (!good) {
        fuzz_check_refused(error, "all_reduce");
        return false;
    }
    g_autofree char *written = measurements_write(list, NULL);
    fuzz_note("%s", written);
    g_autoptr(GArray) again = measurements_new();
    fuzz_check(
        measurements_parse("again.csv", written, strlen(written), again, NULL, NULL) &&
            again->len == list->len,
        "written rows can be read");
    return true;
}
