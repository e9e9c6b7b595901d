/* Results as a table of texts: one row per configuration, the axes of its grid as columns. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "data/base/free.h"

typedef struct Store Store; /* data/store/store.h */

typedef struct {
    GPtrArray *column; /* names */
    GPtrArray *row;    /* GPtrArray of texts by column, NULL for none; it may be short */
} Frame;

/* All results of an experiment (NULL: of all experiments), in the order of their grids. The columns
 * are those of the view `result` without its long texts, then one column per axis.
 * KILTER_ERROR_INPUT: there is no result of that experiment. */
Frame *frame_read(Store *store, const char *experiment, GError **error);
AUTOPTR(frame_free, Frame)

/* The number of rows that have the words of an earlier row (experiment, model, cluster, planner,
 * seed, axes, ...) and another hash: a file that they name, or an option, was different when
 * they were asked. */
uint32_t frame_n_repeated(const Frame *frame);

/* The place of a column; the number of columns: there is none of that name. */
uint32_t frame_column(const Frame *frame, const char *name);

/* The number of a key among those known; a new key gets the next one. */
uint32_t frame_number_of(GHashTable *known, const char *key, bool *is_new);
/* The text at a place, or NULL. */
const char *frame_at(const Frame *frame, uint32_t row, uint32_t column);

/* How several results at one place of a pivot become one. */
typedef enum { PIVOT_MIN, PIVOT_MAX, PIVOT_MEAN, PIVOT_COUNT } PivotReduce;

/* The best of a column's numbers: the most of throughput and MFU, the least of others. */
PivotReduce frame_best(const char *value);

typedef struct {
    const char *rows, *columns,
        *value; /* names of columns; `rows` may be several, by commas */
    PivotReduce reduce;
} PivotSpec;

/* The columns of `rows`, then one column for each value of `columns`; rows and columns are in the
 * order of their first appearance. A place without a number shows the status of its results
 * ("oom"), or nothing. */
Frame *frame_pivot(const Frame *frame, const PivotSpec *spec, GError **error);

typedef enum {
    FRAME_TEXT,
    FRAME_CSV,
    FRAME_CSV_SAFE, /* as CSV, with ' before texts that a spreadsheet would run as formulas */
    FRAME_MARKDOWN,
    FRAME_TEX
} FrameFormat;

/* The table as text. Numbers have four digits, but are exact in CSV (RFC 4180). Caller frees. */
char *frame_write(const Frame *frame, FrameFormat format);
