/* Products, sums and attention over small matrices. Private to synth/tag.
 *
 * A tape keeps the computations in order, from which their gradients follow backwards
 * (tests/support/tag_learning.c); a value is the number of a computation. Matrices are row-major.
 * Sums run in one order, so that the same inputs give the same bits. */
#pragma once

#include <stdint.h>

#include "data/base/free.h"

typedef struct Tape Tape;
typedef uint32_t TapeValue;

typedef enum {
    TAPE_GIVEN,
    TAPE_PRODUCT,
    TAPE_SUM,
    TAPE_TANH,
    TAPE_LEAKY,
    TAPE_ROWS,
    TAPE_ATTEND
} TapeKind;

typedef struct {
    TapeKind kind;
    uint32_t rows, columns;
    TapeValue a, b;
    const uint32_t *index; /* borrowed: row numbers, or the rows where edges end */
    double *value;         /* owned unless it was given */
    double *part;          /* TAPE_ATTEND: [edge] of the softmax */
} TapeEntry;

/* The slope of tape_leaky below 0. */
static const double TAPE_SLOPE = 0.2;

Tape *tape_new(void);
AUTOPTR(tape_free, Tape)

TapeEntry *tape_entry(const Tape *tape, TapeValue value);

/* Borrowed numbers. */
TapeValue tape_input(Tape *tape, uint32_t rows, uint32_t columns, const double *value);

TapeValue tape_product(Tape *tape, TapeValue a, TapeValue b);
/* a + b of equal shape; or b is one row, which is added to each row of a. */
TapeValue tape_sum(Tape *tape, TapeValue a, TapeValue b);
TapeValue tape_tanh(Tape *tape, TapeValue a);
/* x, or x / 5 below 0. */
TapeValue tape_leaky(Tape *tape, TapeValue a);
/* Rows of a by number; row is borrowed. */
TapeValue tape_rows(Tape *tape, TapeValue a, uint32_t n, const uint32_t *row);
/* out[i] = sum over edges e with to[e] = i of softmax(score[e]) value[e], the softmax over those
 * edges; a row without edges is 0. score: [n_edges, 1]; value: [n_edges, d]; to is borrowed. */
TapeValue tape_attend(Tape *tape, TapeValue score, TapeValue value, uint32_t n_rows,
                      const uint32_t *to);
