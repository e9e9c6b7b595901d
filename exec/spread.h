/* Median and quartiles of repeated measurements (the function is private to exec). */
#pragma once

#include <glib.h>
#include <stdint.h>

/* The spread of repeated times, in seconds. */
typedef struct {
    double median_s, low_s, high_s; /* low, high: quartiles */
} ExecSpread;

/* The spread of value [n], n > 0; sorts `value`. */
ExecSpread exec_spread_of(double *value, uint32_t n);
