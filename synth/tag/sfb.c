/* Sufficient factor broadcasting as a minimum cut. Costs become integers, so that the cut is exact;
 * its value is added up again in doubles. */
#include "synth/tag/sfb.h"
#include "data/base/assert.h"
#include "data/base/each.h"
#include "data/base/free.h"

#include <float.h>
#include <glib.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* --- minimum cuts --- */

/* More than the sum of all capacities that can be cut. */
#define CUT_INFINITE (INT64_MAX / 4)

#define NO_ARC UINT32_MAX

enum { SOURCE, SINK, FIRST_OP };

typedef struct {
    uint32_t to, next; /* next: next arc of the same node */
    int64_t left;
} Arc;

typedef struct {
    uint32_t n_nodes;
    GArray *arc;     /* Arc; arc ^ 1 is its reverse */
    uint32_t *first; /* [node] */
    uint32_t *at;    /* [node]: its current arc in this phase */
    uint32_t *level; /* [node] */
    uint32_t *queue; /* nodes */
    uint32_t *path;  /* arcs */
} Cut;

/* An empty network; node 0 is the source, node 1 the sink. */
static Cut *cut_new(uint32_t n_nodes)
{
    Cut *cut = g_new0(Cut, 1);
    cut->n_nodes = n_nodes;
    cut->arc = g_array_new(FALSE, FALSE, sizeof(Arc));
    cut->first = g_new(uint32_t, n_nodes);
    cut->at = g_new(uint32_t, n_nodes);
    cut->level = g_new(uint32_t, n_nodes);
    cut->queue = g_new(uint32_t, n_nodes);
    cut->path = g_new(uint32_t, n_nodes);
    for (uint32_t i = 0; i < n_nodes; i++)
        cut->first[i] = NO_ARC;
    return cut;
}

OWN_FREE_DEFINE(cut_free, Cut, cut, g_array_unref(cut->arc),
                free_each(cut->first, cut->at, cut->level, cut->queue, cut->path));

static Arc *arc_at(const Cut *cut, uint32_t i)
{
    KILTER_ASSERT(i < cut->arc->len);
    return &g_array_index(cut->arc, Arc, i);
}

static void sfb_add_half(Cut *cut, uint32_t from, uint32_t to, int64_t capacity)
{
    KILTER_ASSERT(capacity >= 0 && from < cut->n_nodes && to < cut->n_nodes);
    const Arc arc = {to, cut->first[from], capacity};
    cut->first[from] = cut->arc->len;
    g_array_append_val(cut->arc, arc);
}

static void cut_arc(Cut *cut, uint32_t from, uint32_t to, int64_t capacity)
{
    g_assert(from < cut->n_nodes && to < cut->n_nodes && capacity >= 0);
    sfb_add_half(cut, from, to, capacity);
    sfb_add_half(cut, to, from, 0);
}

/* Finds the levels of all nodes reachable from the source; returns whether the sink is. */
static bool find_levels(Cut *cut)
{
    uint32_t head = 0, tail = 0;
    memset(cut->level, 0xff, cut->n_nodes * sizeof *cut->level);
    cut->level[SOURCE] = 0;
    cut->queue[tail++] = SOURCE;
    while (head < tail) {
        const uint32_t node = cut->queue[head++];
        for (uint32_t i = cut->first[node]; i != NO_ARC; i = arc_at(cut, i)->next) {
            const Arc *arc = arc_at(cut, i);
            if (arc->left == 0 || cut->level[arc->to] != UINT32_MAX)
                continue;
            cut->level[arc->to] = cut->level[node] + 1;
            cut->queue[tail++] = arc->to;
        }
    }
    return cut->level[SINK] != UINT32_MAX;
}

/* The next arc of a node that leads one level down and has room, or NO_ARC. */
static uint32_t next_arc(Cut *cut, uint32_t node)
{
    uint32_t i = cut->at[node];
    while (i != NO_ARC && (arc_at(cut, i)->left == 0 ||
                           cut->level[arc_at(cut, i)->to] != cut->level[node] + 1))
        i = arc_at(cut, i)->next;
    return cut->at[node] = i;
}

/* Pushes flow along the path to the sink; returns the length of the path before its first full
 * arc. */
static uint32_t push(Cut *cut, uint32_t n, int64_t *flow)
{
    int64_t least = INT64_MAX;
    uint32_t left = n;
    for (uint32_t k = 0; k < n; k++)
        least = MIN(least, arc_at(cut, cut->path[k])->left);
    for (uint32_t k = n; k-- > 0;) {
        arc_at(cut, cut->path[k])->left -= least;
        arc_at(cut, cut->path[k] ^ 1u)->left += least;
        if (arc_at(cut, cut->path[k])->left == 0)
            left = k;
    }
    *flow += least;
    return left;
}

static int64_t run_phase(Cut *cut)
{
    int64_t flow = 0;
    uint32_t n = 0, node = SOURCE;
    memcpy(cut->at, cut->first, cut->n_nodes * sizeof *cut->at);
    for (;;) {
        if (node == SINK) {
            n = push(cut, n, &flow);
            node = n ? arc_at(cut, cut->path[n - 1])->to : SOURCE;
            continue;
        }
        const uint32_t i = next_arc(cut, node);
        if (i != NO_ARC) {
            cut->path[n++] = i;
            node = arc_at(cut, i)->to;
        } else if (n > 0) {
            cut->level[node] = UINT32_MAX; /* a dead end */
            n--;
            node = n ? arc_at(cut, cut->path[n - 1])->to : SOURCE;
        } else {
            return flow;
        }
    }
}

/* Finds the cut; *on_source_side: out, [node], of all minimum cuts the one with the fewest nodes on
 * the side of the source. Returns its capacity. */
static int64_t cut_solve(Cut *cut, bool *on_source_side)
{
    int64_t flow = 0;
    while (find_levels(cut))
        flow += run_phase(cut);
    for (uint32_t i = 0; i < cut->n_nodes; i++)
        on_source_side[i] = cut->level[i] != UINT32_MAX;
    return flow;
}

/* The sum of all possible savings, as an integer. */
static const double RESOLUTION = 0x1p58;

/* An edge that costs more than all savings is never cut. */
static int64_t scaled(double cost, double scale)
{
    return cost * scale > RESOLUTION ? CUT_INFINITE : (int64_t)(cost * scale + 0.5);
}

static Cut *make_cut(const SfbProblem *problem, double scale)
{
    const uint32_t first_tensor = FIRST_OP + problem->n_ops;
    Cut *cut = cut_new(first_tensor + problem->n_tensors);
    for (uint32_t i = 0; i < problem->n_ops; i++) {
        if (problem->saved[i] > 0)
            cut_arc(cut, SOURCE, FIRST_OP + i, scaled(problem->saved[i], scale));
        if (problem->compute[i] > 0)
            cut_arc(cut, FIRST_OP + i, SINK, scaled(problem->compute[i], scale));
    }
    items_each (const SfbRead, read, problem->read, problem->n_reads) {
        const uint32_t producer = problem->producer[read->tensor];
        const int64_t broadcast = scaled(problem->broadcast[read->tensor], scale);
        if (producer != SFB_NO_OP)
            cut_arc(cut, FIRST_OP + read->op,
                    problem->each_reader ? FIRST_OP + producer
                                         : first_tensor + read->tensor,
                    problem->each_reader ? broadcast : CUT_INFINITE);
    }
    for (uint32_t t = 0; t < problem->n_tensors && !problem->each_reader; t++)
        if (problem->producer[t] != SFB_NO_OP)
            cut_arc(cut, first_tensor + t, FIRST_OP + problem->producer[t],
                    scaled(problem->broadcast[t], scale));
    return cut;
}

double synth_sfb_value(const SfbProblem *problem, const bool *duplicated)
{
    g_autofree bool *sent = g_new0(bool, problem->n_tensors + 1);
    double value = sum_over(double, i, problem->n_ops,
                            duplicated[i] ? problem->compute[i] - problem->saved[i] : 0);
    items_each (const SfbRead, read, problem->read, problem->n_reads) {
        const uint32_t producer = problem->producer[read->tensor];
        if (!duplicated[read->op] || producer == SFB_NO_OP || duplicated[producer] ||
            (!problem->each_reader && sent[read->tensor]))
            continue;
        sent[read->tensor] = true;
        value += problem->broadcast[read->tensor];
    }
    return value;
}

double synth_sfb(const SfbProblem *problem, bool *duplicated)
{
    double sum = 0;
    memset(duplicated, 0, problem->n_ops * sizeof *duplicated);
    for (uint32_t i = 0; i < problem->n_ops; i++)
        sum += problem->saved[i];
    if (!(sum > 0))
        return 0;
    /* Savings of almost nothing would make it infinite, and nothing times that a NaN. */
    g_autoptr(Cut) cut = make_cut(problem, fmin(RESOLUTION / sum, DBL_MAX));
    g_autofree bool *side = g_new(bool, FIRST_OP + problem->n_ops + problem->n_tensors);
    cut_solve(cut, side);
    memcpy(duplicated, side + FIRST_OP, problem->n_ops * sizeof *duplicated);
    const double value = synth_sfb_value(problem, duplicated);
    if (value <= 0)
        return value;
    memset(duplicated, 0,
           problem->n_ops * sizeof *duplicated); /* the gain is below rounding */
    return 0;
}
