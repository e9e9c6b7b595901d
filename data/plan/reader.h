/* Helpers of the plan reader (private to data). Functions that return false have set the error:
 * KILTER_ERROR_INPUT, "FILE: KEY[I]: expected ..., got ...". */
#pragma once

#include "data/plan/plan.h"

#include <jansson.h>

typedef struct {
    const char *file;
    json_t *root;
    const Graph *graph;
    /* what is said about every repetition is looked up once: an op or tensor and its distance in
     * layers -> the id + 1 of its counterpart */
    GHashTable *shifted;
    Plan *plan;
    GError **error;
} Reader;

/* --- messages about item `i` of the value of `key`, or the value itself --- */

#define READER_WHOLE SIZE_MAX

bool reader_fail(const Reader *r, const char *key, size_t i, const char *format, ...)
    G_GNUC_PRINTF(4, 5);
bool reader_expected(const Reader *r, const char *key, size_t i, const char *what,
                     const json_t *value);

/* --- values --- */

/* Whether `value` is an integer from 0 to `max`. Only numbers above 2^63 - 1 are strings. */
bool reader_integer_value(const json_t *value, uint64_t max, uint64_t *result);

/* The value of a key of the root. */
bool reader_integer(const Reader *r, const char *key, uint64_t max, uint64_t *result);
bool reader_bool(const Reader *r, const char *key, bool *result);
bool reader_text(const Reader *r, const char *key, char **result);
bool reader_array(const Reader *r, const char *key, json_t **array);
/* Reads a number that is not negative; with `may_be_infinite`, null stands for infinity. */
bool reader_seconds(const Reader *r, const char *key, bool may_be_infinite,
                    double *result);

/* --- parts --- */

/* The first function makes plan->program with its groups and microbatches; the second reads and
 * checks its instructions (data/plan/read_program.c). */
bool reader_groups(const Reader *r);
bool reader_program(const Reader *r);

/* Read and check ratios, segments of ops, and splits (data/plan/read_splits.c). */
bool reader_ratios(const Reader *r);
bool reader_segments(const Reader *r);
bool reader_splits(const Reader *r);
