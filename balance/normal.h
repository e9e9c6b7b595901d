/* The state of an interior point, and the equations of its step; see balance/interior.h (private to
 * balance). */
#pragma once

#include "balance/cuts.h"

/* Row (p, c) is at p * n + c; p counts pieces first, and limits from n_pieces on. */
typedef struct {
    const BalanceRows *rows;
    uint32_t n, n_pieces, n_all; /* classes, pieces, pieces and limits */
    uint32_t *merged;            /* [piece of rows] its piece after merging */
    double *a, *v;               /* [row] base and slope */
    double *w, *y, *dw, *dy;     /* [row] slack, price, and their step */
    double *d, *inverse;         /* [row] y / w, 1 / w */
    double *e;                   /* [row] the next dy */
    /* [row of a limit] a + v x + w: by how much x misses it */
    double *broken;
    double *total;            /* [piece] S_p */
    uint32_t *top;            /* [piece] its largest d */
    double *x, *z, *dx, *dz;  /* [class] */
    double *f, *g, *unit, *u; /* [class] right side, sum v y, M^-1 count, D v */
    double *m;                /* [class][class] M, then its Cholesky factor */
    double lambda, d_lambda;
} Interior;

/* The change that brings y w of row r to mu, less the second-order term of the last step. */
static inline double normal_change(const Interior *ip, size_t r, double mu, double second)
{
    return mu - ip->y[r] * ip->w[r] - second * ip->dy[r] * ip->dw[r];
}

/* M + diag(z / x) + k count count': the last changes no step with count . dx = 0, and
 * keeps M regular along x where no ratio is 0. */
void normal_factor(Interior *ip);
/* Solves for dx, which is left in f, and dlambda; dy at dx = 0 is left in e. */
void normal_solve(Interior *ip, double mu, double second);
/* Adds to e the part of dy that depends on dx: D (v dx - sum D v dx / S). */
void normal_add_ratio_step(const Interior *ip, uint32_t p, double *e);
