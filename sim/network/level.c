/* Solves for the levels of the links where something changed.
 *
 * A link waits while its level may change; its flows are free then. The key of a waiting link is
 * its level if all free flows rise with it, a lower bound of its final level. The waiting link with
 * the smallest key is settled: it takes those flows on it that are free or faster.
 *
 * `assumed` is the level at which the loads of other links count a link's flows. It is raised to
 * the water line before anything settles there. A link that this fills, or a full link whose load
 * changes, waits from then on. When the heap is empty each flow is bound to a full link on which no
 * flow is faster, which is the definition of max-min fairness. */
#include <math.h>

#include "sim/network/fairness.h"

/* Levels that differ by less than this, relatively, count as equal. */
static const double SAME_LEVEL = 1e-11;
/* A load that differs from the bandwidth by less than this, relatively, is summed anew before it is
 * used. */
static const double NEARLY_FULL = 1e-6;

/* Settlings of one solve, per link, after which all links are solved for from scratch. It is more
 * than any case has needed, and keeps rounding from making the solver cycle. */
enum { MOST_SETTLINGS = 16 };

/* The level that fills the link: sum over its row of weight x min(cap, level) = bandwidth. INFINITY
 * if it is never full. Newton's method from below on a concave piecewise linear function takes at
 * most as many steps as there are pieces. */
static double level_of(const SimShare *share, uint32_t link)
{
    const Terms *row = &share->coupling.row[link];
    const double bandwidth = share->link[link].bandwidth;
    double weight = 0;
    for (uint32_t i = 0; i < row->n; i++)
        weight += row->term[i].weight;
    if (!(weight > 0))
        return INFINITY;
    double level = fmax(0, bandwidth / weight);
    for (uint32_t step = 0; step <= row->n; step++) {
        double room = bandwidth, rising = 0;
        for (uint32_t i = 0; i < row->n; i++) {
            const double cap = share->cap[row->term[i].other];
            if (cap <= level)
                room -= row->term[i].weight * cap;
            else
                rising += row->term[i].weight;
        }
        if (!(rising > 0))
            return INFINITY;
        const double next = fmax(0, room / rising);
        if (!(next > level))
            break;
        level = next;
    }
    return level;
}

/* Whether the load exceeds the bandwidth. */
static bool is_overfull(SimShare *share, uint32_t link)
{
    SharedLink *l = &share->link[link];
    if (l->load < l->bandwidth * (1 - NEARLY_FULL))
        return false;
    const Terms *row = &share->coupling.row[link];
    double load = 0;
    for (uint32_t i = 0; i < row->n; i++)
        if (row->term[i].other < share->n_links)
            load += row->term[i].weight * share->link[row->term[i].other].assumed;
    l->load = load;
    return load > l->bandwidth * (1 + SAME_LEVEL);
}

static void touch(SimShare *share, uint32_t link)
{
    if (share->link[link].touched)
        return;
    share->link[link].touched = true;
    g_array_append_val(share->touched, link);
}

/* --- waiting --- */

static void set_key(SimShare *share, uint32_t link)
{
    keyed_heap_change(&share->levels, share->level_place,
                      (KeyedItem){level_of(share, link), link});
}

/* Makes the link wait. Its flows become free, which lowers the keys of links that counted them as
 * capped. */
static void start_waiting(SimShare *share, uint32_t link)
{
    SharedLink *l = &share->link[link];
    if (l->waiting)
        return;
    const double cap = share->cap[link];
    l->waiting = true;
    share->cap[link] = INFINITY;
    touch(share, link);
    keyed_heap_push(&share->levels, share->level_place,
                    (KeyedItem){level_of(share, link), link});
    const Terms *column = &share->coupling.column[link];
    for (uint32_t i = 0; l->n_bound > 0 && i < column->n; i++) {
        const uint32_t k = column->term[i].other;
        if (k != link && share->link[k].waiting &&
            cap < share->levels.at[share->level_place[k]].key)
            set_key(share, k);
    }
}

/* Makes the links in `to_wait` wait; returns whether there is any. */
static bool let_wait(SimShare *share)
{
    const bool any = share->to_wait->len > 0;
    for (uint32_t i = 0; i < share->to_wait->len; i++)
        start_waiting(share, g_array_index(share->to_wait, uint32_t, i));
    g_array_set_size(share->to_wait, 0);
    return any;
}

static void load_changes(SimShare *share, uint32_t link, double by)
{
    SharedLink *l = &share->link[link];
    l->load += by;
    if (!l->waiting && (l->n_bound > 0 || (by > 0 && is_overfull(share, link))))
        g_array_append_val(share->to_wait, link);
}

/* Sets the level at which the loads count the flows of a link. */
static void assume(SimShare *share, uint32_t link, double level)
{
    const double by = level - share->link[link].assumed;
    const Terms *column = &share->coupling.column[link];
    share->link[link].assumed = level;
    for (uint32_t i = 0; i < column->n; i++)
        load_changes(share, column->term[i].other, column->term[i].weight * by);
}

static bool is_below(double a, double b)
{
    return a < b * (1 - SAME_LEVEL);
}

/* Raises the assumed levels in the link's row to its key. Returns whether this makes other links
 * wait. */
static bool raise_row(SimShare *share, uint32_t link, double level)
{
    const Terms *row = &share->coupling.row[link];
    for (uint32_t i = 0; i < row->n; i++) {
        const uint32_t m = row->term[i].other;
        if (m < share->n_links && share->link[m].waiting &&
            is_below(share->link[m].assumed, level))
            assume(share, m, level);
    }
    return let_wait(share);
}

/* --- settling --- */

static void rebind(SimShare *share, SimFlowId id, uint32_t link, double now_s)
{
    KILTER_ASSERT(id < share->flow_capacity && link <= share->n_links);
    Sharer *f = &share->flow[id];
    const uint32_t from = f->bottleneck;
    const bool was_bound = from < share->n_links;
    const double left = clock_left(share, id, now_s);
    const double by =
        share->link[link].assumed - (was_bound ? share->link[from].assumed : 0);
    coupling_leave(share, id);
    if (was_bound) {
        clock_remove(share, id);
        share->link[from].n_bound--;
    }
    clock_add(share, id, link, left, now_s);
    share->link[link].n_bound++;
    coupling_join(share, id, link);
    const double most = SAME_LEVEL * share->link[link].assumed;
    const UsePlace *place = share_places(share, id);
    for (uint32_t k = 0; k < f->n_uses; k++) {
        const uint32_t l = f->use[k].link;
        if (place[k].pair == SLACK)
            continue;
        if (l != link && fabs(by) > most)
            load_changes(share, l, share_weight(share, id, k) * by);
        else
            share->link[l].load += share_weight(share, id, k) * by;
    }
}

/* Binds the flows of the link that are free or faster to it. */
static void take_flows(SimShare *share, uint32_t link, double level, double now_s)
{
    const Terms *row = &share->coupling.row[link];
    g_array_set_size(share->terms, 0);
    for (uint32_t i = 0; i < row->n; i++)
        if (row->term[i].other != link && is_below(level, share->cap[row->term[i].other]))
            g_array_append_val(share->terms, row->term[i]);
    for (uint32_t i = 0; i < share->terms->len; i++) {
        const Term term = g_array_index(share->terms, Term, i);
        for (uint32_t n = share->coupling.pair[term.pair].n; n > 0; n--)
            rebind(share, share->coupling.pair[term.pair].member[n - 1].flow, link,
                   now_s);
        if (term.other < share->n_links && !share->link[term.other].waiting)
            g_array_append_val(share->to_wait, term.other);
    }
}

static void stop_waiting(SimShare *share, uint32_t link, double level)
{
    share->link[link].waiting = false;
    share->cap[link] = level;
    keyed_heap_remove(&share->levels, share->level_place, link);
}

static void level_settle(SimShare *share, uint32_t link, double level, double now_s)
{
    KILTER_ASSERT(link < share->n_links && level >= 0);
    stop_waiting(share, link, level);
    if (share->link[link].n_bound > 0) {
        /* A level within rounding of the old one keeps the old value to the bit. */
        if (fabs(level - share->link[link].assumed) > SAME_LEVEL * level)
            assume(share, link, level);
    }
    share->link[link].assumed = level;
    take_flows(share, link, level, now_s);
    /* The link itself changed because it was settled, so it need not wait. */
    for (uint32_t i = 0; i < share->to_wait->len;)
        if (g_array_index(share->to_wait, uint32_t, i) == link)
            g_array_remove_index_fast(share->to_wait, i);
        else
            i++;
    let_wait(share);
}

/* All links wait and no flow is bound: the first pass over the heap is plain water-filling. */
static void start_from_nothing(SimShare *share)
{
    for (uint32_t l = 0; l < share->n_links; l++)
        if (share->coupling.row[l].n > 0)
            start_waiting(share, l);
}

static void settle_all(SimShare *share, double now_s)
{
    uint64_t left = MOST_SETTLINGS * ((uint64_t)share->n_links + 1);
    double reached = 0; /* the level that was settled last */
    while (share->levels.n > 0) {
        const uint32_t link = share->levels.at[0].item;
        const double key = share->levels.at[0].key;
        if (isinf(key)) {
            g_assert(share->link[link].n_bound == 0);
            stop_waiting(share, link, key);
            continue;
        }
        double level = level_of(share, link);
        if (is_below(key, level)) {
            set_key(share, link);
            continue;
        }
        if (fabs(level - reached) <= SAME_LEVEL * reached)
            level = reached;
        if (raise_row(share, link, level))
            continue;
        level_settle(share, link, level, now_s);
        reached = level;
        if (left-- == 0)
            start_from_nothing(share);
    }
}

/* --- flows alone --- */

static void solve_alone(SimShare *share, SimFlowId id, double now_s)
{
    KILTER_ASSERT(id < share->flow_capacity);
    const Sharer *f = &share->flow[id];
    const double rate =
        least_over(double, k, f->n_uses, INFINITY,
                   share->link[f->use[k].link].bandwidth / share_weight(share, id, k));
    clock_set_alone(share, id, rate, now_s);
}

void share_solve(SimShare *share, double now_s)
{
    bool solved = false;
    for (uint32_t i = 0; i < share->flows_alone->len; i++) {
        const SimFlowId id = g_array_index(share->flows_alone, SimFlowId, i);
        if (!share->flow[id].active || share->flow[id].bottleneck != ALONE)
            continue;
        solve_alone(share, id, now_s);
        solved = true;
    }
    g_array_set_size(share->flows_alone, 0);
    for (uint32_t i = 0; i < share->seeds->len; i++) {
        const uint32_t link = g_array_index(share->seeds, uint32_t, i);
        share->link[link].seeded = false;
        if (share->coupling.row[link].n == 0)
            continue;
        start_waiting(share, link);
        solved = true;
    }
    g_array_set_size(share->seeds, 0);
    settle_all(share, now_s);
    for (uint32_t i = 0; i < share->touched->len; i++) {
        const uint32_t link = g_array_index(share->touched, uint32_t, i);
        SharedLink *l = &share->link[link];
        l->touched = false;
        clock_set_speed(share, link, l->n_bound > 0 ? l->assumed : 0, now_s);
    }
    g_array_set_size(share->touched, 0);
    share->n_solved += solved;
    if (solved && kilter_walk_due(share->n_solved))
        KILTER_WALK(g_assert(share_is_fair(share, 1e-9)));
}
