/* Favourite children by the relaxed integer program of Hanen and Munier. */
#include <math.h>
#include <string.h>

#include "balance/balance.h"
#include "balance/lp.h"

typedef struct {
    uint32_t n, n_arcs;
    const double *time_s;
    const BalanceArc *arc;
    double scale;               /* so that costs and rows are about 1 */
    uint32_t start, apart, end; /* first columns: s_i, x_a, w */
} Favourites;

static void add_columns(Favourites *f, Lp *lp)
{
    f->start = lp_columns(lp);
    for (uint32_t i = 0; i < f->n; i++)
        lp_column(lp, 0, INFINITY, 0);
    f->apart = lp_columns(lp);
    for (uint32_t a = 0; a < f->n_arcs; a++)
        lp_column(lp, 0, 1, 0);
    f->end = lp_column(lp, 0, INFINITY, 1);
}

static void add_times(const Favourites *f, Lp *lp)
{
    items_at (const BalanceArc, arc, a, f->arc, f->n_arcs) {
        lp_row(lp, f->time_s[arc->from] * f->scale, INFINITY, 3,
               (uint32_t[]){f->start + arc->to, f->start + arc->from, f->apart + a},
               (double[]){1, -1, -arc->seconds * f->scale});
    }
    for (uint32_t i = 0; i < f->n; i++)
        lp_row(lp, f->time_s[i] * f->scale, INFINITY, 2,
               (uint32_t[]){f->end, f->start + i}, (double[]){1, -1});
}

/* Each task has at most one favourite child (`children`), or is that of at most one parent. */
static void add_matching(const Favourites *f, Lp *lp, bool children)
{
    g_autofree uint32_t *column = g_new(uint32_t, f->n_arcs + 1);
    g_autofree double *one = g_new(double, f->n_arcs + 1);
    for (uint32_t i = 0; i < f->n; i++) {
        uint32_t n = 0;
        for (uint32_t a = 0; a < f->n_arcs; a++)
            if ((children ? f->arc[a].from : f->arc[a].to) == i) {
                column[n] = f->apart + a;
                one[n++] = 1;
            }
        if (n > 1)
            lp_row(lp, n - 1.0, INFINITY, n, column, one);
    }
}

bool balance_favourites(uint32_t n, const double *time_s, uint32_t n_arcs,
                        const BalanceArc *arc, uint32_t *favourite, GError **error)
{
    Favourites f = {.n = n, .n_arcs = n_arcs, .time_s = time_s, .arc = arc};
    g_autoptr(Lp) lp = lp_new(error);
    double all = 0;
    memset(favourite, 0xff, n * sizeof *favourite);
    if (!lp)
        return false;
    for (uint32_t i = 0; i < n; i++)
        all += time_s[i];
    f.scale = all > 0 ? 1 / all : 1;
    add_columns(&f, lp);
    add_times(&f, lp);
    add_matching(&f, lp, true);
    add_matching(&f, lp, false);
    const LpStatus status = lp_solve(lp, error);
    if (status != LP_OPTIMAL)
        return status == LP_FAILED ? false
                                   : kilter_fail(error, KILTER_ERROR_FAILED,
                                                 "no favourite children: the linear "
                                                 "program has no optimum");
    for (uint32_t a = 0; a < n_arcs; a++)
        if (lp_value(lp, f.apart + a) < 0.5)
            favourite[arc[a].from] = arc[a].to;
    return true;
}
