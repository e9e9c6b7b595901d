/* Timelines: spans, the critical path. */
#include "data/base/free.h"
#include "sim/flow/tally.h"

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

SimTally *sim_timeline_tally(const SimTimeline *timeline, const Program *program,
                             uint32_t n_stages)
{
    SimTally *tally = sim_tally_new(timeline->n_lanes, n_stages);
    items_each (const SimSpan, span, timeline->span, timeline->n_spans) {
        uint32_t n;
        const uint32_t *lane = sim_span_lanes(timeline, span, &n);
        const bool received = program && !span->launch &&
                              program->instr[span->instr].kind == INSTR_TRANSFER;
        sim_tally_add(tally, span, received, lane, n);
    }
    return tally;
}

double sim_timeline_time_s(const SimTimeline *timeline, const Program *program,
                           uint32_t *lane)
{
    g_autoptr(SimTally) tally =
        program->successive ? sim_timeline_tally(timeline, program, 0) : NULL;
    return tally ? sim_tally_period_s(tally, lane) : sim_timeline_end_s(timeline);
}

void sim_timeline_breakdown(const SimTimeline *timeline, SimBreakdown *of)
{
    g_autoptr(SimTally) tally = sim_timeline_tally(timeline, NULL, 0);
    sim_tally_breakdown(tally, sim_timeline_end_s(timeline), of);
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
    const uint32_t last = last_span(timeline);
    *n = 0;
    for (uint32_t i = last; i != SIM_NO_SPAN; i = timeline->span[i].cause)
        ++*n;
    uint32_t *forward = g_new(uint32_t, *n), k = *n;
    for (uint32_t i = last; i != SIM_NO_SPAN; i = timeline->span[i].cause)
        forward[--k] = i;
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
