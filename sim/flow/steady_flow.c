/* The time of a long program by flow, from the pace at which a few repetitions of its middle
 * follow one another. */
#include <math.h>

#include "data/base/free.h"
#include "data/program/period.h"
#include "sim/evaluate.h"
#include "sim/sim.h"

/* Spans by their instructions: those of i are span[first[i]] to span[first[i + 1] - 1]. */
typedef struct {
    uint32_t *first;
    const SimSpan **span;
} SteadySpans;

OWN_CLEAR_DEFINE(steady_clear, SteadySpans, s, free_each(s->first, s->span));

static SteadySpans steady_spans(const SimTimeline *timeline)
{
    const uint32_t n = timeline->n_instrs;
    SteadySpans of = {g_new0(uint32_t, n + 2),
                      g_new(const SimSpan *, timeline->n_spans + 1)};
    items_each (const SimSpan, span, timeline->span, timeline->n_spans)
        of.first[span->instr + 2]++;
    for (uint32_t i = 2; i < n + 2; i++)
        of.first[i] += of.first[i - 1];
    items_each (const SimSpan, span, timeline->span, timeline->n_spans)
        of.span[of.first[span->instr + 1]++] = span;
    return of;
}

/* How much later spans of a lane are than those a cycle before them. */
typedef struct {
    double least, most, launch;
} SteadyLane;

/* The middle of a timeline: instructions from `begin` on, and what they repeat. */
typedef struct {
    const SimTimeline *timeline;
    uint32_t begin, end, back;
    SteadyLane *lane;
    double later_s; /* of the slowest lane */
} SteadyMiddle;

OWN_CLEAR_DEFINE(middle_clear, SteadyMiddle, m, g_free(m->lane));

static bool steady_compare(SteadyMiddle *m, const SteadySpans *spans)
{
    const uint32_t from = spans->first[m->begin], n = spans->first[m->end] - from,
                   before_from = spans->first[m->begin - m->back];
    bool alike = spans->first[m->end - m->back] - before_from == n;
    for (uint32_t i = 0; i < n && alike; i++) {
        const SimSpan *now = spans->span[from + i],
                      *before = spans->span[before_from + i];
        const double later_s = now->end_s - before->end_s;
        uint32_t n_lanes;
        const uint32_t *of = sim_span_lanes(m->timeline, now, &n_lanes);
        alike = now->instr == before->instr + m->back && now->lane == before->lane &&
                now->launch == before->launch;
        for (uint32_t k = 0; k < n_lanes; k++) {
            SteadyLane *lane = &m->lane[of[k]];
            double *most = now->launch ? &lane->launch : &lane->most;
            *most = fmax(*most, later_s);
            lane->least = now->launch ? lane->least : fmin(lane->least, later_s);
        }
    }
    return alike;
}

/* Whether the critical path comes through the slowest lanes. */
static bool steady_is_bound(const SteadyMiddle *m)
{
    uint32_t n, n_lanes;
    g_autofree uint32_t *path = sim_timeline_critical_path(m->timeline, &n);
    bool bound = false;
    for (uint32_t i = 0; i < n && !bound; i++) {
        const SimSpan *span = &m->timeline->span[path[i]];
        const uint32_t *of = sim_span_lanes(m->timeline, span, &n_lanes);
        for (uint32_t k = 0; k < n_lanes; k++)
            bound |= span->instr >= m->begin && span->instr < m->end &&
                     m->lane[of[k]].most >= m->later_s;
    }
    return bound;
}

/* Whether each lane repeats what it did a cycle before, all of it equally much later, for as many
 * repetitions as tasks may wait for, with as many behind them: those that are left out then do
 * so, too. Launches, which wait for launches alone, may get ever earlier. Lanes that exchange
 * nothing in the middle, as those of replicas, may have a pace each, if the end waits for the
 * slowest one. */
static bool is_steady(SteadyMiddle *m, const SteadySpans *spans, bool successive)
{
    static const double same = 1e-3;
    const uint32_t n = m->timeline->n_lanes;
    m->lane = g_new0(SteadyLane, n);
    for (uint32_t l = 0; l < n; l++)
        m->lane[l].least = INFINITY;
    bool steady = steady_compare(m, spans);
    items_each (const SteadyLane, lane, m->lane, n)
        if (lane->most > 0)
            m->later_s = fmax(m->later_s, (lane->least + lane->most) / 2);
    items_each (const SteadyLane, lane, m->lane, n)
        steady &= lane->launch <= (1 + same) * lane->most &&
                  (successive && lane->most > 0 ? m->later_s : lane->most) <=
                      (1 + same) * lane->least;
    return steady && steady_is_bound(m);
}

double sim_flow_estimate_s(const Plan *plan, const Graph *graph, const ClusterView *view,
                           const SimOptions *options, uint32_t most)
{
    enum { CYCLES = 4, LEAST = 2 }; /* longest cycle; parts of the middle in all of it */
    const Strategy *strategy = &plan->strategy;
    ProgramPeriod p;
    if (strategy->offload || strategy->sync_every > 1 ||
        !program_find_period(plan->program, &p))
        return INFINITY;
    const uint32_t all = program_all_repeats(plan->program, &p),
                   least = 3 * p.depth + CYCLES + 2,
                   repeats = least + (all - least) % CYCLES,
                   end = p.first + (repeats - p.depth) * p.n;
    if (LEAST * least > all)
        return INFINITY;
    g_autoptr(Program) program = program_repeat(plan->program, &p, repeats);
    Plan part = *plan;
    part.program = program;
    g_autoptr(SimReport) report =
        program->n > most
            ? NULL
            : sim_evaluate_part(&part, graph, view, fidelity_name(FIDELITY_FLOW), options,
                                NULL);
    if (!report)
        return INFINITY;
    g_auto(SteadySpans) spans = steady_spans(report->timeline);
    for (uint32_t cycle = 1; cycle <= CYCLES; cycle *= 2) {
        g_auto(SteadyMiddle) m = {.timeline = report->timeline,
                                  .begin = end - (p.depth + 2) * p.n,
                                  .end = end,
                                  .back = cycle * p.n};
        if (is_steady(&m, &spans, program->successive))
            return report->iteration_time_s + (all - repeats) / cycle * m.later_s;
    }
    return INFINITY;
}
