/* From a placement to its program. Every op runs in the form Identity in its device group; its
 * operands are loaded there, or transferred once from the group that made them; partial sums over
 * the replicas are summed where they are made, at once if they are a parameter's gradient.
 *
 * With microbatches the forward of each runs after that of the one before, then the backward of
 * each, so that groups on different devices work at the same time on different microbatches (as
 * gpipe's stages do). Ops that read sums over the batch come last.
 *
 * Where layers are computed again, forward ops run on the device group that they ran on, right
 * before the first backward op there that needs them:
 *
 *     full        what a layer's backward ops need of the layer's forward, from the results of
 *                 other layers, which are kept
 *     selective   single ops whose results only backward ops read (synth_makes_inner)
 *
 * Nothing is communicated again: what another device group made, or sums over replicas, is kept. */
#include "synth/pipeline/pipeline.h"
#include "synth/tag/tag.h"

#include <string.h>

enum { NOBODY = UINT16_MAX };

typedef struct {
    const TagSpace *space;
    const TagWork *work;
    const TagPlacement *placement;
    const Graph *graph;
    Program *program;
    /* [device group of the space]: its number in the program, or NOBODY */
    uint16_t *number;
    uint16_t *home; /* [tensor]: group of the program that made it, or holds it at rest */
    /* [(microbatch * groups of the space + group of the program) * n_tensors + tensor]; tensors
     * that are not parts of the batch are at microbatch 0 */
    uint8_t *held;
    bool *partial; /* [tensor]: it is partial over the replicas of its home */
    bool *read;    /* [tensor]: a forward op reads it; NULL: nothing runs again */
    bool *again;   /* [op]: it ran again for this microbatch; NULL: nothing does */
    uint32_t n_microbatches, microbatch; /* all, and the one that runs */
} Builder;

/* --- groups --- */

static uint16_t tag_group_of(Builder *b, OpId op)
{
    const uint16_t group = b->placement->group[op];
    if (b->number[group] == NOBODY) {
        const DeviceGroup *of = &b->space->group[group];
        b->number[group] =
            program_add_group(b->program, of->n_replicas, of->n_devices, of->device);
    }
    return b->number[group];
}

/* Whether each microbatch has an instance of its own. */
static bool tag_has_parts(const Builder *b, TensorId tensor)
{
    return b->n_microbatches > 1 && form_is_gather(b->work->batch->form[tensor]);
}

static uint8_t *held_for(const Builder *b, uint16_t group, TensorId tensor,
                         uint32_t microbatch)
{
    KILTER_ASSERT(tensor < graph_n_tensors(b->graph));
    const size_t row = (size_t)microbatch * b->space->n_groups + group;
    return &b->held[row * graph_n_tensors(b->graph) + tensor];
}

static uint8_t *held(const Builder *b, uint16_t group, TensorId tensor)
{
    return held_for(b, group, tensor, tag_has_parts(b, tensor) ? b->microbatch : 0);
}

/* A parameter and its states rest where the parameter's update runs. */
static void tag_find_homes(Builder *b)
{
    ops_each (op, id, b->graph) {
        for (uint32_t i = 0; op->pass == PASS_UPDATE && i < op->n_in; i++)
            if (graph_tensor(b->graph, op->in[i])->producer == GRAPH_NONE)
                b->home[op->in[i]] = tag_group_of(b, id);
    }
}

/* --- instructions --- */

static void load(Builder *b, TensorId tensor, uint16_t group)
{
    program_append(b->program, (Instr){.kind = INSTR_LOAD,
                                       .group = group,
                                       .microbatch = PROGRAM_WHOLE,
                                       .tensor = tensor,
                                       .to = FORM_IDENTITY});
    for (uint32_t m = 0; m < (tag_has_parts(b, tensor) ? b->n_microbatches : 1); m++)
        *held_for(b, group, tensor, m) = true;
}

static void sum_over_replicas(Builder *b, TensorId tensor)
{
    if (!b->partial[tensor])
        return;
    b->partial[tensor] = false;
    program_append(b->program, (Instr){.kind = INSTR_COLLECTIVE,
                                       .group = b->home[tensor],
                                       .microbatch = PROGRAM_WHOLE,
                                       .stream = 1,
                                       .across = true,
                                       .server = b->placement->server[tensor],
                                       .collective = COLLECTIVE_ALL_REDUCE,
                                       .tensor = tensor,
                                       .from = FORM_IDENTITY,
                                       .to = FORM_IDENTITY});
}

static void transfer(Builder *b, TensorId tensor, uint16_t to)
{
    program_append(b->program, (Instr){.kind = INSTR_TRANSFER,
                                       .group = b->home[tensor],
                                       .to_group = to,
                                       .microbatch = tag_has_parts(b, tensor)
                                                         ? (uint16_t)b->microbatch
                                                         : PROGRAM_WHOLE,
                                       .stream = 1,
                                       .tensor = tensor,
                                       .from = FORM_IDENTITY,
                                       .to = FORM_IDENTITY});
    *held(b, to, tensor) = true;
}

/* Brings an input of an op to the op's group. Data are loaded wherever they are read. */
static void tag_bring(Builder *b, TensorId tensor, uint16_t group)
{
    const Tensor *of = graph_tensor(b->graph, tensor);
    if (*held(b, group, tensor))
        return;
    if (of->producer == GRAPH_NONE) {
        const uint16_t rests = b->home[tensor] == NOBODY ? group : b->home[tensor];
        if (!*held(b, rests, tensor))
            load(b, tensor, rests);
        if (rests == group)
            return;
    }
    sum_over_replicas(b, tensor);
    transfer(b, tensor, group);
}

/* Whether the op, which is not cut with the batch, can read its partial operands as they are. */
static bool stays_partial(const Builder *b, OpId id)
{
    const Op *op = graph_get_op(b->graph, id);
    Rule rule[OP_MAX_RULES];
    const uint32_t n = op_rules(b->graph, id, rule);
    for (uint32_t r = 0; op->pass != PASS_UPDATE && r < n; r++) {
        bool fits = rule[r].loop < 0 && rule[r].form[op->n_in] == FORM_REDUCE;
        for (uint32_t i = 0; fits && i < op->n_in; i++)
            fits = (rule[r].form[i] == FORM_REDUCE) == b->partial[op->in[i]];
        if (fits)
            return true;
    }
    return false;
}

bool tag_is_final_sum(const Graph *graph, TensorId tensor)
{
    return graph_is_parameter_gradient(graph, tensor) &&
           graph_gradient(graph, graph_tensor(graph, tensor)->of) == tensor;
}

static void append_op(const Builder *b, OpId id, uint16_t group, bool cut)
{
    Instr instr = {.kind = INSTR_COMPUTE,
                   .group = group,
                   .microbatch = cut ? (uint16_t)b->microbatch : PROGRAM_WHOLE,
                   .op = id};
    memset(instr.form, FORM_IDENTITY, sizeof instr.form);
    program_append(b->program, instr);
}

/* --- computing again --- */

/* Whether an op may run again for an op of the backward pass: on the same devices, on the batch,
 * and without a sum over it. */
static bool repeats(const Builder *b, OpId id, OpId reader)
{
    const Op *op = graph_get_op(b->graph, id);
    const BatchForms *batch = b->work->batch;
    if (op->pass != PASS_FORWARD || b->again[id] || batch->loop[id] < 0 ||
        b->placement->group[id] != b->placement->group[reader])
        return false;
    return !any_of(o, op->n_out,
                   batch->form[op->out[o]] == FORM_REDUCE ||
                       graph_tensor(b->graph, op->out[o])->role == ROLE_LOSS);
}

/* Runs an op again after those of its layer that it reads. */
static void tag_run_full(const Builder *b, OpId id, uint16_t group)
{
    const Op *op = graph_get_op(b->graph, id);
    b->again[id] = true;
    for (uint32_t i = 0; i < op->n_in; i++) {
        const OpId by = graph_tensor(b->graph, op->in[i])->producer;
        if (by != GRAPH_NONE && graph_get_op(b->graph, by)->layer == op->layer &&
            repeats(b, by, id))
            tag_run_full(b, by, group);
    }
    append_op(b, id, group, true);
}

/* Runs again what an op needs; ops come here once for each microbatch, in execution order. */
static void tag_run_again(const Builder *b, OpId reader, uint16_t group)
{
    const Op *op = graph_get_op(b->graph, reader);
    for (uint32_t i = 0; b->again && op->pass == PASS_BACKWARD && i < op->n_in; i++) {
        const OpId by = graph_tensor(b->graph, op->in[i])->producer;
        if (by == GRAPH_NONE || !repeats(b, by, reader))
            continue;
        const uint32_t layer = graph_get_op(b->graph, by)->layer;
        const Recompute mode = b->work->recompute[layer];
        if (mode == RECOMPUTE_FULL && layer == op->layer) {
            tag_run_full(b, by, group);
        } else if (mode == RECOMPUTE_SELECTIVE && !b->read[op->in[i]] &&
                   synth_makes_inner(b->graph, b->read, by)) {
            b->again[by] = true;
            append_op(b, by, group, true);
        }
    }
}

/* --- ops --- */

static void run_op(Builder *b, OpId id)
{
    const Op *op = graph_get_op(b->graph, id);
    const uint16_t group = tag_group_of(b, id);
    const bool cut = b->work->batch->loop[id] >= 0;
    bool partial = cut && b->program->group[group].n_replicas > 1;
    for (uint32_t i = 0; i < op->n_in; i++)
        tag_bring(b, op->in[i], group);
    if (!cut)
        partial = stays_partial(b, id);
    for (uint32_t i = 0; (cut || !partial) && i < op->n_in; i++)
        sum_over_replicas(b, op->in[i]);
    tag_run_again(b, id, group);
    append_op(b, id, group, cut);
    values_at (const TensorId, out, o, op->out, op->n_out) {
        *held(b, group, out) = true;
        b->home[out] = group;
        b->partial[out] = partial && (!cut || b->work->batch->form[out] == FORM_REDUCE);
        if (tag_is_final_sum(b->graph, out) && b->microbatch + 1 == b->n_microbatches)
            sum_over_replicas(b, out);
    }
}

/* --- microbatches --- */

/* [op]: whether it reads a sum over the batch, or what such an op made, and so runs after all
 * microbatches; updates do in any case. */
static bool *find_late(const Builder *b)
{
    const Graph *graph = b->graph;
    bool *late = g_new0(bool, graph_n_ops(graph) + 1);
    ops_each (op, id, graph) {
        late[id] = op->pass == PASS_UPDATE;
        for (uint32_t i = 0; i < op->n_in; i++) {
            const OpId by = graph_tensor(graph, op->in[i])->producer;
            late[id] |= by != GRAPH_NONE &&
                        (late[by] || b->work->batch->form[op->in[i]] == FORM_REDUCE);
        }
        KILTER_ASSERT(!late[id] || b->work->batch->loop[id] < 0);
    }
    return late;
}

static void run_microbatches(Builder *b)
{
    g_autofree bool *late = find_late(b);
    for (uint32_t pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++)
        for (uint32_t m = 0; m < b->n_microbatches; m++) {
            b->microbatch = m;
            if (b->again)
                memset(b->again, 0, graph_n_ops(b->graph) * sizeof *b->again);
            for (OpId id = 0; id < graph_n_ops(b->graph); id++)
                if (graph_get_op(b->graph, id)->pass == pass && !late[id] &&
                    (m == 0 || b->work->batch->loop[id] >= 0))
                    run_op(b, id);
        }
    b->again = NULL;
    for (OpId id = 0; id < graph_n_ops(b->graph); id++)
        if (late[id])
            run_op(b, id);
}

Program *synth_tag_program(const TagSpace *space, const TagWork *work,
                           const TagPlacement *placement, bool all_groups)
{
    const uint32_t n_tensors = graph_n_tensors(work->graph);
    g_autofree uint16_t *number = g_new(uint16_t, space->n_groups);
    g_autofree uint16_t *home = g_new(uint16_t, n_tensors + 1);
    const uint32_t n_microbatches = MAX(work->n_microbatches, 1);
    g_autofree uint8_t *all =
        g_new0(uint8_t, (size_t)n_microbatches * space->n_groups * n_tensors);
    g_autofree bool *partial = g_new0(bool, n_tensors);
    memset(number, 0xff, space->n_groups * sizeof *number);
    memset(home, 0xff, n_tensors * sizeof *home);
    g_autofree bool *read = work->recompute ? synth_forward_reads(work->graph) : NULL;
    g_autofree bool *again = read ? g_new0(bool, graph_n_ops(work->graph) + 1) : NULL;
    Builder b = {.space = space,
                 .work = work,
                 .placement = placement,
                 .graph = work->graph,
                 .program = program_new(),
                 .number = number,
                 .home = home,
                 .held = all,
                 .partial = partial,
                 .read = read,
                 .again = again,
                 .n_microbatches = n_microbatches};
    b.program->n_microbatches = n_microbatches;
    for (uint32_t g = 0; all_groups && g < space->n_groups; g++)
        number[g] = program_add_group(b.program, space->group[g].n_replicas,
                                      space->group[g].n_devices, space->group[g].device);
    tag_find_homes(&b);
    if (n_microbatches > 1)
        run_microbatches(&b);
    for (OpId id = 0; n_microbatches == 1 && id < graph_n_ops(work->graph); id++)
        run_op(&b, id);
    return b.program;
}
