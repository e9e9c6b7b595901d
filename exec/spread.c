/* Median and quartiles. */
#include "exec/spread.h"

#include "data/base/units.h"

#include <stdlib.h>

ExecSpread exec_spread_of(double *value, uint32_t n)
{
    g_assert(n > 0);
    qsort(value, n, sizeof *value, number_compare);
    return (ExecSpread){.median_s =
                            n % 2 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2,
                        .low_s = value[n / 4],
                        .high_s = value[n - 1 - n / 4]};
}
