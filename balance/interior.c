/* A primal-dual interior point: its start, its steps, its result. */
#include "balance/interior.h"

#include "balance/normal.h"
#include "data/base/free.h"

#include <math.h>
#include <string.h>

/* Stop when the gap is this small, in units of the objective at the start. */
#define GAP 1e-11

/* Each takes off a part of the gap, so that dozens are enough for GAP; cutting planes solve what is
 * not solved then. */
enum { MAX_ITERATIONS = 60 };

/* How a whole step dw, dx, dy, dz changes lengths and gap. */
typedef struct {
    double primal, dual;             /* largest -dw / w or -dx / x, -dy / y or -dz / z */
    double first_p, first_d, second; /* sums of y dw + z dx, w dy + x dz, dy dw + dx dz */
} Step;

/* --- set up --- */

/* Whether a piece has the form seconds * max_c x_c, as all terms of one segment have. */
static bool is_largest_share(const Interior *ip, const double *a, const double *v)
{
    const double largest = most_over(double, c, ip->n, 0, v[c]);
    return !any_of(c, ip->n, a[c] != 0 || (v[c] != largest && !ip->rows->idle[c]));
}

static void read_row(Interior *ip, uint32_t r, double *a, double *v)
{
    KILTER_ASSERT(r < ip->rows->row->len);
    const BalanceRow *row = &g_array_index(ip->rows->row, BalanceRow, r);
    *a = row->base;
    *v = row->n > 0 ? g_array_index(ip->rows->entry, BalanceEntry, row->first).value : 0;
}

/* All pieces of the form seconds times the largest share are added up to one piece. A term between
 * two splits of the segment has 2 n rows, of which the last n repeat the first. */
static void read_rows(Interior *ip)
{
    const BalanceRows *rows = ip->rows;
    uint32_t n = ip->n, shares = UINT32_MAX;
    for (uint32_t p = 0; p < rows->piece->len; p++) {
        uint32_t first = g_array_index(rows->piece, BalancePiece, p).first;
        double *a = ip->a + (size_t)ip->n_pieces * n,
               *v = ip->v + (size_t)ip->n_pieces * n;
        for (uint32_t c = 0; c < n; c++)
            read_row(ip, first + c, &a[c], &v[c]);
        ip->merged[p] = ip->n_pieces;
        if (!is_largest_share(ip, a, v)) {
            ip->n_pieces++;
        } else if (shares == UINT32_MAX) {
            shares = ip->n_pieces++;
        } else {
            ip->merged[p] = shares;
            for (uint32_t c = 0; c < n; c++)
                ip->v[(size_t)shares * n + c] += v[c];
        }
    }
    ip->n_all = ip->n_pieces + (rows->row->len - rows->first_limit) / n;
    for (uint32_t i = 0; i < rows->row->len - rows->first_limit; i++) {
        size_t r = (size_t)ip->n_pieces * n + i;
        read_row(ip, rows->first_limit + i, &ip->a[r], &ip->v[r]);
    }
}

static Interior *interior_new(const BalanceRows *rows)
{
    Interior *ip = g_new0(Interior, 1);
    uint32_t n = ip->n = rows->n_classes, n_pieces = rows->piece->len;
    size_t n_rows = (size_t)n_pieces * n + rows->row->len - rows->first_limit;
    ip->rows = rows;
    ip->merged = g_new(uint32_t, n_pieces);
    ip->top = g_new(uint32_t, n_pieces);
    ip->total = g_new(double, n_pieces);
    double **of_row[] = {&ip->a,  &ip->v, &ip->w,      &ip->y,       &ip->dw,
                         &ip->dy, &ip->d, &ip->broken, &ip->inverse, &ip->e};
    double **of_class[] = {&ip->x, &ip->z,    &ip->dx, &ip->dz, &ip->f,
                           &ip->g, &ip->unit, &ip->u,  &ip->m}; /* m: n for each */
    double *rows_at = g_new0(double, G_N_ELEMENTS(of_row) * n_rows),
           *classes_at = g_new0(double, (8 + n) * (size_t)n);
    for (uint32_t i = 0; i < G_N_ELEMENTS(of_row); i++)
        *of_row[i] = rows_at + i * n_rows;
    for (uint32_t i = 0; i < G_N_ELEMENTS(of_class); i++)
        *of_class[i] = classes_at + i * (size_t)n;
    read_rows(ip);
    return ip;
}

OWN_FREE_DEFINE(interior_free, Interior, ip,
                free_each(ip->merged, ip->top, ip->total, ip->a, ip->x));

/* g = sum_p v_p y_p */
static void sum_prices(Interior *ip)
{
    memset(ip->g, 0, ip->n * sizeof *ip->g);
    for (uint32_t p = 0; p < ip->n_all; p++) {
        const double *v = ip->v + (size_t)p * ip->n, *y = ip->y + (size_t)p * ip->n;
        for (uint32_t c = 0; c < ip->n; c++)
            ip->g[c] += v[c] * y[c];
    }
}

/* sum y w + sum x z */
static double gap(const Interior *ip)
{
    double sum = 0;
    for (size_t r = 0; r < (size_t)ip->n_all * ip->n; r++)
        sum += ip->y[r] * ip->w[r];
    for (uint32_t c = 0; c < ip->n; c++)
        sum += ip->x[c] * ip->z[c];
    return sum;
}

/* Slacks and prices at x = start with y w equal within a piece. */
static void start(Interior *ip, const double *x)
{
    const double SPARE = 0.1; /* as a part of a piece, or of the largest memory */
    uint32_t n = ip->n;
    memcpy(ip->x, x, n * sizeof *x);
    double sum_mu = 0;
    for (uint32_t p = 0; p < ip->n_all; p++) {
        size_t at = (size_t)p * n;
        double *w = ip->w + at, *y = ip->y + at, largest = 0, sum = 0;
        bool piece = p < ip->n_pieces;
        for (uint32_t c = 0; c < n; c++) {
            w[c] = -ip->a[at + c] - ip->v[at + c] * x[c];
            largest = fmax(largest, -w[c]);
        }
        for (uint32_t c = 0; c < n; c++) {
            double slack =
                piece ? w[c] + (1 + SPARE) * largest + 1e-12 : fmax(w[c], SPARE);
            ip->broken[at + c] = piece ? 0 : slack - w[c];
            w[c] = slack;
            sum += 1 / slack;
        }
        sum_mu += piece ? 1 / sum : 0;
        for (uint32_t c = 0; c < n; c++)
            y[c] = (piece ? 1 / sum : sum_mu / fmax(ip->n_pieces, 1)) / w[c];
    }
    sum_prices(ip);
    double low = INFINITY, mean = 0;
    for (uint32_t c = 0; c < n; c++) {
        if (!ip->rows->idle[c])
            low = fmin(low, ip->g[c] / ip->rows->count[c]);
        mean += ip->g[c] * x[c];
    }
    ip->lambda = low - SPARE * mean - 1e-12;
    for (uint32_t c = 0; c < n; c++)
        ip->z[c] = ip->rows->idle[c] ? 0 : ip->g[c] - ip->lambda * ip->rows->count[c];
}

/* Notes how a step dp of p (primal) and dq of q (dual) changes the lengths and the gap. */
static inline void note_step(Step *step, double p, double dp, double q, double dq)
{
    KILTER_ASSERT(p > 0 && q > 0);
    double inverse = 1 / (p * q), shrink_p = -dp * q * inverse,
           shrink_q = -dq * p * inverse;
    step->primal = shrink_p > step->primal ? shrink_p : step->primal;
    step->dual = shrink_q > step->dual ? shrink_q : step->dual;
    step->first_p += q * dp;
    step->first_d += p * dq;
    step->second += dp * dq;
}

/* Computes dw of the rows of p, and completes dy. */
static Step step_rows(const Interior *ip, uint32_t p, double mu, double second, Step step)
{
    KILTER_ASSERT(p < ip->n_all);
    normal_add_ratio_step(ip, p, ip->e + (size_t)p * ip->n);
    for (size_t r = (size_t)p * ip->n; r < (size_t)(p + 1) * ip->n; r++) {
        const double w = ip->w[r], y = ip->y[r], dy = ip->e[r],
                     dw = (normal_change(ip, r, mu, second) - w * dy) * w / (w * y);
        ip->dw[r] = dw;
        note_step(&step, w, dw, y, dy);
    }
    return step;
}

/* Newton's step to y w = x z = mu, less `second` times the last step's products. */
static Step find_step(Interior *ip, double mu, double second)
{
    Step step = {0};
    normal_solve(ip, mu, second);
    for (uint32_t p = 0; p < ip->n_all; p++)
        step = step_rows(ip, p, mu, second, step);
    double *dy = ip->dy;
    ip->dy = ip->e;
    ip->e = dy;
    for (uint32_t c = 0; c < ip->n; c++) {
        if (ip->rows->idle[c])
            continue;
        double product = mu - ip->x[c] * ip->z[c] - second * ip->dx[c] * ip->dz[c];
        ip->dx[c] = ip->f[c];
        ip->dz[c] = (product - ip->z[c] * ip->dx[c]) / ip->x[c];
        note_step(&step, ip->x[c], ip->dx[c], ip->z[c], ip->dz[c]);
    }
    return step;
}

static void take_step(Interior *ip, double primal, double dual)
{
    g_assert(primal >= 0 && primal <= 1 && dual >= 0 && dual <= 1);
    uint32_t n = ip->n;
    for (size_t r = 0; r < (size_t)ip->n_all * n; r++) {
        ip->w[r] += primal * ip->dw[r];
        ip->y[r] += dual * ip->dy[r];
    }
    for (size_t r = (size_t)ip->n_pieces * n; r < (size_t)ip->n_all * n; r++)
        ip->broken[r] *= 1 - primal;
    for (uint32_t c = 0; c < n; c++) {
        ip->x[c] += primal * ip->dx[c];
        ip->z[c] += dual * ip->dz[c];
    }
    ip->lambda += dual * ip->d_lambda;
    sum_prices(ip);
}

/* Predictor and corrector: the predictor tells how far the corrector aims. */
static void iterate(Interior *ip, double present)
{
    normal_factor(ip);
    Step step = find_step(ip, 0, 0);
    double primal = 1 / fmax(1, step.primal), dual = 1 / fmax(1, step.dual);
    double left = (present + primal * step.first_p + dual * step.first_d +
                   primal * dual * step.second) /
                  present;
    double mu = present / ((double)ip->n_all * ip->n + ip->n) * pow(left, 4);
    step = find_step(ip, mu, 1);
    double reach = fmax(0.9, 1 - present);
    take_step(ip, fmin(1, reach / step.primal), fmin(1, reach / step.dual));
}

/* --- result --- */

static double most_broken(const Interior *ip)
{
    double most = 0;
    for (size_t r = (size_t)ip->n_pieces * ip->n; r < (size_t)ip->n_all * ip->n; r++)
        most = fmax(most, fabs(ip->broken[r]));
    return most;
}

static void read_result(const Interior *ip, BalanceCuts *cuts)
{
    const BalanceRows *rows = ip->rows;
    uint32_t n = ip->n;
    const double sum = sum_over(double, c, n, rows->count[c] * ip->x[c]);
    for (uint32_t c = 0; c < n; c++)
        cuts->x[c] = ip->x[c] / sum;
    memset(cuts->price, 0, rows->row->len * sizeof *cuts->price);
    for (uint32_t p = 0; p < rows->piece->len; p++)
        memcpy(cuts->price + g_array_index(rows->piece, BalancePiece, p).first,
               ip->y + (size_t)ip->merged[p] * n, n * sizeof *cuts->price);
    for (uint32_t i = 0; i < rows->row->len - rows->first_limit; i++)
        cuts->price[rows->first_limit + i] = ip->y[(size_t)ip->n_pieces * n + i];
    cuts->rows = ip->n_all * n + 1;
    cuts->columns = ip->n_pieces + n;
}

bool balance_interior(const BalanceRows *rows, BalanceCuts *cuts)
{
    if (rows->n_segments != 1 || rows->share->len > 0 || rows->piece->len == 0)
        return false;
    g_autoptr(Interior) ip = interior_new(rows);
    start(ip, cuts->x);
    for (uint32_t i = 0; i < MAX_ITERATIONS; i++) {
        double present = gap(ip);
        if (present <= GAP && most_broken(ip) <= GAP) {
            read_result(ip, cuts);
            return true;
        }
        if (!isfinite(present))
            return false;
        iterate(ip, present);
    }
    return false;
}
