/* Random valid programs, built by walking a graph and keeping the forms each tensor has. */
#include "tests/support/random_program.h"

typedef struct {
    GRand *rand;
    const Graph *graph;
    Program *program;
    uint8_t *held; /* [tensor]: set of forms that exist, bit f: form f */
    Form *at_rest; /* [tensor]: form it is loaded in */
} Walk;

static bool holds(const Walk *walk, TensorId tensor, Form form)
{
    return walk->held[tensor] >> form & 1u;
}

static uint32_t below(Walk *walk, uint32_t n)
{
    return (uint32_t)g_rand_int_range(walk->rand, 0, (gint32)n);
}

/* Makes the instance by a random conversion of an existing one. */
static void obtain(Walk *walk, TensorId tensor, Form form)
{
    struct {
        Collective kind;
        Form from;
    } way[COLLECTIVES * FORM_MAX];
    uint32_t n = 0;

    if (holds(walk, tensor, form))
        return;
    for (Form from = 0; from < FORM_MAX; from++)
        for (int kind = 0; kind < COLLECTIVES; kind++)
            if (holds(walk, tensor, from) &&
                collective_converts((Collective)kind, from, form)) {
                way[n].kind = (Collective)kind;
                way[n++].from = from;
            }
    g_assert(n > 0);
    const uint32_t i = below(walk, n);
    program_collective(walk->program, way[i].kind, tensor, way[i].from, form);
    walk->held[tensor] |= (uint8_t)(1u << form);
}

/* Identity, or Gather on a dimension that can be cut. */
static Form random_form(Walk *walk, TensorId tensor)
{
    const Tensor *t = graph_tensor(walk->graph, tensor);
    const uint32_t d = below(walk, t->rank + 1);

    return d < t->rank && t->units[d] > 1 ? form_gather(d) : FORM_IDENTITY;
}

static void load_all(Walk *walk)
{
    for (TensorId t = 0; t < graph_n_tensors(walk->graph); t++) {
        if (graph_tensor(walk->graph, t)->producer != GRAPH_NONE)
            continue;
        walk->at_rest[t] = random_form(walk, t);
        program_load(walk->program, t, walk->at_rest[t]);
        walk->held[t] = (uint8_t)(1u << walk->at_rest[t]);
    }
}

static void run_op(Walk *walk, OpId id)
{
    const Op *op = graph_get_op(walk->graph, id);
    Rule rule[OP_MAX_RULES];
    const Rule *r = &rule[below(walk, op_rules(walk->graph, id, rule))];

    if (below(walk, 6) == 0) {
        const TensorId any = below(walk, graph_n_tensors(walk->graph));
        if (walk->held[any])
            obtain(walk, any, random_form(walk, any));
    }
    for (uint32_t i = 0; i < op->n_in; i++)
        obtain(walk, op->in[i], r->form[i]);
    program_compute(walk->program, id, r->form, op->n_in + op->n_out);
    for (uint32_t i = 0; i < op->n_out; i++)
        walk->held[op->out[i]] |= (uint8_t)(1u << r->form[op->n_in + i]);
}

/* Data parallelism's step before the updates: all gradients of parameters become whole in one
 * step. */
static void gather_gradients(Walk *walk)
{
    for (TensorId t = 0; t < graph_n_tensors(walk->graph); t++) {
        const Tensor *tensor = graph_tensor(walk->graph, t);
        if (tensor->role == ROLE_PARAMETER && graph_updated(walk->graph, t) != GRAPH_NONE)
            obtain(walk, graph_gradient(walk->graph, t), FORM_IDENTITY);
    }
}

Program *random_program(GRand *rand, const Graph *graph)
{
    const uint32_t n_tensors = graph_n_tensors(graph);
    g_autofree uint8_t *held = g_new0(uint8_t, n_tensors);
    g_autofree Form *at_rest = g_new0(Form, n_tensors);
    Walk walk = {rand, graph, program_new(), held, at_rest};

    load_all(&walk);
    for (OpId id = 0, updates = 0; id < graph_n_ops(graph); id++) {
        if (graph_get_op(graph, id)->pass == PASS_UPDATE && updates++ == 0 &&
            below(&walk, 2))
            gather_gradients(&walk);
        run_op(&walk, id);
    }
    for (TensorId t = 0; t < n_tensors; t++)
        if (graph_updated(graph, t) != GRAPH_NONE)
            obtain(&walk, graph_updated(graph, t), at_rest[t]);
    return walk.program;
}
