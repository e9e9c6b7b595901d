/* The LP of balance.h over classes of equal devices, before any solver sees it.
 *
 * With C classes, column k C + c is the ratio x of each device of class c in segment k. A row is a
 * linear function base + sum value x. The objective is a sum of *pieces*, each the maximum of its
 * rows (the T_i and M_t of balance.h); limits are rows that must not be positive. Nothing is
 * dropped or merged here, so that a row's place says what it is:
 *
 *     one piece per turn   row i C + c                   stage i on class c          (1)
 *     piece term_piece[t]  C rows, or 2 C if from != to  term t: split `from`, `to`  (2)
 *     limits               row first_limit + p C + c     memory point p on class c   (3)
 *                          row first_share + ...         largest shares              (5)
 *
 * A turn of one stage leaves its communication out: the fixed part is a constant, and terms are
 * pieces. The rows of longer turns contain their communication, and the largest share of a segment
 * (or of two) is a column of its own, behind the ratios, which limits keep at least as large as
 * each share. */
#pragma once

#include "sim/sim.h"

/* Devices of a class have the same rate, fitted costs, GPUs, inner link and memory. Classes are
 * ordered by these, fastest first, so that the LP does not depend on the order of the devices. */
typedef struct {
    uint32_t n, n_devices;
    uint32_t *of_device; /* [device] its class */
    uint32_t *device;    /* [class] its first device */
    uint32_t *count;     /* [class] devices in it */
} BalanceClasses;

BalanceClasses *balance_classes(const ClusterView *view);
AUTOPTR(balance_classes_free, BalanceClasses)

#define BALANCE_NONE UINT32_MAX

typedef struct {
    uint32_t column;
    double value;
} BalanceEntry;

typedef struct {
    double base;
    uint32_t first, n; /* entries */
} BalanceRow;

typedef struct {
    uint32_t first, n; /* rows */
    uint32_t segment;  /* one that it depends on, 0 if none */
    /* its rows have at most one entry each: so are all rows of a stage with one segment */
    bool flat;
} BalancePiece;

/* A row of at most one entry, laid out for the cutting planes: base + value x[column]. */
typedef struct {
    double base, value;
    uint32_t column;
} BalanceFlat;

/* A column from BalanceRows.n_ratios on: the largest share of two segments, which may be one. */
typedef struct {
    uint32_t from, to;
    uint32_t first; /* the first of its rows (5): C, or 2 C if from != to */
} BalanceShare;

typedef struct {
    uint32_t n_segments, n_classes;
    uint32_t n_ratios, n_columns; /* n_segments * n_classes; plus the largest shares */
    GArray *share;                /* BalanceShare */
    uint32_t *term_piece;         /* [term]; BALANCE_NONE for terms inside of turns */
    /* [term]: index in `share` of a term inside of a turn, or BALANCE_NONE */
    uint32_t *term_share;
    /* [column] devices of its class, as in (4): sum count x = 1; 0 for shares */
    double *count;
    bool *idle;           /* [column] x is 0: the class has rate 0 */
    double *start;        /* [column] ratio proportional to speed, > 0 unless idle */
    GArray *entry;        /* BalanceEntry */
    GArray *row;          /* BalanceRow */
    GArray *piece;        /* BalancePiece */
    BalanceFlat *flat;    /* [row], set for flat pieces */
    uint32_t first_limit; /* rows from here on are limits, */
    uint32_t first_share; /* and from here on (5) */
} BalanceRows;

/* Rows in seconds (pieces) and bytes (limits). memory may be NULL. */
BalanceRows *balance_rows(const SimLinear *linear, const SimMemory *memory,
                          const ClusterView *view, const BalanceClasses *classes,
                          uint32_t n_segments);

/* One piece, the largest limit (3) of `rows` (bytes); no limits. */
BalanceRows *balance_rows_violation(const BalanceRows *rows);

/* Multiplies the pieces' rows by `pieces`, the limits (3) by `limits`. */
void balance_rows_scale(BalanceRows *rows, double pieces, double limits);

double balance_row_at(const BalanceRows *rows, uint32_t row, const double *x);

/* Value of a piece at x, and the first row that attains it. */
double balance_piece_at(const BalanceRows *rows, uint32_t piece, const double *x,
                        uint32_t *row);

AUTOPTR(balance_rows_free, BalanceRows)
