/* Median and quartiles of repeated measurements (private to exec, but for the type). */
#ifndef KILTER_EXEC_SPREAD_H
#define KILTER_EXEC_SPREAD_H

#include "data/data.h"

/* Of repeats, in seconds. */
typedef struct {
    double median_s, low_s, high_s; /* low, high: quartiles */
} ExecSpread;

/* Sorts `value`; n > 0. */
ExecSpread exec_spread_of(double *value, uint32_t n);

#endif
