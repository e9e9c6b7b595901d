/* The tape. */
#include "synth/tag/tape.h"

#include <math.h>
#include <string.h>

#include "data/base/free.h"

struct Tape {
    GArray *entry;
};

static void entry_clear(gpointer data)
{
    TapeEntry *entry = data;
    if (entry->kind != TAPE_GIVEN)
        g_free(entry->value);
    g_free(entry->part);
}

Tape *tape_new(void)
{
    Tape *tape = g_new0(Tape, 1);
    tape->entry = array_owning(TapeEntry, entry_clear);
    return tape;
}

FREE_DEFINE(tape_free, Tape, tape, g_array_unref(tape->entry));

TapeEntry *tape_entry(const Tape *tape, TapeValue value)
{
    g_assert(value < tape->entry->len);
    return &g_array_index(tape->entry, TapeEntry, value);
}

static TapeValue tape_add(Tape *tape, TapeEntry entry)
{
    if (entry.kind != TAPE_GIVEN)
        entry.value = g_new0(double, (gsize)entry.rows *entry.columns + 1);
    g_array_append_val(tape->entry, entry);
    return tape->entry->len - 1;
}

/* A value that is computed of a and b. */
static TapeValue tape_computed(Tape *tape, TapeKind kind, uint32_t rows, uint32_t columns,
                               TapeValue a, TapeValue b)
{
    return tape_add(tape, (TapeEntry){kind, rows, columns, a, b, NULL, NULL, NULL});
}

/* --- forward --- */

TapeValue tape_input(Tape *tape, uint32_t rows, uint32_t columns, const double *value)
{
    /* it is only read */
    return tape_add(
        tape, (TapeEntry){TAPE_GIVEN, rows, columns, 0, 0, NULL, (double *)value, NULL});
}

TapeValue tape_product(Tape *tape, TapeValue a, TapeValue b)
{
    const uint32_t rows = tape_entry(tape, a)->rows, inner = tape_entry(tape, a)->columns,
                   columns = tape_entry(tape, b)->columns;
    g_assert(tape_entry(tape, b)->rows == inner);
    const TapeValue out = tape_computed(tape, TAPE_PRODUCT, rows, columns, a, b);
    const double *x = tape_entry(tape, a)->value, *y = tape_entry(tape, b)->value;
    double *restrict z = tape_entry(tape, out)->value;
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t k = 0; k < inner; k++)
            for (uint32_t j = 0; j < columns; j++)
                z[i * columns + j] += x[i * inner + k] * y[k * columns + j];
    return out;
}

TapeValue tape_sum(Tape *tape, TapeValue a, TapeValue b)
{
    const uint32_t rows = tape_entry(tape, a)->rows,
                   columns = tape_entry(tape, a)->columns;
    const uint32_t b_rows = tape_entry(tape, b)->rows;
    g_assert(tape_entry(tape, b)->columns == columns && (b_rows == rows || b_rows == 1));
    const TapeValue out = tape_computed(tape, TAPE_SUM, rows, columns, a, b);
    const double *x = tape_entry(tape, a)->value, *y = tape_entry(tape, b)->value;
    double *restrict z = tape_entry(tape, out)->value;
    for (uint32_t i = 0; i < rows * columns; i++)
        z[i] = x[i] + y[b_rows == 1 ? i % columns : i];
    return out;
}

static TapeValue map(Tape *tape, TapeKind kind, TapeValue a)
{
    const uint32_t rows = tape_entry(tape, a)->rows,
                   columns = tape_entry(tape, a)->columns;
    const TapeValue out = tape_computed(tape, kind, rows, columns, a, 0);
    const double *x = tape_entry(tape, a)->value;
    double *restrict z = tape_entry(tape, out)->value;
    for (uint32_t i = 0; i < rows * columns; i++)
        z[i] = kind == TAPE_TANH ? tanh(x[i]) : x[i] < 0 ? TAPE_SLOPE * x[i] : x[i];
    return out;
}

TapeValue tape_tanh(Tape *tape, TapeValue a)
{
    return map(tape, TAPE_TANH, a);
}

TapeValue tape_leaky(Tape *tape, TapeValue a)
{
    return map(tape, TAPE_LEAKY, a);
}

TapeValue tape_rows(Tape *tape, TapeValue a, uint32_t n, const uint32_t *row)
{
    const uint32_t columns = tape_entry(tape, a)->columns;
    const TapeValue out = tape_computed(tape, TAPE_ROWS, n, columns, a, 0);
    tape_entry(tape, out)->index = row;
    for (uint32_t i = 0; i < n; i++) {
        g_assert(row[i] < tape_entry(tape, a)->rows);
        memcpy(&tape_entry(tape, out)->value[i * columns],
               &tape_entry(tape, a)->value[row[i] * columns], columns * sizeof(double));
    }
    return out;
}

TapeValue tape_attend(Tape *tape, TapeValue score, TapeValue value, uint32_t n_rows,
                      const uint32_t *to)
{
    const uint32_t n = tape_entry(tape, value)->rows,
                   columns = tape_entry(tape, value)->columns;
    g_assert(tape_entry(tape, score)->rows == n && tape_entry(tape, score)->columns == 1);
    const TapeValue out = tape_computed(tape, TAPE_ATTEND, n_rows, columns, score, value);
    tape_entry(tape, out)->index = to;
    tape_entry(tape, out)->part = g_new(double, n + 1);
    g_autofree double *most = g_new(double, n_rows + 1);
    g_autofree double *sum = g_new0(double, n_rows + 1);
    const double *s = tape_entry(tape, score)->value, *v = tape_entry(tape, value)->value;
    double *part = tape_entry(tape, out)->part, *z = tape_entry(tape, out)->value;
    for (uint32_t i = 0; i < n_rows; i++)
        most[i] = -INFINITY;
    for (uint32_t e = 0; e < n; e++)
        most[to[e]] = fmax(most[to[e]], s[e]);
    for (uint32_t e = 0; e < n; e++)
        sum[to[e]] += part[e] = exp(s[e] - most[to[e]]);
    for (uint32_t e = 0; e < n; e++) {
        part[e] /= sum[to[e]];
        for (uint32_t j = 0; j < columns; j++)
            z[to[e] * columns + j] += part[e] * v[e * columns + j];
    }
    return out;
}
