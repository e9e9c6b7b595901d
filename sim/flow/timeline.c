/* Timelines: spans, busy times, the critical path. */
#include "sim/flow/timeline.h"

#include "data/base/free.h"
#include "data/base/order.h"

#include <math.h>
#include <stdlib.h>

SimTimeline *sim_timeline_new(uint32_t n_devices, uint32_t n_lanes, uint32_t n_teams,
                              uint32_t n_spans, uint32_t n_instrs)
{
    g_assert(n_devices > 0);
    SimTimeline *timeline = g_new0(SimTimeline, 1);
    timeline->n_devices = n_devices;
    timeline->n_lanes = n_lanes;
    timeline->n_teams = n_teams;
    timeline->team = g_new0(SimTimelineTeam, n_teams);
    timeline->n_streams = 2;
    timeline->n_spans = n_spans;
    timeline->lane = g_new0(uint32_t, n_devices);
    timeline->span = g_new0(SimSpan, n_spans);
    timeline->n_instrs = n_instrs;
    timeline->bucket = g_new(uint32_t, n_instrs);
    for (uint32_t i = 0; i < n_instrs; i++)
        timeline->bucket[i] = SIM_NO_SPAN;
    return timeline;
}

FREE_DEFINE(sim_timeline_free, SimTimeline, timeline,
            release_items(timeline->memory, timeline->memory ? timeline->n_lanes : 0,
                          g_array_unref),
            free_column(timeline->link, timeline->n_links, name),
            free_column(timeline->team, timeline->n_teams, lane),
            free_each(timeline->team, timeline->memory, timeline->link, timeline->lane,
                      timeline->span, timeline->bucket));

const uint32_t *sim_span_lanes(const SimTimeline *timeline, const SimSpan *span,
                               uint32_t *n)
{
    KILTER_ASSERT(span >= timeline->span && span < timeline->span + timeline->n_spans);
    *n = span->lane == SIM_TEAM ? timeline->team[span->team].n : 1;
    return span->lane == SIM_TEAM ? timeline->team[span->team].lane : &span->lane;
}

/* Index of the span that ends last, of equal ones the first; SIM_NO_SPAN if there is none. */
static uint32_t last_span(const SimTimeline *timeline)
{
    uint32_t last = SIM_NO_SPAN;
    for (uint32_t i = 0; i < timeline->n_spans; i++)
        if (last == SIM_NO_SPAN || timeline->span[i].end_s > timeline->span[last].end_s)
            last = i;
    return last;
}

double sim_timeline_end_s(const SimTimeline *timeline)
{
    const uint32_t last = last_span(timeline);
    return last == SIM_NO_SPAN ? 0 : timeline->span[last].end_s;
}

static double timeline_period_s(const SimTimeline *timeline, const Program *program,
                                uint32_t *lane)
{
    const uint32_t n = 2 * timeline->n_lanes;
    g_autofree double *first_s = g_new(double, n);
    g_autofree double *last_s = g_new0(double, n);
    double longest_s = 0;
    *lane = 0;
    for (uint32_t l = 0; l < n; l++)
        first_s[l] = INFINITY;
    items_each (const SimSpan, span, timeline->span, timeline->n_spans) {
        uint32_t n_own;
        const uint32_t *own = sim_span_lanes(timeline, span, &n_own);
        const bool received =
            !span->launch && program->instr[span->instr].kind == INSTR_TRANSFER;
        for (uint32_t k = 0; !received && k < n_own; k++) {
            const uint32_t l = 2 * own[k] + span->launch;
            first_s[l] = fmin(first_s[l], span->start_s);
            last_s[l] = fmax(last_s[l], span->end_s);
        }
    }
    for (uint32_t l = 0; l < n; l++)
        if (last_s[l] - first_s[l] > longest_s) {
            longest_s = last_s[l] - first_s[l];
            *lane = l / 2;
        }
    return longest_s;
}

double sim_timeline_time_s(const SimTimeline *timeline, const Program *program,
                           uint32_t *lane)
{
    return program->successive ? timeline_period_s(timeline, program, lane)
                               : sim_timeline_end_s(timeline);
}

/* --- breakdown --- */

typedef struct {
    double start_s, end_s;
} Interval;

static ORDER_DEFINE(compare, Interval, ASCENDING(start_s));

/* Sorts intervals, which mostly are in order already, and merges those that touch; returns how many
 * are left. */
static uint32_t merge(Interval *interval, uint32_t n)
{
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
    return kept;
}

static double timeline_length(const Interval *interval, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += interval[i].end_s - interval[i].start_s;
    return sum;
}

/* Length of the intersection of two lists of merged intervals. */
static double timeline_common(const Interval *a, uint32_t n_a, const Interval *b,
                              uint32_t n_b)
{
    double sum = 0;
    for (uint32_t i = 0, k = 0; i < n_a && k < n_b;) {
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

/* The intervals of each lane's computations (list 2 lane) and communication (2 lane + 1), in a row.
 * Returns where each list begins and the last ends; the caller frees both. */
static size_t *lane_intervals(const SimTimeline *timeline, Interval **interval)
{
    size_t *first = g_new0(size_t, 2 * (size_t)timeline->n_lanes + 2);
    uint32_t n;
    /* two lists further on first, so that filling a list moves its place to the next one's */
    for (const SimSpan *s = timeline->span; s < timeline->span + timeline->n_spans; s++) {
        const uint32_t *lane = sim_span_lanes(timeline, s, &n);
        for (uint32_t k = 0; !s->launch && k < n; k++)
            first[2 * lane[k] + (s->lane == SIM_TEAM) + 2]++;
    }
    for (uint32_t l = 2; l < 2 * timeline->n_lanes + 2; l++)
        first[l] += first[l - 1];
    *interval = g_new(Interval, first[2 * timeline->n_lanes + 1]);
    for (const SimSpan *s = timeline->span; s < timeline->span + timeline->n_spans; s++) {
        const uint32_t *lane = sim_span_lanes(timeline, s, &n);
        for (uint32_t k = 0; !s->launch && k < n; k++)
            (*interval)[first[2 * lane[k] + (s->lane == SIM_TEAM) + 1]++] =
                (Interval){s->start_s, s->end_s};
    }
    return first;
}

void sim_timeline_breakdown(const SimTimeline *timeline, SimBreakdown *of)
{
    const double end_s = sim_timeline_end_s(timeline);
    g_autofree Interval *interval = NULL;
    g_autofree size_t *first = lane_intervals(timeline, &interval);
    for (uint32_t l = 0; l < timeline->n_lanes; l++) {
        const size_t *at = &first[2 * l];
        Interval *compute = &interval[at[0]], *communicate = &interval[at[1]];
        const uint32_t n_compute = merge(compute, (uint32_t)(at[1] - at[0]));
        const uint32_t n_communicate = merge(communicate, (uint32_t)(at[2] - at[1]));
        of[l].compute_s = timeline_length(compute, n_compute);
        of[l].hidden_s = timeline_common(compute, n_compute, communicate, n_communicate);
        of[l].exposed_s = timeline_length(communicate, n_communicate) - of[l].hidden_s;
        of[l].idle_s = end_s - of[l].compute_s - of[l].exposed_s;
    }
}

/* --- memory --- */

const SimMemoryStep *sim_timeline_memory_peak(const SimTimeline *timeline, uint32_t lane)
{
    g_assert(lane < timeline->n_lanes);
    const SimMemoryStep *peak = NULL;
    for (uint32_t i = 0; timeline->memory && i < timeline->memory[lane]->len; i++) {
        const SimMemoryStep *step =
            &g_array_index(timeline->memory[lane], SimMemoryStep, i);
        if (!peak || step->bytes > peak->bytes)
            peak = step;
    }
    return peak;
}

/* --- critical path --- */

uint32_t *sim_timeline_critical_path(const SimTimeline *timeline, uint32_t *n)
{
    g_autoptr(GArray) path = g_array_new(false, false, sizeof(uint32_t));
    for (uint32_t i = last_span(timeline); i != SIM_NO_SPAN; i = timeline->span[i].cause)
        g_array_append_val(path, i);
    *n = path->len;
    uint32_t *forward = g_new(uint32_t, path->len);
    for (uint32_t i = 0; i < path->len; i++)
        forward[i] = g_array_index(path, uint32_t, path->len - 1 - i);
    return forward;
}

char *sim_span_text(const SimTimeline *timeline, uint32_t span, const Program *program,
                    const Graph *graph)
{
    g_assert(span < timeline->n_spans);
    const SimSpan *s = &timeline->span[span];
    const Instr *instr = &program->instr[s->instr];
    if (s->launch) {
        g_autofree char *what = instr_text(instr, graph);
        return g_strdup_printf("launch of %s", what);
    }
    if (instr->kind == INSTR_COMPUTE)
        return g_strdup(graph_get_op(graph, instr->op)->name);
    const char *tensor = graph_tensor(graph, instr->tensor)->name;
    if (s->lane != SIM_TEAM)
        return g_strdup_printf("%s inside the machine", tensor);
    if (instr->kind == INSTR_TRANSFER)
        return g_strdup_printf("transfer of %s", tensor);
    const char *kind = collective_name(instr->collective);
    if (s->n_fused == 1)
        return g_strdup_printf("%s of %s", kind, tensor);
    return g_strdup_printf("%s of %s and %u more", kind, tensor, s->n_fused - 1);
}
