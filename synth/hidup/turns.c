/* Duplex programs: any program of one group, run on K = 2 or more microbatches that take turns
 * (HiDup Sec. 3).
 *
 * Instructions on the batch run K times, in stages: communication, then computation. While one
 * microbatch computes its stage the next one communicates for its own stage:
 *
 *     communication of microbatch 0, stage i   beside   computation of K - 1, stage i - 1
 *     communication of microbatch k, stage i   beside   computation of k - 1, stage i
 *
 * Other instructions run once. Operands of the batch's computations (gathered parameters) come with
 * microbatch 0's communication of the stage that reads them first. Instructions that depend on sums
 * over all microbatches (gradients of parameters) come with the next communication of microbatch
 * 1, when all have added to the sums; updates come last. A stage opens where the batch's own
 * tensors are communicated, where a gathered parameter is read, and after the backward of an op
 * whose weights' gradients are communicated; vectors' gradients wait for the next stage. */
#include "synth/hidup/hidup.h"

#include <string.h>

enum { NEVER = UINT32_MAX };

typedef struct {
    const Program *program;
    const Graph *graph;
    BatchForms *batch;
    bool *parts; /* [instr]: runs once per microbatch */
    bool *last;  /* [instr]: is an update, or depends on one */
    /* [instr]: 1 + the last instruction on the batch that it depends on, or 0 */
    uint32_t *ready;
    /* [instr]: the first instruction on the batch that depends on it, or NEVER */
    uint32_t *needed;
    uint32_t *stage; /* [instr] on the batch: its stage */
    bool *head;      /* [instr] on the batch: it is communication that opens its stage */
    uint32_t n_stages;
} Turns;

/* --- what follows from what --- */

typedef struct {
    Turns *turns;
    uint32_t at;
    uint32_t *maker; /* [tensor * FORM_MAX + form]: instruction */
} Walk;

static void find_ready(Walk *w, Operand used)
{
    Turns *t = w->turns;
    const uint32_t maker = w->maker[used.tensor * FORM_MAX + used.form];
    if (maker == NEVER)
        return;
    t->ready[w->at] = MAX(t->ready[w->at], t->parts[maker] ? maker + 1 : t->ready[maker]);
    t->last[w->at] |= t->last[maker];
}

static void find_needed(Walk *w, Operand used)
{
    Turns *t = w->turns;
    const uint32_t maker = w->maker[used.tensor * FORM_MAX + used.form];
    if (maker != NEVER && !t->parts[maker])
        t->needed[maker] =
            MIN(t->needed[maker], t->parts[w->at] ? w->at : t->needed[w->at]);
}

static void note_made(Walk *w, const Instr *instr)
{
    Operand made[OP_MAX_OUT];
    const uint32_t n = instr_makes(instr, w->turns->graph, made);
    for (uint32_t o = 0; o < n; o++)
        w->maker[made[o].tensor * FORM_MAX + made[o].form] = w->at;
}

/* Calls `find` for every operand that an instruction reads. */
static void each_used(Walk *w, const Instr *instr, void (*find)(Walk *w, Operand used))
{
    Operand used[OP_MAX_IN];
    const uint32_t n = instr_uses(instr, w->turns->graph, used);
    for (uint32_t i = 0; i < n; i++)
        find(w, used[i]);
}

static bool is_part(const Turns *t, const Instr *instr)
{
    if (instr->kind == INSTR_COMPUTE)
        return t->batch->loop[instr->op] >= 0;
    return instr->kind == INSTR_COLLECTIVE &&
           form_is_gather(t->batch->form[instr->tensor]);
}

static void turns_find_order(Turns *t)
{
    const uint32_t n = t->program->n;
    const size_t instances = (size_t)graph_n_tensors(t->graph) * FORM_MAX;
    Walk w = {.turns = t, .maker = g_new(uint32_t, instances)};
    memset(w.maker, 0xff, instances * sizeof *w.maker);
    for (w.at = 0; w.at < n; w.at++) {
        const Instr *instr = &t->program->instr[w.at];
        t->parts[w.at] = is_part(t, instr);
        t->needed[w.at] = NEVER;
        t->last[w.at] = instr->kind == INSTR_COMPUTE &&
                        graph_get_op(t->graph, instr->op)->pass == PASS_UPDATE;
        each_used(&w, instr, find_ready);
        note_made(&w, instr);
    }
    /* Instances are made once, so the makers found by the last walk are the makers for all uses. */
    for (w.at = n; w.at-- > 0;)
        each_used(&w, &t->program->instr[w.at], find_needed);
    g_free(w.maker);
}

/* --- stages --- */

static bool is_communication(const Instr *instr)
{
    return instr->kind == INSTR_COLLECTIVE && (int)instr->collective < COLLECTIVES_PRICED;
}

/* Whether the instruction, which is not on the batch, is communication that opens a stage. */
static bool opens(const Turns *t, uint32_t i)
{
    KILTER_ASSERT(i < t->program->n);
    const Instr *instr = &t->program->instr[i];
    return !t->parts[i] && !t->last[i] && is_communication(instr) &&
           graph_tensor(t->graph, instr->tensor)->rank > 1;
}

/* [instr]: bits that say of an instruction on the batch that communication must come before it
 * (NEEDS), or is due after it (LEAVES). */
enum { NEEDS = 1, LEAVES = 2 };
static uint8_t *find_flags(const Turns *t)
{
    uint8_t *flags = g_new0(uint8_t, t->program->n + 1);
    for (uint32_t i = 0; i < t->program->n; i++) {
        if (!opens(t, i))
            continue;
        if (t->needed[i] != NEVER)
            flags[t->needed[i]] |= NEEDS;
        else if (t->ready[i])
            flags[t->ready[i] - 1] |= LEAVES;
    }
    return flags;
}

static void turns_find_stages(Turns *t)
{
    g_autofree uint8_t *flags = find_flags(t);
    bool computed = false,
         waits = false;   /* in this stage; and communication is due after the op */
    OpId of = GRAPH_NONE; /* the forward op of the last computation */
    items_at (const Instr, instr, i, t->program->instr, t->program->n) {
        if (!t->parts[i])
            continue;
        const bool compute = instr->kind == INSTR_COMPUTE;
        const OpId now = compute ? graph_get_op(t->graph, instr->op)->of : of;
        if (computed && (is_communication(instr) || (flags[i] & NEEDS) ||
                         (waits && compute && now != of))) {
            t->n_stages++;
            computed = waits = false;
        }
        t->stage[i] = t->n_stages;
        t->head[i] = !computed && !compute;
        computed |= compute;
        waits |= (flags[i] & LEAVES) != 0;
        of = now;
    }
    t->n_stages++;
}

/* --- the duplex program --- */

static void turns_append(const Turns *t, Program *to, uint32_t i, uint16_t microbatch)
{
    KILTER_ASSERT(i < t->program->n);
    Instr instr = t->program->instr[i];
    instr.microbatch = microbatch;
    program_append(to, instr);
}

/* Appends instructions on the batch of one stage: those that open it (`head`), or the others. */
static void append_stage(const Turns *t, Program *to, const uint32_t *first,
                         uint32_t stage, bool head, uint16_t microbatch)
{
    KILTER_ASSERT(stage <= t->n_stages);
    for (uint32_t i = first[stage]; i < first[stage + 1]; i++)
        if (t->parts[i] && t->head[i] == head)
            turns_append(t, to, i, microbatch);
}

/* The stage before which an instruction that runs once has to run; n_stages: after all stages. */
static uint32_t turns_place_of(const Turns *t, uint32_t i)
{
    KILTER_ASSERT(i < t->program->n);
    if (t->last[i])
        return t->n_stages;
    if (t->needed[i] != NEVER)
        return t->stage[t->needed[i]];
    return t->ready[i] ? t->stage[t->ready[i] - 1] + 1 : t->n_stages;
}

/* Appends a stage's instructions that run once: those on which all microbatches depend, or
 * (`after`) those that depend on all. */
static void append_once(const Turns *t, Program *to, uint32_t stage, bool after)
{
    for (uint32_t i = 0; i < t->program->n; i++)
        if (!t->parts[i] && t->program->instr[i].kind != INSTR_LOAD && !t->last[i] &&
            turns_place_of(t, i) == stage && (t->ready[i] > 0) == after)
            turns_append(t, to, i, PROGRAM_WHOLE);
}

static Program *duplex_program(const Turns *t, uint32_t n_pieces)
{
    Program *to = program_new();
    const uint16_t last = (uint16_t)(n_pieces - 1);
    to->n_microbatches = n_pieces;
    g_autofree uint32_t *first = g_new(uint32_t, t->n_stages + 1);
    uint32_t known = 0;
    for (uint32_t i = 0; i < t->program->n; i++) {
        if (t->program->instr[i].kind == INSTR_LOAD)
            turns_append(t, to, i, PROGRAM_WHOLE);
        while (t->parts[i] && known <= t->stage[i])
            first[known++] = i;
    }
    while (known <= t->n_stages)
        first[known++] = t->program->n;
    for (uint32_t s = 0; s < t->n_stages; s++) {
        append_once(t, to, s, false);
        append_stage(t, to, first, s, true, 0);
        if (s > 0)
            append_stage(t, to, first, s - 1, false, last);
        append_once(t, to, s, true);
        for (uint16_t k = 1; k <= last; k++) {
            append_stage(t, to, first, s, true, k);
            append_stage(t, to, first, s, false, k - 1);
        }
    }
    append_stage(t, to, first, t->n_stages - 1, false, last);
    append_once(t, to, t->n_stages, false);
    append_once(t, to, t->n_stages, true);
    for (uint32_t i = 0; i < t->program->n; i++)
        if (t->last[i])
            turns_append(t, to, i, PROGRAM_WHOLE);
    return to;
}

Program *synth_duplex(const Program *program, const Graph *graph, uint32_t n_pieces,
                      GError **error)
{
    g_assert(n_pieces > 1 && n_pieces < PROGRAM_WHOLE);
    if (!program_is_spmd(program))
        return refused(error,
                       "only the program of one group and one microbatch can be doubled");
    g_autoptr(BatchForms) batch = batch_forms_of_microbatches(graph, error);
    if (!batch)
        return NULL;
    if (batch->units % n_pieces)
        return refused(
            error, "model '%s': a batch of %u cannot be cut in %s microbatches",
            graph_name(graph), batch->units, n_pieces == 2 ? "two" : "so many");
    const uint32_t n = program->n;
    g_autofree bool *flags = g_new0(bool, (size_t)3 * n);
    g_autofree uint32_t *numbers = g_new0(uint32_t, (size_t)3 * n);
    Turns t = {.program = program,
               .graph = graph,
               .batch = batch,
               .parts = flags,
               .last = flags + n,
               .head = flags + 2 * (size_t)n,
               .ready = numbers,
               .needed = numbers + n,
               .stage = numbers + 2 * (size_t)n};
    turns_find_order(&t);
    turns_find_stages(&t);
    return duplex_program(&t, n_pieces);
}
