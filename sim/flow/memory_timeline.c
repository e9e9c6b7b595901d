/* Memory of every lane over the time of a simulation. */
#include "sim/flow/memory_timeline.h"

#include <math.h>

#include "data/base/free.h"
#include "sim/tasks/buffers.h"

/* When an instruction runs on a lane. */
typedef struct {
    double start_s, end_s;
    bool takes_time; /* the instruction has spans */
    double allocates_s, releases_s;
} When;

typedef struct {
    const SimCase *sim;
    SimTimeline *timeline;
    const PlanBuffers *buffers;
    uint32_t *maker; /* [instr * OP_MAX_IN + operand]: the instruction that made it */
    uint32_t *first_span,
        /* [lane]: range of its spans, collectives included; lane n_lanes has the transfers */
        *span;
    uint32_t *place; /* [group]: where the first device of the lane in hand is */
    When *when;      /* [instr]: times on the lane in hand */
} Record;

/* --- who made what --- */

static void find_makers(Record *r)
{
    const Program *program = r->sim->plan->program;
    const Graph *graph = r->sim->graph;
    const Instances *instances = r->sim->parts->layout.instances;
    g_autofree uint32_t *last = g_new0(uint32_t, (size_t)instances->n_places * FORM_MAX);
    for (uint32_t i = 0; i < program->n; i++) {
        const Instr *instr = &program->instr[i];
        PlacedOperand use[OP_MAX_IN], make[OP_MAX_OUT];
        const uint32_t n_used = instances_uses(instances, graph, instr, use);
        const uint32_t n_made = instances_makes(instances, graph, instr, make);
        const uint32_t n_parts = instances_made(instances, instr);
        for (uint32_t k = 0; k < n_used; k++)
            r->maker[i * OP_MAX_IN + k] = last[placed_cell(&use[k])];
        for (uint32_t k = 0; k < n_made; k++)
            for (uint32_t part = 0; part < n_parts; part++)
                last[placed_cell(&make[k]) + part * FORM_MAX] = i;
    }
}

static uint32_t n_operands(const Record *r, uint32_t instr)
{
    KILTER_ASSERT(instr < r->sim->plan->program->n);
    PlacedOperand use[OP_MAX_IN];
    return instances_uses(r->sim->parts->layout.instances, r->sim->graph,
                          &r->sim->plan->program->instr[instr], use);
}

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
    if (!when->takes_time)
        *when = (When){span->start_s, span->end_s, true, 0, 0};
    when->start_s = fmin(when->start_s, span->start_s);
    when->end_s = fmax(when->end_s, span->end_s);
}

/* Places instructions without spans: each runs with the next one that has spans or with its first
 * user, but not before its operands are made. */
static void place_free(Record *r)
{
    const uint32_t n = r->sim->plan->program->n;
    double next_s = sim_timeline_end_s(r->timeline);
    for (uint32_t i = n; i-- > 0;) {
        When *when = &r->when[i];
        if (!concerns(r, i))
            continue;
        if (!when->takes_time)
            when->start_s = fmin(when->start_s, next_s);
        for (uint32_t k = 0; k < n_operands(r, i); k++) {
            When *maker = &r->when[r->maker[i * OP_MAX_IN + k]];
            if (!maker->takes_time)
                maker->start_s = fmin(maker->start_s, when->start_s);
        }
        if (when->takes_time)
            next_s = when->start_s;
    }
    for (uint32_t i = 0; i < n; i++) {
        When *when = &r->when[i];
        if (when->takes_time || !concerns(r, i))
            continue;
        for (uint32_t k = 0; k < n_operands(r, i); k++)
            when->start_s =
                fmax(when->start_s, r->when[r->maker[i * OP_MAX_IN + k]].end_s);
        when->end_s = when->start_s;
    }
}

/* A host issues instructions in the program's order, whatever stream they run on, and allocates and
 * releases as it issues: what an instruction makes is there when the first computation after it
 * starts, and what it uses last is there until the last computation before it has started. */
static void find_issues(Record *r)
{
    const Program *program = r->sim->plan->program;
    double next_s = INFINITY, last_s = 0;
    for (uint32_t i = program->n; i-- > 0;) {
        if (program->instr[i].kind == INSTR_COMPUTE && concerns(r, i))
            next_s = fmin(next_s, r->when[i].start_s);
        r->when[i].allocates_s = fmin(next_s, r->when[i].start_s);
    }
    for (uint32_t i = 0; i < program->n; i++) {
        r->when[i].releases_s = fmax(last_s, r->when[i].end_s);
        if (program->instr[i].kind == INSTR_COMPUTE && concerns(r, i))
            last_s = fmax(last_s, r->when[i].start_s);
    }
}

/* Takes the spans of the lane, and those of transfers that concern it. */
static void see_spans(Record *r, uint32_t lane)
{
    for (uint32_t s = r->first_span[lane]; s < r->first_span[lane + 1]; s++) {
        const SimSpan *span = &r->timeline->span[r->span[s]];
        if (span->n_fused == 1 && concerns(r, span->instr))
            see_span(&r->when[span->instr], span);
    }
}

static void find_times(Record *r, uint32_t lane)
{
    const SimTimeline *timeline = r->timeline;
    const uint32_t n = r->sim->plan->program->n;
    for (uint32_t i = 0; i < n; i++)
        r->when[i] = (When){INFINITY, 0, false, 0, 0};
    see_spans(r, lane);
    see_spans(r, timeline->n_lanes);
    for (uint32_t i = 0; i < n; i++)
        if (timeline->bucket[i] != SIM_NO_SPAN)
            see_span(&r->when[i], &timeline->span[timeline->bucket[i]]);
    place_free(r);
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

static int compare(const void *a, const void *b)
{
    const Change *x = a, *y = b;
    if (x->time_s != y->time_s)
        return x->time_s < y->time_s ? -1 : 1;
    if (x->instr != y->instr)
        return x->instr < y->instr ? -1 : 1;
    return x->release - y->release;
}

static void add_buffer(const Record *r, const PlanBuffer *buffer, double bytes,
                       GArray *changes)
{
    g_assert(bytes >= 0);
    const bool always = buffer->at_rest || buffer->stands;
    const MemoryCategory category = plan_buffer_category(r->sim->graph, buffer);
    const Change birth = {always ? 0 : r->when[buffer->birth].allocates_s,
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
    g_array_append_val(changes, death);
}

/* The steps of a lane, with one step for all changes at the same instruction and time. */
static GArray *lane_steps(const Record *r)
{
    g_autoptr(GArray) changes = g_array_new(false, false, sizeof(Change));
    GArray *steps = g_array_new(false, false, sizeof(SimMemoryStep));
    double bytes = 0, of[MEMORY_CATEGORIES] = {0};
    for (uint32_t b = 0; b < r->buffers->n; b++) {
        const PlanBuffer *buffer = &r->buffers->buffer[b];
        const uint32_t place = r->place[buffer->group];
        if (place != SIM_NOT_THERE)
            add_buffer(r, buffer, sim_buffer_bytes(r->sim, buffer, place), changes);
    }
    g_array_sort(changes, compare);
    for (uint32_t i = 0; i < changes->len; i++) {
        const Change *change = &g_array_index(changes, Change, i);
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

/* Whether a span belongs to a transfer, which also concerns lanes outside of its team. */
static bool is_transfer(const Record *r, const SimSpan *span)
{
    return r->sim->plan->program->instr[span->instr].kind == INSTR_TRANSFER;
}

/* The lanes of a span; a launch has none. */
static const uint32_t *lanes_of(const Record *r, uint32_t s, uint32_t *n)
{
    const SimSpan *span = &r->timeline->span[s];
    *n = !span->launch;
    if (span->launch)
        return NULL;
    return is_transfer(r, span) ? &r->timeline->n_lanes
                                : sim_span_lanes(r->timeline, span, n);
}

static void sort_spans(Record *r)
{
    const SimTimeline *timeline = r->timeline;
    const uint32_t n = timeline->n_lanes + 1;
    g_autofree uint32_t *fill = g_new0(uint32_t, n + 1);
    uint32_t n_own;
    for (uint32_t s = 0; s < timeline->n_spans; s++) {
        const uint32_t *lane = lanes_of(r, s, &n_own);
        for (uint32_t k = 0; k < n_own; k++)
            fill[lane[k] + 1]++;
    }
    for (uint32_t l = 0; l < n; l++)
        fill[l + 1] += fill[l];
    r->first_span = g_memdup2(fill, (n + 1) * sizeof *fill);
    r->span = g_new(uint32_t, fill[n]);
    for (uint32_t s = 0; s < timeline->n_spans; s++) {
        const uint32_t *lane = lanes_of(r, s, &n_own);
        for (uint32_t k = 0; k < n_own; k++)
            r->span[fill[lane[k]]++] = s;
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
    r.maker = g_new0(uint32_t, (size_t)program->n * OP_MAX_IN);
    r.when = g_new(When, program->n);
    find_makers(&r);
    sort_spans(&r);
    timeline->memory = g_new(GArray *, timeline->n_lanes);
    for (uint32_t l = 0; l < timeline->n_lanes; l++) {
        r.place = sim_group_places(sim, device[l]);
        find_times(&r, l);
        timeline->memory[l] = lane_steps(&r);
        g_free(r.place);
    }
    free_each(r.maker, r.when, r.first_span, r.span);
}
