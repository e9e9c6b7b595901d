/* The tape. */
#include "synth/tag/tape.h"

#include <math.h>
#include <string.h>

#include "data/base/free.h"

typedef enum { GIVEN, PRODUCT, SUM, TANH, LEAKY, ROWS, ATTEND } Kind;

static const double SLOPE = 0.2;

typedef struct {
    Kind kind;
    uint32_t rows, columns;
    TapeValue a, b;
    const uint32_t *index; /* borrowed: row numbers, or the rows where edges end */
    double *value;         /* owned unless it was given */
    double *gradient;      /* owned unless it was given; NULL: not asked for yet */
    double *part;          /* ATTEND: [edge] of the softmax */
    bool given;
} Entry;

struct Tape {
    GArray *entry;
};

static void entry_clear(gpointer data)
{
    Entry *entry = data;
    if (!entry->given) {
        free_each(entry->value, entry->gradient);
    }
    g_free(entry->part);
}

Tape *tape_new(void)
{
    Tape *tape = g_new0(Tape, 1);
    tape->entry = g_array_new(FALSE, FALSE, sizeof(Entry));
    g_array_set_clear_func(tape->entry, entry_clear);
    return tape;
}

FREE_DEFINE(tape_free, Tape, tape, g_array_unref(tape->entry));

static Entry *at(const Tape *tape, TapeValue value)
{
    g_assert(value < tape->entry->len);
    return &g_array_index(tape->entry, Entry, value);
}

const double *tape_value(const Tape *tape, TapeValue value)
{
    return at(tape, value)->value;
}

static TapeValue tape_add(Tape *tape, Entry entry)
{
    if (!entry.given)
        entry.value = g_new0(double, (gsize)entry.rows *entry.columns + 1);
    g_array_append_val(tape->entry, entry);
    return tape->entry->len - 1;
}

/* --- forward --- */

TapeValue tape_input(Tape *tape, uint32_t rows, uint32_t columns, const double *value)
{
    return tape_weights(tape, rows, columns, value, NULL);
}

TapeValue tape_weights(Tape *tape, uint32_t rows, uint32_t columns, const double *value,
                       double *gradient)
{
    return tape_add(tape, (Entry){.kind = GIVEN,
                                  .rows = rows,
                                  .columns = columns,
                                  .value = (double *)value, /* it is only read */
                                  .gradient = gradient,
                                  .given = true});
}

TapeValue tape_product(Tape *tape, TapeValue a, TapeValue b)
{
    const uint32_t rows = at(tape, a)->rows, inner = at(tape, a)->columns,
                   columns = at(tape, b)->columns;
    g_assert(at(tape, b)->rows == inner);
    const TapeValue out = tape_add(
        tape, (Entry){.kind = PRODUCT, .rows = rows, .columns = columns, .a = a, .b = b});
    const double *x = at(tape, a)->value, *y = at(tape, b)->value;
    double *z = at(tape, out)->value;
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t k = 0; k < inner; k++)
            for (uint32_t j = 0; j < columns; j++)
                z[i * columns + j] += x[i * inner + k] * y[k * columns + j];
    return out;
}

TapeValue tape_sum(Tape *tape, TapeValue a, TapeValue b)
{
    const uint32_t rows = at(tape, a)->rows, columns = at(tape, a)->columns;
    const uint32_t b_rows = at(tape, b)->rows;
    g_assert(at(tape, b)->columns == columns && (b_rows == rows || b_rows == 1));
    const TapeValue out = tape_add(
        tape, (Entry){.kind = SUM, .rows = rows, .columns = columns, .a = a, .b = b});
    const double *x = at(tape, a)->value, *y = at(tape, b)->value;
    for (uint32_t i = 0; i < rows * columns; i++)
        at(tape, out)->value[i] = x[i] + y[b_rows == 1 ? i % columns : i];
    return out;
}

static TapeValue map(Tape *tape, Kind kind, TapeValue a)
{
    const uint32_t n = at(tape, a)->rows * at(tape, a)->columns;
    const TapeValue out = tape_add(tape, (Entry){.kind = kind,
                                                 .rows = at(tape, a)->rows,
                                                 .columns = at(tape, a)->columns,
                                                 .a = a});
    const double *x = at(tape, a)->value;
    for (uint32_t i = 0; i < n; i++)
        at(tape, out)->value[i] = kind == TANH ? tanh(x[i])
                                  : x[i] < 0   ? SLOPE * x[i]
                                               : x[i];
    return out;
}

TapeValue tape_tanh(Tape *tape, TapeValue a)
{
    return map(tape, TANH, a);
}

TapeValue tape_leaky(Tape *tape, TapeValue a)
{
    return map(tape, LEAKY, a);
}

TapeValue tape_rows(Tape *tape, TapeValue a, uint32_t n, const uint32_t *row)
{
    const uint32_t columns = at(tape, a)->columns;
    const TapeValue out = tape_add(
        tape, (Entry){.kind = ROWS, .rows = n, .columns = columns, .a = a, .index = row});
    for (uint32_t i = 0; i < n; i++) {
        g_assert(row[i] < at(tape, a)->rows);
        memcpy(&at(tape, out)->value[i * columns], &at(tape, a)->value[row[i] * columns],
               columns * sizeof(double));
    }
    return out;
}

TapeValue tape_attend(Tape *tape, TapeValue score, TapeValue value, uint32_t n_rows,
                      const uint32_t *to)
{
    const uint32_t n = at(tape, value)->rows, columns = at(tape, value)->columns;
    g_assert(at(tape, score)->rows == n && at(tape, score)->columns == 1);
    const TapeValue out = tape_add(tape, (Entry){.kind = ATTEND,
                                                 .rows = n_rows,
                                                 .columns = columns,
                                                 .a = score,
                                                 .b = value,
                                                 .index = to,
                                                 .part = g_new(double, n + 1)});
    g_autofree double *most = g_new(double, n_rows + 1);
    g_autofree double *sum = g_new0(double, n_rows + 1);
    const double *s = at(tape, score)->value, *v = at(tape, value)->value;
    double *part = at(tape, out)->part, *z = at(tape, out)->value;
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

/* --- backward --- */

/* The memory for a value's gradient; NULL if no gradient is asked for. */
static double *gradient_of(const Tape *tape, TapeValue value)
{
    Entry *entry = at(tape, value);
    if (!entry->gradient && !entry->given)
        entry->gradient = g_new0(double, (gsize)entry->rows * entry->columns + 1);
    return entry->gradient;
}

static void product_back(const Tape *tape, const Entry *out)
{
    const Entry *a = at(tape, out->a), *b = at(tape, out->b);
    double *da = gradient_of(tape, out->a), *db = gradient_of(tape, out->b);
    for (uint32_t i = 0; i < out->rows; i++)
        for (uint32_t k = 0; k < a->columns; k++)
            for (uint32_t j = 0; j < out->columns; j++) {
                const double d = out->gradient[i * out->columns + j];
                if (da)
                    da[i * a->columns + k] += d * b->value[k * out->columns + j];
                if (db)
                    db[k * out->columns + j] += d * a->value[i * a->columns + k];
            }
}

static void sum_back(const Tape *tape, const Entry *out)
{
    double *da = gradient_of(tape, out->a), *db = gradient_of(tape, out->b);
    const bool one = at(tape, out->b)->rows == 1;
    for (uint32_t i = 0; i < out->rows * out->columns; i++) {
        if (da)
            da[i] += out->gradient[i];
        if (db)
            db[one ? i % out->columns : i] += out->gradient[i];
    }
}

static void map_back(const Tape *tape, const Entry *out)
{
    double *da = gradient_of(tape, out->a);
    for (uint32_t i = 0; da && i < out->rows * out->columns; i++) {
        const double y = out->value[i];
        const double slope = out->kind == TANH ? 1 - y * y : y < 0 ? SLOPE : 1;
        da[i] += slope * out->gradient[i];
    }
}

static void rows_back(const Tape *tape, const Entry *out)
{
    double *da = gradient_of(tape, out->a);
    for (uint32_t i = 0; da && i < out->rows; i++)
        for (uint32_t j = 0; j < out->columns; j++)
            da[out->index[i] * out->columns + j] += out->gradient[i * out->columns + j];
}

static void attend_back(const Tape *tape, const Entry *out)
{
    const Entry *value = at(tape, out->b);
    double *ds = gradient_of(tape, out->a), *dv = gradient_of(tape, out->b);
    const uint32_t n = value->rows, columns = out->columns;
    g_autofree double *gain = g_new0(double, n + 1);
    g_autofree double *mean = g_new0(double, out->rows + 1);
    for (uint32_t e = 0; e < n; e++) {
        const double *d = &out->gradient[out->index[e] * columns];
        for (uint32_t j = 0; j < columns; j++) {
            gain[e] += d[j] * value->value[e * columns + j];
            if (dv)
                dv[e * columns + j] += out->part[e] * d[j];
        }
        mean[out->index[e]] += out->part[e] * gain[e];
    }
    for (uint32_t e = 0; ds && e < n; e++)
        ds[e] += out->part[e] * (gain[e] - mean[out->index[e]]);
}

void tape_back(Tape *tape, TapeValue value, const double *gradient)
{
    double *d = gradient_of(tape, value);
    g_assert(d);
    for (uint32_t i = 0; i < at(tape, value)->rows * at(tape, value)->columns; i++)
        d[i] += gradient[i];
    for (TapeValue k = value + 1; k-- > 0;) {
        const Entry *out = at(tape, k);
        if (out->kind == GIVEN || !out->gradient)
            continue;
        if (out->kind == PRODUCT)
            product_back(tape, out);
        else if (out->kind == SUM)
            sum_back(tape, out);
        else if (out->kind == ROWS)
            rows_back(tape, out);
        else if (out->kind == ATTEND)
            attend_back(tape, out);
        else
            map_back(tape, out);
    }
}
