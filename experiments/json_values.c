/* Numbers and lists as JSON. */
#include "experiments/json_values.h"

#include <math.h>
#include <stdlib.h>

json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_ratios(const Plan *plan)
{
    json_t *rows = json_array();
    for (uint32_t k = 0; k < plan->n_segments; k++) {
        json_t *row = json_array();
        for (uint32_t j = 0; j < plan->n_devices; j++)
            json_array_append_new(row, json_number(plan->ratio[k * plan->n_devices + j]));
        json_array_append_new(rows, row);
    }
    return rows;
}

char *json_canonical(json_t *value)
{
    char *text = json_dumps(value, JSON_SORT_KEYS | JSON_COMPACT);
    g_assert(text); /* only a value that was not made has no text */
    char *copy = g_strdup(text);
    free(text);
    json_decref(value);
    return copy;
}
