/* The stages of microbatches that take turns. */
#include "sim/cost/turns.h"

#include "data/base/free.h"
#include "sim/cost/step.h"

uint32_t *sim_turns(const Program *program)
{
    uint32_t *turn = g_new0(uint32_t, program->n);
    uint32_t now = 0;
    bool computed = false;
    uint16_t microbatch = PROGRAM_WHOLE; /* the microbatch of the turn's computations */
    items_at (const Instr, instr, i, program->instr, program->n) {
        const bool compute = instr->kind == INSTR_COMPUTE;
        if (computed && (compute ? instr->microbatch != microbatch
                                 : sim_is_priced_collective(instr))) {
            now++;
            computed = false;
        }
        if (compute) {
            computed = true;
            microbatch = instr->microbatch;
        }
        turn[i] = now;
    }
    return turn;
}

/* --- stages --- */

enum { AFTER_INNER = UINT32_MAX };

/* The maker of an instance, if it is a collective: its turn, and its place in the turn from 1 on,
 * or AFTER_INNER; the place is 0 for any other maker. */
typedef struct {
    uint32_t turn, place;
} Maker;

typedef struct {
    const Program *program;
    const Graph *graph;
    const ClusterView *view;
    const Instances *instances;
    uint32_t *turn;
    /* [instr]: for a collective its place; for a computation the place of the last collective that
     * it waits for */
    uint32_t *place;
} Walk;

/* Whether the collective needs communication inside machines. */
static bool has_inner(const Walk *w, const Instr *instr)
{
    SimWork work;
    sim_work_collective(w->graph, instr->collective, instr->tensor, instr->from,
                        instr->to, &work);
    for (uint32_t j = 0; j < w->view->n_devices && work.inner_messages > 0; j++)
        if (w->view->device[j].gpus > 1)
            return true;
    return false;
}

/* The place of the latest collective of the turn that made one of the instances. */
static uint32_t latest(const Maker *maker, uint32_t turn, const PlacedOperand *used,
                       uint32_t n_used)
{
    uint32_t place = 0;
    for (uint32_t k = 0; k < n_used; k++) {
        const Maker *made = &maker[placed_cell(&used[k])];
        if (made->turn == turn)
            place = MAX(place, made->place);
    }
    return place;
}

static void find_places(Walk *w)
{
    const Program *program = w->program;
    g_autofree Maker *maker = g_new0(Maker, (size_t)w->instances->n_places * FORM_MAX);
    uint32_t collectives = 0, waits = 0;
    items_at (const Instr, instr, i, program->instr, program->n) {
        PlacedOperand used[OP_MAX_IN], made[OP_MAX_OUT];
        if (i > 0 && w->turn[i] != w->turn[i - 1])
            collectives = waits = 0;
        if (instr->kind == INSTR_LOAD)
            continue;
        const uint32_t n_used = instances_uses(w->instances, w->graph, instr, used);
        const uint32_t n_made = instances_makes(w->instances, w->graph, instr, made);
        Maker now = {w->turn[i], 0};
        if (sim_is_priced_collective(instr)) {
            w->place[i] = ++collectives;
            now.place = has_inner(w, instr) ? AFTER_INNER : collectives;
        } else if (instr->kind == INSTR_COMPUTE) {
            waits = MAX(waits, latest(maker, w->turn[i], used, n_used));
            w->place[i] = waits;
        } else {
            now = maker[placed_cell(&used[0])];
        }
        for (uint32_t k = 0; k < n_made; k++)
            maker[placed_cell(&made[k])] = now;
    }
}

static uint32_t add_stage(GArray *stages, uint32_t first, uint32_t end, bool joins,
                          bool beside)
{
    g_assert(first <= end);
    const SimStage stage = {
        .first = first, .n = end - first, .joins = joins, .beside = beside};
    g_array_append_val(stages, stage);
    return stages->len - 1;
}

/* Assigns the stage to the collectives at places from + 1 to `to`; returns their number. */
static uint32_t take_collectives(const Walk *w, uint32_t first, uint32_t end,
                                 uint32_t from, uint32_t to, uint32_t *of, uint32_t stage)
{
    uint32_t n = 0;
    for (uint32_t i = first; i < end; i++)
        if (sim_is_priced_collective(&w->program->instr[i]) && w->place[i] > from &&
            w->place[i] <= to) {
            of[i] = stage;
            n++;
        }
    return n;
}

/* Cuts a turn into stages. Computations that wait for the same collective share a stage with the
 * collectives up to it. The other collectives share a stage with all communication inside machines,
 * and the computations that wait for that are the last stage. */
static void add_turn(const Walk *w, uint32_t first, uint32_t end, SimTurnStages *to)
{
    const uint32_t before = to->stages->len;
    uint32_t waits = 0; /* the collective that the last stage waits for */
    bool inner = false; /* the stage of communication inside machines exists */
    for (uint32_t i = first; i <= end; i++) {
        const bool compute = i < end && w->program->instr[i].kind == INSTR_COMPUTE;
        bool joins = to->stages->len > before;
        if (!inner && (i == end || (compute && w->place[i] == AFTER_INNER)) &&
            take_collectives(w, first, end, 0, AFTER_INNER, to->inner, to->stages->len)) {
            take_collectives(w, first, end, waits, AFTER_INNER, to->stage,
                             add_stage(to->stages, first, end, joins, true));
            inner = joins = true;
        }
        if (!compute)
            continue;
        if (!joins || w->place[i] != waits) {
            const uint32_t stage = add_stage(to->stages, first, end, joins, false);
            if (!inner)
                take_collectives(w, first, end, waits, w->place[i], to->stage, stage);
            waits = w->place[i];
        }
        to->stage[i] = to->stages->len - 1;
    }
}

SimTurnStages sim_turn_stages(const Program *program, const Graph *graph,
                              const ClusterView *view, const Instances *instances)
{
    g_autofree uint32_t *turn = sim_turns(program);
    g_autofree uint32_t *place = g_new0(uint32_t, program->n);
    Walk w = {program, graph, view, instances, turn, place};
    SimTurnStages stages = {g_array_new(false, true, sizeof(SimStage)),
                            g_new0(uint32_t, program->n), g_new0(uint32_t, program->n)};
    find_places(&w);
    for (uint32_t first = 0, end; first < program->n; first = end) {
        for (end = first + 1; end < program->n && turn[end] == turn[first];)
            end++;
        add_turn(&w, first, end, &stages);
    }
    return stages;
}

CLEAR_DEFINE(sim_turn_stages_clear, SimTurnStages, stages,
             free_each(stages->stage, stages->inner));
