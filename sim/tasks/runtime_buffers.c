/* The memory that a framework holds beside the plan (data/cluster/runtime.h). */

#include "sim/tasks/buffers.h"

#include "data/base/free.h"

#include <math.h>

enum { F32_BYTES = 4, HALF_BYTES = 2 };

typedef struct {
    const Runtime *runtime;
    const Program *program;
    const Graph *graph;
    const PlanBuffers *plan;
    uint32_t n_uses; /* of the plan's buffers */
    GArray *buffers; /* PlanBuffer: those that are added, */
    GArray *uses;    /* uint32_t: and their uses */
    /* of ops and logits (beside_key) the last instruction that differentiates them */
    GHashTable *ends;
    bool *logits; /* [tensor] */
} Adding;

static PlanBuffer *at(const Adding *a, uint32_t b)
{
    return &a->plan->buffer[b];
}

/* Adds copies of a buffer that lie there all the time. */
static void add_standing(Adding *a, PlanBuffer like, uint32_t copies)
{
    like.element_bytes *= copies;
    like.beside = like.stands = true;
    like.at_rest = like.stays = false;
    like.first = like.n = 0;
    if (copies > 0)
        g_array_append_val(a->buffers, like);
}

/* Whether gradients of this buffer's tensor are accumulated in float32: [group * tensors + tensor].
 * Caller frees. */
static bool *accumulated(const Adding *a, uint32_t n)
{
    const uint32_t groups = MAX(a->program->n_groups, 1),
                   tensors = graph_n_tensors(a->graph);
    bool *is = g_new0(bool, (size_t)groups *tensors);
    for (uint32_t b = 0; b < n; b++)
        if (at(a, b)->stands)
            is[(size_t)at(a, b)->group * tensors + at(a, b)->tensor] = true;
    return is;
}

static void keep_gradients(Adding *a, uint32_t n)
{
    const uint32_t tensors = graph_n_tensors(a->graph);
    g_autofree bool *in_float = accumulated(a, n);
    for (uint32_t b = 0; b < n; b++) {
        PlanBuffer half = *at(a, b), whole = half;
        if (half.stands) {
            half.element_bytes = HALF_BYTES;
            add_standing(a, half, a->runtime->half_gradients);
        }
        if (!sim_is_final_gradient(a->plan->use, at(a, b), a->program, a->graph) ||
            !graph_is_held(a->graph, graph_tensor(a->graph, half.tensor)) ||
            half.host_bytes > 0)
            continue;
        /* Where it is a part of a gradient that lies there, it takes no memory of its own. */
        if (a->runtime->gradients &&
            !in_float[(size_t)whole.group * tensors + whole.tensor])
            at(a, b)->stands = true;
        if (!form_is_gather(whole.form)) /* it was exchanged whole, in place */
            add_standing(a, whole, a->runtime->bucket_copies);
        whole.element_bytes = whole.element_bytes < F32_BYTES ? F32_BYTES : 0;
        add_standing(a, whole, a->runtime->float_gradients);
    }
}

/* Level 1 of ZeRO divides the states: a replica's part of the summed gradient lies in the whole
 * one, which stays. From level 2 on a gradient moves there. (Those accumulated in float32 stand
 * already.) */
static void keep_whole(Adding *a, uint32_t n)
{
    /* [tensor]: 1 + its buffer */
    g_autofree uint32_t *part = g_new0(uint32_t, graph_n_tensors(a->graph));
    for (uint32_t b = 0; b < n; b++)
        if (at(a, b)->host_bytes == 0 && !a->program->instr[at(a, b)->birth].moves &&
            sim_is_final_gradient(a->plan->use, at(a, b), a->program, a->graph))
            part[at(a, b)->tensor] = b + 1;
    for (uint32_t b = 0; b < n; b++) {
        PlanBuffer *whole = at(a, b);
        const uint32_t of = part[whole->tensor];
        if (of == 0 || of == b + 1 || whole->stands ||
            form_outer(whole->form) == form_outer(at(a, of - 1)->form) ||
            whole->busy_until != at(a, of - 1)->birth)
            continue;
        whole->stands = true;
        /* DeepSpeed flattens the parts to copy them */
        if (a->runtime->float_gradients == 0)
            at(a, of - 1)->element_bytes = 0;
    }
}

/* --- gathered parameters --- */

/* Of each group the layer with most bytes of these (PlanBuffer) lies there so often, too. */
static void runtime_add_largest(Adding *a, GArray *like, uint32_t copies)
{
    const uint32_t layers = graph_n_layers(a->graph);
    g_autofree uint32_t *layer = graph_tensor_layers(a->graph);
    g_autofree double *bytes =
        g_new0(double, (size_t)MAX(a->program->n_groups, 1) * layers);
    array_each (const PlanBuffer, buffer, like)
        bytes[(size_t)buffer->group * layers + layer[buffer->tensor]] +=
            plan_buffer_whole_bytes(a->graph, buffer);
    array_each (const PlanBuffer, buffer, like) {
        const double *of = &bytes[(size_t)buffer->group * layers];
        uint32_t most = 0;
        for (uint32_t l = 1; l < layers; l++)
            most = of[l] > of[most] ? l : most;
        if (layer[buffer->tensor] == most)
            add_standing(a, *buffer, copies);
    }
}

static void gather_ahead(Adding *a, uint32_t n)
{
    const size_t groups = MAX(a->program->n_groups, 1);
    g_autofree bool *seen = g_new0(bool, groups *graph_n_tensors(a->graph));
    g_autoptr(GArray) first = g_array_new(false, false, sizeof(PlanBuffer));
    for (uint32_t b = 0; b < n; b++) {
        const PlanBuffer *buffer = at(a, b);
        bool *is =
            &seen[(size_t)buffer->group * graph_n_tensors(a->graph) + buffer->tensor];
        if (graph_tensor(a->graph, buffer->tensor)->role != ROLE_PARAMETER ||
            buffer->at_rest || *is)
            continue;
        *is = true;
        g_array_append_val(first, *buffer);
    }
    runtime_add_largest(a, first, a->runtime->prefetch);
}

/* --- logits, and what ops that are not fused keep --- */

/* Whether the op reads logits, as its first input. */
static bool reads_logits(const Op *op)
{
    return op->pass == PASS_FORWARD &&
           (op->kind == OP_LOG_SOFTMAX || op->kind == OP_SUM_EXP);
}

/* Bytes that are kept beside each element of an op's output. */
static uint32_t kept_beside(const Runtime *runtime, OpKind kind)
{
    return kind == OP_RMS_NORM                     ? runtime->norms
           : kind == OP_SWIGLU || kind == OP_GEGLU ? runtime->gates
                                                   : 0;
}

/* The key of an op, or behind these of a tensor, on the instruction's group and microbatch. */
static void *beside_key(const Adding *a, const Instr *instr, uint32_t id)
{
    const size_t place =
        (size_t)instr->group * MAX(a->program->n_microbatches, 1) + instr->microbatch;
    return GSIZE_TO_POINTER(place << 32 | id);
}

/* Adds what instruction i makes beside a tensor, up to the end of the key if that is later. */
static void add_beside(Adding *a, uint32_t i, void *key, PlanBuffer like)
{
    const uint32_t use[2] = {i,
                             MAX(i, GPOINTER_TO_UINT(g_hash_table_lookup(a->ends, key)))};
    like.birth = i;
    like.busy_until = use[1];
    like.beside = true;
    like.group = a->program->instr[i].group;
    like.first = a->n_uses + a->uses->len;
    like.n = G_N_ELEMENTS(use);
    g_array_append_val(a->buffers, like);
    g_array_append_vals(a->uses, use, G_N_ELEMENTS(use));
}

static void see_end(const Adding *a, uint32_t i, uint32_t id)
{
    void *key = beside_key(a, &a->program->instr[i], id);
    if (!g_hash_table_contains(a->ends, key))
        g_hash_table_insert(a->ends, key, GUINT_TO_POINTER(i));
}

/* Layers hand over one tensor for each shape of weights, which they keep; table and head one that
 * is made there. */
static void runtime_hand_gradients(Adding *a, uint32_t n)
{
    g_autoptr(GArray) kept = g_array_new(false, false, sizeof(PlanBuffer));
    for (uint32_t b = 0; b < n; b++) {
        PlanBuffer like = *at(a, b);
        const Tensor *tensor = graph_tensor(a->graph, like.tensor);
        const Instr *instr = &a->program->instr[like.birth];
        if (!like.stands || tensor->rank < 2 || instr->kind != INSTR_COMPUTE)
            continue;
        const Op *op = graph_get_op(a->graph, instr->op);
        const bool expert = op->kind == OP_EXPERT_DW || op->kind == OP_EXPERT_PAIR_DW,
                   at_end = op->kind == OP_EMBEDDING_DW ||
                            a->logits[graph_get_op(a->graph, op->of)->out[0]];
        if (expert) /* of one alone */
            like.form = FORM_IDENTITY;
        like.element_bytes = HALF_BYTES / (expert ? (double)tensor->dim[0] : 1);
        like.stands = !at_end;
        if (!at_end)
            g_array_append_val(kept, like);
        for (uint32_t u = like.first; at_end && u < like.first + like.n; u++) {
            const uint32_t i = a->plan->use[u];
            if (a->program->instr[i].kind == INSTR_COMPUTE &&
                a->program->instr[i].op == instr->op)
                add_beside(a, i, NULL, like);
        }
    }
    runtime_add_largest(a, kept, 1);
}

/* Copies of logits, and what ops keep up to the last instruction on the same microbatch that
 * differentiates them; not where an op runs again. Walks backwards. */
static void keep_beside(Adding *a)
{
    const uint32_t n_ops = graph_n_ops(a->graph);
    for (uint32_t i = a->program->n; i-- > 0;) {
        const Instr *instr = &a->program->instr[i];
        if (instr->kind != INSTR_COMPUTE)
            continue;
        const Op *op = graph_get_op(a->graph, instr->op),
                 *of = op->pass == PASS_BACKWARD && op->of != GRAPH_NONE
                           ? graph_get_op(a->graph, op->of)
                           : NULL;
        const uint32_t copied = F32_BYTES * a->runtime->loss_copies,
                       kept = kept_beside(a->runtime, op->kind);
        if (of && kept_beside(a->runtime, of->kind) > 0)
            see_end(a, i, op->of);
        for (uint32_t k = 0; of && k < of->n_in; k++)
            if (a->logits[of->in[k]])
                see_end(a, i, n_ops + of->in[k]);
        if (copied > 0 && reads_logits(op))
            add_beside(a, i, beside_key(a, instr, n_ops + op->in[0]),
                       (PlanBuffer){.tensor = op->in[0],
                                    .form = instr->form[0],
                                    .element_bytes = copied});
        if (kept > 0)
            add_beside(a, i, beside_key(a, instr, instr->op),
                       (PlanBuffer){.kept = true,
                                    .tensor = op->out[0],
                                    .form = instr->form[op->n_in],
                                    .element_bytes = kept});
        if (kept > 0)
            g_hash_table_remove(a->ends, beside_key(a, instr, instr->op));
    }
}

/* Values that products of experts in 8 bits take, and those that their gates take, have so many
 * bytes per element. */
static void keep_narrow(Adding *a, uint32_t n)
{
    g_autofree bool *narrow = g_new0(bool, graph_n_tensors(a->graph) + 1);
    for (OpId id = 0; id < graph_n_ops(a->graph); id++) {
        const Op *op = graph_get_op(a->graph, id);
        const bool pair = op->kind == OP_EXPERT_PAIR || op->kind == OP_EXPERT_PAIR_DW;
        if (graph_op_numbers(a->graph, id) != NUMBERS_F8 ||
            (!pair && op->kind != OP_EXPERT && op->kind != OP_EXPERT_DW))
            continue;
        for (uint32_t k = 0; k < op->n_in; k++)
            narrow[op->in[k]] |=
                graph_tensor(a->graph, op->in[k])->role != ROLE_PARAMETER;
        narrow[op->out[0]] |= op->kind == OP_EXPERT_PAIR;
    }
    for (uint32_t b = 0; b < n; b++)
        if (narrow[at(a, b)->tensor])
            at(a, b)->element_bytes =
                fmin(at(a, b)->element_bytes, a->runtime->expert_bytes);
}

void sim_buffers_add_runtime(PlanBuffers *buffers, const Runtime *runtime,
                             const Program *program, const Graph *graph)
{
    if (!runtime)
        return;
    uint32_t n_uses = most_over(uint32_t, b, buffers->n, 0,
                                buffers->buffer[b].first + buffers->buffer[b].n);
    g_autoptr(GHashTable) ends = g_hash_table_new(NULL, NULL);
    g_autofree bool *logits = g_new0(bool, graph_n_tensors(graph) + 1);
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        if (reads_logits(graph_get_op(graph, id)))
            logits[graph_get_op(graph, id)->in[0]] = true;
    Adding a = {.ends = ends,
                .logits = logits,
                .runtime = runtime,
                .program = program,
                .graph = graph,
                .plan = buffers,
                .n_uses = n_uses,
                .buffers = g_array_new(false, false, sizeof(PlanBuffer)),
                .uses = g_array_new(false, false, sizeof(uint32_t))};
    if (runtime->handed_gradients > 0)
        runtime_hand_gradients(&a, buffers->n);
    keep_gradients(&a, buffers->n);
    if (runtime->gradients)
        keep_whole(&a, buffers->n);
    if (runtime->prefetch > 0)
        gather_ahead(&a, buffers->n);
    if (runtime->expert_bytes > 0)
        keep_narrow(&a, buffers->n);
    if (runtime->loss_copies + runtime->norms + runtime->gates > 0)
        keep_beside(&a);
    buffers->buffer =
        g_renew(PlanBuffer, buffers->buffer, (size_t)buffers->n + a.buffers->len);
    buffers->use = g_renew(uint32_t, buffers->use, (size_t)n_uses + a.uses->len);
    array_each (const PlanBuffer, added, a.buffers)
        buffers->buffer[buffers->n++] = *added;
    array_each (const uint32_t, use, a.uses)
        buffers->use[n_uses++] = *use;
    unref_arrays(a.buffers, a.uses);
}

PlanBuffers *sim_runtime_buffers(const Program *program, const Graph *graph,
                                 const Runtime *runtime)
{
    g_autoptr(BatchForms) batch =
        program->n_microbatches > 1 ? batch_forms_new(graph, NULL) : NULL;
    g_autoptr(Instances) instances = instances_new(program, graph, batch);
    g_autofree uint16_t *segment = plan_segments(program, graph, NULL);
    PlanBuffers *buffers = plan_buffers(program, graph, instances, segment);
    sim_buffers_add_runtime(buffers, runtime, program, graph);
    return buffers;
}

uint32_t sim_communicators(const Strategy *s, uint32_t n_devices)
{
    const uint32_t shared = MAX(s->pp, 1) * MAX(s->tp, 1) * MAX(s->cp, 1);
    return n_devices <= 1 ? 0
                          : MAX(1, (uint32_t)(s->pp > 1) + (s->tp > 1) + (s->cp > 1) +
                                       (n_devices > shared));
}

/* The same of pipelines and op groups without a strategy, such as unlike stages. */
static uint32_t communicators_by_groups(const Plan *plan)
{
    bool pp = false, tp = false, dp = false;
    const DeviceGroup *first = plan->program->group;
    items_each (const DeviceGroup, group, plan->program->group, plan->program->n_groups) {
        pp |= group->device[0] != first->device[0];
        tp |= group->n_devices > 1;
        dp |= group->n_replicas > 1;
    }
    return pp ? 1 + (uint32_t)tp + dp : 0;
}

double sim_runtime_bytes(const Runtime *runtime, const Plan *plan, const Device *device,
                         double peak_bytes)
{
    return runtime_held_bytes(runtime, device->runtime_bytes > 0,
                              MAX(sim_communicators(&plan->strategy, plan->n_devices),
                                  plan->strategy.pp ? 0 : communicators_by_groups(plan)),
                              peak_bytes);
}
