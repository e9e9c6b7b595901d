/* Taking the arcs of an op, for all states of the other tensors at once. */
#include "synth/hap/exact/states.h"

#include "synth/hap/exact/wide.h"

#include <math.h>
#include <string.h>

/* The arcs from one state of an op's inputs, with the costs of one class. */
typedef struct {
    uint32_t n, n_classes;
    const uint32_t *to;
    const double *least; /* [arc * n_classes] */
} Fan;

/* The least costs over the arcs for n * LANES neighbouring states of the other tensors, which stay
 * in registers meanwhile: n is at most TILE and known when this is compiled. Rows of `from` are
 * `width` apart. */
KILTER_INLINE void least_over_arcs(const double *from, uint32_t width, const Fan *fan,
                                   Lanes least[TILE], uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        least[i] = (Lanes){INFINITY, INFINITY, INFINITY, INFINITY};
    for (uint32_t a = 0; a < fan->n; a++) {
        const LanesAnywhere *row =
            (const LanesAnywhere *)(const void *)(from + (size_t)fan->to[a] * width);
        const double s = fan->least[(size_t)a * fan->n_classes];
        for (uint32_t i = 0; i < n; i++) {
            const Lanes sum = row[i] + (Lanes){s, s, s, s}, old = least[i];
            Lanes new;
            for (uint32_t l = 0; l < LANES; l++)
                new[l] = sum[l] < old[l] ? sum[l] : old[l];
            least[i] = new;
        }
    }
}

/* The costs after the move by state `to` and other state, in rows of `width`. */
static void take_gather(const Move *move, const double *after, uint32_t width,
                        double *row)
{
    const uint32_t n = move->n_others;
    for (uint32_t to = 0; to < move->choices->n_to; to++, row += width) {
        const double *from = after + move->after[to];
        if (move->in_order)
            memcpy(row, from, n * sizeof *row);
        else
            for (uint32_t o = 0; o < n; o++)
                row[o] = from[move->other_after[o]];
        for (uint32_t o = n; o < width; o++)
            row[o] = INFINITY;
    }
}

/* The least costs of one class from state `first` of the other tensors on: for tiles of n * LANES
 * of them as long as the rows of `scratch` last, each for all states of the inputs, so that its
 * columns stay near. Returns the state behind them. */
KILTER_INLINE uint32_t take_tiles(const Move *move, uint32_t h, const double *scratch,
                                  uint32_t width, double *before, uint32_t first,
                                  uint32_t n)
{
    const Choices *c = move->choices;
    for (; first + n * LANES <= width; first += n * LANES) {
        const uint32_t kept = MIN(n * LANES, move->n_others - first);
        double *to = before + first;
        for (uint32_t in = 0; in < c->n_in; in++, to += move->n_others) {
            const uint32_t arc = c->first_arc[in];
            const Fan fan = {c->first_arc[in + 1] - arc, c->pricer->n_classes,
                             &g_array_index(c->arcs.to, uint32_t, arc),
                             choices_arc_least(c, arc) + h};
            Lanes least[TILE];
            least_over_arcs(scratch + first, width, &fan, least, n);
            if (kept == n * LANES)
                memcpy(to, least, n * sizeof *least);
            else
                memcpy(to, least, kept * sizeof *to);
        }
    }
    return first;
}

/* The least costs of one class. `scratch` has rows of `width`, a multiple of LANES. */
KILTER_WIDE
static void take_arcs(const Move *move, uint32_t h, const double *scratch, uint32_t width,
                      double *before)
{
    KILTER_ASSERT(move->n_others > 0 && width % LANES == 0);
    uint32_t first = take_tiles(move, h, scratch, width, before, 0, TILE);
    first = take_tiles(move, h, scratch, width, before, first, TILE / 2);
    first = take_tiles(move, h, scratch, width, before, first, TILE / 4);
    take_tiles(move, h, scratch, width, before, first, 1);
}

void move_take_arcs(const Move *move, const double *after, uint32_t n_after,
                    double *before)
{
    const Choices *c = move->choices;
    const uint32_t width = (move->n_others + LANES - 1) / LANES * LANES;
    g_autofree double *scratch = g_new(double, (size_t)c->n_to *width);
    for (uint32_t h = 0; h < c->pricer->n_classes; h++) {
        take_gather(move, after + (size_t)h * n_after, width, scratch);
        take_arcs(move, h, scratch, width, before + (size_t)h * c->n_in * move->n_others);
    }
}
