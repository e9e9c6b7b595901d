/* A program of one group, put on the groups of a pipeline. */
#include "synth/pipeline.h"

/* When an instruction of the inner program runs. */
typedef enum {
    EARLY,   /* once: what needs nothing but loads */
    FORWARD, /* once a microbatch */
    BACKWARD,
    LATE /* once: what needs sums over the batch */
} Phase;

typedef struct {
    Phase phase;
    uint32_t stage, layer;
    uint32_t unit; /* of what is computed again together, from 1; 0: it is not */
} Place;

/* Instructions of a unit, in Builder.unit: those of a layer, or a single one. */
typedef struct {
    uint32_t first, end;
    bool single;
    uint32_t done; /* the last pass in which it was computed again */
} Again;

/* An operand that a group needs from another one. */
typedef struct {
    uint32_t maker; /* instruction of the inner program */
    TensorId tensor;
    Form form;
    uint16_t group, to_group;
} Need;

typedef struct {
    const Program *inner;
    const Graph *graph;
    const SynthPipeline *pipeline;
    BatchForms *batch;
    Place *place;    /* [instr of the inner program] */
    uint32_t *maker; /* [instr * OP_MAX_IN + operand] */
    GArray *needs;   /* Need, by maker */
    uint32_t *first; /* [instr]: its needs; n + 1 of them */
    bool *sent;      /* [need], of the late ones */
    uint32_t *unit;  /* instructions by (phase, stage), in order, */
    uint32_t *begin; /* [phase * n_stages + stage] */
    GArray *again;   /* Again; the first one is not used */
    uint32_t pass;   /* how many stages have begun their backward on a microbatch */
    /* [group * n_tensors + tensor]: bit f: form f is partial over the replicas */
    uint8_t *partial;
    Program *program;
} Builder;

/* --- operands --- */

static size_t cell(Operand operand)
{
    KILTER_ASSERT(operand.form < FORM_MAX);
    return (size_t)operand.tensor * FORM_MAX + operand.form;
}

static void find_makers(Builder *b)
{
    const Program *inner = b->inner;
    g_autofree uint32_t *last =
        g_new0(uint32_t, (size_t)graph_n_tensors(b->graph) * FORM_MAX);
    b->maker = g_new0(uint32_t, (size_t)inner->n * OP_MAX_IN);
    for (uint32_t i = 0; i < inner->n; i++) {
        Operand use[OP_MAX_IN], make[OP_MAX_OUT];
        const uint32_t n_uses = instr_uses(&inner->instr[i], b->graph, use);
        const uint32_t n_makes = instr_makes(&inner->instr[i], b->graph, make);
        for (uint32_t k = 0; k < n_uses; k++)
            b->maker[i * OP_MAX_IN + k] = last[cell(use[k])];
        for (uint32_t k = 0; k < n_makes; k++)
            last[cell(make[k])] = i;
    }
}

/* --- where and when --- */

static bool has_parts(const Builder *b, const Instr *instr)
{
    return instr->kind == INSTR_COMPUTE ? b->batch->loop[instr->op] >= 0
                                        : form_is_gather(b->batch->form[instr->tensor]);
}

static void find_phases(Builder *b)
{
    const Program *inner = b->inner;
    bool backward = false;
    for (uint32_t i = 0; i < inner->n; i++) {
        const Instr *instr = &inner->instr[i];
        Operand use[OP_MAX_IN];
        const uint32_t n = instr_uses(instr, b->graph, use);
        Phase *phase = &b->place[i].phase;
        backward |= instr->kind == INSTR_COMPUTE &&
                    graph_get_op(b->graph, instr->op)->pass == PASS_BACKWARD;
        *phase = EARLY;
        if (instr->kind != INSTR_LOAD && has_parts(b, instr))
            *phase = backward ? BACKWARD : FORWARD;
        for (uint32_t k = 0; *phase == EARLY && k < n; k++)
            if (b->place[b->maker[i * OP_MAX_IN + k]].phase != EARLY)
                *phase = LATE;
    }
}

/* The stage of the first forward op that uses each parameter, and of its states; n_stages: none. */
static uint32_t *find_homes(const Builder *b)
{
    const Graph *graph = b->graph;
    uint32_t *home = g_new(uint32_t, graph_n_tensors(graph));
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        home[t] = b->pipeline->n_stages;
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const Op *op = graph_get_op(graph, id);
        for (uint32_t i = 0; op->pass == PASS_FORWARD && i < op->n_in; i++)
            home[op->in[i]] = MIN(home[op->in[i]], b->pipeline->stage[id]);
    }
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        if (graph_tensor(graph, t)->role == ROLE_OPTIMIZER)
            home[t] = home[graph_tensor(graph, t)->of];
    return home;
}

static uint32_t stage_of_op(const Builder *b, const uint32_t *home, OpId id)
{
    const Op *op = graph_get_op(b->graph, id);
    return op->pass == PASS_UPDATE ? home[op->in[0]] : b->pipeline->stage[op->of];
}

/* Stages of all instructions: a conversion is made where its result is first used, one of partial
 * sums and one that nobody uses where its operand is made. */
static void find_stages(Builder *b)
{
    const Program *inner = b->inner;
    g_autofree uint32_t *home = find_homes(b);
    const uint32_t unknown = b->pipeline->n_stages;
    for (uint32_t i = 0; i < inner->n; i++)
        b->place[i].stage = inner->instr[i].kind == INSTR_COMPUTE
                                ? stage_of_op(b, home, inner->instr[i].op)
                                : unknown;
    for (uint32_t i = inner->n; i-- > 0;) {
        Operand use[OP_MAX_IN];
        const uint32_t n = instr_uses(&inner->instr[i], b->graph, use);
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t maker = b->maker[i * OP_MAX_IN + k];
            const Instr *by = &inner->instr[maker];
            if (by->kind == INSTR_LOAD ||
                (by->kind == INSTR_COLLECTIVE && by->from != FORM_REDUCE))
                b->place[maker].stage = b->place[i].stage;
        }
    }
    for (uint32_t i = 0; i < inner->n; i++) {
        const Instr *instr = &inner->instr[i];
        if (instr->kind == INSTR_LOAD && home[instr->tensor] != unknown &&
            graph_tensor(b->graph, instr->tensor)->role != ROLE_INPUT)
            b->place[i].stage = home[instr->tensor];
        if (b->place[i].stage == unknown)
            b->place[i].stage = instr->kind == INSTR_COLLECTIVE
                                    ? b->place[b->maker[i * OP_MAX_IN]].stage
                                    : 0;
    }
}

static uint16_t group_at(const Builder *b, uint32_t i)
{
    KILTER_ASSERT(b->place[i].stage < b->pipeline->n_stages);
    return (uint16_t)(b->place[i].stage % b->pipeline->n_groups);
}

/* --- what goes from group to group --- */

static int compare_needs(const void *a, const void *b)
{
    const Need *x = a, *y = b;
    if (x->maker != y->maker)
        return x->maker < y->maker ? -1 : 1;
    if (x->tensor != y->tensor)
        return x->tensor < y->tensor ? -1 : 1;
    return (x->to_group > y->to_group) - (x->to_group < y->to_group);
}

/* Inputs are loaded wherever they are used: only other things are sent. */
static void find_needs(Builder *b)
{
    const Program *inner = b->inner;
    b->needs = g_array_new(false, false, sizeof(Need));
    for (uint32_t i = 0; i < inner->n; i++) {
        Operand use[OP_MAX_IN];
        const uint32_t n = instr_uses(&inner->instr[i], b->graph, use);
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t maker = b->maker[i * OP_MAX_IN + k];
            const Need need = {maker, use[k].tensor, use[k].form, group_at(b, maker),
                               group_at(b, i)};
            if (need.group != need.to_group)
                g_array_append_val(b->needs, need);
        }
    }
    g_array_sort(b->needs, compare_needs);
    Need *need = (Need *)(void *)b->needs->data;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->needs->len; i++)
        if (kept == 0 || compare_needs(&need[kept - 1], &need[i]) != 0)
            need[kept++] = need[i];
    g_array_set_size(b->needs, kept);
    b->first = g_new0(uint32_t, inner->n + 1);
    for (uint32_t i = 0; i < kept; i++)
        b->first[need[i].maker + 1]++;
    for (uint32_t i = 0; i < inner->n; i++)
        b->first[i + 1] += b->first[i];
    b->sent = g_new0(bool, kept);
}

/* --- writing the program --- */

static void append(Builder *b, Instr instr, uint32_t group, uint32_t microbatch)
{
    instr.group = (uint16_t)group;
    instr.microbatch = (uint16_t)microbatch;
    program_append(b->program, instr);
}

static uint8_t *partial_of(const Builder *b, uint32_t group, TensorId tensor)
{
    KILTER_ASSERT(group < b->pipeline->n_groups && tensor < graph_n_tensors(b->graph));
    return &b->partial[(size_t)group * graph_n_tensors(b->graph) + tensor];
}

static void send(Builder *b, uint32_t i, uint32_t microbatch)
{
    const Need *need = &g_array_index(b->needs, Need, i);
    if (b->sent[i] && microbatch == PROGRAM_WHOLE)
        return;
    b->sent[i] = true;
    const bool load = b->inner->instr[need->maker].kind == INSTR_LOAD &&
                      graph_tensor(b->graph, need->tensor)->role == ROLE_INPUT;
    *partial_of(b, need->to_group, need->tensor) |=
        *partial_of(b, need->group, need->tensor) & (uint8_t)(1u << need->form);
    append(b,
           (Instr){.kind = load ? INSTR_LOAD : INSTR_TRANSFER,
                   .to_group = load ? 0 : need->to_group,
                   .stream = !load,
                   .tensor = need->tensor,
                   .from = load ? 0 : need->form,
                   .to = need->form},
           load ? need->to_group : need->group, microbatch);
}

static void send_all(Builder *b, uint32_t i, uint32_t microbatch)
{
    for (uint32_t k = b->first[i]; k < b->first[i + 1]; k++)
        if (microbatch == PROGRAM_WHOLE ||
            form_is_gather(b->batch->form[g_array_index(b->needs, Need, k).tensor]))
            send(b, k, microbatch);
}

static bool makes_sums(const Builder *b, const Instr *instr)
{
    if (instr->kind != INSTR_COMPUTE)
        return false;
    const Op *op = graph_get_op(b->graph, instr->op);
    return b->batch->form[op->out[0]] == FORM_REDUCE && b->batch->loop[instr->op] >= 0;
}

static void emit_early(Builder *b)
{
    for (uint32_t i = 0; i < b->inner->n; i++) {
        if (b->place[i].phase != EARLY)
            continue;
        append(b, b->inner->instr[i], group_at(b, i), PROGRAM_WHOLE);
        send_all(b, i, PROGRAM_WHOLE);
    }
}

static void demand(Builder *b, uint32_t i, uint32_t microbatch);

/* Makes again what a unit has made. */
static void emit_again(Builder *b, uint32_t unit, uint32_t microbatch)
{
    const Again again = g_array_index(b->again, Again, unit);
    g_array_index(b->again, Again, unit).done = b->pass;
    for (uint32_t k = again.first; k < again.end; k++) {
        const uint32_t i = b->unit[k];
        if (b->place[i].unit != unit)
            continue;
        demand(b, i, microbatch);
        append(b, b->inner->instr[i], group_at(b, i), microbatch);
    }
}

/* Makes again what instruction `i` uses of it. What a layer starts from was kept. */
static void demand(Builder *b, uint32_t i, uint32_t microbatch)
{
    Operand use[OP_MAX_IN];
    const uint32_t n = instr_uses(&b->inner->instr[i], b->graph, use);
    for (uint32_t k = 0; k < n; k++) {
        const Place *made = &b->place[b->maker[i * OP_MAX_IN + k]];
        if (made->unit == 0 || made->stage != b->place[i].stage)
            continue;
        const Again *again = &g_array_index(b->again, Again, made->unit);
        if (again->done != b->pass && (again->single || made->layer == b->place[i].layer))
            emit_again(b, made->unit, microbatch);
    }
}

/* A stage forward or backward on a microbatch. */
static void emit_unit(Builder *b, Phase phase, uint32_t stage, uint32_t microbatch)
{
    const uint32_t *begin = &b->begin[phase * b->pipeline->n_stages + stage];
    b->pass++;
    for (uint32_t k = begin[0]; k < begin[1]; k++) {
        if (phase == BACKWARD)
            demand(b, b->unit[k], microbatch);
        append(b, b->inner->instr[b->unit[k]], group_at(b, b->unit[k]), microbatch);
        send_all(b, b->unit[k], microbatch);
    }
}

/* All-reduces over the replicas for what is partial of the update's operands. */
static void reduce_across(Builder *b, uint32_t i)
{
    const uint32_t group = group_at(b, i);
    Operand use[OP_MAX_IN];
    const uint32_t n = instr_uses(&b->inner->instr[i], b->graph, use);
    for (uint32_t k = 0; k < n; k++) {
        uint8_t *partial = partial_of(b, group, use[k].tensor);
        if (!(*partial >> use[k].form & 1u))
            continue;
        *partial &= (uint8_t) ~(1u << use[k].form);
        append(b,
               (Instr){.kind = INSTR_COLLECTIVE,
                       .across = true,
                       .stream = 1,
                       .collective = COLLECTIVE_ALL_REDUCE,
                       .tensor = use[k].tensor,
                       .from = use[k].form,
                       .to = use[k].form},
               group, PROGRAM_WHOLE);
    }
}

static bool is_update(const Builder *b, uint32_t i)
{
    const Instr *instr = &b->inner->instr[i];
    return instr->kind == INSTR_COMPUTE &&
           graph_get_op(b->graph, instr->op)->pass == PASS_UPDATE;
}

/* Fetches the operands that other groups have made. */
static void fetch(Builder *b, uint32_t i)
{
    Operand use[OP_MAX_IN];
    const uint32_t n = instr_uses(&b->inner->instr[i], b->graph, use);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t maker = b->maker[i * OP_MAX_IN + k];
        for (uint32_t s = b->first[maker]; s < b->first[maker + 1]; s++) {
            const Need *need = &g_array_index(b->needs, Need, s);
            if (need->to_group == group_at(b, i) && need->tensor == use[k].tensor)
                send(b, s, PROGRAM_WHOLE);
        }
    }
}

static void emit_one_late(Builder *b, uint32_t i)
{
    const Instr *instr = &b->inner->instr[i];
    const uint32_t group = group_at(b, i);
    Operand use[OP_MAX_IN], make[OP_MAX_OUT];
    const uint32_t n_uses = instr_uses(instr, b->graph, use);
    const uint32_t n_makes = instr_makes(instr, b->graph, make);
    bool partial = false;
    fetch(b, i);
    if (is_update(b, i))
        reduce_across(b, i);
    for (uint32_t k = 0; k < n_uses; k++)
        partial |= *partial_of(b, group, use[k].tensor) >> use[k].form & 1u;
    for (uint32_t k = 0; partial && k < n_makes; k++)
        *partial_of(b, group, make[k].tensor) |= (uint8_t)(1u << make[k].form);
    append(b, *instr, group, PROGRAM_WHOLE);
}

static void emit_late(Builder *b)
{
    const Program *inner = b->inner;
    bool updating = false;
    for (uint32_t i = 0; i < inner->n; i++) {
        if (b->place[i].phase != LATE)
            continue;
        for (uint32_t k = i; !updating && is_update(b, i) && k < inner->n; k++)
            if (is_update(b, k))
                reduce_across(b, k);
        updating |= is_update(b, i);
        emit_one_late(b, i);
    }
}

/* --- the schedule --- */

/* Whether all that a step needs has run; done[stage * n_microbatches + microbatch]: forward 1,
 * backward 2. */
static bool is_ready(const SynthPipeline *p, const uint8_t *done, SynthStep step)
{
    const uint8_t *mine = &done[step.stage * p->n_microbatches + step.microbatch];
    if (!step.backward)
        return step.stage == 0 || mine[-(int64_t)p->n_microbatches] > 0;
    return mine[0] == 1 &&
           (step.stage + 1 == p->n_stages || mine[p->n_microbatches] == 2);
}

static void emit_step(Builder *b, SynthStep step)
{
    emit_unit(b, step.backward ? BACKWARD : FORWARD, step.stage, step.microbatch);
}

static bool emit_steps(Builder *b, GError **error)
{
    const SynthPipeline *p = b->pipeline;
    g_autoptr(GPtrArray) order =
        g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    g_autofree uint32_t *next = g_new0(uint32_t, p->n_groups);
    g_autofree uint8_t *done =
        g_new0(uint8_t, (size_t)p->n_stages * p->n_microbatches + p->n_microbatches);
    for (uint32_t g = 0; g < p->n_groups; g++) {
        GArray *steps = synth_schedule(p->schedule, p->n_stages, p->n_groups,
                                       p->n_microbatches, g, error);
        if (!steps)
            return false;
        g_ptr_array_add(order, steps);
    }
    for (bool any = true; any;) {
        any = false;
        for (uint32_t g = 0; g < p->n_groups; g++) {
            const GArray *steps = order->pdata[g];
            if (next[g] == steps->len)
                continue;
            const SynthStep step = g_array_index(steps, SynthStep, next[g]);
            if (!is_ready(p, done, step))
                continue;
            done[step.stage * p->n_microbatches + step.microbatch]++;
            next[g]++;
            any = true;
            emit_step(b, step);
        }
    }
    for (uint32_t g = 0; g < p->n_groups; g++)
        g_assert(next[g] == ((const GArray *)order->pdata[g])->len);
    return true;
}

/* --- all of it --- */

/* Instructions of each (phase, stage), and what is partial once all microbatches have run. */
static void find_units(Builder *b)
{
    const uint32_t n = b->inner->n, n_stages = b->pipeline->n_stages;
    b->begin = g_new0(uint32_t, (size_t)(LATE + 1) * n_stages + 1);
    b->unit = g_new(uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        b->begin[b->place[i].phase * n_stages + b->place[i].stage + 1]++;
    for (uint32_t k = 0; k < (LATE + 1) * n_stages; k++)
        b->begin[k + 1] += b->begin[k];
    g_autofree uint32_t *fill =
        g_memdup2(b->begin, ((LATE + 1) * n_stages + 1) * sizeof *fill);
    for (uint32_t i = 0; i < n; i++) {
        b->unit[fill[b->place[i].phase * n_stages + b->place[i].stage]++] = i;
        const uint32_t group = group_at(b, i);
        if (!makes_sums(b, &b->inner->instr[i]) ||
            b->pipeline->group[group].n_replicas == 1)
            continue;
        Operand make[OP_MAX_OUT];
        const uint32_t n_makes = instr_makes(&b->inner->instr[i], b->graph, make);
        for (uint32_t k = 0; k < n_makes; k++)
            *partial_of(b, group, make[k].tensor) |= (uint8_t)(1u << make[k].form);
    }
}

/* --- what is computed again --- */

/* Whether the op has an output that only backward ops read. */
static bool has_inner_output(const Builder *b, const bool *read, OpId id)
{
    const Op *op = graph_get_op(b->graph, id);
    bool any = false;
    for (uint32_t o = 0; o < op->n_out; o++)
        any |= !read[op->out[o]] && graph_tensor(b->graph, op->out[o])->role != ROLE_LOSS;
    return any;
}

/* Layers of all forward instructions: that of its op, and of a conversion as its stage. */
static void find_layers(Builder *b)
{
    const Program *inner = b->inner;
    for (uint32_t i = 0; i < inner->n; i++)
        if (inner->instr[i].kind == INSTR_COMPUTE)
            b->place[i].layer = graph_get_op(b->graph, inner->instr[i].op)->layer;
    for (uint32_t i = inner->n; i-- > 0;) {
        Operand use[OP_MAX_IN];
        const uint32_t n = instr_uses(&inner->instr[i], b->graph, use);
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t maker = b->maker[i * OP_MAX_IN + k];
            const Instr *by = &inner->instr[maker];
            if (by->kind == INSTR_COLLECTIVE && by->from != FORM_REDUCE)
                b->place[maker].layer = b->place[i].layer;
        }
    }
    for (uint32_t i = 0; i < inner->n; i++)
        if (inner->instr[i].kind == INSTR_COLLECTIVE &&
            inner->instr[i].from == FORM_REDUCE)
            b->place[i].layer = b->place[b->maker[i * OP_MAX_IN]].layer;
}

static uint32_t add_again(Builder *b, uint32_t first, bool single)
{
    const Again again = {.first = first, .end = first + 1, .single = single};
    g_array_append_val(b->again, again);
    return b->again->len - 1;
}

/* Units of a stage's forward. */
static void find_again_of(Builder *b, const bool *read, uint32_t stage)
{
    const uint32_t *begin = &b->begin[FORWARD * b->pipeline->n_stages + stage];
    g_autoptr(GHashTable) of_layer = g_hash_table_new(NULL, NULL);
    for (uint32_t k = begin[0]; k < begin[1]; k++) {
        const uint32_t i = b->unit[k];
        const Instr *instr = &b->inner->instr[i];
        const Recompute mode = b->pipeline->recompute[b->place[i].layer];
        if (mode == RECOMPUTE_NONE || makes_sums(b, instr))
            continue;
        if (mode == RECOMPUTE_SELECTIVE) {
            if (instr->kind == INSTR_COMPUTE && has_inner_output(b, read, instr->op))
                b->place[i].unit = add_again(b, k, true);
            continue;
        }
        const gpointer layer = GUINT_TO_POINTER(b->place[i].layer);
        gpointer unit = g_hash_table_lookup(of_layer, layer);
        if (!unit) {
            unit = GUINT_TO_POINTER(add_again(b, k, false));
            g_hash_table_insert(of_layer, layer, unit);
        }
        b->place[i].unit = GPOINTER_TO_UINT(unit);
        g_array_index(b->again, Again, b->place[i].unit).end = k + 1;
    }
}

static void find_again(Builder *b)
{
    g_autofree bool *read = g_new0(bool, graph_n_tensors(b->graph));
    b->again = g_array_new(false, false, sizeof(Again));
    add_again(b, 0, true);
    if (!b->pipeline->recompute)
        return;
    for (OpId id = 0; id < graph_n_ops(b->graph); id++) {
        const Op *op = graph_get_op(b->graph, id);
        for (uint32_t i = 0; op->pass == PASS_FORWARD && i < op->n_in; i++)
            read[op->in[i]] = true;
    }
    find_layers(b);
    for (uint32_t s = 0; s < b->pipeline->n_stages; s++)
        find_again_of(b, read, s);
}

static bool check_stages(const Graph *graph, const SynthPipeline *p, GError **error)
{
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const Op *op = graph_get_op(graph, id);
        if (op->pass != PASS_FORWARD)
            continue;
        if (p->stage[id] >= p->n_stages)
            return kilter_fail(error, KILTER_ERROR_INPUT,
                               "op %s: expected a stage below %u, got %u", op->name,
                               p->n_stages, p->stage[id]);
        for (uint32_t i = 0; i < op->n_in; i++) {
            const OpId by = graph_tensor(graph, op->in[i])->producer;
            if (by != GRAPH_NONE && p->stage[by] > p->stage[id])
                return kilter_fail(error, KILTER_ERROR_INPUT,
                                   "op %s of stage %u uses what stage %u makes", op->name,
                                   p->stage[id], p->stage[by]);
        }
    }
    return true;
}

static void builder_clear(Builder *b)
{
    batch_forms_free(b->batch);
    if (b->needs)
        g_array_unref(b->needs);
    if (b->again)
        g_array_unref(b->again);
    g_free(b->place);
    g_free(b->maker);
    g_free(b->first);
    g_free(b->sent);
    g_free(b->unit);
    g_free(b->begin);
    g_free(b->partial);
    program_free(b->program);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Builder, builder_clear)

Program *synth_pipeline(const Program *inner, const Graph *graph,
                        const SynthPipeline *pipeline, GError **error)
{
    g_auto(Builder) b = {.inner = inner, .graph = graph, .pipeline = pipeline};
    if (!check_stages(graph, pipeline, error) ||
        !(b.batch = batch_forms_new(graph, error)))
        return NULL;
    b.place = g_new0(Place, inner->n);
    b.partial = g_new0(uint8_t, (size_t)pipeline->n_groups * graph_n_tensors(graph));
    b.program = program_new();
    b.program->n_microbatches = pipeline->n_microbatches;
    for (uint32_t g = 0; g < pipeline->n_groups; g++)
        program_add_group(b.program, pipeline->group[g].n_replicas,
                          pipeline->group[g].n_devices, pipeline->group[g].device);
    find_makers(&b);
    find_phases(&b);
    find_stages(&b);
    find_needs(&b);
    find_units(&b);
    find_again(&b);
    emit_early(&b);
    if (!emit_steps(&b, error))
        return NULL;
    emit_late(&b);
    if (!program_check(b.program, graph, error))
        return NULL;
    return g_steal_pointer(&b.program);
}
