/* HiDup's search (Sec. 4) on a graph: the chain that the duplex search walks, and the program of
 * its solution.
 *
 * A node is a forward op with its adjoint backward ops (synth/hap/reference/reference.h), a choice
 * a rule of it and where its parameters rest. A parameter that the op reads cut rests as it is
 * read. A parameter that it reads whole is either replicated, and its gradient all-reduced, or cut,
 * and then gathered before the op and its gradient reduce-scattered (Sec. 6.10). The first
 * microbatch gathers for both; the second synchronizes, when the gradients of both are summed. */
#include "data/base/free.h"
#include "synth/hap/reference/reference.h"
#include "synth/hidup/duplex.h"
#include "synth/hidup/hidup.h"

typedef struct {
    Pricer half, whole; /* prices of one microbatch, and of work done once for both */
    SynthHidupOptions options;
    ClusterView believed; /* the cluster with communication changed by the options */
    double *op_factor;    /* [op]: factor on its computation */
    ReferenceTheory *theory;
    DuplexProblem problem;
    GArray *placed; /* Placed, by DuplexChoice.id */
} Hidup;

/* The rule that a choice stands for. */
typedef struct {
    const Fused *fused;
    bool cut; /* parameters that are read whole are cut at rest */
} Placed;

/* --- parameters --- */

/* The form that cuts the dim with the most pieces; false if there is none. */
static bool hidup_widest(const Graph *graph, TensorId parameter, Form *form)
{
    const Tensor *t = graph_tensor(graph, parameter);
    uint32_t best = 0;
    for (uint32_t d = 1; d < t->rank; d++)
        if (t->units[d] > t->units[best])
            best = d;
    *form = form_gather(best);
    return t->rank > 0 && form_can_hold(graph, parameter, *form);
}

static Form rest_of(const Graph *graph, const Op *op, const Placed *placed,
                    uint32_t input)
{
    Form rest = placed->fused->triple.rule.form[input];
    Form best;
    if (placed->cut && rest == FORM_IDENTITY && hidup_widest(graph, op->in[input], &best))
        rest = best;
    if (!parameter_updates_in(graph, op->in[input], rest))
        rest = FORM_IDENTITY;
    return rest;
}

/* Seconds to convert a whole tensor, inner communication included. */
static double hidup_conversion_s(const Pricer *pricer, TensorId tensor, Form from,
                                 Form to)
{
    FormSet held = (FormSet)(1u << from);
    Step step = {0};
    bool reached = price_reach(pricer, tensor, &held, (FormSet)(1u << to), &step);
    g_assert(reached);
    return step.comm_s + times_max(pricer, &step.inner);
}

/* The charge for holding a tensor on all devices. */
static double charge_s(const Hidup *h, TensorId tensor, Form form)
{
    const double copies = form_is_gather(form) ? 1 : h->whole.view->n_devices;
    return h->options.memory_s * copies *
           (double)tensor_bytes(graph_tensor(h->whole.graph, tensor));
}

/* The charge for the memory of a parameter, its gradient and its optimizer states, which are whole
 * if they are read and made whole. */
static void hidup_charge(const Hidup *h, TensorId parameter, Form read, Form rest,
                         DuplexChoice *choice)
{
    const Graph *graph = h->whole.graph;
    const OpId update = parameter_update(graph, parameter);
    const bool frozen = update == GRAPH_NONE;
    double s =
        (frozen ? 1 : graph_get_op(graph, update)->n_in) * charge_s(h, parameter, rest);
    if (rest != read)
        s += (frozen ? 1 : 2) * charge_s(h, parameter, read);
    for (uint32_t c = 0; c < h->whole.n_classes; c++)
        choice->update.s[c] += s;
}

static void price_parameters(const Hidup *h, const Placed *placed, DuplexChoice *choice)
{
    const Graph *graph = h->whole.graph;
    const Op *op = graph_get_op(graph, placed->fused->triple.op);
    values_at (const TensorId, parameter, i, op->in, op->n_in) {
        if (graph_tensor(graph, parameter)->role != ROLE_PARAMETER)
            continue;
        const Form read = placed->fused->triple.rule.form[i],
                   rest = rest_of(graph, op, placed, i);
        choice->gather_s[0] += hidup_conversion_s(&h->whole, parameter, rest, read);
        hidup_charge(h, parameter, read, rest, choice);
        const OpId update = parameter_update(graph, parameter);
        if (update == GRAPH_NONE)
            continue;
        Rule rule;
        parameter_update_rule(graph, update, rest, &rule);
        const Times work = price_rule(&h->whole, update, &rule);
        times_add(&h->whole, &choice->update, &work);
        choice->sync_s[1] += hidup_conversion_s(
            &h->whole, graph_gradient(graph, parameter), reference_adjoint(read), rest);
    }
}

/* --- choices --- */

/* Work of the forward op and of its backward ops on one microbatch. */
static void price_computation(const Hidup *h, const Fused *fused, DuplexChoice *choice)
{
    const double factor = h->op_factor[fused->triple.op] / 2;
    choice->forward = fused->forward;
    choice->back = fused->back;
    for (uint32_t c = 0; c < h->half.n_classes; c++) {
        choice->forward.s[c] *= factor;
        choice->back.s[c] *= factor;
    }
}

/* Whether the op reads a parameter whole that is more than a vector. */
static bool reads_weights(const Graph *graph, const Fused *fused)
{
    const Op *op = graph_get_op(graph, fused->triple.op);
    bool whole = false;
    for (uint32_t i = 0; i < op->n_in; i++) {
        const Tensor *t = graph_tensor(graph, op->in[i]);
        whole |= t->role == ROLE_PARAMETER && t->rank > 1 &&
                 fused->triple.rule.form[i] == FORM_IDENTITY;
    }
    return whole;
}

/* Adds the node's choices. Weights that are read whole rest whole or cut, and their gradients open
 * a stage; vectors' gradients join one. */
static void add_choices(Hidup *h, DuplexNode *node, const Fused *fused)
{
    const Graph *graph = h->whole.graph;
    const Op *op = graph_get_op(graph, fused->triple.op);
    const bool weights = reads_weights(graph, fused);
    for (uint32_t cut = 0; cut < (weights ? 2 : 1); cut++) {
        const Placed placed = {fused, cut};
        DuplexChoice choice = {.id = h->placed->len, .joins = !weights};
        uint32_t k = 0;
        for (uint32_t i = 0; i < op->n_in; i++)
            if (h->theory->index[op->in[i]] != GRAPH_NONE)
                choice.in[k++] = fused->triple.rule.form[i];
        for (uint32_t o = 0; o < node->n_out; o++)
            choice.out[o] = fused->triple.rule.form[op->n_in + o];
        price_computation(h, fused, &choice);
        price_parameters(h, &placed, &choice);
        g_array_append_val(h->placed, placed);
        duplex_add_choice(node, h->half.n_classes, &choice);
    }
}

static void add_nodes(Hidup *h)
{
    const Graph *graph = h->whole.graph;
    DuplexProblem *p = &h->problem;
    for (OpId id = 0; id < p->n_nodes; id++) {
        const Op *op = graph_get_op(graph, id);
        DuplexNode *node = &p->node[id];
        node->choices = g_array_new(FALSE, FALSE, sizeof(DuplexChoice));
        for (uint32_t i = 0; i < op->n_in; i++)
            if (h->theory->index[op->in[i]] != GRAPH_NONE)
                node->in[node->n_in++] = h->theory->index[op->in[i]];
        for (uint32_t o = 0; o < op->n_out; o++)
            node->out[node->n_out++] = h->theory->index[op->out[o]];
    }
    array_each (const Fused, fused, h->theory->fused)
        if (fused->triple.kind == TRIPLE_COMPUTE)
            add_choices(h, &p->node[fused->triple.op], fused);
}

/* --- conversions --- */

/* Finds one tensor's conversions by one collective or local step, each with the cheapest way back
 * for its gradient. */
static void find_conversions(const Hidup *h, TensorId tensor,
                             DuplexConversion conversion[FORM_MAX][FORM_MAX])
{
    const Graph *graph = h->half.graph;
    const TensorId gradient = graph_gradient(graph, tensor);
    for (Form from = 0; from < FORM_MAX; from++)
        for (Form to = 0; to < FORM_MAX; to++) {
            FormSet held = (FormSet)(1u << from), back = 0;
            Step step = {0}, back_step = {0};
            if (from == to || !form_can_hold(graph, tensor, from) ||
                !form_can_hold(graph, tensor, to) ||
                !price_reach(&h->half, tensor, &held, (FormSet)(1u << to), &step))
                continue;
            back = (FormSet)(1u << reference_adjoint(to));
            if (gradient != GRAPH_NONE &&
                !price_reach(&h->half, gradient, &back,
                             (FormSet)(1u << reference_adjoint(from)), &back_step))
                continue;
            conversion[from][to] = (DuplexConversion){
                .can = true,
                .opens = step.closes || back_step.closes,
                .forward_s = step.comm_s + times_max(&h->half, &step.inner),
                .back_s = back_step.comm_s + times_max(&h->half, &back_step.inner)};
        }
}

static void add_conversions(Hidup *h)
{
    DuplexProblem *p = &h->problem;
    for (uint32_t t = 0; t < p->n_tensors; t++) {
        DuplexConversion(*conversion)[FORM_MAX] =
            g_malloc0_n(FORM_MAX, sizeof *conversion);
        find_conversions(h, h->theory->tensor[t], conversion);
        p->conversion[t] = (DuplexConversions *)(void *)conversion;
    }
}

/* --- programs --- */

static Program *hidup_program_of(const Hidup *h, const DuplexSolution *solution,
                                 GError **error)
{
    const Graph *graph = h->whole.graph;
    g_autofree const Fused **chosen = g_new(const Fused *, h->problem.n_nodes);
    g_autofree Form *rest = g_new0(Form, graph_n_tensors(graph));
    for (OpId id = 0; id < h->problem.n_nodes; id++) {
        const Op *op = graph_get_op(graph, id);
        const Placed *placed =
            &g_array_index(h->placed, Placed, solution->choice[id]->id);
        chosen[id] = placed->fused;
        for (uint32_t i = 0; i < op->n_in; i++)
            if (graph_tensor(graph, op->in[i])->role == ROLE_PARAMETER)
                rest[op->in[i]] = rest_of(graph, op, placed, i);
    }
    return reference_emit(h->theory, h->problem.n_nodes, chosen, rest, error);
}

/* --- what the search believes --- */

static double draw(const Hidup *h, GRand *random)
{
    return 1 + h->options.noise * g_rand_double_range(random, -1, 1);
}

static void stretch(LinkCost *line, double factor)
{
    line->latency_s *= factor;
    line->bandwidth /= factor;
}

static void believe(Hidup *h, const Graph *graph, const ClusterView *view)
{
    g_autoptr(GRand) random = g_rand_new_with_seed((guint32)h->options.seed);
    const double longer = 1 + h->options.communication;
    h->believed = *view;
    h->believed.device = g_memdup2(view->device, view->n_devices * sizeof *view->device);
    for (uint32_t k = 0; k < COLLECTIVES_PRICED; k++) {
        const double factor = longer * draw(h, random);
        stretch(&h->believed.collective[k], factor);
        CollectivePieces *pieces = &h->believed.pieces[k];
        pieces->piece = g_memdup2(pieces->piece, pieces->n * sizeof *pieces->piece);
        for (uint32_t i = 0; i < pieces->n; i++)
            stretch(&pieces->piece[i].line, factor);
    }
    const double inner = longer * draw(h, random), devices = draw(h, random);
    for (uint32_t j = 0; j < view->n_devices; j++)
        stretch(&h->believed.device[j].inner, inner);
    h->op_factor = g_new(double, graph_n_ops(graph));
    for (OpId op = 0; op < graph_n_ops(graph); op++)
        h->op_factor[op] = devices * draw(h, random);
}

static bool hidup_init(Hidup *h, const Graph *graph, const ClusterView *view,
                       const double *ratio, const SynthHidupOptions *options,
                       GError **error)
{
    h->options = options ? *options : (SynthHidupOptions){0};
    believe(h, graph, view);
    pricer_init(&h->half, graph, &h->believed, ratio, NULL);
    h->half.part = 0.5;
    pricer_init(&h->whole, graph, &h->believed, ratio, NULL);
    h->placed = g_array_new(FALSE, FALSE, sizeof(Placed));
    h->theory = reference_theory_new(&h->whole, error);
    if (!h->theory)
        return false;
    h->problem = (DuplexProblem){
        .n_nodes = h->theory->n_ops,
        .n_tensors = h->theory->n_tensors,
        .n_classes = h->half.n_classes,
        .node = g_new0(DuplexNode, h->theory->n_ops),
        .conversion = g_new0(DuplexConversions *, h->theory->n_tensors),
        .cost = h->options.serial_back ? DUPLEX_SERIAL_BACK : DUPLEX_OVERLAPPED,
        .goal = FORM_REDUCE,
    };
    add_nodes(h);
    add_conversions(h);
    return true;
}

static void hidup_clear(Hidup *h)
{
    for (uint32_t i = 0; i < h->problem.n_nodes; i++)
        g_array_unref(h->problem.node[i].choices);
    free_items(h->problem.conversion, h->problem.n_tensors);
    free_column(h->believed.pieces, COLLECTIVES_PRICED, piece);
    free_each(h->problem.node, h->problem.conversion, h->op_factor, h->believed.device);
    g_array_unref(h->placed);
    reference_theory_free(h->theory);
    pricer_clear(&h->half);
    pricer_clear(&h->whole);
}

bool synth_hidup(const Graph *graph, const ClusterView *view, const double *ratio,
                 const SynthHidupOptions *options, SynthResult *result, GError **error)
{
    *result = (SynthResult){0};
    const gint64 start = g_get_monotonic_time();
    Hidup h = {0};
    DuplexSolution solution = {0};
    bool done = hidup_init(&h, graph, view, ratio, options, error);
    if (done && !duplex_solve(&h.problem, &solution))
        done = kilter_fail(error, KILTER_ERROR_FAILED,
                           "model '%s': the duplex search found no program",
                           graph_name(graph));
    if (done) {
        result->program = hidup_program_of(&h, &solution, error);
        done = result->program != NULL;
    }
    result->time_s = solution.time_s;
    result->states = solution.states;
    result->labels = solution.labels;
    result->expansions = solution.expansions;
    const SynthHidupOptions *o = &h.options;
    result->optimal = done && !solution.narrow && h.half.exact && o->memory_s == 0 &&
                      o->noise == 0 && o->communication == 0 && !o->serial_back;
    duplex_solution_clear(&solution);
    hidup_clear(&h);
    result->search_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return done;
}
