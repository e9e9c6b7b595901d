/* Buffers of a program.
 *
 * A value is one making of an instance; it lives until its last use before the instance is made
 * again. Values lie in buffers; a value made in place or as a view shares the buffer of another. A
 * contribution to a sum over the batch uses the sum's buffer. */
#include "data/plan/buffers.h"

#include "data/base/free.h"

#include <string.h>

#define NO_BUFFER UINT32_MAX

typedef struct {
    const Program *program;
    const Graph *graph;
    const Instances *instances;
    const uint16_t *instance_segment;
    bool *again;   /* [instr]: it adds to a sum that other instructions have begun */
    bool *drained; /* [group * n_tensors + tensor]: its total moves to another instance */
    uint32_t *end; /* [instr * OP_MAX_OUT + output]: last use of the value made there */
    uint32_t *load_end; /* [cell]: last use of a loaded value */
    uint32_t *buffer;   /* [cell]: where the instance is now */
    /* [instr]: last use of the data it keeps for the backward; 0: none */
    uint32_t *kept_end;
    uint32_t *kept; /* [place]: buffer of the data kept beside the instance */
    /* [instr * OP_MAX_OUT + output]: the buffer of the value made there */
    uint32_t *made;
    GArray *buffers, *uses; /* PlanBuffer; the buffer of each use, in program order */
    uint32_t *used;         /* [instr]: the uses up to its own */
} Liveness;

static size_t tensor_at(const Liveness *l, uint32_t group, TensorId tensor)
{
    KILTER_ASSERT(tensor < graph_n_tensors(l->graph));
    return (size_t)group * graph_n_tensors(l->graph) + tensor;
}

static void find_drained(Liveness *l)
{
    for (uint32_t i = 0; i < l->program->n; i++)
        if (instr_moves(&l->program->instr[i]) && !instr_joins(&l->program->instr[i]))
            l->drained[tensor_at(l, l->program->instr[i].group,
                                 l->program->instr[i].tensor)] = true;
}

/* Finds the instructions that add to sums that others have begun. */
static void find_sums(Liveness *l)
{
    const BatchForms *batch = l->instances->batch;
    g_autofree bool *begun = g_new0(bool, (size_t)l->instances->n_places *FORM_MAX);
    for (uint32_t i = 0; batch && i < l->program->n; i++) {
        const Instr *instr = &l->program->instr[i];
        const bool moves = instr_moves(instr);
        if (!moves && (instr->kind != INSTR_COMPUTE || batch->loop[instr->op] < 0))
            continue;
        PlacedOperand made[OP_MAX_OUT], used[OP_MAX_IN];
        instances_makes(l->instances, l->graph, instr, made);
        if (batch->form[made[0].tensor] != FORM_REDUCE)
            continue;
        if (moves) { /* its source starts again from zero */
            instances_uses(l->instances, l->graph, instr, used);
            begun[placed_cell(&used[0])] = false;
        }
        l->again[i] = begun[placed_cell(&made[0])];
        begun[placed_cell(&made[0])] = true;
    }
}

/* Finds last uses by walking backwards: a value used by an instruction was made before it. */
static void find_ends(Liveness *l)
{
    g_autofree uint32_t *last =
        g_new0(uint32_t, (size_t)l->instances->n_places * FORM_MAX); /* 0: none yet */
    for (uint32_t i = l->program->n; i-- > 0;) {
        const Instr *instr = &l->program->instr[i];
        PlacedOperand made[OP_MAX_OUT], used[OP_MAX_IN];
        const uint32_t n_made = instances_makes(l->instances, l->graph, instr, made);
        const uint32_t n_used = instances_uses(l->instances, l->graph, instr, used);
        const uint32_t n_parts = instances_made(l->instances, instr);
        for (uint32_t k = 0; k < n_made; k++) {
            uint32_t *of = &last[placed_cell(&made[k])];
            for (uint32_t part = 0; part < n_parts; part++) {
                const size_t cell = placed_cell(&made[k]) +
                                    (size_t)part * l->instances->n_parted * FORM_MAX;
                l->load_end[cell] = MAX(last[cell], i);
            }
            l->end[i * OP_MAX_OUT + k] = MAX(*of, i);
            *of = l->again[i] ? MAX(*of, i) : 0;
        }
        for (uint32_t k = 0; k < n_used; k++) {
            uint32_t *of = &last[placed_cell(&used[k])];
            *of = MAX(*of, i);
        }
    }
}

/* --- what ops keep for their backward beside tensors --- */

/* The place of the output beside which the instruction's op, or the op that it differentiates,
 * keeps data; GRAPH_NONE if it keeps none. */
static uint32_t kept_place(const Liveness *l, const Instr *instr, TensorId *of)
{
    if (instr->kind != INSTR_COMPUTE)
        return GRAPH_NONE;
    const OpId forward = graph_get_op(l->graph, instr->op)->of;
    return graph_op_kept_bytes(l->graph, forward, of) == 0
               ? GRAPH_NONE
               : instances_any_place(l->instances, instr->group, instr->microbatch, *of);
}

/* Finds how long kept data live: from the forward to the last backward op before the forward is
 * computed again. */
static void find_kept(Liveness *l)
{
    g_autofree uint32_t *last = g_new0(uint32_t, l->instances->n_places);
    for (uint32_t i = l->program->n; i-- > 0;) {
        TensorId of;
        const uint32_t place = kept_place(l, &l->program->instr[i], &of);
        if (place == GRAPH_NONE)
            continue;
        if (graph_get_op(l->graph, l->program->instr[i].op)->pass == PASS_FORWARD) {
            l->kept_end[i] = last[place];
            last[place] = 0;
        } else if (last[place] == 0) {
            last[place] = i;
        }
    }
}

/* --- buffers --- */

static PlanBuffer *buffer_of(const Liveness *l, PlacedOperand instance)
{
    const uint32_t id =
        instance.place == GRAPH_NONE ? NO_BUFFER : l->buffer[placed_cell(&instance)];
    return id == NO_BUFFER ? NULL : &g_array_index(l->buffers, PlanBuffer, id);
}

/* Whether the same split cuts both tensors in this form. */
static bool same_split(const Liveness *l, TensorId a, TensorId b, Form form)
{
    const Tensor *x = graph_tensor(l->graph, a), *y = graph_tensor(l->graph, b);
    for (FormAxis axis = AXIS_SHARDS; axis <= AXIS_REPLICAS; axis++)
        if (form_is_gather(form_on(axis, form)) &&
            x->units[form_dim(form_on(axis, form))] !=
                y->units[form_dim(form_on(axis, form))])
            return false;
    return !form_is_gather(form) ||
           (l->instance_segment[(size_t)a * FORM_MAX + form_inside(form)] ==
                l->instance_segment[(size_t)b * FORM_MAX + form_inside(form)] &&
            x->units[form_dim(form)] == y->units[form_dim(form)]);
}

/* Whether a value made at instruction `i` can overwrite the last value in `instance`'s buffer. */
static bool free_at(const Liveness *l, PlacedOperand instance, uint32_t i)
{
    const PlanBuffer *buffer = buffer_of(l, instance);
    return buffer &&
           (buffer->at_rest ? buffer->busy_until <= i : buffer->busy_until == i);
}

static bool same_layout(const Liveness *l, PlacedOperand a, PlacedOperand b)
{
    const Tensor *x = graph_tensor(l->graph, a.tensor),
                 *y = graph_tensor(l->graph, b.tensor);
    return a.form == b.form && x->dtype == y->dtype && x->rank == y->rank &&
           memcmp(x->dim, y->dim, x->rank * sizeof x->dim[0]) == 0 &&
           same_split(l, a.tensor, b.tensor, a.form) &&
           instances_has_parts(l->instances, a.tensor) ==
               instances_has_parts(l->instances, b.tensor) &&
           graph_is_held(l->graph, x) == graph_is_held(l->graph, y);
}

/* The buffer that a computation's output can share, or NO_BUFFER. */
static uint32_t shared_by_compute(const Liveness *l, uint32_t i, PlacedOperand made,
                                  const PlacedOperand *used)
{
    const Op *op = graph_get_op(l->graph, l->program->instr[i].op);
    if (op_kind_is_view(op->kind))
        return l->buffer[placed_cell(&used[0])];
    if (!op_kind_is_elementwise(op->kind) || op->n_out > 1)
        return NO_BUFFER;
    for (uint32_t k = 0; k < op->n_in; k++)
        if (free_at(l, used[k], i) && !buffer_of(l, used[k])->at_rest &&
            same_layout(l, used[k], made))
            return l->buffer[placed_cell(&used[k])];
    return NO_BUFFER;
}

/* The buffer that a conversion's result can share, or NO_BUFFER. */
static uint32_t shared_by_conversion(const Liveness *l, uint32_t i, PlacedOperand made,
                                     PlacedOperand from)
{
    const Instr *instr = &l->program->instr[i];
    if (instr->kind == INSTR_TRANSFER && instr->across && !instr->moves)
        return l->buffer[placed_cell(&made)]; /* what joined stays where it is */
    if (instr->kind == INSTR_TRANSFER)
        return instr_regroups(l->program, instr) ? l->buffer[placed_cell(&from)]
                                                 : NO_BUFFER;
    if (instr->collective == COLLECTIVE_SLICE && buffer_of(l, from)->at_rest)
        return l->buffer[placed_cell(&from)];
    /* each rank's part of an accumulated gradient is summed where it lies */
    if ((instr->collective == COLLECTIVE_REDUCE_SCATTER ||
         instr->collective == COLLECTIVE_GROUPED_REDUCE_SCATTER) &&
        buffer_of(l, from)->stands)
        return l->buffer[placed_cell(&from)];
    if ((instr->collective == COLLECTIVE_ALL_REDUCE ||
         instr->collective == COLLECTIVE_KEEP) &&
        free_at(l, from, i) && !buffer_of(l, from)->at_rest)
        return l->buffer[placed_cell(&from)];
    return NO_BUFFER;
}

/* The instance of the old value that an update replaces. */
static PlacedOperand old_of(const Liveness *l, PlacedOperand made)
{
    return instances_operand(
        l->instances, made.group, 0,
        (Operand){graph_tensor(l->graph, made.tensor)->of, made.form});
}

/* `used`: the operands of instruction `i`. */
static uint32_t find_shared(const Liveness *l, uint32_t i, PlacedOperand made,
                            const PlacedOperand *used)
{
    const Instr *instr = &l->program->instr[i];
    if (graph_tensor(l->graph, made.tensor)->role == ROLE_UPDATED) {
        const PlacedOperand old = old_of(l, made);
        if (free_at(l, old, i))
            return l->buffer[placed_cell(&old)];
    }
    if (instr->kind == INSTR_COMPUTE)
        return shared_by_compute(l, i, made, used);
    return instr->kind == INSTR_LOAD ? NO_BUFFER
                                     : shared_by_conversion(l, i, made, used[0]);
}

/* Whether the value is accumulated in place: it is an F32 gradient of a parameter in a model that
 * computes in half precision, and lies there beside weights in half precision. */
static bool is_accumulated(const Liveness *l, uint32_t i, const Tensor *tensor,
                           PlacedOperand made)
{
    const Instr *instr = &l->program->instr[i];
    const StateFormats states = graph_states(l->graph);
    return states.of[STATE_GRADIENTS] == DTYPE_F32 &&
           states.of[STATE_WEIGHTS] != DTYPE_NONE &&
           precision_compute(graph_precision(l->graph)) == DTYPE_F16 &&
           (instr->kind == INSTR_COMPUTE
                ? !l->drained[tensor_at(l, instr->group, made.tensor)]
                : instr->kind == INSTR_COLLECTIVE && instr->moves) &&
           tensor->role == ROLE_GRADIENT && graph_is_held(l->graph, tensor);
}

/* Puts the value that instruction `i`, with operands `used`, makes and that is last used at `end`
 * into a buffer. */
static void place(Liveness *l, uint32_t i, uint32_t end, PlacedOperand made,
                  const PlacedOperand *used)
{
    KILTER_ASSERT(i <= end && end < l->program->n);
    const Tensor *tensor = graph_tensor(l->graph, made.tensor);
    const uint32_t shared = find_shared(l, i, made, used);
    bool stays = false;
    if (tensor->role == ROLE_UPDATED) {
        const PlanBuffer *old = buffer_of(l, old_of(l, made));
        /* the next iteration starts from it */
        stays = old && old->at_rest && old->form == made.form &&
                same_split(l, old->tensor, made.tensor, made.form);
        if (stays)
            end = l->program->n - 1;
    }
    if (shared != NO_BUFFER) {
        PlanBuffer *buffer = &g_array_index(l->buffers, PlanBuffer, shared);
        buffer->busy_until = MAX(buffer->busy_until, end);
        buffer->stays = buffer->stays || stays;
        l->buffer[placed_cell(&made)] = shared;
        return;
    }
    const PlanBuffer buffer = {
        .birth = i,
        .busy_until = end,
        .at_rest = l->program->instr[i].kind == INSTR_LOAD &&
                   (tensor->role == ROLE_PARAMETER || tensor->role == ROLE_OPTIMIZER),
        .stands = is_accumulated(l, i, tensor, made),
        .held = graph_is_held(l->graph, tensor),
        .group = made.group,
        .tensor = made.tensor,
        .form = made.form,
        .element_bytes = dtype_bytes(tensor->dtype),
    };
    g_array_append_val(l->buffers, buffer);
    l->buffer[placed_cell(&made)] = l->buffers->len - 1;
}

static void add_use(Liveness *l, uint32_t buffer)
{
    KILTER_ASSERT(buffer < l->buffers->len);
    g_array_append_val(l->uses, buffer);
}

/* Places the buffer of the data that a forward op keeps, which is cut like its output. */
static void place_kept(Liveness *l, uint32_t i)
{
    const Instr *instr = &l->program->instr[i];
    TensorId of;
    const uint32_t place = kept_place(l, instr, &of);
    if (place == GRAPH_NONE)
        return;
    const Op *op = graph_get_op(l->graph, instr->op);
    if (l->kept_end[i] > 0) {
        const PlanBuffer buffer = {.birth = i,
                                   .busy_until = l->kept_end[i],
                                   .group = instr->group,
                                   .tensor = of,
                                   .form = instr->form[op->n_in + op->n_out - 1],
                                   .kept = true,
                                   .element_bytes =
                                       graph_op_kept_bytes(l->graph, instr->op, &of)};
        g_array_append_val(l->buffers, buffer);
        l->kept[place] = l->buffers->len - 1;
    }
    if (l->kept_end[i] > 0 || op->pass == PASS_BACKWARD)
        add_use(l, l->kept[place]);
}

static void place_instr(Liveness *l, uint32_t i)
{
    const Instr *instr = &l->program->instr[i];
    PlacedOperand made[OP_MAX_OUT], used[OP_MAX_IN];
    const uint32_t n_made = instances_makes(l->instances, l->graph, instr, made);
    const uint32_t n_used = instances_uses(l->instances, l->graph, instr, used);
    const uint32_t n_parts = instances_made(l->instances, instr);
    for (uint32_t k = 0; k < n_used; k++)
        add_use(l, l->buffer[placed_cell(&used[k])]);
    values_at (const PlacedOperand, first, k, made, n_made) {
        for (uint32_t part = 0; part < n_parts;
             part++, made[k].place += l->instances->n_parted) {
            if (!l->again[i])
                place(l, i,
                      instr->kind == INSTR_LOAD ? l->load_end[placed_cell(&made[k])]
                                                : l->end[i * OP_MAX_OUT + k],
                      made[k], used);
            add_use(l, l->buffer[placed_cell(&made[k])]);
        }
        l->made[i * OP_MAX_OUT + k] = l->buffer[placed_cell(&first)];
    }
    place_kept(l, i);
    l->used[i] = l->uses->len;
}

/* --- all of them --- */

/* Collects the buffers, which it takes over. Uses were added in program order, and the uses of a
 * buffer keep that order. */
static PlanBuffers *collect(Liveness *l)
{
    PlanBuffers *buffers = g_new0(PlanBuffers, 1);
    const uint32_t *of = (const uint32_t *)(void *)l->uses->data;
    uint32_t first = 0;
    buffers->n = l->buffers->len;
    buffers->buffer = (PlanBuffer *)(void *)g_array_free(l->buffers, FALSE);
    buffers->use = g_new(uint32_t, l->uses->len);
    for (uint32_t u = 0; u < l->uses->len; u++)
        buffers->buffer[of[u]].n++;
    items_each (PlanBuffer, buffer, buffers->buffer, buffers->n) {
        buffer->first = first;
        first += buffer->n;
        buffer->n = 0;
    }
    for (uint32_t i = 0, u = 0; i < l->program->n; i++)
        for (; u < l->used[i]; u++) {
            PlanBuffer *buffer = &buffers->buffer[of[u]];
            buffers->use[buffer->first + buffer->n++] = i;
        }
    return buffers;
}

/* Drops weights at rest that are made from the master copy where they are gathered: those that no
 * op but the update reads. */
static void drop_made_weights(const Liveness *l, PlanBuffers *buffers)
{
    if (graph_states(l->graph).of[STATE_WEIGHTS] != DTYPE_NONE)
        return;
    items_each (PlanBuffer, buffer, buffers->buffer, buffers->n) {
        const Tensor *tensor = graph_tensor(l->graph, buffer->tensor);
        bool read = !buffer->at_rest || tensor->role != ROLE_PARAMETER || tensor->frozen;
        for (uint32_t u = 0; u < buffer->n && !read; u++) {
            const Instr *instr = &l->program->instr[buffers->use[buffer->first + u]];
            read = instr->kind == INSTR_COMPUTE &&
                   graph_get_op(l->graph, instr->op)->pass != PASS_UPDATE;
        }
        if (!read)
            buffer->element_bytes = 0;
    }
}

PlanBuffers *plan_buffers(const Program *program, const Graph *graph,
                          const Instances *instances, const uint16_t *instance_segment)
{
    const size_t n_cells = (size_t)instances->n_places * FORM_MAX;
    Liveness l = {.program = program,
                  .graph = graph,
                  .instances = instances,
                  .instance_segment = instance_segment};
    l.again = g_new0(bool, program->n);
    l.drained = g_new0(bool, MAX(1, program->n_groups) * (size_t)graph_n_tensors(graph));
    l.end = g_new0(uint32_t, (size_t)program->n * OP_MAX_OUT);
    l.load_end = g_new0(uint32_t, n_cells);
    l.buffer = g_new(uint32_t, n_cells);
    l.made = g_new0(uint32_t, (size_t)program->n * OP_MAX_OUT);
    l.kept_end = g_new0(uint32_t, program->n);
    l.kept = g_new0(uint32_t, instances->n_places);
    l.buffers = g_array_new(false, false, sizeof(PlanBuffer));
    l.uses = g_array_new(false, false, sizeof(uint32_t));
    l.used = g_new(uint32_t, program->n);
    for (size_t i = 0; i < n_cells; i++)
        l.buffer[i] = NO_BUFFER;
    find_drained(&l);
    find_sums(&l);
    find_ends(&l);
    find_kept(&l);
    for (uint32_t i = 0; i < program->n; i++)
        place_instr(&l, i);
    free_each(l.again, l.drained, l.load_end, l.buffer, l.kept_end, l.kept);
    PlanBuffers *buffers = collect(&l);
    drop_made_weights(&l, buffers);
    buffers->made = l.made;
    buffers->end = l.end;
    g_free(l.used);
    g_array_unref(l.uses);
    return buffers;
}

FREE_DEFINE(plan_buffers_free, PlanBuffers, buffers,
            free_each(buffers->buffer, buffers->use, buffers->made, buffers->end));
