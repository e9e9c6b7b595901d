/* From an assignment to a program: loads, conversions, computations in the order that synth/synth.h
 * states. */
#include "synth/spmd/assignment.h"

typedef struct {
    const Pricer *pricer;
    const Graph *graph;
    const Assignment *assignment;
    Program *program;
    FormSet *held;   /* [tensor]: forms in which it is available */
    FormSet *needed; /* [tensor]: forms in which some op other than an update reads it */
    TensorId stuck;  /* a tensor that cannot be converted as needed, or GRAPH_NONE */
} Emitter;

static void append_conversion(Collective kind, TensorId tensor, Form from, Form to,
                              void *data)
{
    Emitter *e = data;
    program_collective(e->program, kind, tensor, from, to);
}

static void reach(Emitter *e, TensorId tensor, FormSet wanted)
{
    KILTER_ASSERT(tensor < graph_n_tensors(e->graph));
    Step step = {0};
    if (!price_reach_by(e->pricer, tensor, &e->held[tensor], wanted, &step,
                        append_conversion, e) &&
        e->stuck == GRAPH_NONE)
        e->stuck = tensor;
}

/* An input is loaded in the form in which it is read, or as a replica if it is read in several
 * (slices of a replica are free); parameters and optimizer states come in their form at rest. */
static void emit_loads(Emitter *e)
{
    tensors_each (tensor, t, e->graph) {
        if (tensor->producer != GRAPH_NONE)
            continue;
        FormSet read = e->needed[t];
        bool single = read && !(read & (read - 1)) && read != 1u << FORM_REDUCE;
        Form form = tensor->role != ROLE_INPUT ? e->assignment->rest[t]
                    : single                   ? (Form)__builtin_ctz(read)
                                               : FORM_IDENTITY;
        program_load(e->program, t, form);
        e->held[t] |= (FormSet)(1u << form);
    }
}

static void compute(Emitter *e, OpId id)
{
    g_assert(e->assignment->rule[id].form[0] < FORM_MAX);
    const Op *op = graph_get_op(e->graph, id);
    const Rule *rule = &e->assignment->rule[id];
    for (uint32_t i = 0; i < op->n_in; i++)
        reach(e, op->in[i], (FormSet)(1u << rule->form[i]));
    program_compute(e->program, id, rule->form, op->n_in + op->n_out);
    for (uint32_t o = 0; o < op->n_out; o++)
        e->held[op->out[o]] |= (FormSet)(1u << rule->form[op->n_in + o]);
}

/* Forms of `tensor` that the backward ops read. */
static FormSet reads_of(const Emitter *e, uint32_t n, const OpId *backward,
                        TensorId tensor)
{
    FormSet wanted = 0;
    for (uint32_t k = 0; k < n; k++) {
        const Op *b = graph_get_op(e->graph, backward[k]);
        for (uint32_t i = 0; i < b->n_in; i++)
            if (b->in[i] == tensor)
                wanted |= (FormSet)(1u << e->assignment->rule[backward[k]].form[i]);
    }
    return wanted;
}

/* A tensor that the backward reads as a slice is sliced at once, so that the replica need not be
 * kept. */
static void save_slice(Emitter *e, TensorId tensor, FormSet wanted)
{
    FormSet slices = wanted & (FormSet)~e->held[tensor] & (FormSet) ~(1u << FORM_REDUCE);
    if ((e->held[tensor] >> FORM_IDENTITY & 1u) &&
        graph_tensor(e->graph, tensor)->role == ROLE_ACTIVATION)
        reach(e, tensor, slices);
}

static void save_slices(Emitter *e, OpId id)
{
    const Op *op = graph_get_op(e->graph, id);
    OpId backward[MAX_BACKWARD];
    uint32_t n = backward_ops(e->graph, id, backward);
    for (uint32_t i = 0; i < op->n_in; i++)
        save_slice(e, op->in[i], reads_of(e, n, backward, op->in[i]));
    for (uint32_t o = 0; o < op->n_out; o++)
        save_slice(e, op->out[o], reads_of(e, n, backward, op->out[o]));
}

/* Emits one step of conversions for everything that the backward ops of `id` read, their
 * computations, and one step for its contributions; then the deferred ops, and sums. */
static void emit_backward(Emitter *e, OpId id)
{
    const Op *op = graph_get_op(e->graph, id);
    OpId backward[MAX_BACKWARD];
    uint32_t n = backward_ops(e->graph, id, backward);
    for (uint32_t k = 0; k < n; k++) {
        const Op *b = graph_get_op(e->graph, backward[k]);
        for (uint32_t i = 0; i < b->n_in; i++)
            reach(e, b->in[i], reads_of(e, n, backward, b->in[i]));
    }
    for (int pass = 0; pass < 2; pass++) { /* all conversions, then all accumulations */
        for (uint32_t k = 0; k < n; k++)
            if (e->assignment->deferred[backward[k]] == (pass == 1))
                compute(e, backward[k]);
        for (uint32_t i = 0; i < op->n_in; i++) {
            TensorId contribution = graph_contribution(e->graph, id, i);
            OpId accumulation = graph_accumulation(e->graph, id, i);
            if (contribution == GRAPH_NONE || !e->needed[contribution] ||
                graph_tensor(e->graph, op->in[i])->role == ROLE_PARAMETER)
                continue;
            if (pass == 0)
                reach(e, contribution,
                      (FormSet)(1u << e->assignment->gradient[op->in[i]]));
            else if (accumulation != GRAPH_NONE)
                compute(e, accumulation);
        }
    }
}

/* Emits all gradient conversions in one step, the updates, and the conversions of updated values
 * back to rest. */
static void emit_updates(Emitter *e)
{
    for (int pass = 0; pass < 3; pass++)
        ops_each (op, id, e->graph) {
            if (op->pass != PASS_UPDATE)
                continue;
            const Rule *rule = &e->assignment->rule[id];
            if (pass == 0)
                for (uint32_t i = 0; i < op->n_in; i++)
                    reach(e, op->in[i], (FormSet)(1u << rule->form[i]));
            else if (pass == 1)
                compute(e, id);
            else
                reach(e, op->out[0], (FormSet)(1u << e->assignment->rest[op->in[0]]));
        }
}

static void collect_needs(Emitter *e)
{
    ops_each (op, id, e->graph) {
        for (uint32_t i = 0; i < op->n_in; i++)
            if (op->pass != PASS_UPDATE)
                e->needed[op->in[i]] |= (FormSet)(1u << e->assignment->rule[id].form[i]);
    }
}

Program *synth_emit(const Pricer *pricer, const Assignment *assignment, GError **error)
{
    const Graph *graph = pricer->graph;
    g_autofree FormSet *held = g_new0(FormSet, graph_n_tensors(graph));
    g_autofree FormSet *needed = g_new0(FormSet, graph_n_tensors(graph));
    g_autoptr(Program) program = program_new();
    Emitter e = {.pricer = pricer,
                 .graph = graph,
                 .assignment = assignment,
                 .program = program,
                 .held = held,
                 .needed = needed,
                 .stuck = GRAPH_NONE};
    collect_needs(&e);
    emit_loads(&e);
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        if (graph_tensor(graph, t)->role == ROLE_PARAMETER)
            reach(&e, t, needed[t]);
    OpId loss = graph_tensor(graph, graph_loss(graph))->producer;
    for (OpId id = 0; id <= loss; id++) {
        compute(&e, id);
        save_slices(&e, id);
    }
    for (OpId id = loss + 1; id-- > 0;)
        emit_backward(&e, id);
    emit_updates(&e);
    if (e.stuck != GRAPH_NONE) {
        kilter_fail(error, KILTER_ERROR_FAILED,
                    "no conversion brings tensor '%s' into the form that is needed",
                    graph_tensor(graph, e.stuck)->name);
        return NULL;
    }
    return g_steal_pointer(&program);
}
