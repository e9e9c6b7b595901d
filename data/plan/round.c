/* Rounding ratios to whole units. */
#include "data/base/assert.h"
#include "data/plan/plan.h"

#include <math.h>

/* Rounding errors closer than this count as equal. */
#define TIE 1e-9

/* The growth of |count - exact| when `step` units are added. */
static double growth(double exact, uint32_t count, int step)
{
    KILTER_ASSERT(step == 1 || step == -1);
    return fabs((double)count + step - exact) - fabs((double)count - exact);
}

/* The invariant of a rounding: no unit is lost or made. */
static void walk_counts(const uint32_t *count, uint32_t n_devices, uint32_t units)
{
    uint64_t total = 0;
    for (uint32_t j = 0; j < n_devices; j++) {
        g_assert(count[j] <= units);
        total += count[j];
    }
    g_assert(total == units);
}

void split_round(const double *ratio, uint32_t n_devices, uint32_t units, uint32_t *count)
{
    g_assert(n_devices > 0);
    int64_t missing = units;
    for (uint32_t j = 0; j < n_devices; j++) {
        count[j] = (uint32_t)floor(ratio[j] * units + 0.5 + TIE);
        missing -= count[j];
    }
    while (missing != 0) {
        int step = missing > 0 ? 1 : -1;
        double least = INFINITY;
        for (uint32_t j = 0; j < n_devices; j++)
            if (step > 0 || count[j] > 0)
                least = fmin(least, growth(ratio[j] * units, count[j], step));
        for (uint32_t j = 0; j < n_devices && missing != 0; j++)
            if ((step > 0 || count[j] > 0) &&
                growth(ratio[j] * units, count[j], step) <= least + TIE) {
                count[j] = (uint32_t)((int64_t)count[j] + step);
                missing -= step;
            }
    }
    KILTER_WALK(walk_counts(count, n_devices, units));
}
