/* A stored result by its hash: its question, its answer, and asking again. */
#pragma once

#include <jansson.h>

#include "data/store/store.h"
#include "experiments/sweep/configuration.h"

/* Whether the file begins as an SQLite database does. */
bool stored_is_file(const char *file);

/* The row whose hash begins with the hex digits `prefix`: all columns of the view `result`, the run
 * that wrote it, and the names of all "experiments" that asked for it. KILTER_ERROR_INPUT: there is
 * none, or there are several. The caller releases it. */
json_t *stored_find(Store *store, const char *prefix, GError **error);

/* Asks the row's question again and compares all columns but the times of search: {"same": ...,
 * "same_question": ..., "differences": [{"column", "stored", "now"}]}. `set`: the files that the
 * row was made with, as "key=FILE", since the store does not hold them. KILTER_ERROR_INPUT: the row
 * is not the plan of a model, or a file is missing. */
json_t *stored_rerun(const json_t *row, char **set, GError **error);
