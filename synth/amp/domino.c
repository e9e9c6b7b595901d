/* Placements as domino tilings (AMP Sec. 4.2; its artifact, sa.py at 72eeea45): machines are the
 * columns of a grid, their devices its rows (if machines differ, as many as the smallest has, or
 * one), and each stage is a rectangle of tmp x dp or dp x tmp devices. */
#include <gsl/gsl_rng.h>
#include <string.h>

#include "synth/amp/search.h"

/* Steps of the search for tilings, which grow exponentially with the grid. */
enum { MOST_STEPS = 100000 };

typedef struct {
    gsl_rng *rng;
    uint32_t rows, columns, sides[2]; /* of the rectangles */
    uint32_t *stage, *chosen; /* [row * columns + column]: from 1; 0: not covered yet */
    uint32_t found, steps;
} Tiling;

/* Sets all of the rectangle from one number to the other; false if a place has another one. */
static bool set(Tiling *t, uint32_t at, uint32_t height, uint32_t width, uint32_t from,
                uint32_t to)
{
    if (at / t->columns + height > t->rows || at % t->columns + width > t->columns)
        return false;
    for (uint32_t r = 0; r < height; r++)
        for (uint32_t c = 0; c < width; c++)
            if (t->stage[at + r * t->columns + c] != from)
                return false;
    for (uint32_t r = 0; r < height; r++)
        for (uint32_t c = 0; c < width; c++)
            t->stage[at + r * t->columns + c] = to;
    return true;
}

/* Covers the grid from place `at` on in all ways, and keeps one of them, all alike. */
static void cover(Tiling *t, uint32_t at, uint32_t stage)
{
    const uint32_t n = t->rows * t->columns;
    while (at < n && t->stage[at])
        at++;
    if (at == n && gsl_rng_uniform_int(t->rng, ++t->found) == 0)
        memcpy(t->chosen, t->stage, n * sizeof *t->chosen);
    /* in either order, so that the first ways of a large grid are not all alike */
    const uint32_t first = (uint32_t)gsl_rng_uniform_int(t->rng, 2);
    for (uint32_t i = 0; at < n && i < 2 && t->steps < MOST_STEPS; i++) {
        const uint32_t height = t->sides[i ^ first], width = t->sides[1 ^ i ^ first];
        if ((i == 1 && height == width) || !set(t, at, height, width, 0, stage))
            continue;
        t->steps++;
        cover(t, at, stage + 1);
        set(t, at, height, width, stage, 0);
    }
}

/* Hands devices out stage by stage, those of a stage machine by machine. False if no such
 * rectangles cover the grid. */
static bool domino_place(gsl_rng *rng, const AmpCluster *cluster, AmpStrategy *strategy)
{
    const uint32_t n = cluster->n_devices, least = amp_smallest_machine(cluster),
                   rows = n % least == 0 ? least : 1;
    g_autofree uint32_t *stage = g_new0(uint32_t, n), *chosen = g_new(uint32_t, n),
                        *order = amp_machine_order(cluster, false),
                        *next = g_new(uint32_t, strategy->pp);
    Tiling tiling = {rng,   rows,   n / rows, {strategy->tmp, strategy->dp},
                     stage, chosen, 0,        0};
    cover(&tiling, 0, 1);
    for (uint32_t s = 0; s < strategy->pp; s++)
        next[s] = s * strategy->tmp * strategy->dp;
    for (uint32_t d = 0; d < n && tiling.found > 0; d++) {
        const uint32_t at = d % rows * tiling.columns + d / rows;
        strategy->device[next[chosen[at] - 1]++] = order[d];
    }
    return tiling.found > 0;
}

bool amp_draw_domino(gsl_rng *rng, const AmpSearch *search, const AmpDegrees *near,
                     AmpStrategy *strategy)
{
    const AmpDegrees *c = (const AmpDegrees *)(void *)search->choices->data;
    const uint32_t n = search->choices->len;
    const bool keeps_tmp = gsl_rng_uniform_int(rng, 2) == 0;
    uint32_t first = 0, len = 0, degrees = 0;
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && c[end].pp == c[i].pp && c[end].dp == c[i].dp; end++)
            ;
        const bool is_near =
            !near || (keeps_tmp ? c[i].tmp == near->tmp : c[i].dp == near->dp);
        if (is_near && gsl_rng_uniform_int(rng, ++degrees) == 0) {
            first = i;
            len = end - i;
        }
    }
    g_assert(len > 0);
    *strategy = amp_strategy_of(search, &c[first + gsl_rng_uniform_int(rng, len)]);
    if (domino_place(rng, search->cluster, strategy))
        return true;
    amp_strategy_clear(strategy);
    return false;
}
