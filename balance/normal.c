/* The normal equations of an interior point's step: M, its Cholesky factor, and the step of the
 * ratios. */
#include "balance/normal.h"

#include <math.h>
#include <string.h>

/* Adds piece p to M. If a single row binds, its d exceeds all others by far; the remainder is
 * therefore summed over the other rows instead of subtracted. */
static void add_piece(Interior *ip, uint32_t p)
{
    KILTER_ASSERT(p < ip->n_pieces);
    uint32_t n = ip->n, top = 0;
    const double *d = ip->d + (size_t)p * n, *v = ip->v + (size_t)p * n;
    double rest = 0, *u = ip->u;
    for (uint32_t c = 1; c < n; c++)
        top = d[c] > d[top] ? c : top;
    for (uint32_t c = 0; c < n; c++) {
        rest += c == top ? 0 : d[c];
        u[c] = d[c] * v[c];
    }
    double total = ip->total[p] = rest + d[top];
    ip->top[p] = top;
    for (uint32_t b = 0; b < n; b++) {
        double *m = ip->m + (size_t)b * n, scale = u[b] / total;
        for (uint32_t c = 0; c < b; c++)
            m[c] -= scale * u[c];
        m[b] += scale * v[b] * (b == top ? rest : total - d[b]);
    }
}

/* Cholesky of M in its lower half. A pivot lost to rounding belongs to a useless direction: it is
 * replaced by a huge one, along which nothing moves. */
static void factor(uint32_t n, double *m)
{
    /* The rest of a diagonal of which all digits were lost, twice over; the root of a pivot that
     * makes its step less than any other, and whose square is still a number. */
    static const double LOST = 1e-30, UNMOVED = 1e64;
    g_assert(n > 0);
    for (uint32_t b = 0; b < n; b++) {
        double *row = m + (size_t)b * n, diagonal = row[b];
        for (uint32_t c = 0; c <= b; c++) {
            const double *other = m + (size_t)c * n;
            double sum = row[c];
            for (uint32_t k = 0; k < c; k++)
                sum -= row[k] * other[k];
            if (c < b)
                row[c] = sum / other[c];
            else
                row[c] = sum > LOST * diagonal ? sqrt(sum) : UNMOVED;
        }
    }
}

static void solve(uint32_t n, const double *m, double *x)
{
    for (uint32_t b = 0; b < n; b++) {
        for (uint32_t c = 0; c < b; c++)
            x[b] -= m[(size_t)b * n + c] * x[c];
        x[b] /= m[(size_t)b * n + b];
    }
    for (uint32_t b = n; b-- > 0;) {
        x[b] /= m[(size_t)b * n + b];
        for (uint32_t c = 0; c < b; c++)
            x[c] -= m[(size_t)b * n + c] * x[b];
    }
}

void normal_factor(Interior *ip)
{
    uint32_t n = ip->n;
    const double *count = ip->rows->count;
    memset(ip->m, 0, (size_t)n * n * sizeof *ip->m);
    for (size_t r = 0; r < (size_t)ip->n_all * n; r++) {
        ip->inverse[r] = 1 / ip->w[r];
        ip->d[r] = ip->y[r] * ip->inverse[r];
    }
    for (uint32_t p = 0; p < ip->n_pieces; p++)
        add_piece(ip, p);
    for (uint32_t p = ip->n_pieces; p < ip->n_all; p++) {
        for (uint32_t c = 0; c < n; c++) {
            size_t r = (size_t)p * n + c;
            ip->m[(size_t)c * n + c] += ip->d[r] * ip->v[r] * ip->v[r];
        }
    }
    double scale = 0;
    for (uint32_t c = 0; c < n; c++) {
        double *diagonal = &ip->m[(size_t)c * n + c];
        *diagonal += ip->rows->idle[c] ? 1 : ip->z[c] / ip->x[c];
        scale += *diagonal * ip->x[c] * ip->x[c];
    }
    for (uint32_t b = 0; b < n; b++) {
        ip->unit[b] = ip->rows->idle[b] ? 0 : count[b];
        for (uint32_t c = 0; c <= b && !ip->rows->idle[b]; c++)
            ip->m[(size_t)b * n + c] +=
                ip->rows->idle[c] ? 0 : scale * count[b] * count[c];
    }
    factor(n, ip->m);
    solve(n, ip->m, ip->unit);
}

/* dy of the rows of p at dx = 0: q - D (sum q - 1 + sum y) / S, into e. */
static void fixed_step(const Interior *ip, uint32_t p, double mu, double second)
{
    KILTER_ASSERT(p < ip->n_all);
    uint32_t n = ip->n;
    size_t at = (size_t)p * n;
    double *e = ip->e + at, sum = 0, lack = 1, others = 0;
    for (uint32_t c = 0; c < n; c++) {
        e[c] =
            (normal_change(ip, at + c, mu, second) + ip->y[at + c] * ip->broken[at + c]) *
            ip->inverse[at + c];
        sum += e[c];
        lack -= ip->y[at + c];
    }
    if (p >= ip->n_pieces)
        return;
    double shift = (sum - lack) / ip->total[p];
    uint32_t top = ip->top[p];
    e[top] = 0;
    for (uint32_t c = 0; c < n; c++) {
        e[c] -= c == top ? 0 : ip->d[at + c] * shift;
        others += e[c];
    }
    e[top] = lack - others;
}

void normal_add_ratio_step(const Interior *ip, uint32_t p, double *e)
{
    KILTER_ASSERT(p < ip->n_all);
    uint32_t n = ip->n, top = p < ip->n_pieces ? ip->top[p] : n;
    size_t at = (size_t)p * n;
    double mean = 0, others = 0;
    for (uint32_t c = 0; c < n; c++)
        mean += ip->d[at + c] * ip->v[at + c] * ip->f[c];
    mean = p < ip->n_pieces ? mean / ip->total[p] : 0;
    for (uint32_t c = 0; c < n; c++) {
        double add = ip->d[at + c] * (ip->v[at + c] * ip->f[c] - mean);
        add = c == top ? 0 : add;
        e[c] += add;
        others += add;
    }
    if (top < n)
        e[top] -= others;
}

void normal_solve(Interior *ip, double mu, double second)
{
    uint32_t n = ip->n;
    const double *count = ip->rows->count;
    double along = 0, length = 0, *f = ip->f;
    for (uint32_t c = 0; c < n; c++)
        f[c] = ip->rows->idle[c] ? 0
                                 : ip->lambda * count[c] - ip->g[c] +
                                       (mu - second * ip->dx[c] * ip->dz[c]) / ip->x[c];
    for (uint32_t p = 0; p < ip->n_all; p++) {
        const double *v = ip->v + (size_t)p * n, *e = ip->e + (size_t)p * n;
        fixed_step(ip, p, mu, second);
        for (uint32_t c = 0; c < n; c++)
            f[c] -= v[c] * e[c];
    }
    solve(n, ip->m, f);
    for (uint32_t c = 0; c < n; c++) {
        along += count[c] * f[c];
        length += count[c] * ip->unit[c];
    }
    ip->d_lambda = -along / length;
    for (uint32_t c = 0; c < n; c++)
        f[c] += ip->d_lambda * ip->unit[c];
}
