/* Busy times, by intervals. */
#include "sim/flow/tally.h"

#include <math.h>
#include <stdlib.h>

#include "data/base/free.h"
#include "data/base/order.h"

typedef struct {
    double start_s, end_s;
} Interval;

static ORDER_DEFINE(compare, Interval, ASCENDING(start_s));

SimTally *sim_tally_new(uint32_t n_lanes, uint32_t n_stages)
{
    SimTally *tally = g_new0(SimTally, 1);
    tally->n_lanes = n_lanes;
    tally->n_stages = n_stages;
    tally->interval = g_new(GArray *, 2 * n_lanes);
    tally->first_s = g_new(double, 2 * n_lanes + n_stages);
    tally->start_s = tally->first_s + 2 * n_lanes;
    tally->last_s = g_new0(double, 2 * n_lanes);
    tally->stage_s = g_new0(double, 2 * (size_t)n_stages * n_lanes + 1);
    for (uint32_t l = 0; l < 2 * n_lanes; l++)
        tally->interval[l] = g_array_new(FALSE, FALSE, sizeof(Interval));
    for (uint32_t i = 0; i < 2 * n_lanes + n_stages; i++)
        tally->first_s[i] = INFINITY;
    return tally;
}

FREE_DEFINE(sim_tally_free, SimTally, tally,
            release_items(tally->interval, 2 * tally->n_lanes, g_array_unref),
            free_each(tally->interval, tally->first_s, tally->last_s, tally->stage_s));

/* Most intervals begin where the one before ends. */
static void tally_interval(GArray *intervals, double start_s, double end_s)
{
    const Interval added = {start_s, end_s};
    Interval *last =
        intervals->len ? &g_array_index(intervals, Interval, intervals->len - 1) : NULL;
    if (last && last->start_s <= start_s && start_s <= last->end_s)
        last->end_s = MAX(last->end_s, end_s);
    else
        g_array_append_val(intervals, added);
}

void sim_tally_add(SimTally *tally, const SimSpan *span, bool received,
                   const uint32_t *lane, uint32_t n)
{
    const bool communicates = span->lane == SIM_TEAM,
               staged = tally->n_stages > 0 && !span->launch;
    double *stage_s = &tally->stage_s[2 * (size_t)span->stage * tally->n_lanes];
    if (staged)
        tally->start_s[span->stage] = MIN(tally->start_s[span->stage], span->start_s);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t own = 2 * lane[k] + span->launch, of = 2 * lane[k] + communicates;
        if (!received) {
            tally->first_s[own] = MIN(tally->first_s[own], span->start_s);
            tally->last_s[own] = MAX(tally->last_s[own], span->end_s);
        }
        if (!span->launch)
            tally_interval(tally->interval[of], span->start_s, span->end_s);
        if (staged)
            stage_s[of] += span->end_s - span->start_s;
    }
}

/* Sorts intervals, which mostly are in order already, and merges those that touch; returns their
 * length. */
static double merge(GArray *intervals)
{
    Interval *interval = (Interval *)(void *)intervals->data;
    const uint32_t n = intervals->len;
    uint32_t kept = 0, sorted = 1;
    while (sorted < n && interval[sorted - 1].start_s <= interval[sorted].start_s)
        sorted++;
    if (sorted < n)
        qsort(interval, n, sizeof *interval, compare);
    for (uint32_t i = 0; i < n; i++) {
        if (kept > 0 && interval[i].start_s <= interval[kept - 1].end_s)
            interval[kept - 1].end_s = fmax(interval[kept - 1].end_s, interval[i].end_s);
        else
            interval[kept++] = interval[i];
    }
    g_array_set_size(intervals, kept);
    return sum_over(double, i, kept, interval[i].end_s - interval[i].start_s);
}

/* Length of the intersection of two lists of merged intervals. */
static double tally_common(const GArray *list, const GArray *other)
{
    const Interval *a = (const Interval *)(const void *)list->data,
                   *b = (const Interval *)(const void *)other->data;
    double sum = 0;
    for (uint32_t i = 0, k = 0; i < list->len && k < other->len;) {
        const double start_s = fmax(a[i].start_s, b[k].start_s);
        const double end_s = fmin(a[i].end_s, b[k].end_s);
        sum += fmax(end_s - start_s, 0);
        if (a[i].end_s < b[k].end_s)
            i++;
        else
            k++;
    }
    return sum;
}

void sim_tally_breakdown(SimTally *tally, double end_s, SimBreakdown *of)
{
    for (uint32_t l = 0; l < tally->n_lanes; l++) {
        GArray *compute = tally->interval[2 * l],
               *communicate = tally->interval[2 * l + 1];
        of[l].compute_s = merge(compute);
        of[l].exposed_s = merge(communicate);
        of[l].hidden_s = tally_common(compute, communicate);
        of[l].exposed_s -= of[l].hidden_s;
        of[l].idle_s = end_s - of[l].compute_s - of[l].exposed_s;
    }
}

double sim_tally_period_s(const SimTally *tally, uint32_t *lane)
{
    double longest_s = 0;
    *lane = 0;
    for (uint32_t l = 0; l < 2 * tally->n_lanes; l++)
        if (tally->last_s[l] - tally->first_s[l] > longest_s) {
            longest_s = tally->last_s[l] - tally->first_s[l];
            *lane = l / 2;
        }
    return longest_s;
}

void sim_tally_stages(const SimTally *tally, double end_s, SimReport *report)
{
    for (uint32_t i = 0; i < tally->n_stages; i++) {
        SimStageReport *stage = &report->stage[i];
        const double *of = &tally->stage_s[2 * (size_t)i * tally->n_lanes];
        stage->start_s = fmin(tally->start_s[i], end_s);
        for (uint32_t l = 0; l < tally->n_lanes; l++) {
            stage->comp_s = fmax(stage->comp_s, of[2 * l]);
            stage->comm_s = fmax(stage->comm_s, of[2 * l + 1]);
        }
    }
}
