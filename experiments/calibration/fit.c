/* Nonnegative robust fits of lines to measurements. */
#include "experiments/calibration/fit.h"

#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multifit.h>
#include <gsl/gsl_rng.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <string.h>

/* --- non-negative least squares --- */

/* The weighted rows [a scale | y] or, if there are more rows than columns, the triangle R of their
 * QR decomposition, which has the same least squares. */
static gsl_matrix *compress(const FitData *data, const double *weight,
                            const double *scale)
{
    const uint32_t k = data->k;
    gsl_matrix *m = gsl_matrix_alloc(data->n, k + 1);
    for (uint32_t i = 0; i < data->n; i++) {
        const double root = sqrt(weight[i]);
        for (uint32_t j = 0; j < k; j++)
            gsl_matrix_set(m, i, j, root * data->a[(size_t)i * k + j] * scale[j]);
        gsl_matrix_set(m, i, k, root * data->y[i]);
    }
    if (data->n <= k + 1)
        return m;
    gsl_vector *tau = gsl_vector_alloc(k + 1);
    gsl_linalg_QR_decomp(m, tau);
    gsl_matrix *r = gsl_matrix_calloc(k + 1, k + 1);
    for (uint32_t i = 0; i <= k; i++)
        for (uint32_t j = i; j <= k; j++)
            gsl_matrix_set(r, i, j, gsl_matrix_get(m, i, j));
    gsl_matrix_free(m);
    gsl_vector_free(tau);
    return r;
}

/* Least squares over the columns of `set`, the others 0. Returns the cost; infinite if some x is
 * negative. */
static double solve_set(const gsl_matrix *m, uint32_t k, uint32_t set, double *x)
{
    const size_t rows = m->size1, columns = (size_t)__builtin_popcount(set);
    if (rows < columns)
        return INFINITY;
    gsl_matrix *a = gsl_matrix_alloc(rows, columns),
               *cov = gsl_matrix_alloc(columns, columns);
    gsl_vector *y = gsl_vector_alloc(rows), *c = gsl_vector_alloc(columns);
    gsl_multifit_linear_workspace *work = gsl_multifit_linear_alloc(rows, columns);
    uint32_t column[FIT_MAX_COLUMNS], n = 0;
    for (uint32_t j = 0; j < k; j++)
        if (set >> j & 1u)
            column[n++] = j;
    for (size_t i = 0; i < rows; i++) {
        for (uint32_t j = 0; j < n; j++)
            gsl_matrix_set(a, i, j, gsl_matrix_get(m, i, column[j]));
        gsl_vector_set(y, i, gsl_matrix_get(m, i, k));
    }
    double cost;
    gsl_multifit_linear(a, y, c, cov, &cost, work);
    memset(x, 0, k * sizeof *x);
    for (uint32_t j = 0; j < n; j++) {
        x[column[j]] = gsl_vector_get(c, j);
        if (!(x[column[j]] >= 0))
            cost = INFINITY;
    }
    gsl_matrix_free(a);
    gsl_matrix_free(cov);
    gsl_vector_free(y);
    gsl_vector_free(c);
    gsl_multifit_linear_free(work);
    return cost;
}

/* Tries every set of columns, smaller ones first; with at most three columns there are only
 * eight. */
void fit_nnls(const FitData *data, const double *weight, double *x)
{
    double scale[FIT_MAX_COLUMNS], best = 0, norm[FIT_MAX_COLUMNS] = {0};
    g_assert(data->k <= FIT_MAX_COLUMNS);
    for (uint32_t i = 0; i < data->n; i++) {
        best += weight[i] * data->y[i] * data->y[i];
        for (uint32_t j = 0; j < data->k; j++)
            norm[j] += weight[i] * pow(data->a[(size_t)i * data->k + j], 2);
    }
    for (uint32_t j = 0; j < data->k; j++)
        scale[j] = norm[j] > 0 ? 1 / sqrt(norm[j]) : 0;
    gsl_matrix *m = compress(data, weight, scale);
    memset(x, 0, data->k * sizeof *x);
    for (uint32_t size = 1; size <= data->k; size++)
        for (uint32_t set = 1; set < 1u << data->k; set++) {
            double trial[FIT_MAX_COLUMNS];
            bool used = (uint32_t)__builtin_popcount(set) == size;
            for (uint32_t j = 0; j < data->k; j++)
                used = used && !((set >> j & 1u) && scale[j] == 0);
            const double cost = used ? solve_set(m, data->k, set, trial) : INFINITY;
            if (cost < best * (1 - 1e-9)) {
                best = cost;
                memcpy(x, trial, data->k * sizeof *x);
            }
        }
    gsl_matrix_free(m);
    for (uint32_t j = 0; j < data->k; j++)
        x[j] *= scale[j];
}

/* --- robust --- */

static double dot(const double *a, const double *x, uint32_t k)
{
    double sum = 0;
    for (uint32_t j = 0; j < k; j++)
        sum += a[j] * x[j];
    return sum;
}

static double relative_error(const FitData *data, uint32_t i, const double *x)
{
    return fabs(dot(data->a + (size_t)i * data->k, x, data->k) - data->y[i]) / data->y[i];
}

/* Huber 1964: quadratic within this many standard deviations, 95 % efficient for normal errors. */
static const double HUBER = 1.345;
/* The standard deviation of normal errors over the median of their absolute values. */
static const double MEDIAN_TO_DEVIATION = 1.4826;
/* Errors below a millionth are equal. */
static const double SMALLEST_SCALE = 1e-6;

void fit_robust(const FitData *data, double *x)
{
    enum { ROUNDS = 8 };
    g_autofree double *weight = g_new(double, data->n + 1);
    g_autofree double *error = g_new(double, data->n + 1);
    for (uint32_t i = 0; i < data->n; i++)
        weight[i] = 1 / (data->y[i] * data->y[i]);
    fit_nnls(data, weight, x);
    for (uint32_t round = 0; data->n > data->k && round < ROUNDS; round++) {
        for (uint32_t i = 0; i < data->n; i++)
            error[i] = relative_error(data, i, x);
        gsl_sort(error, 1, data->n);
        const double scale = fmax(
            MEDIAN_TO_DEVIATION * gsl_stats_median_from_sorted_data(error, 1, data->n),
            SMALLEST_SCALE);
        for (uint32_t i = 0; i < data->n; i++) {
            const double far = relative_error(data, i, x) / (HUBER * scale);
            weight[i] = 1 / (data->y[i] * data->y[i] * fmax(far, 1));
        }
        double before[FIT_MAX_COLUMNS];
        memcpy(before, x, data->k * sizeof *x);
        fit_nnls(data, weight, x);
        if (memcmp(before, x, data->k * sizeof *x) == 0)
            break;
    }
}

void fit_bootstrap(const FitData *data, uint32_t rounds, uint64_t seed, double *low,
                   double *high)
{
    const uint32_t n = data->n, k = data->k;
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(random, (unsigned long)seed);
    g_autofree double *a = g_new(double, (size_t)n *k + 1), *y = g_new(double, n + 1);
    g_autofree double *x = g_new(double, (size_t)rounds *k + 1);
    for (uint32_t round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t from = (uint32_t)gsl_rng_uniform_int(random, n);
            memcpy(a + (size_t)i * k, data->a + (size_t)from * k, k * sizeof *a);
            y[i] = data->y[from];
        }
        double own[FIT_MAX_COLUMNS];
        fit_robust(&(FitData){n, k, a, y}, own);
        for (uint32_t j = 0; j < k; j++)
            x[(size_t)j * rounds + round] = own[j];
    }
    for (uint32_t j = 0; j < k; j++) {
        double *all = x + (size_t)j * rounds;
        gsl_sort(all, 1, rounds);
        low[j] = gsl_stats_quantile_from_sorted_data(all, 1, rounds, 0.025);
        high[j] = gsl_stats_quantile_from_sorted_data(all, 1, rounds, 0.975);
    }
    gsl_rng_free(random);
}

/* --- in pieces --- */

enum { MAX_CUTS = 32, FOLDS = 5, MIN_ROWS = 3 };

/* Rows in the order of size, and places where a piece may end: cut[c] is the first row of the next
 * one. */
typedef struct {
    uint32_t n, n_cuts;
    double *a, *y, *size;
    uint32_t cut[MAX_CUTS + 2]; /* cut[0] = 0, cut[n_cuts] = n */
} Sorted;

/* Rows whose index i in the order of size has (i % FOLDS == fold) == inside; fold FOLDS and inside
 * false: all. */
static Sorted sorted_new(const FitData *data, const double *size, uint32_t fold,
                         bool inside)
{
    Sorted s = {.a = g_new(double, 2 * (size_t)data->n + 1),
                .y = g_new(double, data->n + 1),
                .size = g_new(double, data->n + 1)};
    g_autofree size_t *order = g_new(size_t, data->n + 1);
    gsl_sort_index(order, size, 1, data->n);
    for (uint32_t i = 0; i < data->n; i++) {
        if ((i % FOLDS == fold) != inside)
            continue;
        memcpy(s.a + 2 * (size_t)s.n, data->a + 2 * order[i], 2 * sizeof *s.a);
        s.y[s.n] = data->y[order[i]];
        s.size[s.n++] = size[order[i]];
    }
    return s;
}

static void sorted_clear(Sorted *s)
{
    g_free(s->a);
    g_free(s->y);
    g_free(s->size);
}

/* Cuts between different sizes, about evenly over the rows, at least MIN_ROWS apart. */
static void find_cuts(Sorted *s)
{
    s->n_cuts = 0;
    s->cut[0] = 0;
    const double step = fmax(MIN_ROWS, (double)s->n / MAX_CUTS);
    for (uint32_t i = 1; i < s->n; i++)
        if (s->size[i] > s->size[i - 1] && i - s->cut[s->n_cuts] >= step &&
            s->n - i >= MIN_ROWS && s->n_cuts + 1 < MAX_CUTS)
            s->cut[++s->n_cuts] = i;
    s->cut[++s->n_cuts] = s->n;
}

static double piece_cost(const Sorted *s, uint32_t from, uint32_t to, double x[2])
{
    const FitData rows = {to - from, 2, s->a + 2 * (size_t)from, s->y + from};
    double sum = 0;
    fit_robust(&rows, x);
    for (uint32_t i = 0; i < rows.n; i++)
        sum += relative_error(&rows, i, x);
    return sum;
}

typedef struct {
    double cost[MAX_CUTS + 1][MAX_CUTS + 1]; /* of a piece from cut i to cut j */
    double x[MAX_CUTS + 1][MAX_CUTS + 1][2];
} PieceCosts;

/* best[p][j]: least cost of the rows before cut j in p pieces; from[p][j]: the cut at which the
 * last piece begins. */
static FitPieces best_pieces(const Sorted *s, const PieceCosts *costs, uint32_t pieces)
{
    double best[FIT_MAX_PIECES + 1][MAX_CUTS + 1];
    uint32_t from[FIT_MAX_PIECES + 1][MAX_CUTS + 1] = {{0}};
    for (uint32_t p = 0; p <= pieces; p++)
        for (uint32_t j = 0; j <= s->n_cuts; j++) {
            best[p][j] = p == 0 && j == 0 ? 0 : INFINITY;
            for (uint32_t i = 0; p > 0 && i < j; i++)
                if (best[p - 1][i] + costs->cost[i][j] < best[p][j]) {
                    best[p][j] = best[p - 1][i] + costs->cost[i][j];
                    from[p][j] = i;
                }
        }
    FitPieces result = {.n = pieces};
    for (uint32_t p = pieces, j = s->n_cuts; p > 0; j = from[p--][j]) {
        FitPiece *piece = &result.piece[p - 1];
        memcpy(piece->x, costs->x[from[p][j]][j], sizeof piece->x);
        piece->up_to =
            j == s->n_cuts ? INFINITY : sqrt(s->size[s->cut[j] - 1] * s->size[s->cut[j]]);
    }
    return result;
}

/* Fits in 1 to *most pieces; *most is lowered if there are fewer cuts. */
static void fit_all(Sorted *s, uint32_t *most, FitPieces *fits)
{
    g_autofree PieceCosts *costs = g_new0(PieceCosts, 1);
    find_cuts(s);
    *most = MIN(*most, s->n_cuts);
    for (uint32_t i = 0; i < s->n_cuts; i++)
        for (uint32_t j = i + 1; j <= s->n_cuts; j++)
            costs->cost[i][j] = piece_cost(s, s->cut[i], s->cut[j], costs->x[i][j]);
    for (uint32_t p = 1; p <= *most; p++)
        fits[p - 1] = best_pieces(s, costs, p);
}

static double fit_pieces_at(const FitPieces *pieces, const double *a, double size)
{
    uint32_t p = 0;
    while (p + 1 < pieces->n && size > pieces->piece[p].up_to)
        p++;
    return dot(a, pieces->piece[p].x, 2);
}

/* error[piece count - 1][fold]: the mean relative error on the rows of each fold, by fits to the
 * other folds. Returns the largest number of pieces that all folds have. */
static uint32_t cross_validate(const FitData *data, const double *size,
                               double error[FIT_MAX_PIECES][FOLDS])
{
    uint32_t most = FIT_MAX_PIECES;
    for (uint32_t fold = 0; fold < FOLDS; fold++) {
        FitPieces fits[FIT_MAX_PIECES];
        Sorted train = sorted_new(data, size, fold, false);
        Sorted test = sorted_new(data, size, fold, true);
        fit_all(&train, &most, fits);
        for (uint32_t p = 0; p < most; p++) {
            error[p][fold] = 0;
            for (uint32_t i = 0; i < test.n; i++)
                error[p][fold] +=
                    fabs(fit_pieces_at(&fits[p], test.a + 2 * (size_t)i, test.size[i]) -
                         test.y[i]) /
                    test.y[i] / test.n;
        }
        sorted_clear(&train);
        sorted_clear(&test);
    }
    return most;
}

/* The fewest pieces within one standard error of the best. */
static uint32_t choose_count(const FitData *data, const double *size)
{
    double error[FIT_MAX_PIECES][FOLDS];
    if (data->n < 2 * FOLDS)
        return 1;
    const uint32_t most = cross_validate(data, size, error);
    uint32_t best = 0, chosen = 0;
    for (uint32_t p = 1; p < most; p++)
        if (gsl_stats_mean(error[p], 1, FOLDS) < gsl_stats_mean(error[best], 1, FOLDS))
            best = p;
    const double limit = gsl_stats_mean(error[best], 1, FOLDS) +
                         gsl_stats_sd(error[best], 1, FOLDS) / sqrt(FOLDS);
    while (gsl_stats_mean(error[chosen], 1, FOLDS) > limit)
        chosen++;
    return chosen + 1;
}

FitPieces fit_pieces(const FitData *data, const double *size)
{
    FitPieces fits[FIT_MAX_PIECES];
    g_assert(data->k == 2 && data->n > 0);
    uint32_t count = choose_count(data, size);
    Sorted all = sorted_new(data, size, FOLDS, false);
    fit_all(&all, &count, fits);
    sorted_clear(&all);
    return fits[count - 1];
}
