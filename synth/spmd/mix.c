/* Programs that do some layers as one program does and all others as another one.
 *
 * Where memory binds, searches for given prices of memory find programs that save it in all of the
 * layers that are alike or in none. What lies between is mixed from two of them: the decisions of
 * each layer are read off the program that it is taken from, and the whole is emitted anew, which
 * puts conversions between layers in place. */
#include "synth/spmd/assignment.h"

/* [instr by op]: the computation of each op; UINT32_MAX where there is none. Caller frees. */
static uint32_t *computations(const Program *program, const Graph *graph)
{
    const uint32_t n = graph_n_ops(graph);
    uint32_t *at = g_new(uint32_t, n);
    for (OpId id = 0; id < n; id++)
        at[id] = UINT32_MAX;
    for (uint32_t i = 0; i < program->n; i++)
        if (program->instr[i].kind == INSTR_COMPUTE)
            at[program->instr[i].op] = i;
    return at;
}

/* The first form in which the backward ops of `id` read a tensor, or that in which it was made. */
static Form form_read(const Program *program, const Graph *graph, const uint32_t *at,
                      OpId id, TensorId tensor)
{
    OpId backward[MAX_BACKWARD];
    const uint32_t n = backward_ops(graph, id, backward);
    const OpId by = graph_tensor(graph, tensor)->producer;
    for (uint32_t k = 0; k < n; k++) {
        const Op *b = graph_get_op(graph, backward[k]);
        for (uint32_t i = 0; i < b->n_in; i++)
            if (b->in[i] == tensor)
                return program->instr[at[backward[k]]].form[i];
    }
    if (by == GRAPH_NONE)
        return FORM_IDENTITY;
    const Op *maker = graph_get_op(graph, by);
    for (uint32_t o = 0; o < maker->n_out; o++)
        if (maker->out[o] == tensor)
            return program->instr[at[by]].form[maker->n_in + o];
    g_assert_not_reached();
}

/* The forms in which gradients of the layers' activations are added up, or read if they are not. */
static void mix_read_gradients(const Program *program, const Graph *graph,
                               const uint32_t *at, bool take, const bool *from,
                               Assignment *a)
{
    ops_each (op, id, graph) {
        if (op->pass != PASS_FORWARD || from[op->layer] != take)
            continue;
        for (uint32_t o = 0; o < op->n_out; o++) {
            const TensorId gradient = graph_gradient(graph, op->out[o]);
            if (gradient != GRAPH_NONE)
                a->gradient[op->out[o]] = form_read(program, graph, at, id, gradient);
        }
    }
    ops_each (op, id, graph) {
        for (uint32_t i = 0; i < op->n_in && op->pass == PASS_FORWARD; i++) {
            const OpId sum = graph_accumulation(graph, id, i),
                       by = graph_tensor(graph, op->in[i])->producer;
            if (sum != GRAPH_NONE && by != GRAPH_NONE &&
                from[graph_get_op(graph, by)->layer] == take)
                a->gradient[op->in[i]] = program->instr[at[sum]].form[0];
        }
    }
}

/* The layer to which the decisions on an op belong: that of the forward op, and for an update that
 * of the op that reads the parameter. */
static uint32_t layer_of(const Graph *graph, const uint32_t *reader_layer, OpId id)
{
    const Op *op = graph_get_op(graph, id);
    if (op->pass == PASS_UPDATE)
        return reader_layer[op->in[0]];
    return op->of == GRAPH_NONE ? op->layer : graph_get_op(graph, op->of)->layer;
}

/* [tensor]: the layer of the first forward op that reads it. Caller frees. */
static uint32_t *reader_layers(const Graph *graph)
{
    uint32_t *layer = g_new0(uint32_t, graph_n_tensors(graph));
    for (OpId id = graph_n_ops(graph); id-- > 0;) {
        const Op *op = graph_get_op(graph, id);
        for (uint32_t i = 0; i < op->n_in && op->pass == PASS_FORWARD; i++)
            layer[op->in[i]] = op->layer;
    }
    return layer;
}

/* Takes the decisions of a program on the layers with from[layer] == take. False if the program
 * lacks one. */
static bool read_decisions(const Program *program, const Graph *graph, bool take,
                           const bool *from, Assignment *a)
{
    g_autofree uint32_t *at = computations(program, graph),
                        *reader = reader_layers(graph);
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        if (from[layer_of(graph, reader, id)] != take)
            continue;
        if (at[id] == UINT32_MAX ||
            !op_rule_find(graph, id, program->instr[at[id]].form, &a->rule[id]))
            return false;
    }
    items_each (const Instr, instr, program->instr, program->n) {
        if (instr->kind != INSTR_LOAD)
            continue;
        const Tensor *tensor = graph_tensor(graph, instr->tensor);
        const TensorId of = tensor->role == ROLE_OPTIMIZER ? tensor->of : instr->tensor;
        if (from[reader[of]] == take)
            a->rest[instr->tensor] = instr->to;
    }
    mix_read_gradients(program, graph, at, take, from, a);
    return true;
}

Program *synth_mix(const Graph *graph, const ClusterView *view, const double *ratio,
                   const Program *program, const Program *other, const bool *from_other,
                   GError **error)
{
    g_auto(Pricer) pricer = {0};
    pricer_init(&pricer, graph, view, ratio, NULL);
    g_auto(Assignment) assignment = {0};
    assignment_init(&assignment, graph);
    if (read_decisions(program, graph, false, from_other, &assignment) &&
        read_decisions(other, graph, true, from_other, &assignment))
        return synth_emit(&pricer, &assignment, error);
    kilter_fail(error, KILTER_ERROR_FAILED, "model '%s': a program lacks an op",
                graph_name(graph));
    return NULL;
}
