/* A stored result by its hash: what was asked, what came out, and the same question once more. */
#ifndef KILTER_EXPERIMENTS_SWEEP_STORED_H
#define KILTER_EXPERIMENTS_SWEEP_STORED_H

#include <jansson.h>

#include "experiments/sweep/configuration.h"

/* The row whose hash begins with `prefix`, hex, all columns of the view `result` and the run that wrote it, with the names of
 * all "experiments" that asked it. KILTER_ERROR_INPUT: there is none, or there are several. The caller releases it. */
json_t *stored_find(Store *store, const char *prefix, GError **error);

/* Asks its question again and compares all but times of search: {"same": ..., "same_question": ..., "differences": [{"column",
 * "stored", "now"}]}. `set`: files that it was made with, as "key=FILE", which the store does not have. KILTER_ERROR_INPUT: it
 * is no plan of a model, or a file is needed. */
json_t *stored_rerun(const json_t *row, char **set, GError **error);

#endif
