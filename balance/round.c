#include "balance/balance.h"

void balance_round(const double *ratio, uint32_t n_devices, uint32_t units,
                   uint32_t *count)
{
    split_round(ratio, n_devices, units, count);
}
