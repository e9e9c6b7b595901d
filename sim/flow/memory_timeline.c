/* Memory of every lane over the time of a simulation. */
#include "sim/flow/memory_timeline.h"

#include <math.h>

#include "data/base/free.h"
#include "data/base/order.h"
#include "sim/tasks/buffers.h"

/* When an instruction runs on a lane. */
typedef struct {
    double start_s, end_s;
    bool takes_time; /* the instruction has spans */
    double allocates_s, releases_s;
    double fetched_s, stored_s; /* copies from the host begin, copies to it end */
} When;

typedef struct {
    const SimCase *sim;
    SimTimeline *timeline;
    const PlanBuffers *buffers;
    /* [lane]: its spans, collectives included; lane n_lanes has the transfers. uint32_t */
    GArray **span;
    uint32_t *place; /* [group]: where the first device of the lane in hand is */
    When *when;      /* [instr]: times on the lane in hand */
} Record;

/* Whether the lane in hand runs the instruction, or sends or receives because of it. */
static bool concerns(const Record *r, uint32_t i)
{
    const Instr *instr = &r->sim->plan->program->instr[i];
    return r->place[instr->group] != SIM_NOT_THERE ||
           (instr->kind == INSTR_TRANSFER && r->place[instr->to_group] != SIM_NOT_THERE);
}

/* --- when instructions run --- */

static void see_span(When *when, const SimSpan *span)
{
    if (span->copies == SIM_TO_HOST)
        when->stored_s = span->end_s;
    else if (span->copies)
        when->fetched_s = span->start_s;
    if (span->copies)
        return;
    when->takes_time = true;
    when->start_s = fmin(when->start_s, span->start_s);
    when->end_s = fmax(when->end_s, span->end_s);
}

/* A host issues instructions in the program's order, whatever stream they run on, and allocates and
 * releases as it issues: what an instruction makes is there when the first computation after it
 * starts, and what it uses last is there until the last computation before it has started. An
 * instruction without spans runs with the next one that has some. */
static void find_issues(Record *r)
{
    const Program *program = r->sim->plan->program;
    double next_s = INFINITY, last_s = 0, any_s = sim_timeline_end_s(r->timeline);
    for (uint32_t i = program->n; i-- > 0;) {
        if (program->instr[i].kind == INSTR_COMPUTE && concerns(r, i))
            next_s = fmin(next_s, r->when[i].start_s);
        any_s = r->when[i].takes_time ? r->when[i].start_s : any_s;
        r->when[i].allocates_s = fmin(next_s, any_s);
    }
    items_at (const When, when, i, r->when, program->n) {
        r->when[i].releases_s =
            fmax(last_s, when->takes_time ? when->end_s : when->allocates_s);
        if (program->instr[i].kind == INSTR_COMPUTE && concerns(r, i))
            last_s = fmax(last_s, r->when[i].start_s);
    }
}

/* Takes the spans of the lane, and those of transfers that concern it. */
static void see_spans(Record *r, uint32_t lane)
{
    array_each (const uint32_t, s, r->span[lane]) {
        const SimSpan *span = &r->timeline->span[*s];
        if (span->n_fused == 1 && concerns(r, span->instr))
            see_span(&r->when[span->instr], span);
    }
}

static void find_times(Record *r, uint32_t lane)
{
    const SimTimeline *timeline = r->timeline;
    const uint32_t n = r->sim->plan->program->n;
    for (uint32_t i = 0; i < n; i++)
        r->when[i] = (When){.start_s = INFINITY, .fetched_s = INFINITY};
    see_spans(r, lane);
    see_spans(r, timeline->n_lanes);
    for (uint32_t i = 0; i < n; i++)
        if (timeline->bucket[i] != SIM_NO_SPAN)
            see_span(&r->when[i], &timeline->span[timeline->bucket[i]]);
    find_issues(r);
}

/* --- what changes when --- */

typedef struct {
    double time_s;
    uint32_t instr;
    /* released after the instruction; what it makes is allocated before it */
    bool release;
    MemoryCategory category;
    double bytes;
} Change;

static ORDER_DEFINE(compare, Change, ASCENDING(time_s), ASCENDING(instr),
                    ASCENDING(release));

static void add_buffer(const Record *r, const PlanBuffer *buffer, double bytes,
                       GArray *changes)
{
    g_assert(bytes >= 0);
    const bool always = buffer->at_rest || buffer->stands;
    const MemoryCategory category = plan_buffer_category(r->sim->graph, buffer);
    const When *made = &r->when[buffer->birth];
    const Change birth = {
        always ? 0
               : fmin(made->allocates_s, buffer->returns ? made->fetched_s : INFINITY),
        plan_buffer_first(buffer), false, category, bytes};
    Change death = {0, 0, true, category, -bytes};
    g_array_append_val(changes, birth);
    if (always || buffer->stays)
        return;
    for (uint32_t u = buffer->first; u < buffer->first + buffer->n; u++) {
        const uint32_t instr = r->buffers->use[u];
        const double end_s = r->when[instr].releases_s;
        if (end_s > death.time_s || (end_s == death.time_s && instr >= death.instr)) {
            death.time_s = end_s;
            death.instr = instr;
        }
    }
    if (buffer->leaves)
        death.time_s = fmax(death.time_s, r->when[buffer->leaves - 1].stored_s);
    g_array_append_val(changes, death);
}

/* The steps of a lane, with one step for all changes at the same instruction and time. */
static GArray *lane_steps(const Record *r)
{
    g_autoptr(GArray) changes = g_array_new(false, false, sizeof(Change));
    GArray *steps = g_array_new(false, false, sizeof(SimMemoryStep));
    double bytes = 0, of[MEMORY_CATEGORIES] = {0};
    items_each (const PlanBuffer, buffer, r->buffers->buffer, r->buffers->n) {
        const uint32_t place = r->place[buffer->group];
        if (place != SIM_NOT_THERE)
            add_buffer(r, buffer, sim_buffer_bytes(r->sim, buffer, place), changes);
    }
    g_array_sort(changes, compare);
    array_at (const Change, change, i, changes) {
        bytes += change->bytes;
        of[change->category] += change->bytes;
        if (i + 1 < changes->len && compare(change, change + 1) == 0)
            continue;
        SimMemoryStep step = {
            .time_s = change->time_s, .bytes = fmax(bytes, 0), .instr = change->instr};
        for (uint32_t c = 0; c < MEMORY_CATEGORIES; c++)
            step.category[c] = (float)fmax(of[c], 0);
        g_array_append_val(steps, step);
    }
    return steps;
}

/* --- all lanes --- */

/* The lanes of a span; a launch has none. A transfer also concerns lanes outside of its team. */
static const uint32_t *lanes_of(const Record *r, uint32_t s, uint32_t *n)
{
    const SimSpan *span = &r->timeline->span[s];
    *n = !span->launch;
    if (span->launch)
        return NULL;
    return r->sim->plan->program->instr[span->instr].kind == INSTR_TRANSFER
               ? &r->timeline->n_lanes
               : sim_span_lanes(r->timeline, span, n);
}

static void sort_spans(Record *r)
{
    uint32_t n_own;
    r->span = g_new(GArray *, r->timeline->n_lanes + 1);
    for (uint32_t l = 0; l <= r->timeline->n_lanes; l++)
        r->span[l] = g_array_new(false, false, sizeof(uint32_t));
    for (uint32_t s = 0; s < r->timeline->n_spans; s++) {
        const uint32_t *lane = lanes_of(r, s, &n_own);
        for (uint32_t k = 0; k < n_own; k++)
            g_array_append_val(r->span[lane[k]], s);
    }
}

void sim_memory_record(const SimCase *sim, SimTimeline *timeline)
{
    const Program *program = sim->plan->program;
    g_autoptr(PlanBuffers) buffers = sim_held_buffers(sim);
    g_autofree uint32_t *device = g_new(uint32_t, timeline->n_lanes);
    Record r = {.sim = sim, .timeline = timeline, .buffers = buffers};
    for (uint32_t j = timeline->n_devices; j-- > 0;)
        device[timeline->lane[j]] = j;
    r.when = g_new(When, program->n);
    sort_spans(&r);
    timeline->memory = g_new(GArray *, timeline->n_lanes);
    for (uint32_t l = 0; l < timeline->n_lanes; l++) {
        r.place = sim_group_places(sim, device[l]);
        find_times(&r, l);
        timeline->memory[l] = lane_steps(&r);
        g_free(r.place);
    }
    release_items(r.span, timeline->n_lanes + 1, g_array_unref);
    free_each(r.when, r.span);
}
