/* Rounding a plan's shards by the iteration's time. */
#include "synth/answer/rounding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/order.h"

typedef struct {
    Plan *plan;
    const SimLinear *linear;
    const SimMemory *memory;
    const ClusterView *view;
    double *share; /* [linear's split * n_devices] */
    Split **split; /* [linear's split] of the plan; NULL: none */
    bool fits;
    double time_s;
} Climb;

/* Devices that do the same: equal ones with equal counts. Members of a group are neighbours in
 * `device`. */
typedef struct {
    uint32_t n, *first, *device; /* number of groups; [n + 1]; [n_devices] */
} Groups;

static bool same_counts(const Climb *c, uint32_t a, uint32_t b)
{
    return !any_of(k, c->linear->n_splits,
                   c->split[k] && c->split[k]->count[a] != c->split[k]->count[b]) &&
           device_compare(&c->view->device[a], &c->view->device[b]) == 0;
}

static Groups rounding_find_groups(const Climb *c)
{
    const uint32_t n = c->view->n_devices;
    Groups g = {0, g_new(uint32_t, n + 1), g_new(uint32_t, n)};
    g_autofree bool *placed = g_new0(bool, n);
    uint32_t filled = 0;
    for (uint32_t j = 0; j < n; j++) {
        if (placed[j])
            continue;
        g.first[g.n++] = filled;
        for (uint32_t i = j; i < n; i++)
            if (!placed[i] && same_counts(c, j, i)) {
                g.device[filled++] = i;
                placed[i] = true;
            }
    }
    g.first[g.n] = filled;
    return g;
}

static CLEAR_DEFINE(groups_clear, Groups, g, free_each(g->first, g->device));

static double time_of(const Climb *c)
{
    return sim_linear_time(c->linear, c->view, c->share, NULL, NULL);
}

/* Moves a unit from each of the first `n` devices of a group to each of those of another. */
static void move(Climb *c, uint32_t k, const uint32_t *from, const uint32_t *to,
                 uint32_t n)
{
    Split *split = c->split[k];
    double *share = &c->share[(size_t)k * c->view->n_devices];
    for (uint32_t i = 0; i < n; i++) {
        split->count[from[i]]--;
        split->count[to[i]]++;
        share[from[i]] = (double)split->count[from[i]] / split->units;
        share[to[i]] = (double)split->count[to[i]] / split->units;
    }
}

static bool improve(Climb *c, const Groups *g, uint32_t more);

/* Tries a move, or with `more` each pair of moves that begins with it, and keeps an improvement. */
static bool try_move(Climb *c, const Groups *g, uint32_t k, const uint32_t *from,
                     const uint32_t *to, uint32_t n, uint32_t more)
{
    static const double better = 1 - 1e-9;
    if (c->split[k]->count[from[0]] == 0)
        return false;
    move(c, k, from, to, n);
    const double time_s = more ? INFINITY : time_of(c);
    if (time_s < c->time_s * better &&
        (!c->fits || sim_memory_fits(c->memory, c->view, c->share))) {
        c->time_s = time_s;
        return true;
    }
    if (more && improve(c, g, more - 1))
        return true;
    move(c, k, to, from, n);
    return false;
}

/* Moves units between two groups in some cut, `more` times further ones, if that shortens the
 * iteration. */
static bool improve(Climb *c, const Groups *g, uint32_t more)
{
    const uint32_t n = c->view->n_devices;
    g_autofree bool *matters = g_new0(bool, (gsize)c->linear->n_splits *n + 1);
    sim_linear_matters(c->linear, c->view, c->share, matters);
    for (uint32_t k = 0; k < c->linear->n_splits; k++) {
        if (!c->split[k])
            continue;
        for (uint32_t i = 0; i < g->n * g->n; i++) {
            const uint32_t a = i / g->n, b = i % g->n;
            const uint32_t *from = &g->device[g->first[a]], *to = &g->device[g->first[b]];
            const uint32_t both =
                MIN(g->first[a + 1] - g->first[a], g->first[b + 1] - g->first[b]);
            if (a != b && matters[(size_t)k * n + from[0]] &&
                (try_move(c, g, k, from, to, 1, more) ||
                 (both > 1 && try_move(c, g, k, from, to, both, more))))
                return true;
        }
    }
    return false;
}

/* So few moves are tried in pairs, too: equal shares of two devices only help when both shrink. */
enum { FEW_MOVES = 32 };

double rounding_climb(Plan *plan, const SimLinear *linear, const SimMemory *memory,
                      const ClusterView *view, double *share, uint32_t most_moves)
{
    g_autofree Split **split = g_new0(Split *, linear->n_splits);
    for (uint32_t k = 0; k < linear->n_splits; k++)
        split[k] =
            (Split *)plan_find_split(plan, &(Split){.segment = linear->split[k].segment,
                                                    .units = linear->split[k].units});
    Climb c = {.plan = plan,
               .linear = linear,
               .memory = memory,
               .view = view,
               .share = share,
               .split = split,
               .fits = sim_memory_fits(memory, view, share)};
    c.time_s = time_of(&c);
    bool better = true;
    for (uint32_t i = 0; i < most_moves && better; i++) {
        Groups g = rounding_find_groups(&c);
        better = improve(&c, &g, 0) ||
                 (linear->n_splits * g.n * g.n <= FEW_MOVES && improve(&c, &g, 1));
        groups_clear(&g);
    }
    return c.time_s;
}

/* --- shares of all units --- */

static ORDER_VALUES(compare_units, uint32_t);

/* The numbers of units of all dimensions that can be cut, ascending. Caller frees. */
static uint32_t *all_units(const Graph *graph, uint32_t *n)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    tensors_each (tensor, t, graph) {
        for (uint32_t d = 0; d < tensor->rank; d++)
            if (tensor->units[d] > 1)
                g_hash_table_add(seen, GUINT_TO_POINTER(tensor->units[d]));
    }
    uint32_t *units = g_new(uint32_t, g_hash_table_size(seen) + 1);
    *n = 0;
    table_each (key, value, seen)
        units[(*n)++] = GPOINTER_TO_UINT(key);
    qsort(units, *n, sizeof *units, compare_units);
    return units;
}

void rounded_shares_init(RoundedShares *rounded, const Plan *plan, const Graph *graph)
{
    uint32_t n_units;
    const uint32_t n = plan->n_devices;
    rounded->units = all_units(graph, &n_units);
    rounded->share = g_new(double, (gsize)n_units *n + 1);
    g_autofree uint32_t *count = g_new(uint32_t, n);
    for (uint32_t u = 0; u < n_units; u++) {
        const Split *split = plan_find_split(plan, &(Split){.units = rounded->units[u]});
        if (split)
            memcpy(count, split->count, n * sizeof *count);
        else
            split_round(plan->ratio, n, rounded->units[u], count);
        for (uint32_t j = 0; j < n; j++)
            rounded->share[(size_t)u * n + j] = (double)count[j] / rounded->units[u];
    }
    rounded->shares = (SynthShares){n_units, rounded->units, rounded->share};
}

CLEAR_DEFINE(rounded_shares_clear, RoundedShares, rounded, let_go(rounded->units, g_free),
             let_go(rounded->share, g_free));
