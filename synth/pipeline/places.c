/* When and where the instructions of a pipeline run: their phases, stages and needs, and units that
 * are computed again. */
#include "data/base/free.h"
#include "data/base/order.h"
#include "synth/pipeline/build.h"

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
    b->use = g_new(Use, (size_t)inner->n * OP_MAX_IN);
    b->use_at = g_new0(uint32_t, inner->n + 1);
    for (uint32_t i = 0; i < inner->n; i++) {
        Operand use[OP_MAX_IN], make[OP_MAX_OUT];
        const uint32_t n_uses = instr_uses(&inner->instr[i], b->graph, use);
        const uint32_t n_makes = instr_makes(&inner->instr[i], b->graph, make);
        b->use_at[i + 1] = b->use_at[i] + n_uses;
        for (uint32_t k = 0; k < n_uses; k++)
            b->use[b->use_at[i] + k] = (Use){use[k], last[cell(use[k])]};
        for (uint32_t k = 0; k < n_makes; k++)
            last[cell(make[k])] = i;
    }
}

/* Finds the forward ops whose kept data, such as dropout masks, backward ops read. */
static void find_keepers(Builder *b)
{
    const Program *inner = b->inner;
    g_autofree uint32_t *made = g_new(uint32_t, graph_n_ops(b->graph));
    b->keeper = g_new(uint32_t, inner->n);
    for (uint32_t i = 0; i < inner->n; i++) {
        b->keeper[i] = UINT32_MAX;
        if (inner->instr[i].kind != INSTR_COMPUTE)
            continue;
        TensorId beside;
        const Op *op = graph_get_op(b->graph, inner->instr[i].op);
        made[inner->instr[i].op] = i;
        if (op->pass == PASS_BACKWARD && graph_op_kept_bytes(b->graph, op->of, &beside))
            b->keeper[i] = made[op->of];
    }
}

static bool has_parts(const Builder *b, const Instr *instr)
{
    return instr->kind == INSTR_COMPUTE ? b->batch->loop[instr->op] >= 0
                                        : form_is_gather(b->batch->form[instr->tensor]);
}

static void find_phases(Builder *b)
{
    const Program *inner = b->inner;
    bool backward = false;
    items_at (const Instr, instr, i, inner->instr, inner->n) {
        Phase *phase = &b->place[i].phase;
        backward |= instr->kind == INSTR_COMPUTE &&
                    graph_get_op(b->graph, instr->op)->pass == PASS_BACKWARD;
        *phase = EARLY;
        if (instr->kind != INSTR_LOAD && has_parts(b, instr))
            *phase = backward ? BACKWARD : FORWARD;
        uses_each (use, b, i)
            if (*phase == EARLY && b->place[use->maker].phase != EARLY)
                *phase = LATE;
    }
}

/* [tensor]: the stage of the first forward op that uses a parameter, also for its states; n_stages:
 * none. */
static uint32_t *find_homes(const Builder *b)
{
    const Graph *graph = b->graph;
    uint32_t *home = g_new(uint32_t, graph_n_tensors(graph));
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        home[t] = b->pipeline->n_stages;
    ops_each (op, id, graph) {
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

/* Finds the stages of all instructions. A conversion is made where its result is first used; a
 * conversion of partial sums, or without users, where its operand is made. */
static void find_stages(Builder *b)
{
    const Program *inner = b->inner;
    g_autofree uint32_t *home = find_homes(b);
    const uint32_t unknown = b->pipeline->n_stages;
    for (uint32_t i = 0; i < inner->n; i++)
        b->place[i].stage = inner->instr[i].kind == INSTR_COMPUTE
                                ? stage_of_op(b, home, inner->instr[i].op)
                                : unknown;
    for (uint32_t i = inner->n; i-- > 0;)
        uses_each (use, b, i) {
            const Instr *by = &inner->instr[use->maker];
            if (by->kind == INSTR_LOAD ||
                (by->kind == INSTR_COLLECTIVE && by->from != FORM_REDUCE))
                b->place[use->maker].stage = b->place[i].stage;
        }
    items_at (const Instr, instr, i, inner->instr, inner->n) {
        if (instr->kind == INSTR_LOAD && home[instr->tensor] != unknown &&
            graph_tensor(b->graph, instr->tensor)->role != ROLE_INPUT)
            b->place[i].stage = home[instr->tensor];
        if (b->place[i].stage == unknown)
            b->place[i].stage = instr->kind == INSTR_COLLECTIVE
                                    ? b->place[pipeline_maker(b, i, 0)].stage
                                    : 0;
    }
}

bool *synth_forward_reads(const Graph *graph)
{
    bool *read = g_new0(bool, graph_n_tensors(graph) + 1);
    ops_each (op, id, graph) {
        for (uint32_t i = 0; op->pass == PASS_FORWARD && i < op->n_in; i++)
            read[op->in[i]] = true;
    }
    return read;
}

bool synth_makes_inner(const Graph *graph, const bool *read, OpId id)
{
    const Op *op = graph_get_op(graph, id);
    uint64_t inner = 0, outer = UINT64_MAX;
    for (uint32_t o = 0; o < op->n_out; o++) {
        const Tensor *made = graph_tensor(graph, op->out[o]);
        if (read[op->out[o]])
            outer = MIN(outer, tensor_elements(made));
        else if (made->role != ROLE_LOSS)
            inner = MAX(inner, tensor_elements(made));
    }
    return inner > 0 && (inner >= outer || outer == UINT64_MAX);
}

SynthAgain synth_again(const Graph *graph, Recompute mode)
{
    const uint32_t n_ops = graph_n_ops(graph), n = graph_n_tensors(graph);
    g_autofree Recompute *modes = g_new(Recompute, graph_n_layers(graph) + 1);
    for (uint32_t l = 0; l < graph_n_layers(graph); l++)
        modes[l] = mode;
    g_autofree RecomputeWay *way = recompute_ways(graph, modes);
    g_autofree bool *kept = recompute_kept(graph, way, modes),
                    *read = synth_forward_reads(graph);
    SynthAgain again = {g_new0(bool, n_ops + 1), g_new0(bool, n + 1)};
    for (OpId id = 0; id < n_ops; id++) {
        const Op *op = graph_get_op(graph, id);
        again.op[id] =
            op->pass == PASS_FORWARD &&
            (mode == RECOMPUTE_FULL || way[id] != RECOMPUTE_STAYS ||
             (mode & RECOMPUTE_SELECTIVE && synth_makes_inner(graph, read, id)));
        for (uint32_t o = 0; o < op->n_out; o++)
            again.drop[op->out[o]] = again.op[id] && !kept[op->out[o]];
    }
    return again;
}

CLEAR_DEFINE(synth_again_clear, SynthAgain, again, free_each(again->op, again->drop));

/* Whether an instruction of the backward may run later than the rest of its stage's. */
static bool can_wait(const Builder *b, uint32_t i)
{
    const Instr *instr = &b->inner->instr[i];
    const Instr *by =
        instr->kind == INSTR_COMPUTE ? instr : &b->inner->instr[pipeline_maker(b, i, 0)];
    return b->place[i].phase == BACKWARD && b->place[i].stage > 0 &&
           by->kind == INSTR_COMPUTE;
}

/* Splits the backward where the schedule does: what no backward of another stage needs, not even
 * over other instructions, waits. */
static void find_weights(Builder *b)
{
    const Program *inner = b->inner;
    g_autofree bool *needed = g_new0(bool, inner->n);
    if (!schedule_splits(b->pipeline->schedule))
        return;
    for (uint32_t i = inner->n; i-- > 0;) {
        if (!needed[i] && can_wait(b, i))
            b->place[i].phase = WEIGHTS;
        uses_each (use, b, i)
            needed[use->maker] |= b->place[i].phase == BACKWARD ||
                                  (b->place[i].phase == WEIGHTS &&
                                   b->place[use->maker].stage != b->place[i].stage);
    }
}

static ORDER_DEFINE(compare_needs, Need, ASCENDING(maker), ASCENDING(tensor),
                    ASCENDING(to_group));

/* Finds the tensors that groups send one another. Inputs are never sent, but loaded wherever they
 * are used. */
static void find_needs(Builder *b)
{
    const Program *inner = b->inner;
    b->needs = g_array_new(false, false, sizeof(Need));
    for (uint32_t i = 0; i < inner->n; i++)
        uses_each (use, b, i) {
            const Operand of = use->of;
            const Need need = {
                use->maker,    of.tensor, of.form, of.form, group_at(b, use->maker),
                group_at(b, i)};
            if (need.group != need.to_group)
                g_array_append_val(b->needs, need);
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

/* The need of a group for a tensor that `maker` makes; NULL: it is made in the group. */
static Need *need_of(const Builder *b, uint32_t maker, uint32_t group, TensorId tensor)
{
    for (uint32_t k = b->first[maker]; k < b->first[maker + 1]; k++) {
        Need *need = &g_array_index(b->needs, Need, k);
        if (need->tensor == tensor && need->to_group == group)
            return need;
    }
    return NULL;
}

/* The need of a cut for the whole of a part of the batch from another group, or NULL. */
static Need *need_to_cut(const Builder *b, uint32_t i)
{
    const Instr *instr = &b->inner->instr[i];
    const bool cuts = instr->kind == INSTR_COLLECTIVE && instr->from == FORM_IDENTITY &&
                      form_is_gather(instr->to) &&
                      form_is_gather(b->batch->form[instr->tensor]);
    return cuts ? need_of(b, pipeline_maker(b, i, 0), group_at(b, i), instr->tensor)
                : NULL;
}

/* Where all that a group does with a tensor from another group is to cut it in one way, the
 * transfer cuts it. */
static void find_received(Builder *b)
{
    const Program *inner = b->inner;
    g_autoptr(GHashTable) other = g_hash_table_new(NULL, NULL);
    for (uint32_t i = 0; i < inner->n; i++) {
        Need *cut = need_to_cut(b, i);
        if (cut && cut->to == FORM_IDENTITY)
            cut->to = inner->instr[i].to;
        uses_each (use, b, i) {
            Need *need = need_of(b, use->maker, group_at(b, i), use->of.tensor);
            if (need && (need != cut || cut->to != inner->instr[i].to))
                g_hash_table_add(other, need);
        }
    }
    array_each (Need, need, b->needs)
        if (g_hash_table_contains(other, need))
            need->to = need->form;
    for (uint32_t i = 0; i < inner->n; i++) {
        const Need *cut = need_to_cut(b, i);
        if (cut && cut->to == inner->instr[i].to)
            b->place[i].phase = RECEIVED;
    }
}

/* Collects the instructions of each (phase, stage), and finds the tensors that are partial once all
 * microbatches have run. */
static void find_units(Builder *b)
{
    const uint32_t n = b->inner->n, n_stages = b->pipeline->n_stages;
    b->begin = g_new0(uint32_t, (size_t)(RECEIVED + 1) * n_stages + 1);
    b->unit = g_new(uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        b->begin[b->place[i].phase * n_stages + b->place[i].stage + 1]++;
    for (uint32_t k = 0; k < (RECEIVED + 1) * n_stages; k++)
        b->begin[k + 1] += b->begin[k];
    g_autofree uint32_t *fill =
        g_memdup2(b->begin, ((RECEIVED + 1) * n_stages + 1) * sizeof *fill);
    for (uint32_t i = 0; i < n; i++) {
        b->unit[fill[b->place[i].phase * n_stages + b->place[i].stage]++] = i;
        const uint32_t group = group_at(b, i);
        if (!makes_sums(b, &b->inner->instr[i]) ||
            b->pipeline->group[group].n_replicas == 1)
            continue;
        Operand make[OP_MAX_OUT];
        const uint32_t n_makes = instr_makes(&b->inner->instr[i], b->graph, make);
        for (uint32_t k = 0; k < n_makes; k++)
            if (b->batch->form[make[k].tensor] == FORM_REDUCE)
                *partial_of(b, group, make[k].tensor) |= (uint8_t)(1u << make[k].form);
    }
}

/* Finds the layers of all forward instructions: a computation has its op's layer, a conversion is
 * treated as for its stage. */
static void find_layers(Builder *b)
{
    const Program *inner = b->inner;
    for (uint32_t i = 0; i < inner->n; i++)
        if (inner->instr[i].kind == INSTR_COMPUTE)
            b->place[i].layer = graph_get_op(b->graph, inner->instr[i].op)->layer;
    for (uint32_t i = inner->n; i-- > 0;)
        uses_each (use, b, i) {
            const Instr *by = &inner->instr[use->maker];
            if (by->kind == INSTR_COLLECTIVE && by->from != FORM_REDUCE)
                b->place[use->maker].layer = b->place[i].layer;
        }
    for (uint32_t i = 0; i < inner->n; i++)
        if (inner->instr[i].kind == INSTR_COLLECTIVE &&
            inner->instr[i].from == FORM_REDUCE)
            b->place[i].layer = b->place[pipeline_maker(b, i, 0)].layer;
}

static uint32_t add_again(Builder *b, uint32_t first, bool single)
{
    const Again again = {.first = first, .end = first + 1, .single = single};
    g_array_append_val(b->again, again);
    return b->again->len - 1;
}

/* How an instruction runs again although its layer is kept. */
static RecomputeWay way_of(const Builder *b, uint32_t i, Recompute mode)
{
    const Instr *instr = &b->inner->instr[i];
    const bool *sequence = b->pipeline->sequence;
    if (instr->kind == INSTR_COMPUTE) {
        const RecomputeWay way = b->way ? b->way[instr->op] : RECOMPUTE_STAYS;
        return way == RECOMPUTE_STAYS && mode & RECOMPUTE_SELECTIVE &&
                       synth_makes_inner(b->graph, b->read, instr->op)
                   ? RECOMPUTE_KEEPS
                   : way;
    }
    if (pipeline_exchanged_again(b, instr->tensor, b->place[i].layer))
        return RECOMPUTE_MODULE;
    return instr->kind == INSTR_COLLECTIVE && sequence && sequence[b->place[i].layer] &&
                   form_is_gather(instr->from) && instr->to == FORM_IDENTITY
               ? RECOMPUTE_DROPS
               : RECOMPUTE_STAYS;
}

/* Adds an instruction to the unit of its layer. */
static void join_unit(Builder *b, GHashTable *of_layer, uint32_t i, uint32_t k)
{
    const gpointer layer = GUINT_TO_POINTER(b->place[i].layer);
    gpointer unit = g_hash_table_lookup(of_layer, layer);
    if (!unit) {
        unit = GUINT_TO_POINTER(add_again(b, k, false));
        g_hash_table_insert(of_layer, layer, unit);
    }
    b->place[i].unit = GPOINTER_TO_UINT(unit);
    g_array_index(b->again, Again, b->place[i].unit).end = k + 1;
}

/* Finds the units of recomputation in a stage's forward. */
static void find_again_of(Builder *b, uint32_t stage)
{
    const uint32_t *begin = &b->begin[FORWARD * b->pipeline->n_stages + stage];
    g_autoptr(GHashTable) of_layer = g_hash_table_new(NULL, NULL);
    for (uint32_t k = begin[0]; k < begin[1]; k++) {
        const uint32_t i = b->unit[k];
        const Recompute *modes = b->pipeline->recompute;
        const Recompute mode = modes ? modes[b->place[i].layer] : RECOMPUTE_NONE;
        if (makes_sums(b, &b->inner->instr[i]))
            continue;
        const RecomputeWay way =
            mode == RECOMPUTE_FULL ? RECOMPUTE_MODULE : way_of(b, i, mode);
        if (way == RECOMPUTE_MODULE)
            join_unit(b, of_layer, i, k);
        else if (way != RECOMPUTE_STAYS)
            b->place[i].unit = add_again(b, k, true);
    }
}

static void find_again(Builder *b)
{
    b->again = g_array_new(false, false, sizeof(Again));
    add_again(b, 0, true);
    if (b->pipeline->recompute)
        b->way = recompute_ways(b->graph, b->pipeline->recompute);
    b->kept = recompute_kept(b->graph, b->way, b->pipeline->recompute);
    if (!b->pipeline->recompute && !b->pipeline->sequence && b->pipeline->zero == 0)
        return;
    find_layers(b);
    for (uint32_t s = 0;
         (b->pipeline->recompute || b->pipeline->sequence) && s < b->pipeline->n_stages;
         s++)
        find_again_of(b, s);
}

void pipeline_find_places(Builder *b)
{
    find_makers(b);
    find_keepers(b);
    find_phases(b);
    find_stages(b);
    b->read = synth_forward_reads(b->graph);
    find_weights(b);
    find_needs(b);
    if (b->pipeline->scatters)
        find_received(b);
    find_units(b);
    find_again(b);
}
