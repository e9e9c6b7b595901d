/* Fuzz target: any text as a log of training has no time, or one time above 0. */
#include <math.h>

#include "data/data.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const void *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    double value[LOG_QUANTITIES];
    const bool good = training_log_parse(text, value);
    unsigned times = 0;
    for (unsigned k = 0; k < LOG_QUANTITIES; k++) {
        fuzz_check(isnan(value[k]) || (value[k] > 0 && isfinite(value[k])), "a number");
        times += k != LOG_PEAK_BYTES && !isnan(value[k]);
    }
    fuzz_check(times == good, "one time");
    return good;
}
