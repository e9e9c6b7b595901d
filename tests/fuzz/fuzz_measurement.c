/* Fuzz target: any bytes as measurements (CSV, text or JSON of nccl-tests) are either refused with
 * a message or a list of sound rows that can be written and read again.
 *
 *     CC=clang cmake -B build-fuzz -DKILTER_SANITIZE=ON -DCMAKE_C_FLAGS=-fsanitize=fuzzer-no-link
 *     cmake --build build-fuzz --target fuzz_measurement
 *
 * The same function runs over damaged files in tests/fault/test_measurement_mutations.c. */
#include <math.h>
#include <string.h>

#include "data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert, stays in release builds; the fuzzer reports the abort. */
static void check(bool holds, const char *what)
{
    if (!holds)
        g_error("broken: %s", what);
}

static void check_row(const Measurement *m)
{
    check(m->device && *m->device && m->shape, "texts");
    check((m->op < OP_KINDS) + (m->collective < (Collective)COLLECTIVES_PRICED) +
                  m->send ==
              1,
          "an op, a collective or a send");
    check(m->ranks > 0 && m->repeats > 0 && m->share >= 0 && m->share <= 1, "counts");
    check(isfinite(m->flops) && m->flops >= 0 && isfinite(m->bytes) && m->bytes >= 0,
          "amounts");
    check(isfinite(m->high_s) && m->median_s > 0 && m->low_s <= m->median_s &&
              m->median_s <= m->high_s,
          "times");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) list = measurements_new();
    const bool good = measurements_parse("all_reduce", text, size, list, NULL, &error);
    check(good == !error && good == (list->len > 0), "either rows or an error");
    check(good || (error->code == KILTER_ERROR_INPUT && *error->message), "a message");
    for (uint32_t i = 0; i < list->len; i++)
        check_row(&g_array_index(list, Measurement, i));
    if (!good)
        return 0;
    g_autofree char *written = measurements_write(list, NULL);
    g_autoptr(GArray) again = measurements_new();
    check(measurements_parse("again.csv", written, strlen(written), again, NULL, NULL) &&
              again->len == list->len,
          "written rows can be read");
    return 0;
}
