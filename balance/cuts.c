/* Cutting planes: a master LP of few rows, to which the rows that its solution breaks are added. */
#include "balance/cuts.h"

#include "data/base/free.h"

#include <math.h>
#include <string.h>

/* The search stops when value - bound is below GAP, relative to the value or to the unit of scale.
 * A cut must gain more than the solver's tolerance; else the next solution could be the same. */
#define GAP        1e-11
#define LEAST_GAIN (4 * LP_TOLERANCE)

/* Far above what problems take: it ends a search that rounding errors keep going. */
enum { MAX_ROUNDS = 2000 };

typedef struct {
    uint32_t bundle, lp_row;
    uint32_t point; /* index of its first coordinate in points */
} Cut;

typedef struct {
    uint32_t row, lp_row;
} Limit;

/* Columns of the LP are x / unit: a slow device's ratio is small and its seconds are
 * many, and the unit halves the difference. Bundle k has the pieces of segment k
 * (BalancePiece): more bundles take fewer rounds, but larger LPs and more time. */
typedef struct {
    const BalanceRows *rows;
    Lp *lp;
    uint32_t n_bundles, n_columns; /* n_segments; columns of x */
    uint32_t *theta;               /* [bundle] column of the LP */
    double *unit;                  /* [column] */
    double *z;                     /* [column] the point being visited */
    double *sum;                   /* [bundle] value at z */
    double *base;                  /* [bundle] of the cut at z */
    double *value;                 /* [bundle * n_columns + column] of the cut at z */
    GArray *points;                /* double: visited points one after the other */
    GArray *cut, *limit;
    uint32_t *index;     /* [n_columns + 1] columns of a row being added */
    double *coefficient; /* likewise */
} Master;

/* --- set up --- */

/* sum_c count_c x_kc = 1,  x >= 0      every segment k     (4) */
static void add_simplices(Master *m, const double *start)
{
    const BalanceRows *rows = m->rows;
    g_autofree bool *used = g_new0(bool, rows->n_segments);
    for (guint e = 0; e < rows->entry->len; e++) {
        uint32_t column = g_array_index(rows->entry, BalanceEntry, e).column;
        if (column < rows->n_ratios)
            used[column / rows->n_classes] = true;
    }
    values_at (bool, idle, column, rows->idle, rows->n_ratios) {
        m->unit[column] = idle ? 1 : sqrt(rows->start[column]);
        /* A segment that costs nothing stays as it is. */
        bool fixed = idle || !used[column / rows->n_classes];
        double at = start[column] / m->unit[column];
        lp_column(m->lp, fixed ? at : 0, fixed ? at : INFINITY, 0);
        m->index[column] = column;
        m->coefficient[column] = rows->count[column] * m->unit[column];
    }
    for (uint32_t k = 0; k < rows->n_segments; k++) {
        uint32_t first = k * rows->n_classes;
        if (used[k])
            lp_row(m->lp, 1, 1, rows->n_classes, m->index + first,
                   m->coefficient + first);
    }
    for (uint32_t column = rows->n_ratios; column < m->n_columns; column++) {
        m->unit[column] = 1;
        lp_column(m->lp, 0, INFINITY, 0);
    }
}

static bool master_open(Master *m, const BalanceRows *rows, const double *start,
                        GError **error)
{
    *m = (Master){.rows = rows,
                  .lp = lp_new(error),
                  .n_bundles = rows->n_segments,
                  .n_columns = rows->n_columns};
    if (!m->lp)
        return false;
    m->theta = g_new(uint32_t, m->n_bundles);
    m->z = g_memdup2(start, m->n_columns * sizeof *start);
    m->sum = g_new(double, m->n_bundles);
    m->base = g_new(double, m->n_bundles);
    m->value = g_new(double, (size_t)m->n_bundles * m->n_columns);
    m->points = g_array_new(FALSE, FALSE, sizeof(double));
    m->cut = g_array_new(FALSE, FALSE, sizeof(Cut));
    m->limit = g_array_new(FALSE, FALSE, sizeof(Limit));
    m->unit = g_new(double, m->n_columns);
    m->index = g_new(uint32_t, m->n_columns + 1);
    m->coefficient = g_new(double, m->n_columns + 1);
    add_simplices(m, start);
    for (uint32_t g = 0; g < m->n_bundles; g++)
        m->theta[g] = lp_column(m->lp, 0, INFINITY, 1);
    return true;
}

static CLEAR_DEFINE(master_close, Master, m, lp_free(m->lp),
                    free_each(m->theta, m->z, m->sum, m->base, m->value),
                    unref_arrays(m->points, m->cut, m->limit),
                    free_each(m->unit, m->index, m->coefficient));

/* --- a round --- */

/* The LP's solution, with the rounding of its arithmetic taken out. */
static void read_point(Master *m)
{
    const BalanceRows *rows = m->rows;
    for (uint32_t k = 0; k < rows->n_segments; k++) {
        double sum = 0;
        for (uint32_t i = k * rows->n_classes; i < (k + 1) * rows->n_classes; i++) {
            m->z[i] = fmax(lp_value(m->lp, i), 0) * m->unit[i];
            sum += m->z[i] * rows->count[i];
        }
        for (uint32_t i = k * rows->n_classes; i < (k + 1) * rows->n_classes; i++)
            m->z[i] /= sum;
    }
    for (uint32_t i = rows->n_ratios; i < m->n_columns; i++)
        m->z[i] = fmax(lp_value(m->lp, i), 0);
}

/* The cuts at z, one per bundle; returns the sum of the pieces. */
static double visit(Master *m)
{
    const BalanceRows *rows = m->rows;
    memset(m->sum, 0, m->n_bundles * sizeof *m->sum);
    memset(m->base, 0, m->n_bundles * sizeof *m->base);
    memset(m->value, 0, (size_t)m->n_bundles * m->n_columns * sizeof *m->value);
    const BalancePiece *piece = (const BalancePiece *)(const void *)rows->piece->data;
    double total = 0;
    for (guint i = 0; i < rows->piece->len; i++) {
        uint32_t r, g = piece[i].segment;
        double largest = balance_piece_at(rows, i, m->z, &r);
        total += largest;
        m->sum[g] += largest;
        if (piece[i].flat) {
            m->base[g] += rows->flat[r].base;
            m->value[(size_t)g * m->n_columns + rows->flat[r].column] +=
                rows->flat[r].value;
            continue;
        }
        const BalanceRow *row = &g_array_index(rows->row, BalanceRow, r);
        m->base[g] += row->base;
        for (uint32_t e = row->first; e < row->first + row->n; e++) {
            const BalanceEntry *entry = &g_array_index(rows->entry, BalanceEntry, e);
            m->value[(size_t)g * m->n_columns + entry->column] += entry->value;
        }
    }
    return total;
}

/* theta_g - sum value x >= base */
static void add_cut(Master *m, uint32_t g)
{
    g_assert(g < m->n_bundles);
    const double *value = &m->value[(size_t)g * m->n_columns];
    uint32_t n = 0;
    for (uint32_t column = 0; column < m->n_columns; column++) {
        if (value[column] != 0) {
            m->index[n] = column;
            m->coefficient[n++] = -value[column] * m->unit[column];
        }
    }
    m->index[n] = m->theta[g];
    m->coefficient[n++] = 1;
    uint32_t lp_row_index =
        lp_row(m->lp, m->base[g], INFINITY, n, m->index, m->coefficient);
    Cut cut = {g, lp_row_index, m->points->len};
    g_array_append_val(m->cut, cut);
}

/* Cuts of bundles that cost more at z than the LP said (`all`: of every one); returns how many. */
static uint32_t add_cuts(Master *m, bool all)
{
    uint32_t added = 0;
    for (uint32_t g = 0; g < m->n_bundles; g++) {
        if (all || m->sum[g] - lp_value(m->lp, m->theta[g]) > LEAST_GAIN) {
            add_cut(m, g);
            added++;
        }
    }
    if (added > 0)
        g_array_append_vals(m->points, m->z, m->n_columns);
    return added;
}

/* limit row <= 0 */
static void add_limit(Master *m, uint32_t r)
{
    g_assert(r >= m->rows->first_limit && r < m->rows->row->len);
    const BalanceRow *row = &g_array_index(m->rows->row, BalanceRow, r);
    for (uint32_t e = 0; e < row->n; e++) {
        const BalanceEntry *entry =
            &g_array_index(m->rows->entry, BalanceEntry, row->first + e);
        m->index[e] = entry->column;
        m->coefficient[e] = entry->value * m->unit[entry->column];
    }
    Limit limit = {
        r, lp_row(m->lp, -INFINITY, -row->base, row->n, m->index, m->coefficient)};
    g_array_append_val(m->limit, limit);
}

/* The limit of each class that z breaks most; returns how many. */
static uint32_t cuts_add_limits(Master *m)
{
    const BalanceRows *rows = m->rows;
    uint32_t added = 0;
    for (uint32_t c = 0; c < rows->n_classes; c++) {
        uint32_t worst = rows->row->len;
        double most = 10 * LP_TOLERANCE;
        for (uint32_t r = rows->first_limit + c; r < rows->row->len;
             r += rows->n_classes) {
            double over = balance_row_at(rows, r, m->z);
            if (over > most) {
                most = over;
                worst = r;
            }
        }
        if (worst < rows->row->len) {
            add_limit(m, worst);
            added++;
        }
    }
    return added;
}

/* --- result --- */

/* Spreads the prices of the cuts over the rows that they sum. */
static void read_prices(const Master *m, double *price)
{
    KILTER_ASSERT(m->n_bundles > 0);
    const BalanceRows *rows = m->rows;
    for (guint r = 0; r < rows->row->len; r++)
        price[r] = 0;
    array_each (const Cut, cut, m->cut) {
        double weight = lp_price(m->lp, cut->lp_row);
        if (weight <= 0)
            continue;
        const double *point = &g_array_index(m->points, double, cut->point);
        for (guint p = 0; p < rows->piece->len; p++) {
            uint32_t r;
            if (g_array_index(rows->piece, BalancePiece, p).segment == cut->bundle) {
                balance_piece_at(rows, p, point, &r);
                price[r] += weight;
            }
        }
    }
    array_each (const Limit, limit, m->limit)
        price[limit->row] += fmax(-lp_price(m->lp, limit->lp_row), 0);
}

static bool is_closed(const BalanceCuts *cuts)
{
    return isfinite(cuts->value) &&
           cuts->value - cuts->bound <= GAP * fmax(1, cuts->value);
}

/* Takes z if no better point is known. */
static void take(const Master *m, double value, BalanceCuts *cuts)
{
    g_assert(isfinite(value));
    if (value < cuts->value) {
        cuts->value = value;
        memcpy(cuts->x, m->z, m->n_columns * sizeof *m->z);
    }
}

/* One LP and a visit to its solution. Sets *done when no more can be gained. */
static LpStatus next_round(Master *m, BalanceCuts *cuts, bool *done, GError **error)
{
    LpStatus status = lp_solve(m->lp, error);
    if (status == LP_UNBOUNDED) {
        kilter_fail(error, KILTER_ERROR_FAILED,
                    "balance: the solver finds no end to a bounded LP");
        return LP_FAILED;
    }
    if (status != LP_OPTIMAL)
        return status;
    cuts->rounds++;
    cuts->rows = lp_rows(m->lp);
    cuts->columns = lp_columns(m->lp);
    cuts->bound = lp_objective(m->lp);
    *done = is_closed(cuts);
    if (*done)
        return status;
    read_point(m);
    double value = visit(m);
    uint32_t broken = cuts_add_limits(m);
    if (broken == 0)
        take(m, value, cuts);
    *done = is_closed(cuts) || broken + add_cuts(m, false) == 0;
    return status;
}

static LpStatus run(Master *m, BalanceCuts *cuts, GError **error)
{
    double value = visit(m);
    cuts->value = INFINITY;
    cuts->rounds = 0;
    if (cuts_add_limits(m) == 0)
        take(m, value, cuts);
    add_cuts(m, true);
    while (cuts->rounds < MAX_ROUNDS) {
        bool done;
        LpStatus status = next_round(m, cuts, &done, error);
        if (status != LP_OPTIMAL)
            return status;
        if (done) {
            read_prices(m, cuts->price);
            return status;
        }
    }
    kilter_fail(error, KILTER_ERROR_FAILED,
                "balance: no ratios proved best after %d rounds", MAX_ROUNDS);
    return LP_FAILED;
}

LpStatus balance_cuts(const BalanceRows *rows, BalanceCuts *cuts, GError **error)
{
    Master m;
    if (!master_open(&m, rows, cuts->x, error))
        return LP_FAILED;
    LpStatus status = run(&m, cuts, error);
    master_close(&m);
    return status;
}
