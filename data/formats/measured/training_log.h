/* Logs of training: how long an iteration took, by what frameworks print. */
#pragma once

#include <stdbool.h>

/* `seconds` are those of an iteration; the last is the largest peak of memory. */
typedef enum {
    LOG_SECONDS,
    LOG_TOKENS_PER_S,
    LOG_TOKENS_PER_S_PER_GPU,
    LOG_SAMPLES_PER_S,
    LOG_PEAK_BYTES,
    LOG_QUANTITIES
} LogQuantity;

/* One of the first four, the median of the lines after the first (which has the start), and the
 * peak; NAN: not said. False if there are none of the four. */
bool training_log_parse(const char *text, double value[LOG_QUANTITIES]);
