/* Turns a program of one group into a program on the groups of a pipeline. */
#include "synth/pipeline/build.h"

#include <string.h>

#include "data/base/free.h"
#include "data/program/blocks.h"

/* --- writing the program --- */

/* The form over shards of a sum over the batch where it was made. */
static Form made_as(const Builder *b, const Need *need)
{
    const OpId maker = b->inner->instr[need->maker].op;
    uint32_t o = 0;
    while (graph_get_op(b->graph, maker)->out[o] != need->tensor)
        o++;
    return pipeline_over(b, need->group, b->gives[maker * OP_MAX_OUT + o]);
}

/* Adds up a sum over the batch (a tied parameter's gradient) over the shards that made it and, for
 * another number of replicas, over these. */
static void add_up(Builder *b, const Need *need)
{
    const Instr *maker = &b->inner->instr[need->maker];
    if (b->batch->form[need->tensor] != FORM_REDUCE || maker->kind != INSTR_COMPUTE)
        return;
    const Form made = b->made ? made_as(b, need) : FORM_IDENTITY;
    const DeviceGroup *from = &b->program->group[need->group],
                      *to = &b->program->group[need->to_group];
    if (from->n_replicas != to->n_replicas || group_shards(from) != group_shards(to))
        pipeline_sum_parts(b, need->group, need->tensor, need->form, made);
    pipeline_convert(b, need->group, need->tensor, need->form, made, FORM_IDENTITY,
                     PROGRAM_WHOLE);
}

/* Sends what a group needs. Between unlike numbers of shards it goes whole: the shards that have it
 * gather it, and those that get it take their parts. */
static void send(Builder *b, uint32_t i, uint32_t microbatch)
{
    const Need *need = &g_array_index(b->needs, Need, i);
    if (b->sent[i] && microbatch == PROGRAM_WHOLE)
        return;
    b->sent[i] = true;
    add_up(b, need);
    const bool load = b->inner->instr[need->maker].kind == INSTR_LOAD &&
                      graph_tensor(b->graph, need->tensor)->role == ROLE_INPUT;
    *partial_of(b, need->to_group, need->tensor) |=
        *partial_of(b, need->group, need->tensor) & (uint8_t)(1u << need->form);
    const uint8_t view = b->home[need->tensor];
    const uint32_t from = pipeline_view(b, need->group, view),
                   to = pipeline_view(b, need->to_group, view);
    const Form have = pipeline_held(b, from, need->tensor),
               want = pipeline_held(b, to, need->tensor);
    const bool whole = !load && group_shards(&b->program->group[from]) !=
                                    group_shards(&b->program->group[to]);
    if (whole)
        pipeline_convert(b, from, need->tensor, need->form, have, FORM_IDENTITY,
                         microbatch);
    pipeline_append(
        b,
        (Instr){.kind = load ? INSTR_LOAD : INSTR_TRANSFER,
                .to_group = load ? 0 : (uint16_t)to,
                .stream = !load,
                .tensor = need->tensor,
                .from = load ? 0 : form_over(need->form, whole ? FORM_IDENTITY : have, 0),
                .to = form_over(need->to, whole ? FORM_IDENTITY : want, 0)},
        load ? to : from, microbatch);
    if (whole)
        pipeline_convert(b, to, need->tensor, need->to, FORM_IDENTITY, want, microbatch);
}

static void send_all(Builder *b, uint32_t i, uint32_t microbatch)
{
    for (uint32_t k = b->first[i]; k < b->first[i + 1]; k++)
        if (microbatch == PROGRAM_WHOLE ||
            form_is_gather(b->batch->form[g_array_index(b->needs, Need, k).tensor]))
            send(b, k, microbatch);
}

static void emit_early(Builder *b)
{
    for (uint32_t i = 0; i < b->inner->n; i++) {
        if (b->place[i].phase != EARLY)
            continue;
        if (b->inner->instr[i].kind == INSTR_LOAD) {
            pipeline_load(b, i);
        } else {
            pipeline_gather_for(b, i);
            pipeline_run(b, i, PROGRAM_WHOLE);
        }
        send_all(b, i, PROGRAM_WHOLE);
    }
}

static void demand(Builder *b, uint32_t i, uint32_t microbatch);

/* Computes a unit again. What a backward computes again is kept for gradients of weights, unless it
 * is a gathered sequence. */
static void emit_again(Builder *b, uint32_t unit, uint32_t microbatch)
{
    const Again again = g_array_index(b->again, Again, unit);
    g_array_index(b->again, Again, unit).done = b->pass;
    g_array_index(b->again, Again, unit).kept |=
        b->running == BACKWARD &&
        !(again.single && b->inner->instr[b->unit[again.first]].kind == INSTR_COLLECTIVE);
    for (uint32_t k = again.first; k < again.end; k++) {
        const uint32_t i = b->unit[k];
        if (b->place[i].unit != unit)
            continue;
        demand(b, i, microbatch);
        pipeline_gather_for(b, i);
        pipeline_run(b, i, microbatch);
    }
}

/* Computes the result of `maker` again if instruction `i` uses it; the inputs of a layer were
 * kept. */
static void demand_made(Builder *b, uint32_t i, uint32_t maker, uint32_t microbatch)
{
    const Place *made = &b->place[maker];
    if (made->unit == 0 || made->stage != b->place[i].stage)
        return;
    const Again *again = &g_array_index(b->again, Again, made->unit);
    if (again->done != b->pass && (again->single || made->layer == b->place[i].layer) &&
        !(b->running == WEIGHTS && again->kept))
        emit_again(b, made->unit, microbatch);
}

static void demand(Builder *b, uint32_t i, uint32_t microbatch)
{
    if (b->again->len == 1) /* nothing is computed again */
        return;
    uses_each (use, b, i)
        if (b->inner->instr[use->maker].kind != INSTR_COMPUTE || !b->kept[use->of.tensor])
            demand_made(b, i, use->maker, microbatch);
    if (b->keeper[i] != UINT32_MAX)
        demand_made(b, i, b->keeper[i], microbatch);
}

static uint32_t builder_pieces(const Builder *b)
{
    return MAX(b->pipeline->pieces, 1);
}

/* Emits a stage, forward or backward, on a microbatch. */
static void emit_unit(Builder *b, Phase phase, uint32_t stage, uint32_t microbatch)
{
    const uint32_t *begin = &b->begin[phase * b->pipeline->n_stages + stage];
    b->pass++;
    b->running = phase;
    for (uint32_t k = begin[0]; k < begin[1]; k++) {
        pipeline_gather_ahead(b, phase, stage, k);
        if (phase != FORWARD)
            demand(b, b->unit[k], microbatch);
        pipeline_gather_for(b, b->unit[k]);
        pipeline_run(b, b->unit[k], microbatch);
        send_all(b, b->unit[k], microbatch);
        if (phase != FORWARD && b->piece + 1 == builder_pieces(b))
            pipeline_scatter_behind(b, phase, stage, k);
    }
}

/* Whether an instruction after computations begins a turn: an exchange of a microbatch. */
static bool begins_turn(const Instr *instr)
{
    return instr->kind == INSTR_COLLECTIVE && instr->microbatch != PROGRAM_WHOLE &&
           (int)instr->collective < COLLECTIVES_PRICED;
}

/* Appends the next turn of a piece, from *at on, to `to`; false: it has none. */
static bool take_turn(const Program *from, uint32_t *at, uint32_t end, GArray *to)
{
    const uint32_t first = *at;
    bool computed = false;
    for (; *at < end && !(computed && begins_turn(&from->instr[*at])); ++*at) {
        computed |= from->instr[*at].kind == INSTR_COMPUTE;
        g_array_append_val(to, from->instr[*at]);
    }
    return *at > first;
}

/* Lets the pieces of a step, which were written one after the other from `first` [pieces + 1] on,
 * take turns. */
static void take_turns(Program *program, const uint32_t *first, uint32_t n)
{
    g_autofree uint32_t *at = g_memdup2(first, n * sizeof *first);
    g_autoptr(GArray) turns = g_array_new(false, false, sizeof(Instr));
    for (bool any = n > 1; any;) {
        any = false;
        for (uint32_t k = 0; k < n; k++)
            any |= take_turn(program, &at[k], first[k + 1], turns);
    }
    if (turns->len > 0)
        memcpy(&program->instr[first[0]], turns->data, turns->len * sizeof(Instr));
}

/* Emits a stage, forward or backward, on the microbatches of a step. */
static void emit_pieces(Builder *b, Phase phase, const SynthStep *step)
{
    const uint32_t n = builder_pieces(b);
    g_autofree uint32_t *first = g_new(uint32_t, n + 1);
    for (b->piece = 0; b->piece < n; b->piece++) {
        first[b->piece] = b->program->n;
        emit_unit(b, phase, step->stage, step->microbatch * n + b->piece);
    }
    b->piece = n - 1;
    first[n] = b->program->n;
    take_turns(b->program, first, n);
}

/* Sums the gradient of an update over all devices that have parts of it. */
static void sum_gradient(Builder *b, uint32_t i)
{
    if (pipeline_divides(b, graph_get_op(b->graph, b->inner->instr[i].op)->in[0]))
        pipeline_sum_states(b, i);
    else
        pipeline_sum_whole(b, i);
}

/* Fetches the operands that other groups made. */
static void fetch(Builder *b, uint32_t i)
{
    uses_each (use, b, i)
        for (uint32_t s = b->first[use->maker]; s < b->first[use->maker + 1]; s++) {
            const Need *need = &g_array_index(b->needs, Need, s);
            if (need->to_group == group_at(b, i) && need->tensor == use->of.tensor)
                send(b, s, PROGRAM_WHOLE);
        }
}

static bool is_partial(const Builder *b, uint32_t group, const Operand *operand)
{
    return *partial_of(b, group, operand->tensor) >> operand->form & 1u;
}

/* Sums the parts of replicas that are added to a sum over all of them. */
static void add_parts(Builder *b, uint32_t i)
{
    const Instr *instr = &b->inner->instr[i];
    const uint32_t group = group_at(b, i);
    if (instr->kind != INSTR_COMPUTE || graph_get_op(b->graph, instr->op)->kind != OP_ADD)
        return;
    const bool summed = any_in(uses_each (use, b, i), !is_partial(b, group, &use->of));
    uses_each (use, b, i)
        if (summed)
            pipeline_sum_parts(b, group, use->of.tensor, use->of.form,
                               pipeline_held(b, group, use->of.tensor));
}

static void emit_one_late(Builder *b, uint32_t i)
{
    const Instr *instr = &b->inner->instr[i];
    const uint32_t group = group_at(b, i);
    Operand make[OP_MAX_OUT];
    const uint32_t n_makes = instr_makes(instr, b->graph, make);
    bool partial = false;
    fetch(b, i);
    pipeline_gather_for(b, i);
    add_parts(b, i);
    if (pipeline_is_update(b, i))
        sum_gradient(b, i);
    if (pipeline_is_update(b, i) && pipeline_divides(b, b->use[b->use_at[i]].of.tensor)) {
        pipeline_update_states(b, i);
        return;
    }
    uses_each (use, b, i)
        partial |= is_partial(b, group, &use->of);
    for (uint32_t k = 0; partial && k < n_makes; k++)
        *partial_of(b, group, make[k].tensor) |= (uint8_t)(1u << make[k].form);
    pipeline_run(b, i, PROGRAM_WHOLE);
}

/* Whether the gradient of update `k` is in its group once all instructions before `i` have run. */
static bool has_gradient(const Builder *b, uint32_t k, uint32_t i)
{
    const uint32_t maker = pipeline_maker(b, k, 1);
    return group_at(b, maker) == group_at(b, k) &&
           (b->place[maker].phase != LATE || maker < i);
}

static void emit_late(Builder *b)
{
    const Program *inner = b->inner;
    bool updating = false;
    for (uint32_t i = 0; i < inner->n; i++) {
        if (b->place[i].phase != LATE)
            continue;
        for (uint32_t k = i; !updating && pipeline_is_update(b, i) && k < inner->n; k++)
            if (pipeline_is_update(b, k) && has_gradient(b, k, i))
                sum_gradient(b, k);
        updating |= pipeline_is_update(b, i);
        emit_one_late(b, i);
    }
}

/* --- the schedule --- */

static bool emit_steps(Builder *b, GError **error)
{
    const SynthPipeline *p = b->pipeline;
    g_autoptr(GArray) order = synth_schedule_order(
        p->schedule, p->n_stages, p->n_groups,
        (p->n_microbatches - p->left_out) / builder_pieces(b), p->depth, error);
    for (uint32_t i = 0; order && i < order->len; i++) {
        const SynthStep step = g_array_index(order, SynthStep, i);
        g_array_append_val(b->step, b->program->n);
        emit_pieces(b,
                    step.weights    ? WEIGHTS
                    : step.backward ? BACKWARD
                                    : FORWARD,
                    &step);
    }
    g_array_append_val(b->step, b->program->n);
    return order != NULL;
}

static bool check_stages(const Graph *graph, const SynthPipeline *p, GError **error)
{
    ops_each (op, id, graph) {
        if (op->pass != PASS_FORWARD)
            continue;
        if (p->stage[id] >= p->n_stages)
            return refuse(error, "op %s: expected a stage below %u, got %u", op->name,
                          p->n_stages, p->stage[id]);
        for (uint32_t i = 0; i < op->n_in; i++) {
            const OpId by = graph_tensor(graph, op->in[i])->producer;
            if (by != GRAPH_NONE && p->stage[by] > p->stage[id])
                return refuse(error, "op %s of stage %u uses what stage %u makes",
                              op->name, p->stage[id], p->stage[by]);
        }
    }
    return true;
}

CLEAR_DEFINE(pipeline_builder_clear, Builder, b, batch_forms_free(b->batch),
             let_go(b->needs, g_array_unref), let_go(b->step, g_array_unref),
             let_go(b->again, g_array_unref),
             free_each(b->way, b->kept, b->place, b->use, b->use_at, b->keeper, b->read,
                       b->first, b->sent, b->unit, b->begin, b->partial, b->need,
                       b->gives, b->made, b->view, b->home, b->experts),
             let_go(b->converted, g_hash_table_destroy),
             free_each(b->state, b->states, b->direct, b->gathered, b->summed, b->whole),
             program_free(b->program));

Program *synth_recompute(const Program *inner, const Graph *graph,
                         const SynthPipeline *pipeline, GError **error)
{
    g_assert(pipeline->n_stages == 1 && pipeline->n_microbatches == 1);
    g_auto(Builder) b = {.inner = inner, .graph = graph, .pipeline = pipeline, .pass = 1};
    if (!(b.batch = batch_forms_of_microbatches(graph, error)))
        return NULL;
    b.place = g_new0(Place, inner->n);
    b.partial = g_new0(uint8_t, (size_t)pipeline->n_groups * graph_n_tensors(graph));
    b.program = program_new();
    pipeline_find_places(&b);
    for (uint32_t i = 0; i < inner->n; i++) {
        if (b.place[i].phase == BACKWARD || b.place[i].phase == LATE)
            demand(&b, i, 0);
        pipeline_append(&b, inner->instr[i], 0, 0);
    }
    return program_check(b.program, graph, error) ? g_steal_pointer(&b.program) : NULL;
}

static bool check_microbatches(uint32_t n, const BatchForms *batch, GError **error)
{
    return batch->units % n == 0 ||
           refuse(error,
                  "the batch cannot be cut: it has %u pieces, not a multiple of "
                  "%u microbatches",
                  batch->units, n);
}

bool pipeline_build(Builder *b, uint32_t n_microbatches, bool exchanges, GError **error)
{
    const SynthPipeline *pipeline = b->pipeline;
    const size_t n_partial = (size_t)pipeline->n_groups * graph_n_tensors(b->graph);
    if (!check_stages(b->graph, pipeline, error) ||
        !(b->batch = batch_forms_of_microbatches(b->graph, error)) ||
        !check_microbatches(n_microbatches, b->batch, error))
        return false;
    b->place = g_new0(Place, b->inner->n);
    b->whole = g_new0(bool, graph_n_tensors(b->graph));
    b->partial = g_new0(uint8_t, n_partial);
    b->program = program_new();
    b->n_microbatches = n_microbatches;
    b->program->n_microbatches = pipeline->n_microbatches - pipeline->left_out;
    b->program->left_out = pipeline->left_out;
    b->program->successive = pipeline->successive;
    for (uint32_t g = 0; g < pipeline->n_groups; g++)
        program_add_group(b->program, pipeline->group[g].n_replicas,
                          pipeline->group[g].n_devices, pipeline->group[g].device);
    for (uint32_t g = 0; g < pipeline->n_groups; g++)
        b->program->group[g].n_shards = group_shards(&pipeline->group[g]);
    pipeline_find_places(b);
    if (!pipeline_find_shards(b, error))
        return false;
    pipeline_find_states(b);
    emit_early(b);
    b->step = g_array_new(false, false, sizeof(uint32_t));
    if (!emit_steps(b, error))
        return false;
    if (exchanges)
        memset(b->partial, 0, n_partial);
    emit_late(b);
    return true;
}

bool pipeline_check_program(const Program *program, const Graph *graph, GError **error)
{
    const bool later = program->left_out > 0;
    g_autoptr(ProgramBlocks) blocks = later ? NULL : program_blocks(program, graph);
    return later || blocks || program_check(program, graph, error);
}

Program *synth_pipeline(const Program *inner, const Graph *graph,
                        const SynthPipeline *pipeline, GError **error)
{
    g_auto(Builder) b = {.inner = inner, .graph = graph, .pipeline = pipeline};
    if (!pipeline_build(&b, pipeline->n_microbatches, false, error) ||
        !pipeline_check_program(b.program, graph, error))
        return NULL;
    return g_steal_pointer(&b.program);
}
