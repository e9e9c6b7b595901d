/* Pieces of JSON that several outputs share. */
#ifndef KILTER_EXPERIMENTS_JSON_VALUES_H
#define KILTER_EXPERIMENTS_JSON_VALUES_H

#include <jansson.h>

#include "data/data.h"

/* A real, or null where JSON has no number for it (infinite, NaN). */
json_t *json_number(double value);

/* [segment][device] */
json_t *json_ratios(const Plan *plan);

/* Writes without line breaks, keys sorted, and releases the value. Caller frees with g_free. */
char *json_canonical(json_t *value);

#endif
