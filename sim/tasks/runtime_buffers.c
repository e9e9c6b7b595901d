/* The memory that a framework holds beside the plan (data/cluster/runtime.h). */

#include "sim/tasks/buffers.h"

typedef struct {
    const Runtime *runtime;
    const Program *program;
    const Graph *graph;
    GArray *buffers; /* PlanBuffer */
    GArray *uses;    /* uint32_t */
} Adding;

static PlanBuffer *at(const Adding *a, uint32_t b)
{
    return &g_array_index(a->buffers, PlanBuffer, b);
}

/* Whether the buffer holds a parameter's gradient when that is updated. */
static bool is_final_gradient(const Adding *a, const PlanBuffer *buffer)
{
    const Tensor *tensor = graph_tensor(a->graph, buffer->tensor);
    if (tensor->role != ROLE_GRADIENT || !graph_is_held(a->graph, tensor) ||
        buffer->n == 0)
        return false;
    const uint32_t last = g_array_index(a->uses, uint32_t, buffer->first + buffer->n - 1);
    const Instr *instr = &a->program->instr[last];
    return instr->kind == INSTR_COMPUTE &&
           graph_get_op(a->graph, instr->op)->pass == PASS_UPDATE;
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
    enum { F32_BYTES = 4, HALF_BYTES = 2 };
    const uint32_t tensors = graph_n_tensors(a->graph);
    g_autofree bool *in_float = accumulated(a, n);
    for (uint32_t b = 0; b < n; b++) {
        PlanBuffer half = *at(a, b), whole = half;
        if (half.stands) {
            half.element_bytes = HALF_BYTES;
            add_standing(a, half, a->runtime->half_gradients);
        }
        if (!is_final_gradient(a, at(a, b)) || half.host_bytes > 0)
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

/* --- parameters gathered ahead --- */

/* Of each group the layer whose gathered parameters are the largest lies there as often again. */
static void gather_ahead(Adding *a, uint32_t n)
{
    const uint32_t groups = MAX(a->program->n_groups, 1),
                   layers = graph_n_layers(a->graph);
    g_autofree uint32_t *layer = graph_tensor_layers(a->graph);
    g_autofree double *bytes = g_new0(double, (size_t)groups *layers);
    g_autofree bool *seen = g_new0(bool, (size_t)groups *graph_n_tensors(a->graph));
    g_autofree bool *first = g_new0(bool, n + 1);
    for (uint32_t b = 0; b < n; b++) {
        const PlanBuffer *buffer = at(a, b);
        const size_t cell =
            (size_t)buffer->group * graph_n_tensors(a->graph) + buffer->tensor;
        if (graph_tensor(a->graph, buffer->tensor)->role != ROLE_PARAMETER ||
            buffer->at_rest || seen[cell])
            continue;
        seen[cell] = first[b] = true;
        bytes[(size_t)buffer->group * layers + layer[buffer->tensor]] +=
            plan_buffer_whole_bytes(a->graph, buffer);
    }
    for (uint32_t g = 0; g < groups; g++) {
        const double *of = bytes + (size_t)g * layers;
        uint32_t most = 0;
        for (uint32_t l = 1; l < layers; l++)
            most = of[l] > of[most] ? l : most;
        for (uint32_t b = 0; b < n; b++)
            if (first[b] && at(a, b)->group == g && layer[at(a, b)->tensor] == most)
                add_standing(a, *at(a, b), a->runtime->prefetch);
    }
}

/* --- last instructions --- */

/* By group, microbatch and an id below n: the last instruction that was set. */
static void *last_key(const Program *program, const Instr *instr, uint32_t id, uint32_t n)
{
    const size_t place =
        (size_t)instr->group * MAX(program->n_microbatches, 1) + instr->microbatch;
    return GSIZE_TO_POINTER(place * n + id);
}

static void last_set(GHashTable *last, const Program *program, const Instr *instr,
                     uint32_t id, uint32_t n, uint32_t k)
{
    g_hash_table_insert(last, last_key(program, instr, id, n), GUINT_TO_POINTER(k));
}

/* The last one like instruction i, but for its id; i itself if none comes later. */
static uint32_t last_after(GHashTable *last, const Program *program, uint32_t i,
                           uint32_t id, uint32_t n)
{
    return MAX(i, GPOINTER_TO_UINT(g_hash_table_lookup(
                      last, last_key(program, &program->instr[i], id, n))));
}

/* --- the loss --- */

/* Whether the op reads logits, as its first input. */
static bool reads_logits(OpKind kind)
{
    return kind == OP_LOG_SOFTMAX || kind == OP_SUM_EXP;
}

/* The last instructions that differentiate an op that reads logits, by the logits. */
static GHashTable *ends_of_losses(const Adding *a)
{
    GHashTable *last = g_hash_table_new(g_direct_hash, g_direct_equal);
    const uint32_t n = graph_n_tensors(a->graph);
    g_autofree bool *logits = g_new0(bool, n + 1);
    for (OpId id = 0; id < graph_n_ops(a->graph); id++) {
        const Op *op = graph_get_op(a->graph, id);
        if (op->pass == PASS_FORWARD && reads_logits(op->kind))
            logits[op->in[0]] = true;
    }
    for (uint32_t k = 0; k < a->program->n; k++) {
        const Instr *instr = &a->program->instr[k];
        if (instr->kind != INSTR_COMPUTE)
            continue;
        const Op *op = graph_get_op(a->graph, instr->op);
        if (op->pass != PASS_BACKWARD || op->of == GRAPH_NONE)
            continue;
        const Op *forward = graph_get_op(a->graph, op->of);
        for (uint32_t in = 0; in < forward->n_in; in++)
            if (logits[forward->in[in]])
                last_set(last, a->program, instr, forward->in[in], n, k);
    }
    return last;
}

static void copy_logits(Adding *a)
{
    enum { F32_BYTES = 4 };
    const uint32_t n = graph_n_tensors(a->graph);
    g_autoptr(GHashTable) ends = ends_of_losses(a);
    for (uint32_t i = 0; i < a->program->n; i++) {
        const Instr *instr = &a->program->instr[i];
        if (instr->kind != INSTR_COMPUTE)
            continue;
        const Op *op = graph_get_op(a->graph, instr->op);
        if (op->pass != PASS_FORWARD || !reads_logits(op->kind))
            continue;
        const uint32_t use[2] = {i, last_after(ends, a->program, i, op->in[0], n)};
        const PlanBuffer copies = {.birth = i,
                                   .busy_until = use[1],
                                   .beside = true,
                                   .group = instr->group,
                                   .tensor = op->in[0],
                                   .form = instr->form[0],
                                   .element_bytes = F32_BYTES * a->runtime->loss_copies,
                                   .first = a->uses->len,
                                   .n = G_N_ELEMENTS(use)};
        g_array_append_val(a->buffers, copies);
        g_array_append_vals(a->uses, use, G_N_ELEMENTS(use));
    }
}

/* --- ops that are not fused --- */

/* Bytes that are kept beside each element of an op's output. */
static uint32_t kept_beside(const Runtime *runtime, OpKind kind)
{
    return kind == OP_RMS_NORM                     ? runtime->norms
           : kind == OP_SWIGLU || kind == OP_GEGLU ? runtime->gates
                                                   : 0;
}

/* Up to the last instruction on the same microbatch that differentiates the op; not where the op
 * runs again. */
static void keep_beside(Adding *a)
{
    const uint32_t n = graph_n_ops(a->graph);
    g_autoptr(GHashTable) runs = g_hash_table_new(g_direct_hash, g_direct_equal);
    g_autoptr(GHashTable) ends = g_hash_table_new(g_direct_hash, g_direct_equal);
    for (uint32_t i = 0; i < a->program->n; i++) {
        const Instr *instr = &a->program->instr[i];
        if (instr->kind != INSTR_COMPUTE)
            continue;
        const Op *op = graph_get_op(a->graph, instr->op);
        if (kept_beside(a->runtime, op->kind) > 0)
            last_set(runs, a->program, instr, instr->op, n, i);
        if (op->pass == PASS_BACKWARD && op->of != GRAPH_NONE &&
            kept_beside(a->runtime, graph_get_op(a->graph, op->of)->kind) > 0)
            last_set(ends, a->program, instr, op->of, n, i);
    }
    for (uint32_t i = 0; i < a->program->n; i++) {
        const Instr *instr = &a->program->instr[i];
        if (instr->kind != INSTR_COMPUTE)
            continue;
        const Op *op = graph_get_op(a->graph, instr->op);
        const uint32_t bytes = kept_beside(a->runtime, op->kind);
        if (bytes == 0)
            continue;
        const bool again = last_after(runs, a->program, i, instr->op, n) > i;
        const uint32_t use[2] = {
            i, again ? i : last_after(ends, a->program, i, instr->op, n)};
        const PlanBuffer kept = {.birth = i,
                                 .busy_until = use[1],
                                 .beside = true,
                                 .kept = true,
                                 .group = instr->group,
                                 .tensor = op->out[0],
                                 .form = instr->form[op->n_in],
                                 .element_bytes = bytes,
                                 .first = a->uses->len,
                                 .n = G_N_ELEMENTS(use)};
        g_array_append_val(a->buffers, kept);
        g_array_append_vals(a->uses, use, G_N_ELEMENTS(use));
    }
}

void sim_buffers_add_runtime(PlanBuffers *buffers, const Runtime *runtime,
                             const Program *program, const Graph *graph, bool ahead)
{
    if (!runtime)
        return;
    uint32_t n_uses = 0;
    for (uint32_t b = 0; b < buffers->n; b++)
        n_uses = MAX(n_uses, buffers->buffer[b].first + buffers->buffer[b].n);
    Adding a = {.runtime = runtime,
                .program = program,
                .graph = graph,
                .buffers = g_array_new(false, false, sizeof(PlanBuffer)),
                .uses = g_array_new(false, false, sizeof(uint32_t))};
    g_array_append_vals(a.buffers, buffers->buffer, buffers->n);
    g_array_append_vals(a.uses, buffers->use, n_uses);
    keep_gradients(&a, buffers->n);
    if (ahead && runtime->prefetch > 0)
        gather_ahead(&a, buffers->n);
    if (runtime->loss_copies > 0)
        copy_logits(&a);
    if (runtime->norms + runtime->gates > 0)
        keep_beside(&a);
    g_free(buffers->buffer);
    g_free(buffers->use);
    buffers->n = a.buffers->len;
    buffers->buffer = (PlanBuffer *)(void *)g_array_free(a.buffers, false);
    buffers->use = (uint32_t *)(void *)g_array_free(a.uses, false);
}

PlanBuffers *sim_held_buffers(const SimCase *sim, bool ahead)
{
    PlanBuffers *buffers = sim_case_buffers(sim);
    sim_buffers_add_runtime(buffers, sim->runtime, sim->plan->program, sim->graph, ahead);
    return buffers;
}

PlanBuffers *sim_runtime_buffers(const Program *program, const Graph *graph,
                                 const Runtime *runtime)
{
    g_autoptr(BatchForms) batch =
        program->n_microbatches > 1 ? batch_forms_new(graph, NULL) : NULL;
    g_autoptr(Instances) instances = instances_new(program, graph, batch);
    g_autofree uint16_t *segment = plan_segments(program, graph, NULL);
    PlanBuffers *buffers = plan_buffers(program, graph, instances, segment);
    sim_buffers_add_runtime(buffers, runtime, program, graph, true);
    return buffers;
}

uint32_t sim_communicators(const Strategy *s, uint32_t n_devices)
{
    const uint32_t shared = MAX(s->pp, 1) * MAX(s->tp, 1) * MAX(s->cp, 1);
    return n_devices <= 1 ? 0
                          : MAX(1, (uint32_t)(s->pp > 1) + (s->tp > 1) + (s->cp > 1) +
                                       (n_devices > shared));
}

double sim_runtime_bytes(const Runtime *runtime, const Plan *plan, const Device *device,
                         double peak_bytes)
{
    return runtime_held_bytes(runtime, device->runtime_bytes > 0,
                              sim_communicators(&plan->strategy, plan->n_devices),
                              peak_bytes);
}
